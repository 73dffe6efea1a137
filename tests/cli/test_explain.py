"""Does `headscope explain` write a page that says what rules are worth, and refuse in time?"""

from __future__ import annotations

import json

QUICK = ("--inputs", "6", "--choosing", "6", "--replicates", "20", "--linears", "stock")
EXPLAIN = ("explain", "model", "--demo", "--limit", "3", *QUICK)


def test_a_page_says_how_much_rules_lose(headscope, tiny_place, tmp_path):
    (tmp_path / "model").symlink_to(tiny_place)
    done = headscope(*EXPLAIN, "-o", "run", "--shares", "25,100", "--draws", "1")
    assert done.code == 0, done.err
    assert "tried on 6 inputs" in done.out
    assert (
        "of its heads (those whose output rules change least) replaced by their rules, the output"
        in done.out
    )
    page = (tmp_path / "run/report.html").read_text("utf-8")
    assert "Can rules stand in for heads?" in page
    assert (tmp_path / "run/tables/replay_curves.csv").is_file()
    again = headscope(
        *EXPLAIN, "-o", "run", "--shares", "25,100", "--draws", "1", "--json", "--no-report"
    )
    told = json.loads(again.out)
    assert set(told["change"]) == {"rules", "rest", "mean_map", "even", "another_head"}
    assert set(told["change"]["rules"]) == {"explained", "random"}


def test_named_heads_are_replaced_by_rules_of_a_file(headscope, tiny_place, tmp_path):
    (tmp_path / "model").symlink_to(tiny_place)
    own = {"heads": {"L1H2": {"rules": [{"rule": "the previous token", "weight": 0.5}]}}}
    (tmp_path / "mine.json").write_text(json.dumps(own), "utf-8")
    done = headscope(*EXPLAIN, "-o", "run", "--rules", "mine.json", "--replacements", "rules,even")
    assert done.code == 0, done.err
    assert "With the attention of L1·H2 replaced by your rules, the output vectors" in done.out
    own["heads"]["L1H2"]["rules"][0]["rule"] = "the previous tken"
    (tmp_path / "mine.json").write_text(json.dumps(own), "utf-8")
    done = headscope(*EXPLAIN, "-o", "other", "--rules", "mine.json")
    assert done.code == 2
    assert "no rule called 'the previous tken'; did you mean 'the previous token'?" in done.err
    assert not (tmp_path / "other").exists()


def test_an_atlas_in_the_place_of_a_model_brings_its_rules(headscope, tiny_place, tmp_path):
    (tmp_path / "model").symlink_to(tiny_place)
    told = ("--demo", "--limit", "4", "--control", "none", "--analyses", "explained", "--no-report")
    assert headscope("atlas", "model", *told, "-o", "run").code == 0
    done = headscope("explain", "run", *EXPLAIN[2:], "-o", "explained", "--shares", "50")
    assert done.code == 0, done.err
    assert "The rules are those of an atlas that read the same texts." in done.out
    assert "note: the atlas read the same texts: inputs that try the rules here may have" in (
        done.out + done.err
    )
    (tmp_path / "model").unlink()
    done = headscope("explain", "run", *EXPLAIN[2:], "-o", "again")
    assert done.code == 2
    assert "run is a run of 'model': cannot load 'model'" in done.err
    assert not (tmp_path / "again").exists()
