"""Do all probes run together, find what is there, and go on after a kill?"""

from __future__ import annotations

import io
import signal
import sys
from contextlib import redirect_stderr
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from counting import counts_from_0
from experiments.probes.made import VECTORS, gold_maps, rows, tiny, treebank
from forked import forked
from headscope.claims.reading import Reading
from headscope.cli.main import main
from headscope.draw.figures import draw
from headscope.errors import InputError, RunStopped
from headscope.experiments import probes
from headscope.experiments.probes import feature_files, resumable_training
from headscope.experiments.probes.findings import influential_heads, root_note
from headscope.experiments.probes.probe import probe
from headscope.experiments.probes.settings import PROBES, FeaturePlace, ProbeSettings
from headscope.model.model import load
from headscope.report.build import render
from headscope.run.execution import Execution
from model.families.tiny import tiny as family
from model.families.tokenizers_made import bytes_bpe

ALL_BUT_WORDS = ("right_branching", "attention", "structural")


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("desk")
    treebank(folder / "train.conllu", 40)
    treebank(folder / "test.conllu", 25, seed=1)
    (folder / "vectors.txt").write_text(VECTORS, "utf-8")
    return folder


@pytest.fixture(scope="module")
def model(desk):
    return tiny(desk)


def run(model, desk: Path, **more):
    given = {"replicates": 50, "probes": ("right_branching", "attention")}
    settings = ProbeSettings(**given | more.pop("settings", {}))
    files = {name: [desk / f"{name}.conllu"] for name in ("train", "test")}
    execution = Execution(linears="stock", progress=more.pop("progress", None))
    return probe(
        model,
        more.pop("train", files["train"]),
        more.pop("test", files["test"]),
        settings=settings,
        execution=execution,
        **more,
    )


@pytest.fixture(scope="module")
def everything(model, desk):
    settings = {
        "probes": None,
        "epochs": 2,
        "seeds": 2,
        "curve": (10, 20),
        "tree": True,
        "structural_epochs": 2,
    }
    told = []
    found = run(
        model,
        desk,
        settings=settings,
        words=desk / "vectors.txt",
        output=desk / "run",
        labels=[["first", "", ""], ["", "", "next"]],
        progress=lambda *at: told.append(at),
    )
    return found, told


def test_attention_that_is_the_gold_tree_is_read_without_a_mistake(model, desk, monkeypatch):
    monkeypatch.setattr(feature_files.word_features, "attention_of", gold_maps)
    found = run(model, desk, settings={"epochs": 30, "rate": 0.05, "tree": True})["probes"]
    for score in ("uas", "uas_with_punctuation", "uuas", "uas_of_tree"):
        assert float(found[score].sel(probe="attention")) == 1, score
    influence = found["head_influence"].sel(direction="dependent_to_head").values
    assert np.unravel_index(influence.argmax(), influence.shape) == (0, 1)


def test_right_branching_is_counted_by_hand(model, tmp_path: Path) -> None:
    test = rows(["the", "cat", ",", "b"], [2, 4, 4, 0]) + rows(["a", "b"], [0, 1])
    (tmp_path / "test.conllu").write_text(test, "utf-8")
    treebank(tmp_path / "train.conllu", 3)
    found = run(model, tmp_path, settings={"probes": ("right_branching",)})["probes"]
    # Of five words without punctuation only `the` has the next one as its head: b's has none.
    assert float(found["uas"][0]) == pytest.approx(1 / 5)
    assert float(found["uas_with_punctuation"][0]) == pytest.approx(2 / 6)
    assert float(found["uuas"][0]) == pytest.approx(3 / 3)


def test_all_probes_leave_their_scores(everything) -> None:
    found = everything[0]["probes"]
    assert found["probe"].values.tolist() == [name for name in PROBES if name != "structural"]
    for name in ("uas", "uuas", "uas_with_punctuation", "uas_of_tree"):
        values = found[name]
        assert values.dims == ("probe",)
        assert ((values >= 0) & (values <= 1)).all()
        low, high = found[f"{name}_ci_low"], found[f"{name}_ci_high"]
        assert ((low <= values) & (values <= high)).all()
    assert found["curve"].sizes == {"probe": 5, "size": 3}
    assert found["size"].values.tolist() == [10, 20, 36]
    last = found["curve"].sel(size=36, probe="attention")
    assert float(last) == float(found["uas_by_seed"].sel(probe="attention", seed=0))
    assert float(found["uas_by_seed"].sel(probe="attention").mean()) == pytest.approx(
        float(found["uas"].sel(probe="attention"))
    )
    assert found["head_weight"].sizes == {"layer": 2, "head": 3, "direction": 2}
    assert found["head_label"].values[1, 2] == "next"
    for name in ("uuas", "distance", "depth", "root"):
        assert found[f"structural_{name}"].dims == ("layer",)
    assert int(found["count"].sum()) == found.attrs["test_words"]


def test_every_variable_says_what_it_is_in_what_unit_from_where(everything) -> None:
    for name, variable in everything[0]["probes"].data_vars.items():
        assert all(variable.attrs.get(key) for key in ("long_name", "units", "source", "n")), name


def test_figures_show_the_scores(everything) -> None:
    tree, found = everything[0].tree, everything[0]["probes"]
    rows, curve = draw(tree, "probes").axes
    points = [x for line in rows.lines for x in np.asarray(line.get_xdata()).tolist()]
    for score in ("uas", "uuas"):
        assert set(found[score].values.tolist()) <= set(points)
    lines = [np.asarray(line.get_ydata()).tolist() for line in curve.lines]
    assert found["curve"].sel(probe="attention").values.tolist() in lines
    assert len(draw(tree, "probe_heads").axes) == 2
    uuas = draw(tree, "structural").axes[0].lines[0].get_ydata()
    assert np.asarray(uuas).tolist() == found["structural_uuas"].values.tolist()


def test_a_difference_is_that_of_both_scores(everything) -> None:
    found = everything[0]["probes"]
    apart = found["difference"].sel(probe="attention", probe_other="random_words")
    uas = found["uas"]
    assert float(apart) == pytest.approx(
        float(uas.sel(probe="attention") - uas.sel(probe="random_words"))
    )
    assert (found["difference"].values.diagonal() == 0).all()
    # A probe never differs from itself: where nothing varies, there is no interval.
    assert np.isnan(found["difference_ci_low"].values.diagonal()).all()


def test_uas_is_the_mean_of_its_relations(everything) -> None:
    found = everything[0]["probes"]
    count = found["count"]
    whole = (found["relation_uas"] * count).sum("relation") / count.sum()
    np.testing.assert_allclose(whole, found["uas_with_punctuation"])


def test_features_are_gone_at_the_end_and_progress_ends_at_all(everything) -> None:
    done, told = everything
    assert not (done.path / "features").exists()
    assert told[-1][0] == told[-1][1]
    assert all(a[0] <= b[0] for a, b in pairwise(told))


def test_a_finished_run_is_opened_and_not_computed_again(everything, model, desk, monkeypatch):
    monkeypatch.setattr(feature_files.word_features, "attention_of", None)
    settings = {
        "probes": None,
        "epochs": 2,
        "seeds": 2,
        "curve": (10, 20),
        "tree": True,
        "structural_epochs": 2,
    }
    again = run(
        model,
        desk,
        settings=settings,
        words=desk / "vectors.txt",
        output=desk / "run",
        labels=[["first", "", ""], ["", "", "next"]],
    )
    assert again["probes"].identical(everything[0]["probes"])


def test_without_vectors_probes_on_words_are_left_out_and_named(model, desk) -> None:
    found = run(model, desk, settings={"probes": None, "structural_epochs": 1})["probes"]
    assert found["probe"].values.tolist() == ["right_branching", "attention"]
    assert found.attrs["lacking"] == "attention_words distances_words random_words"
    with pytest.raises(InputError, match="attention_words needs word vectors"):
        run(model, desk, settings={"probes": ("attention_words",)})


def test_features_over_the_limit_are_refused_before_anything_is_computed(model, desk, tmp_path):
    told = []
    with pytest.raises(InputError, match=r"--features-limit allows 1e-06 GB\ngive fewer sentences"):
        run(model, desk, place=FeaturePlace(limit=1e-6), output=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    run(model, desk, settings={"test_limit": 3}, tell=told.append)
    (line,) = told
    assert line.startswith("features of 43 sentences take ")
    assert line.endswith("(half precision); they are deleted at the end")


def test_features_can_be_kept_elsewhere(model, desk, tmp_path: Path) -> None:
    run(model, desk, place=FeaturePlace(tmp_path / "f", keep=True), settings={"test_limit": 3})
    names = {file.name.rsplit("-", 2)[0] for file in (tmp_path / "f").rglob("*.bin")}
    assert names == {"model-train", "model-test"}


def test_a_curve_beyond_the_training_set_is_refused(model, desk) -> None:
    with pytest.raises(InputError, match="found 999 sentences in --curve, and 40 to train on"):
        run(model, desk, settings={"curve": (10, 999)})


def test_a_model_without_special_tokens_learns_roots_score(desk) -> None:
    decoder = load(family("GPT-2"), tokenizer=bytes_bpe(pad_token="<pad>"))
    found = run(
        decoder,
        desk,
        settings={"probes": ("attention", "random_words")},
        words=desk / "vectors.txt",
    )
    reading, found = Reading(found.tree, probes.PROBES), found["probes"]
    assert found.attrs["root"] == "a learned constant"
    assert found["uas"].notnull().all()
    assert "one learned number" in root_note(reading)


KILLED = """
import os, signal
from forked import forked
from headscope.cli.main import main
from headscope.experiments.probes import resumable_training
resumable_training.SAVE_SECONDS = 0
steps = 0
step = resumable_training._TrainingState.step
def killed(job, loss):
    global steps
    steps += 1
    step(job, loss)
    if steps == 30:
        os.kill(os.getpid(), signal.SIGKILL)
resumable_training._TrainingState.step = killed
main()
"""


def killed(words: list[str]) -> None:
    """Runs the command in a process that is killed in the middle of its training."""
    with forked(*words, cwd=Path(), code=KILLED) as process:
        assert process.wait() == -signal.SIGKILL


def stopped(words: list[str]) -> None:
    """Runs the command here and stops it there with Ctrl-C."""
    steps, step = [], resumable_training._TrainingState.step

    def counted(job, loss):
        step(job, loss)
        steps.append(loss)
        if len(steps) == 30:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, redirect_stderr(io.StringIO()) as said:
        patch.setattr(resumable_training, "SAVE_SECONDS", 0)
        patch.setattr(resumable_training._TrainingState, "step", counted)
        patch.setattr(sys, "argv", ["headscope", *words])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == RunStopped.exit_code
    assert said.getvalue().splitlines()[-1].startswith("headscope: stopped; the same command")


@pytest.mark.parametrize("stop", [killed, stopped])
def test_a_stopped_run_goes_on_and_ends_in_the_same_bits(model, desk, stop) -> None:
    files = ["--train", desk / "train.conllu", "--test", desk / "test.conllu"]
    small = ["--probes", "attention", "--replicates", 50, "--linears", "stock", "--no-report"]
    folder = desk / stop.__name__
    stop([*map(str, ["probe", desk / "model", *files, *small, "-o", folder])])
    kept = folder / "features"
    names = {file.name for file in kept.iterdir()}
    assert "training-attention-40-0" in names
    assert any(name.startswith("model-train-") for name in names)
    told = []
    settings = {"probes": ("attention",)}
    again = run(
        model, desk, settings=settings, output=folder, progress=lambda *at: told.append(at[0])
    )
    whole = run(model, desk, settings=settings)
    assert again["probes"].identical(whole["probes"])
    assert not kept.exists()


def test_the_heads_leaned_on_are_named_with_their_labels_and_sign() -> None:
    found = xr.Dataset(
        {
            name: (("layer", "head", "direction"), np.array([[[0.1, -3.0], [2.0, 0.0]]]))
            for name in ("head_weight", "head_spread", "head_influence")
        },
        coords={"direction": ["dependent_to_head", "head_to_dependent"]},
    ).assign(head_label=(("layer", "head"), np.array([["[CLS] 76 %", ""]], object)))
    told = influential_heads(Reading(xr.DataTree.from_dict({"probes": found}), probes.PROBES))
    assert told == ("L1·H1 h→d (against; [CLS] 76 %), L1·H2 d→h, L1·H1 d→h ([CLS] 76 %), L1·H2 h→d")


def test_names_on_the_page_of_probes_count_from_0_if_asked(everything, monkeypatch):
    monkeypatch.setattr("headscope.report.build.pictures", dict)
    found, _ = everything
    counts_from_0(lambda: render(found.tree, found.manifest))
