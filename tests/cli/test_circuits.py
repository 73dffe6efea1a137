"""Does `headscope circuits` do what it says, and what does it refuse?"""

from __future__ import annotations

import json

import pytest

from experiments.circuits import made
from experiments.importance.made import language_model

QUICK = ("--sequences", "10", "--length", str(made.LENGTH), "--linears", "stock")


@pytest.fixture
def desk(tmp_path):
    """A decoder in the folder where the commands run."""
    made.saved(tmp_path / "decoder", made.wired())
    return tmp_path


def test_a_decoder_is_told_apart_and_the_run_is_opened_again(headscope, desk):
    done = headscope("circuits", "decoder", "-o", "run", *QUICK, "--control", "none")
    assert done.code == 0, done.err
    assert "2 layers × 2 heads, 20 made inputs" in done.out
    assert "  induction: L2·H1 100 %" in done.out
    page = (desk / "run/report.html").read_text("utf-8")
    assert "Where heads of" in page
    assert (desk / "run/figures/circuits.png").is_file()
    assert (desk / "run/tables/circuit_pairs.csv").is_file()
    told = headscope("circuits", "decoder", "-o", "run", *QUICK, "--control", "none", "--json")
    summary = json.loads(told.out)
    assert summary["labels"]["successor"] == [[0, 1]]
    assert summary["verdicts"]["successor"] == "holds"
    assert summary["verdicts"]["retrieval"] == "not asked"


def test_which_heads_retrieve_is_written_for_those_who_serve(headscope, desk):
    (desk / "hay.txt").write_text(" ".join(["cat dog tree house"] * 10))
    asked = ("--control", "none", "--no-report", "--no-composition", "--needles", "10")
    asked += ("--export", "duo", "--haystack")
    done = headscope("circuits", "decoder", "-o", "run", *QUICK, *asked, "20", "--text", "hay.txt")
    assert done.code == 0, done.err
    assert "exported: run/gates-mean/full_attention_heads.tsv" in done.out.replace("\\", "/")
    gates = (desk / "run/gates-mean/full_attention_heads.tsv").read_text().splitlines()
    assert [list(map(float, row.split("\t"))) for row in gates] == [[0, 0], [1, 0]]
    refused = headscope("circuits", "decoder", "-o", "other", *QUICK, *asked, "0")
    assert refused.code == 2
    assert "there is no haystack in this run" in refused.err
    assert not (desk / "other").exists()


def test_what_has_no_head_or_sees_what_comes_is_refused(headscope, desk):
    language_model(desk / "masked")
    (desk / "short.txt").write_text("cat dog tree\n")
    for words, told in (
        (("decoder", "--export", "mib"), "wanted --prompts"),
        (("masked",), "masked language model"),
        (("decoder", "--length", "50"), "give a smaller --length"),
        (("decoder", "--length", "12", "--haystack", "20", "--text", "short.txt"), "the text has"),
        (("decoder", "--sequences", "3"), "3 is not in the range x>=10"),
        (("decoder", "--views", "2"), "found --views; wanted --prompts"),
        (("decoder", "--length", "12", "--control", "masked"), "masked"),
    ):
        done = headscope("circuits", *words, "-o", "run", "--linears", "stock")
        assert done.code == 2, (words, done.err)
        assert told in done.err
        assert not (desk / "run").exists()
