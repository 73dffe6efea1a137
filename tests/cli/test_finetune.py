"""Does `headscope finetune` learn from files of any kind, say what it did, and refuse the rest?"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from cli.conftest import refused
from commands import environment
from tasks.made import checkpoint, data, rows, write_tsv

FAST = ("--epochs", 2, "--batch", 8, "--rate", 1e-3)


@pytest.fixture
def desk(tmp_path):
    """A tiny model and a folder with train.tsv and dev.tsv."""
    checkpoint(tmp_path / "model")
    write_tsv(tmp_path / "mood/train.tsv", rows(40))
    write_tsv(tmp_path / "mood/dev.tsv", rows(30, seed=1))
    return tmp_path


@pytest.fixture
def finetune(headscope, desk):
    """`headscope finetune model --data mood -o ckpt ARGS`."""
    return lambda *args: headscope(
        "finetune", "model", "--data", "mood", "-o", "ckpt", *FAST, *args
    )


def test_it_says_what_was_learned_and_where_it_is(finetune):
    done = finetune("--task", "mood")
    assert done.code == 0, done.err
    first, *_ = done.out.splitlines()
    assert first == "mood: 40 examples to learn from, 30 to be scored on"
    assert "  model: the head is untrained" in done.out
    assert "train: 'mood' is a task of yours: classes 0, 1, in this order" in done.out
    assert "\naccuracy: 0." in done.out
    assert " before, " in done.out
    assert "of its weights' norm); layer " in done.out
    assert done.out.endswith("checkpoint: ckpt\n")
    assert done.err == ""
    again = finetune("--task", "mood")
    assert again.out.endswith("checkpoint: ckpt (was there: nothing was trained)\n")


@pytest.mark.parametrize(("all_of_them", "many"), [(False, "9 of 39"), (True, "all 9")])
def test_examples_that_were_learned_from_are_told(finetune, desk, all_of_them, many):
    learned, others = rows(40), rows(30, seed=1)
    write_tsv(desk / "mood/dev.tsv", learned[:9] + (() if all_of_them else others))
    done = finetune("--task", "mood")
    assert done.code == 0, done.err
    assert f"{many} examples of mood/dev.tsv are in mood/train.tsv, too" in done.out


def test_the_same_as_json(finetune, desk):
    done = finetune("--task", "mood", "--json", "--limit", 20, "--dev-limit", 11, "--seed", 3)
    record = json.loads(done.out)
    assert record == json.loads((desk / "ckpt/finetuned.json").read_text())
    assert [record["data"][split]["examples"] for split in ("train", "dev")] == [20, 11]
    assert record["settings"] == {
        "epochs": 2,
        "batch": 8,
        "rate": 1e-3,
        "layer_decay": 1.0,
        "freeze": 0,
        "warm_up": 0.1,
        "seed": 3,
        "max_length": 128,
        "precision": "float32",
    }
    assert record["task"]["labels"] == ["0", "1"]


def test_the_defaults_are_the_papers(headscope):
    shown = headscope("finetune", "--help").out
    for option, value in (("--epochs", "3"), ("--batch", "32"), ("--rate", "2e-05")):
        (line,) = (x for x in shown.splitlines() if x.lstrip().startswith(f"{option} "))
        assert f"[default: {value}" in line


def test_files_of_their_own_columns_and_named_classes_are_read(headscope, desk):
    for name, made in (("a.csv", rows(40)), ("b.csv", rows(30, seed=1))):
        lines = [f"{'cat' if row.label else 'none'},{row.text_a.replace(',', '')}" for row in made]
        (desk / name).write_text("\n".join(["animal,line", *lines]))
    done = headscope(
        "finetune",
        "model",
        "--task",
        "animal",
        "--train",
        "a.csv",
        "--dev",
        "b.csv",
        "--columns",
        "text_a=line,label=animal",
        "--labels",
        "none,cat",
        "-o",
        "ckpt",
        *FAST,
    )
    assert done.code == 0, done.err
    config = json.loads((desk / "ckpt/config.json").read_text())
    assert config["id2label"] == {"0": "none", "1": "cat"}


def test_numbers_can_be_taken_as_a_regression(finetune, desk):
    done = finetune("--task", "amount", "--regression")
    assert "\npearson: " in done.out
    assert json.loads((desk / "ckpt/config.json").read_text())["problem_type"] == "regression"


def test_random_weights_can_be_asked_for(finetune):
    done = finetune("--task", "mood", "--from-scratch", "--layer-decay", 0.9)
    assert "  model: all weights are random" in done.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--task", "rte"], "wanted two texts"),
        (
            ["--task", "mood", "--data", "nowhere"],
            "nowhere does not exist; wanted a folder with train.tsv and dev.tsv",
        ),
        (["--task", "mood", "--split", "test"], "has no test split: found dev.tsv, train.tsv"),
        (["--task", "mood", "--columns", "label"], "--columns 'label'; wanted ROLE=NAME"),
        (["--task", "mood", "--columns", "label=x"], "has no column 'x'; it has 'sentence'"),
        (["--task", "mood", "--labels", "a"], "wanted two different ones"),
        (["--task", "mood", "--labels", "a,b"], None),  # 0 and 1 are their ids
        (["--task", "mood", "--labels", "a,b", "--regression"], "classes or numbers"),
        (["--task", "mood", "--data", "mood/dev.tsv"], "is both training and test data"),
        (["--task", "mood", "--split", "train"], "is both training and test data"),
        (["--task", "mood", "--rate", "0"], "rate is 0.0; wanted more than 0"),
        (["--task", "mood", "--dtype", "bfloat16"], "wanted float32"),
        (["--task", "mood", "--max-length", "4"], "a length of 4 tokens; wanted 5"),
        (["--task", "mood", "-o", "mood"], "has no finetuned.json; it is not replaced"),
        (["--task", "mood", "-o", "model"], "is the model to train"),
    ],
)
def test_what_makes_no_sense_is_refused_in_three_lines(finetune, arguments, says):
    done = finetune(*arguments)
    if says is None:
        assert done.code == 0, done.err
    else:
        refused(done, says)


def test_a_dev_set_of_other_classes_is_refused(finetune, desk):
    file = desk / "mood/dev.tsv"
    file.write_text(file.read_text().replace("\t1\n", "\t2\n"))
    refused(finetune("--task", "mood"), "dev.tsv, line ", "label '2'; wanted 0, 1")


def test_an_empty_dev_set_is_refused(finetune, desk):
    (desk / "mood/dev.tsv").write_text("sentence\tlabel\n")
    refused(finetune("--task", "mood"), "dev.tsv has no row that can be read")


def test_without_accelerate_it_says_what_to_install(finetune, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    refused(finetune("--task", "mood"), "pip install 'headscope[train]'")


def test_help_takes_less_than_half_a_second_of_the_processor():
    """Best of three: a busy machine has cold caches."""
    code = (
        "import sys, time; start = time.process_time()\n"
        "from headscope.cli.main import main\n"
        "sys.argv = ['headscope', 'finetune', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    print(time.process_time() - start)"
    )
    seconds = [
        float(
            subprocess.run(
                [sys.executable, "-c", code],
                env=environment(),
                capture_output=True,
                text=True,
                check=True,
            ).stdout.splitlines()[-1]
        )
        for _ in range(3)
    ]
    assert min(seconds) < 0.5


def test_the_rows_of_these_tests_are_of_both_classes():
    assert {row.label for row in data(40).rows} == {0, 1}


def test_a_checkpoint_remembers_what_it_learned(finetune, headscope, desk):
    """Commands asked for --task and --data again, which stand beside the weights."""
    assert finetune("--task", "mood").code == 0
    quick = ("--no-report", "--replicates", 2, "--linears", "stock")
    said = "task mood, examples of mood/dev.tsv: what ckpt learned (finetuned.json)\n"
    ablated = headscope("ablate", "ckpt", "-o", "ablated", *quick)
    assert ablated.code == 0, ablated.err
    assert said in ablated.out
    assert " on 30 examples of mood\n" in ablated.out
    (desk / "mood/dev.tsv").rename(desk / "elsewhere.tsv")
    refused(headscope("ablate", "ckpt", "-o", "again"), "scored on mood/dev.tsv, which is not here")
    other = headscope("ablate", "ckpt", "--data", "elsewhere.tsv", "-o", "other", *quick)
    assert other.code == 0, other.err
    assert "task mood, examples of elsewhere.tsv" in other.out
    (desk / "elsewhere.tsv").rename(desk / "mood/dev.tsv")
    small = (*quick, "--control", "none", "--analyses", "entropy")
    compared = headscope("compare", "model", "ckpt", "-o", "compared", *small)
    assert compared.code == 0, compared.err
    assert said in compared.out
