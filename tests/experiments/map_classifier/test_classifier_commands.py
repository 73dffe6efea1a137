"""Do `patterns train` and `apply` do what they say, as a user runs them?"""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import headscope as hs
from cli.conftest import Done, refused
from experiments.map_classifier.made import make_drawn
from headscope.analyses.patterns.classes import NAMES
from headscope.analyses.patterns.measure_marked import read_marked
from headscope.analyses.patterns.measure_network import read_classifier
from headscope.cli.main import main
from headscope.experiments.map_classifier import classifier_training
from headscope.experiments.map_classifier.annotation_session import Session
from headscope.experiments.map_classifier.labelled_maps import bundled_labels, joined, labels_of

MAPS = 40
TRAIN = ("train", "-o", "c", "--labels", "s", "--without-bundled", "--epochs", 1)
pytestmark = pytest.mark.usefixtures("fine_pictures")


@pytest.fixture
def headscope(capsys, monkeypatch, tmp_path):
    """Runs `headscope patterns ARGS` from an empty folder; learning is kept short."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(classifier_training, "MADE", 25)
    # To time the linear maps takes longer than to use them here.
    monkeypatch.setattr("headscope.model.linears._available", lambda network: False)

    def run(*args: object) -> Done:
        monkeypatch.setattr("sys.argv", ["headscope", "patterns", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return Done(0 if code is None else int(code), *capsys.readouterr())

    return run


@pytest.fixture
def session(tmp_path):
    """Forty maps, each class eight times; the last one disputed."""
    made = Session.create(tmp_path / "s", make_drawn(MAPS))
    for number in range(MAPS):
        made.label("a", number, NAMES[number % len(NAMES)])
    made.label("b", 0, NAMES[0])
    made.label("b", MAPS - 1, NAMES[0])
    return made


def test_train_writes_weights_a_card_and_a_figure(headscope, session, tmp_path):
    done = headscope(*TRAIN, "--seed", 4, "--columns", "any")
    assert done.code == 0, done.err
    told = json.loads((tmp_path / "c" / "card.json").read_text("utf-8"))
    assert told["maps"] == MAPS - 1
    assert told["maps_by_class"][NAMES[-1]] == MAPS // len(NAMES) - 1
    assert told["seed"] == 4
    whole = told["scores"]["network"]["Held-out maps"]
    assert np.sum(whole["confusion"]) == MAPS - 1
    assert whole["ci_low"] <= whole["macro_f1"] <= whole["ci_high"]
    assert f"network, held-out maps: macro-F1 {whole['macro_f1']:.3f}" in done.out
    assert set(told["scores"]) == {"network", "rules"}
    read_classifier(tmp_path / "c")
    assert (tmp_path / "c/confusion.svg").read_text("utf-8").startswith("<?xml")
    assert (tmp_path / "c/confusion.png").stat().st_size > 10_000


def test_train_without_scores_is_silent_about_them(headscope, session, tmp_path):
    done = headscope(*TRAIN, "--no-scores", "--json")
    assert json.loads(done.out)["scores"] == {}
    assert not (tmp_path / "c/confusion.svg").exists()


def test_disputed_maps_are_left_out_and_sets_are_joined(session):
    own, bundled = labels_of(session), bundled_labels()
    assert len(own) == MAPS - 1
    both = joined([bundled, own])
    assert len(both) == len(bundled) + len(own) == len(both.seen) == len(both.labels)
    np.testing.assert_array_equal(both.labels[len(bundled) :], own.labels)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--without-bundled"], "give --labels"),
        (["--labels", "none"], "none"),
        (["--labels", "s", "--without-bundled"], "found 0"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(headscope, tmp_path, args, told):
    made = Session.create(tmp_path / "s", make_drawn(8))
    for number in range(8):
        made.label("a", number, "vertical")
    done = headscope("train", "-o", "c", *args)
    refused(done, told)
    assert not (tmp_path / "c").exists()


def test_apply_tells_every_model_on_every_file(headscope, tiny_place, tmp_path):
    (tmp_path / "tale.txt").write_text("The girl walked to the market with her old brown dog.\n")
    done = headscope(
        "apply",
        tiny_place,
        "--demo",
        "--text",
        "tale.txt",
        "--limit",
        2,
        "--replicates",
        3,
        "-o",
        "o",
    )
    assert done.code == 0, done.err
    assert "model on demo: vertical " in done.out
    table = pd.read_csv(tmp_path / "o/patterns.csv")
    assert set(table.corpus) == {"demo", "tale.txt"}
    run = hs.open_run(tmp_path / "o/runs/model--tale.txt")["patterns"]
    ours = table[table.corpus == "tale.txt"].value.to_numpy()
    np.testing.assert_allclose(ours, run.share.values.ravel())
    assert (tmp_path / "o/patterns.png").stat().st_size > 10_000
    again = headscope(
        "apply",
        tiny_place,
        "--demo",
        "--text",
        "tale.txt",
        "--limit",
        2,
        "--replicates",
        3,
        "-o",
        "o",
        "--json",
    )
    assert len(json.loads(again.out)["runs"]) == 2


def test_apply_reads_the_examples_of_a_task_or_of_what_a_model_learned(
    headscope, tiny_place, tmp_path
):
    texts = ["the girl walked to the market with her dog", "a boy came back with red apples"]
    rows = [f"{text} number {at}\t{at % 2}" for at, text in enumerate(texts * 3)]
    dev = tmp_path / "mood" / "dev.tsv"
    dev.parent.mkdir()
    dev.write_text("sentence\tlabel\n" + "\n".join(rows) + "\n")
    how = ("--limit", 4, "--replicates", 3)
    done = headscope("apply", tiny_place, "--task", "mood", "--data", "mood", *how, "-o", "o")
    assert done.code == 0, done.err
    run = hs.open_run(tmp_path / "o/runs/model--mood")
    assert run.manifest["counts"]["examples"] == 4
    assert set(pd.read_csv(tmp_path / "o/patterns.csv").corpus) == {"mood"}
    both = headscope("apply", tiny_place, "--task", "mood", "--demo", "-o", "p")
    refused(both, "wanted only one of them")
    refused(headscope("apply", tiny_place, "-o", "p"), "no text and no task")
    source = {"source": str(dev), "sha256": "x"}
    record = {"task": {"name": "mood"}, "data": {"train": source, "dev": source}}
    learned = tmp_path / "learned"
    shutil.copytree(tiny_place, learned)
    (learned / "finetuned.json").write_text(json.dumps(record))
    done = headscope("apply", learned, *how, "-o", "q")
    assert done.code == 0, done.err
    assert "learned on mood: vertical " in done.out


def test_apply_takes_another_classifier(headscope, session, tiny_place, tmp_path):
    headscope(*TRAIN, "--no-scores", "--columns", "any")
    done = headscope(
        "apply",
        tiny_place,
        "--demo",
        "--limit",
        2,
        "--replicates",
        3,
        "--classifier",
        "c",
        "-o",
        "o",
        "--columns",
        "any",
    )
    assert done.code == 0, done.err
    run = hs.open_run(tmp_path / "o/runs/model--demo")["patterns"]
    assert run.attrs["classifier_sha256"] == read_classifier(tmp_path / "c")[1]
    refused(headscope("apply", tiny_place, "--demo", "--classifier", "none", "-o", "p"), "none")


def test_train_and_apply_take_marked_columns_unless_told_otherwise(
    headscope, session, tiny_place, tmp_path
):
    done = headscope(*TRAIN)
    assert done.code == 0, done.err
    card = json.loads((tmp_path / "c" / "special.json").read_text("utf-8"))
    assert card["columns"] == "special"
    assert card["maps"] == MAPS - 1
    assert 0 <= card["scores"]["network"]["Held-out maps"]["calibration_error"] <= 1
    with np.load(tmp_path / "c/held_out.npz") as kept:
        np.testing.assert_allclose(kept["held_out_maps"].sum(1), 1, atol=1e-6)
    done = headscope(
        "apply",
        tiny_place,
        "--demo",
        "--limit",
        2,
        "--replicates",
        3,
        "--classifier",
        "c",
        "-o",
        "o",
    )
    assert done.code == 0, done.err
    run = hs.open_run(tmp_path / "o/runs/model--demo")["patterns"]
    assert run.attrs["classifier_sha256"] == read_marked(tmp_path / "c")[1]
