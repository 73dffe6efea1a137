"""Does `headscope importance` do what it says, is it of use to `prune`, and what does it refuse?"""

from __future__ import annotations

import json

import pytest

from tasks.made import MOOD, checkpoint, rows, write_tsv

QUICK = ("--replicates", "20", "--linears", "stock")
IMPORTANCE = ("importance", "model", "--task", "mood", "--data", "data", *QUICK)


@pytest.fixture
def desk(tmp_path):
    """A checkpoint and its data, in the folder where the commands run."""
    checkpoint(tmp_path / "model", head=MOOD)
    write_tsv(tmp_path / "data/train.tsv", rows(30, seed=1))
    write_tsv(tmp_path / "data/dev.tsv", rows(24, seed=2))
    return tmp_path


def test_importance_is_held_against_an_ablation_and_gives_prune_its_order(headscope, desk):
    done = headscope(*IMPORTANCE, "-o", "run", "--ablate", "zero", "--steps", "3")
    assert done.code == 0, done.err
    assert "2 layers × 3 heads, cross-entropy" in done.out
    assert "Rank correlation over 6 heads with the rise of the loss" in done.out
    assert (desk / "run/report.html").is_file()
    assert (desk / "run-ablation/atlas.nc").is_file()
    told = json.loads(
        headscope(
            *IMPORTANCE, "-o", "run", "--ablation", "run-ablation", "--steps", "3", "--json"
        ).out
    )
    assert set(told["rho"]) == set(told["methods"])
    assert told["loss_name"] == "cross-entropy"
    pruned = headscope(
        "prune",
        "model",
        "--task",
        "mood",
        "--data",
        "data",
        *QUICK,
        "--importance",
        "run",
        "--method",
        "michel",
        "--orders",
        "alone",
        "--step",
        "3",
        "--choose",
        "12",
        "--by",
        "michel",
        "--remove",
        "2",
        "-o",
        "pruned",
        "--json",
    )
    assert pruned.code == 0, pruned.err
    assert json.loads(pruned.out)["order"] == "michel"
    assert len(json.loads(pruned.out)["removed"]) == 2


def test_what_is_contradictory_or_missing_is_refused(headscope, desk):
    (desk / "a.txt").write_text("The cat sat.\n")
    (desk / "x").mkdir()
    (desk / "x/atlas.nc").touch()
    for words, told in (
        (("importance", "model", "-o", "run"), "no loss to take the gradient of"),
        ((*IMPORTANCE, "-o", "run", "--text", "a.txt"), "wanted only one of them"),
        ((*IMPORTANCE, "-o", "run", "--ablate", "zero", "--ablation", "x"), "give the run, or how"),
        (("importance", "model", "--text", "a.txt", "--ablate", "zero", "-o", "run"), "no task"),
        ((*IMPORTANCE, "-o", "run", "--methods", "gini"), "methods are gini"),
        ((*IMPORTANCE, "-o", "run", "--ablation", "data"), "data"),
        (("importance", "model", "--text", "a.txt", "-o", "run"), "no language-model head"),
    ):
        done = headscope(*words)
        assert done.code == 2, (words, done.err)
        assert told in done.err
        assert not (desk / "run").exists()
