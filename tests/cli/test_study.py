"""Does `headscope study` agree with the single commands, go on after a stop, and say what is so?"""

from __future__ import annotations

import json
import shutil
import signal
import sys

import numpy as np
import pandas as pd
import pytest

import headscope as hs
from cli.conftest import refused
from forked import forked, killed_at
from headscope.claims.reading import Reading, run_findings
from headscope.errors import RunStopped
from headscope.experiments.map_classifier.applied import classes_of
from headscope.experiments.study import STUDY, studying
from headscope.experiments.study.map_classes import class_shares, classes_table
from headscope.experiments.study.study import study
from headscope.run.execution import Execution
from headscope.tasks.task_data import read_task
from headscope.tasks.task_request import Loading
from tasks.made import checkpoint, rows, write_tsv

LEARNING = {"epochs": 6, "batch": 8, "rate": 5e-3, "replicates": 20}
STOCK = Execution(linears="stock")
WORDS = ("--epochs", 1, "--batch", 8, "--replicates", 20, "--linears", "stock", "--no-report")


def write_pairs(path, made):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{row.text_a}\t{row.text_b}\t{row.label}" for row in made]
    path.write_text("\n".join(["sentence1\tsentence2\tscore", *lines]) + "\n", "utf-8")


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A tiny model, a task that it learns, one with numbers, and one with nothing to learn."""
    folder = tmp_path_factory.mktemp("desk")
    checkpoint(folder / "model")
    noise = np.random.default_rng(0)
    for split, seed in (("train", 0), ("dev", 1)):
        made = rows(48, seed=seed)
        write_tsv(folder / f"data/mood/{split}.tsv", made)
        texts = [f"{row.text_a}\t{noise.integers(2)}" for row in made]
        file = write_tsv(folder / f"data/noise/{split}.tsv", made)
        file.write_text("\n".join(["sentence\tlabel", *texts]) + "\n", "utf-8")
        pairs = rows(40, seed=seed, pair=True, regression=True)
        write_pairs(folder / f"data/STS-B/{split}.tsv", pairs)
    return folder


@pytest.fixture(scope="module")
def run(desk):
    """Two tasks, two seeds, with frozen layers beside."""
    return study(
        desk / "model",
        ["mood", "stsb"],
        desk / "run",
        data=desk / "data",
        seeds=2,
        variants=("plain", "frozen"),
        execution=STOCK,
        **LEARNING,
    )


def test_effects_are_those_of_ablate_on_each_checkpoint(run, desk):
    for task, variant in (("mood", "plain"), ("sts-b", "plain"), ("sts-b", "frozen")):
        of = "" if variant == "plain" else f"-{variant}"
        place = desk / f"run/checkpoints/{task}-seed1{of}"
        alone = hs.ablate(place, task, data=desk / "data", replicates=20, execution=STOCK)
        own = run["study"].sel(variant=variant, task=task, seed=1)
        assert own.learned
        ablation = alone["ablation"]
        for name, other in (("effect", "difference"), ("loss_effect", "loss_difference")):
            for end in ("", "_ci_low", "_ci_high"):
                np.testing.assert_allclose(own[name + end], ablation[other + end], atol=1e-6)
        for name, key, verdict in (
            ("heads_needed", "verdict", "helpful"),
            ("heads_harmful", "verdict", "harmful"),
            ("heads_needed_by_loss", "loss_verdict", "helpful"),
        ):
            assert own[name] == (ablation[key] == verdict).sum()


def test_changes_are_those_of_compare_and_of_the_record(run, desk):
    place = desk / "run/checkpoints/mood-seed0"
    alone = hs.compare(
        desk / "model", place, task="mood", data=desk / "data", analyses=["entropy"], replicates=20
    )
    own = run["study"].sel(variant="plain", task="mood", seed=0)
    np.testing.assert_allclose(own.map_change, alone["similarity"].map_change, atol=1e-6)
    sides = {"before": "before", "after": "after", "change": "difference"}
    for name, side in sides.items():
        for end in ("", "_ci_low", "_ci_high"):
            numbers = own[f"feature_{name}{end}"].sel(quantity="entropy.entropy.all")
            other = alone["change"][f"model_{side}{end}"].sel(quantity="entropy.entropy.all")
            np.testing.assert_allclose(numbers, other, atol=1e-6)
    every = run["study"].sel(variant="plain", task="mood")
    mean = every.feature_change.mean("seed")
    np.testing.assert_allclose(every.mean_feature_change, mean, atol=1e-12)
    record = json.loads((place / "finetuned.json").read_text("utf-8"))
    layers = [row for row in record["layers"] if row["layer"] is not None]
    for name in ("gradient_norm", "relative_change"):
        np.testing.assert_allclose(own[name], [row[name] for row in layers])
    after = record["metrics"]["after"]
    np.testing.assert_allclose(own.score_after, after["accuracy"])
    np.testing.assert_allclose(own.score_after_ci_low, after["ci_low"])


def test_classes_of_maps_are_those_of_patterns_apply(run, desk, tmp_path):
    task = read_task("mood", desk / "data")
    places = {"before": desk / "model", "after": desk / "run/checkpoints/mood-seed1"}
    texts = {str(place): {"mood": task} for place in places.values()}
    settings = hs.Settings(analyses=("patterns",), replicates=20)
    alone = classes_of(texts, tmp_path, settings, Loading(), tell=list)
    own = run["study"].sel(variant="plain", task="mood", seed=1)
    for side, place in places.items():
        shares = alone[str(place), "mood"]["patterns"]["model_share"]
        assert float(shares.max()) > 0.3
        for name in shares["pattern"].values.tolist():
            number = own[f"feature_{side}"].sel(quantity=f"patterns.share.{name}")
            np.testing.assert_allclose(number, shares.sel(pattern=name), atol=1e-6)


def test_shares_of_classes_stay_shares_over_seeds_and_none_is_known_without_error(run):
    shares = [str(name) for name in run["study"]["quantity"].values if "patterns.share" in name]
    data = run["study"].sel(quantity=shares)
    for side, least in (("before", 0), ("after", 0), ("change", -1)):
        low, high = (data[f"mean_feature_{side}_ci_{end}"] for end in ("low", "high"))
        assert (low >= least).all()
        assert (high <= 1).all()
        if side == "before":  # also where no map is of the class
            assert (high > low).all()
            assert (data.mean_feature_before == 0).any()


def test_a_start_of_random_weights_stands_beside_the_pretrained_one(run):
    tree = run.tree.copy(deep=True)
    tree["study"] = tree["study"].to_dataset().assign_coords(variant=["plain", "from-scratch"])
    reading = Reading(tree, STUDY)
    rows = class_shares(reading, "mood")
    assert [name for name, *_ in rows] == ["before", "plain", "random weights", "from-scratch"]
    vertical = tree["study"]["mean_feature_before"].sel(
        variant="from-scratch", task="mood", quantity="patterns.share.vertical"
    )
    assert rows[2][2][0].value == vertical
    assert "Random weights: where" in classes_table(reading).caption
    assert "Random weights: where" not in classes_table(Reading(run.tree, STUDY)).caption
    bare = tree["study"].to_dataset().drop_sel(quantity=["patterns.unsure"])
    tree["study"] = bare
    assert class_shares(Reading(tree, STUDY), "mood") == []


def test_means_are_over_the_seeds_that_learned_the_task(run):
    data = run["study"]
    for task in ("mood", "sts-b"):
        knows = data.learned.sel(variant="plain", task=task).values > 0
        assert knows.any()
        effect = data.effect.sel(variant="plain", task=task).values[knows].mean(0)
        np.testing.assert_allclose(data.mean_effect.sel(task=task), effect, atol=1e-12)
        for variant in ("plain", "frozen"):
            own = data.sel(variant=variant, task=task)
            assert (own.heads_needed.notnull() == (own.learned > 0)).all()
            np.testing.assert_allclose(own.mean_heads_needed, own.heads_needed.mean("seed"))
            np.testing.assert_allclose(own.mean_gain, own.gain.mean("seed"), atol=1e-12)
    low, chance = data.score_after_ci_low.sel(task="mood"), data.chance.sel(task="mood")
    assert ((low > chance) == (data.learned.sel(task="mood") > 0)).all()


def test_frozen_layers_do_not_move_and_later_ones_do(run):
    frozen = run["study"].sel(variant="frozen")
    assert (frozen.relative_change.sel(layer=0) == 0).all()
    assert (frozen.gradient_norm.sel(layer=0) == 0).all()
    assert (frozen.map_change.sel(layer=0) < 1e-6).all()
    assert (frozen.relative_change.sel(layer=1) > 0).all()
    assert (run["study"].sel(variant="plain").relative_change.sel(layer=0) > 0).all()


def test_the_page_is_drawn_again_from_results_and_the_doctor_finds_no_fault(run, desk, headscope):
    folder = desk / "run"
    assert headscope("report", folder).code == 0
    page = (folder / "report.html").read_text("utf-8")
    for words in (
        "Was the task learned?",
        "Why does disabling a head help?",
        "at chance",
        "Heads by training",
        "Classes of maps",
    ):
        assert words in page
    for name in ("study_scores.svg", "study_heads.png", "study_change.svg", "study_classes.svg"):
        assert (folder / "figures" / name).is_file()
    assert (folder / "tables/study.csv").is_file()
    features = pd.read_csv(folder / "tables/study_features.csv")
    assert "Before and after" in page
    assert set(features.task) == {"mood", "sts-b"}
    assert {"before", "after", "change_ci_low"} <= set(features.columns)
    done = headscope("doctor", folder)
    assert done.code == 0, done.out
    assert "BAD" not in done.out
    assert headscope("status", folder).out.startswith("finished")


def test_a_study_that_was_stopped_goes_on_and_ends_with_the_same_numbers(
    desk, tmp_path, monkeypatch
):
    made, teach = [], studying.teach
    how = {"data": desk / "data", "seeds": 2, "execution": STOCK, **LEARNING}

    def counted(start, train, dev, output, **more):
        made.append(output.name)
        if made.count("mood-seed1") == 1 and output.name == "mood-seed1":
            raise KeyboardInterrupt
        return teach(start, train, dev, output, **more)

    monkeypatch.setattr(studying, "teach", counted)
    with pytest.raises(RunStopped, match="goes on"):
        study(desk / "model", ["mood"], tmp_path / "run", **how)
    resumed = study(desk / "model", ["mood"], tmp_path / "run", **how)
    assert made == ["mood-seed0", "mood-seed1", "mood-seed1"]
    shared = Execution(linears="stock", shard=(2, 2))
    other = study(desk / "model", ["mood"], tmp_path / "shared", **how | {"execution": shared})
    assert resumed["study"].identical(other["study"])
    again = study(desk / "model", ["mood"], tmp_path / "run", **how)
    assert again["study"].identical(resumed["study"])


def test_a_study_that_was_killed_goes_on_and_ends_with_the_same_numbers(run, desk, tmp_path):
    learning = ("--epochs", 6, "--batch", 8, "--rate", 5e-3, *WORDS[4:])
    words = ("study", desk / "model", "--tasks", "mood", "--data", desk / "data", "--seeds", 2)
    for at in (4, 3):  # before a training's part is stored, and before the next one's checkpoint
        with forked(*words, *learning, "-o", "run", cwd=tmp_path, code=killed_at(at)) as process:
            _, complaint = process.communicate()
        assert process.returncode == -signal.SIGKILL, complaint
    how = {"data": desk / "data", "seeds": 2, "execution": STOCK, **LEARNING}
    resumed = study(desk / "model", ["mood"], tmp_path / "run", **how)["study"]
    own = run["study"].sel(variant=["plain"], task=["mood"])
    for name in ("score_after", "effect", "effect_ci_low", "map_change", "gain_held_out"):
        np.testing.assert_array_equal(resumed[name], own[name])
    assert not list((tmp_path / "run").rglob(".part-*"))


def test_a_task_at_chance_concludes_nothing(desk, tmp_path):
    run = study(
        desk / "model", ["noise"], tmp_path / "run", data=desk / "data", seeds=1, execution=STOCK,
        epochs=1, replicates=20,
    )  # fmt: skip
    data = run["study"]
    assert not data.learned.any()
    for name in ("mean_effect", "needed_share", "gain", "mean_gain_held_out"):
        assert np.isnan(data[name]).all()
    words = run_findings(run.tree)
    assert words[0] == "There is one seed: nothing is said of what other seeds would give."
    assert "Every seed is at chance, and says nothing of heads or layers." in words[1]
    assert not any("needs" in one or "best head" in one or "ayers " in one for one in words[2:])


def test_heads_are_named_for_their_fall_where_a_seed_needs_them(run):
    tree = run.tree.copy(deep=True)
    share, effect = tree["study"]["needed_share"], tree["study"]["mean_effect"]
    share.loc[{"task": "mood"}] = 0.0
    effect.loc[{"task": "mood"}] = -0.01
    effect[0, 1].loc[{"task": "mood"}] = -0.5
    assert not any("falls most" in one for one in run_findings(tree) if "mood" in one)
    share[1, 0].loc[{"task": "mood"}] = 0.5
    (said,) = (one for one in run_findings(tree) if "falls most" in one and "mood" in one)
    assert "L2·H1" in said.partition("falls most")[2]
    assert "L1·H2" not in said


def layers_said(tree):
    """The sentence on layers, whose depth decides as the test wants."""
    return next(one for one in run_findings(tree) if "ater layers change more" in one)


def test_changes_of_layers_are_said_of_tasks_by_their_answer(run):
    tree = run.tree.copy(deep=True)
    data = tree["study"]
    for name, value in (("", 0.9), ("_ci_low", 0.5), ("_ci_high", 1.0)):
        data[f"mean_depth_correlation{name}"][:] = value
    data["depth_p"][:] = 0.01
    data["learned"][:] = 1
    said = layers_said(tree)
    assert said.startswith("Later layers change more: ")
    assert "mood (ρ = 0.90 [0.50, 1.00], p = 0.010)" in said
    data["learned"].loc[{"task": "mood"}] = 0
    assert "mood" not in layers_said(tree)
    data["learned"][:] = 1
    data["depth_p"].loc[{"task": "mood"}] = 0.2
    told, _, open_ = layers_said(tree).partition("cannot be told: ")
    assert "mood" in open_
    assert "mood" not in told


def test_where_all_seeds_give_the_same_correlation_no_interval_is_made_up(run):
    tree = run.tree.copy(deep=True)
    data = tree["study"]
    data["mean_depth_correlation"][:] = -1
    for end in ("_ci_low", "_ci_high"):
        data[f"mean_depth_correlation{end}"][:] = np.nan
    data["depth_p"][:] = 0.003
    (said,) = (one for one in run_findings(tree) if one.startswith("Earlier layers change more"))
    assert "(ρ = −1.00 in every seed, p = 0.003)" in said


def test_the_command_says_what_each_task_came_to(headscope, desk):
    done = headscope(
        "study", desk / "model", "--tasks", "mood", "--data", desk / "data", "--seeds", 1, *WORDS,
        "-o", "one", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    assert (summary["tasks"], summary["seeds"]) == (["mood"], [0])
    assert summary["variants"] == ["plain"]


def test_what_cannot_be_studied_is_refused(headscope, desk, tmp_path, monkeypatch):
    shutil.copytree(desk / "data", tmp_path / "data")
    hidden = (tmp_path / "data/mood/dev.tsv").read_text("utf-8").replace("\t1\n", "\t-1\n")
    (tmp_path / "data/hidden").mkdir()
    shutil.copy(tmp_path / "data/noise/train.tsv", tmp_path / "data/hidden/train.tsv")
    (tmp_path / "data/hidden/dev.tsv").write_text(hidden.replace("\t0\n", "\t\n"), "utf-8")

    def refuses(tasks, *words, **more):
        done = headscope("study", desk / "model", "--tasks", tasks, "--data", "data", *words)
        refused(done, **more)
        return done.err

    assert "has no train split" in refuses("mood,moot", "-o", "run")
    assert "label missing; wanted a split with labels" in refuses("hidden", "-o", "run")
    assert "twice" in refuses("stsb,STS-B", "-o", "run")
    assert "0 is not in the range" in refuses("mood", "--seeds", 0, "-o", "run")
    assert "wanted plain first" in refuses("mood", "--variants", "frozen", "-o", "run")
    assert "at most 2, the layers" in refuses("mood", "--freeze", 3, "-o", "run")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    assert "accelerate" in refuses("mood", "-o", "run")
    assert not (tmp_path / "run/manifest.json").exists()
