"""Do `headscope ablate` and `headscope prune` do what they say, and refuse what cannot be?"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from headscope.cli.main import group
from headscope.errors import InputError
from headscope.experiments.ablation.settings import group_named
from headscope.run.netcdf import tree_as_netcdf, tree_of_netcdf
from headscope.run.store import RunFolder
from tasks.made import AMOUNT, MOOD, checkpoint, rows, write_tsv

QUICK = ("--replicates", "20", "--batch-tokens", "200", "--linears", "stock")


@pytest.fixture
def desk(tmp_path):
    """A checkpoint and its data, in the folder where the commands run."""
    checkpoint(tmp_path / "model", head=MOOD)
    write_tsv(tmp_path / "data/train.tsv", rows(30, seed=1))
    write_tsv(tmp_path / "data/dev.tsv", rows(24, seed=2))
    return tmp_path


ABLATE = ("ablate", "model", "--task", "mood", "--data", "data", *QUICK)
PRUNE = (
    "prune",
    "model",
    "--task",
    "mood",
    "--data",
    "data",
    *QUICK,
    "--step",
    "2",
    "--draws",
    "1",
)
PRUNE += ("--choose", "12")


def test_ablate_writes_a_run_with_a_report_and_says_what_it_found(headscope, desk):
    done = headscope(*ABLATE, "-o", "run")
    assert done.code == 0, done.err
    assert "2 layers × 3 heads on 24 examples of mood" in done.out
    assert "Of 6 heads by accuracy:" in done.out
    assert "(q < 0.05, corrected for 6 heads" in done.out
    assert "Of 2 layers, each without all its heads:" in done.out
    assert (desk / "run/report.html").is_file()
    for name in ("ablation.svg", "ablation.png", "ablation_loss.svg"):
        assert (desk / "run/figures" / name).is_file()
    for name in ("ablation.csv", "ablation_effects.csv", "ablation_flips.parquet"):
        assert (desk / "run/tables" / name).is_file()
    (desk / "run/report.html").unlink()
    assert headscope("report", "run").code == 0
    assert (desk / "run/report.html").is_file()


def test_ablate_as_json_counts_every_head_and_layer_once(headscope, desk):
    done = headscope(*ABLATE, "-o", "run", "--json", "--no-report", "--together", "1-2+2-3")
    told = json.loads(done.out)
    assert sum(told["verdict"].values()) == sum(told["loss_verdict"].values()) == 6
    assert sum(told["layer_verdict"].values()) == 2
    assert (told["task"], told["metric"], told["way"]) == ("mood", "accuracy", "shared")
    assert told["report"] is None
    assert told["replacement"] == "uniform"
    assert told["counts"]["examples"] == 24
    again = json.loads(
        headscope(*ABLATE, "-o", "run", "--json", "--no-report", "--together", "1-2+2-3").out
    )
    assert again == told


def test_examples_that_were_cut_and_left_out_are_told(headscope, desk):
    done = headscope(*ABLATE, "-o", "run", "--no-report", "--max-length", "8", "--limit", "10")
    assert "of 10 examples were cut" in done.out
    assert "10 of 24 examples, drawn with seed 0" in done.out


def test_groups_are_named_as_papers_name_heads():
    assert group_named("4-1+2-12") == ((3, 0), (1, 11))
    assert group_named("L1H2 + L3·H4") == ((0, 1), (2, 3))
    with pytest.raises(InputError):
        group_named("4-1+tail")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--together", "9-1"), "no head L9·H1"),
        (("--together", "1+2"), "8-10"),
        (("--pairs", "1"), "at least 2 pairs"),
        (("--replacement", "median"), "uniform"),
        (("--batch-tokens", "0"), "batch-tokens"),
    ],
)
def test_ablate_refuses_what_cannot_be(headscope, desk, more, told):
    done = headscope(*ABLATE, "-o", "run", *more)
    assert done.code == 2
    assert told in done.err
    assert len(done.err.splitlines()) <= 4
    assert not (desk / "run/atlas.nc").exists()


def test_a_checkpoint_without_a_head_and_a_folder_of_others_are_refused(headscope, desk):
    checkpoint(desk / "bare")
    bare = headscope("ablate", "bare", "--task", "rte", "--data", "data", "-o", "run")
    assert bare.code == 2
    (desk / "letters").mkdir()
    (desk / "letters/dear.txt").write_text("you")
    done = headscope(*ABLATE, "-o", "letters")
    assert done.code == 2
    assert "dear.txt" in done.err


def test_prune_writes_a_checkpoint_and_says_how_many_heads_can_go(headscope, desk):
    done = headscope(*PRUNE, "-o", "pruned", "--run", "run")
    assert done.code == 0, done.err
    assert "heads can go at ≤ 0.5 points" in done.out
    note = json.loads((desk / "pruned/pruned.json").read_text())
    assert f"removed: {len(note['removed'])} heads, in the order {note['order']}" in done.out
    assert (desk / "pruned/model.safetensors").is_file()
    assert (desk / "run/report.html").is_file()
    assert (desk / "run/figures/pruning.png").is_file()
    again = headscope("ablate", "pruned", *ABLATE[2:], "-o", "after", "--no-report", "--json")
    score = note["score"]
    left = score["before"] + score["difference"]["value"]
    assert json.loads(again.out)["baseline"] == pytest.approx(left)


def test_prune_removes_as_many_heads_as_it_is_told(headscope, desk):
    done = headscope(*PRUNE, "-o", "pruned", "--remove", "5", "--by", "alone", "--json")
    note = json.loads(done.out)
    assert (len(note["removed"]), note["order"]) == (5, "alone")
    assert note["score"]["heads_gone"] == 5
    once_more = headscope(*PRUNE, "-o", "pruned", "--remove", "1", "--orders", "alone", "--json")
    assert once_more.code == 0  # a pruned checkpoint of ours is replaced
    assert len(json.loads((desk / "pruned/pruned.json").read_text())["removed"]) == 1


def test_prune_of_two_examples_says_that_no_half_is_left_to_try_it_on(headscope, desk):
    done = headscope(*PRUNE[:-2], "--limit", "2", "--orders", "alone", "--step", "6", "-o", "few")
    assert done.code == 0, done.err
    assert "can go at ≤ 0.5 points; too few examples to try it on another half" in done.out
    assert "nan" not in done.out


def test_prune_says_what_it_costs_before_and_a_limit_reaches_every_stage(headscope, desk):
    line = [*PRUNE[:-2], "--limit", "8", "--orders", "alone", "-o"]
    done = headscope(*line, "pruned", "--json", "--step", "6")
    assert json.loads(done.out)["score"]["examples"] == 8
    # Seven variants of 8 examples to look at 6 heads; two points of a curve of one order.
    cost = "72 forward passes of one example: 56 to look at each head alone, 16 to score alone"
    assert done.err == f"headscope: {cost}\n"
    done = headscope(*line, "other", "--step", "6", "--choose", "12")
    assert "100 forward passes of one example: 84 to look at" in done.err
    assert headscope(*line, "third", "--step", "6", "--quiet").err == ""


def test_prune_without_a_train_split_says_that_heads_were_chosen_by_what_is_scored(headscope, desk):
    (desk / "data/train.tsv").unlink()
    done = headscope(*PRUNE, "-o", "pruned")
    assert done.code == 0, done.err
    assert "chosen by the examples that are scored" in done.out
    asked = headscope(*PRUNE, "-o", "pruned", "--choose-split", "train")
    assert asked.code == 2


def test_prune_takes_the_importance_of_a_run(headscope, desk):
    import numpy as np
    import xarray as xr

    assert headscope(*ABLATE, "-o", "run", "--no-report").code == 0
    wrong = headscope(*PRUNE, "-o", "pruned", "--importance", "run")
    assert wrong.code == 2
    assert "headscope importance" in wrong.err
    tree = tree_of_netcdf(io.BytesIO((desk / "run/atlas.nc").read_bytes()))
    values = np.arange(12.0).reshape(2, 3, 2)
    tree["importance"] = xr.DataTree(
        xr.Dataset(
            {"head_importance": (("layer", "head", "variant"), values)},
            coords={"variant": ["michel", "attattr"]},
        )
    )
    folder = RunFolder(desk / "run")
    manifest = folder.manifest() | {"results_sha256": folder.put_results(tree_as_netcdf(tree))}
    folder.write_manifest(manifest)
    more = ("--orders", "alone", "--importance", "run", "--by", "attattr", "--method", "attattr")
    done = headscope(*PRUNE, "-o", "pruned", "--remove", "2", *more, "--json")
    assert json.loads(done.out)["removed"] == ["L1·H1", "L1·H2"]
    unknown = headscope(*PRUNE, "-o", "pruned", "--importance", "run", "--method", "hunch")
    assert unknown.code == 2
    assert "michel, attattr" in unknown.err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--orders", "random"), "not random alone"),
        (("--orders", "best"), "greedy, alone, given, random"),
        (("--by", "hunch"), "the orders are greedy, alone, random 1"),
        (("--remove", "7"), "the model has 6"),
        (("-o", "model"), "is the checkpoint to prune"),
        (("-o", "data"), "pruned.json"),
    ],
)
def test_prune_refuses_what_cannot_be(headscope, desk, more, told):
    done = headscope(*PRUNE, "-o", "pruned", *more)
    assert done.code == 2
    assert told in done.err
    assert not (desk / "pruned").exists()


def test_a_regression_is_told_by_its_correlation(headscope, tmp_path):
    checkpoint(tmp_path / "model", head=AMOUNT)
    made = rows(24, seed=3, regression=True)
    write_tsv(tmp_path / "data/dev.tsv", made)
    line = ("ablate", "model", "--task", "amount", "--regression", "--data", "data", *QUICK)
    done = headscope(*line, "-o", "run")
    assert done.code == 0, done.err
    assert "of the whole model on amount is" in done.out
    assert "By the loss, to which every example counts:" in done.out


@pytest.mark.parametrize("name", ["ablate", "prune"])
def test_every_option_is_in_the_page(name):
    root = Path(__file__).resolve().parents[2]
    text = "".join((root / "docs" / page).read_text("utf-8") for page in ("ablate.md", "tasks.md"))
    options = group.get_command(None, name).params
    missing = [
        p.opts
        for p in options
        if p.opts[0].startswith("-") and not any(option in text for option in p.opts)
    ]
    assert not missing, f"undocumented: {missing}"
