"""Does a run hold the answers of every head and layer, and can it be stopped and read again?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import accuracy_score

from headscope.claims.reading import run_findings
from headscope.core.head_names import HeadNames
from headscope.errors import InputError, ModelError, RunFolderError, RunStopped
from headscope.experiments.ablation import ablating as module
from headscope.experiments.ablation.ablate import ablate, note_of
from headscope.experiments.ablation.pruning import Pruning, prune_curves
from headscope.experiments.ablation.result import variant_name
from headscope.experiments.ablation.settings import AblationSettings, PruningSettings
from headscope.experiments.ablation.terms import verdict_counts
from headscope.model.variant_answers import Way, naive
from headscope.model.variants import (
    StandIn,
    mean_mixtures,
    pairs,
    single_heads,
    whole_layers,
)
from headscope.report.run_facts import run_summary
from headscope.run.execution import Execution
from headscope.run.store import open_run
from headscope.tasks.predict import encode, outputs
from headscope.tasks.task_model import load_for_task
from tasks.made import AMOUNT, MOOD, data

STOCK = Execution(linears="stock")

LAYERS, HEADS = 2, 3
STOP = 4  # at this batch: in the second part
FEW = AblationSettings(replicates=20, batch_tokens=200)


def one_by_one(model, rows, variants, stand_in):
    """[variant + 1, example, output] every example by itself, from the first layer on."""
    encoded = encode(model, rows)
    with torch.inference_mode():
        found = [
            naive(model.model.network, model.model.batch([e]), variants, stand_in)[:, 0]
            for e in encoded.examples
        ]
    return torch.stack(found, 1).numpy()


def test_scores_are_those_of_each_example_by_itself(mood, ablated):
    model, rows = load_for_task(mood, MOOD), data(40)
    variants = [*single_heads(LAYERS, HEADS), *whole_layers(LAYERS, HEADS)]
    answers = one_by_one(model, rows, variants, StandIn()).argmax(-1)
    found = ablated["ablation"]
    scores = [accuracy_score(rows.labels, told) for told in answers]
    assert float(found["baseline"]) == pytest.approx(scores[0])
    np.testing.assert_allclose(found["score"].values.ravel(), scores[1:7])
    np.testing.assert_allclose(found["layer_score"].values, scores[7:])
    np.testing.assert_allclose(found["difference"], found["score"] - scores[0])
    np.testing.assert_array_equal(found["prediction"].values.reshape(6, -1), answers[1:7])
    assert len(set(scores)) > 3  # heads that change nothing would hide a mix-up
    assert not (found["difference_ci_low"] > found["difference"]).any()
    assert found.attrs["way"] == "shared"


@pytest.mark.parametrize("how", ["zero", "mean"])
def test_other_replacements_are_run_as_asked(amount, how):
    model, rows = load_for_task(amount, AMOUNT), data(24, task=AMOUNT)
    run = ablate(model, rows, settings=replace(FEW, replacement=how), execution=STOCK)
    shown = [model.model.batch([example]) for example in encode(model, rows).examples]
    means = mean_mixtures(model.model.network, shown) if how == "mean" else None
    variants = single_heads(LAYERS, HEADS)
    answers = one_by_one(model, rows, variants, StandIn(how, means))[..., 0]
    found = run["ablation"]
    np.testing.assert_allclose(
        found["prediction"].values.reshape(6, -1), answers[1:], atol=1e-5, rtol=1e-5
    )
    scores = [np.corrcoef(rows.labels, told)[0, 1] for told in answers]
    np.testing.assert_allclose(found["score"].values.ravel(), scores[1:], atol=1e-5)
    losses = ((answers - rows.labels) ** 2).mean(1)
    np.testing.assert_allclose(found["loss"].values.ravel(), losses[1:], rtol=1e-4)
    assert "lost" not in found
    assert found.attrs["replacement"] == how


def test_groups_and_pairs_are_off_together(mood, ablated):
    model, rows = load_for_task(mood, MOOD), data(40)
    found = ablated["ablation"]
    loss = np.abs(found["loss_difference"].values.ravel())
    most = sorted(divmod(int(at), HEADS) for at in np.argsort(-loss)[:2])
    groups = [frozenset({(0, 1), (1, 2)}), *pairs(most)]
    groups = list(dict.fromkeys(groups))
    assert [variant_name(g, HEADS, HeadNames(())) for g in groups] == list(found["group"].values)
    answers = one_by_one(model, rows, groups, StandIn()).argmax(-1)
    scores = [accuracy_score(rows.labels, told) for told in answers]
    np.testing.assert_allclose(found["group_score"].values, scores[1:])
    alone = found["difference"].values
    sums = [sum(alone[head] for head in group) for group in groups]
    np.testing.assert_allclose(
        found["group_interaction"].values, np.array(scores[1:]) - scores[0] - sums, atol=1e-12
    )


def test_names_count_from_1_and_whole_layers_are_named_as_such():
    assert variant_name(frozenset({(1, 0), (0, 11)}), 12, HeadNames(())) == "L1·H12 + L2·H1"
    assert variant_name(frozenset({(3, 0), (3, 1), (0, 1)}), 2, HeadNames(())) == "L1·H2 + L4"


def test_the_tables_tell_every_answer_that_changed(ablated):
    folder = ablated.path / "tables"
    flips = pd.read_csv(folder / "ablation_flips.csv", dtype={"example": str})
    found = ablated["ablation"]
    changed = (found["prediction"] != found["baseline_prediction"]).sum().item()
    changed += (found["layer_prediction"] != found["baseline_prediction"]).sum().item()
    changed += (found["group_prediction"] != found["baseline_prediction"]).sum().item()
    assert len(flips) == changed > 0
    row = flips[flips["name"] == "L1·H2"].iloc[0]
    at = list(found["example"].values).index(row["example"])
    classes = MOOD.labels
    assert row["after"] == classes[int(found["prediction"].values[0, 1, at])]
    assert row["before"] == classes[int(found["baseline_prediction"].values[at])]
    assert row["label"] == classes[int(found["label"].values[at])]
    assert (row["change"] == "lost") == (row["before"] == row["label"])
    effects = pd.read_csv(folder / "ablation_effects.csv")
    lost = flips[(flips["name"] == "L1·H2") & (flips["change"] == "lost")]
    assert effects.set_index("name").loc["L1·H2", "lost"] == len(lost)
    assert list(effects["name"][:8]) == [
        "L1·H1",
        "L1·H2",
        "L1·H3",
        "L2·H1",
        "L2·H2",
        "L2·H3",
        "L1",
        "L2",
    ]


def test_the_table_of_a_regression_tells_large_changes(amount, tmp_path):
    model, rows = load_for_task(amount, AMOUNT), data(24, task=AMOUNT)
    run = ablate(model, rows, settings=FEW, execution=STOCK, output=tmp_path / "run")
    run.report()
    flips = pd.read_csv(tmp_path / "run/tables/ablation_flips.csv")
    assert set(flips["change"]) <= {"nearer", "farther"}
    least = 0.1 * np.ptp(rows.labels)
    assert ((flips["after"] - flips["before"]).abs() > least).all()
    nearer = (flips["after"] - flips["label"]).abs() < (flips["before"] - flips["label"]).abs()
    assert (nearer == (flips["change"] == "nearer")).all()


def test_the_same_command_opens_a_finished_run(mood, tmp_path, monkeypatch):
    model, rows = load_for_task(mood, MOOD), data(20)
    first = ablate(model, rows, settings=FEW, output=tmp_path / "run", execution=STOCK)
    monkeypatch.setattr(module, "sweep", None)  # nothing may be computed
    again = ablate(model, rows, settings=FEW, output=tmp_path / "run")
    assert again.tree.identical(open_run(tmp_path / "run").tree)
    assert again["ablation"].equals(first["ablation"])


def test_a_run_that_was_stopped_goes_on_with_what_is_missing(mood, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PART_TOKENS", 60)
    model, rows = load_for_task(mood, MOOD), data(30)
    whole = ablate(model, rows, settings=FEW, execution=STOCK)
    own, calls = module.sweep, []

    def stopping(*given):
        calls.append(given[2])
        if len(calls) == STOP:
            raise KeyboardInterrupt
        return own(*given)

    monkeypatch.setattr(module, "sweep", stopping)
    with pytest.raises(RunStopped, match="goes on from what is finished"):
        ablate(model, rows, settings=FEW, execution=STOCK, output=tmp_path / "run")
    before = [place for places in calls[: STOP - 1] for place in places]
    calls[:] = [None] * STOP
    run = ablate(model, rows, settings=FEW, execution=STOCK, output=tmp_path / "run")
    after = [place for places in calls[STOP:] for place in places]
    assert len(after) < 30
    assert sorted({*before, *after}) == list(range(30))
    assert run["ablation"].equals(whole["ablation"])


def test_another_spec_in_the_folder_is_refused_and_overwritten_if_asked(mood, tmp_path):
    model, rows = load_for_task(mood, MOOD), data(20)
    how = {"output": tmp_path / "run"}
    ablate(model, rows, settings=FEW, execution=STOCK, **how)
    other = replace(FEW, replacement="zero")
    with pytest.raises(RunFolderError, match="replacement"):
        ablate(model, rows, settings=other, execution=STOCK, **how)
    with pytest.raises(RunFolderError, match="the corpus: made 0, now made 3"):
        ablate(model, data(20, seed=3), settings=FEW, execution=STOCK, **how)
    run = ablate(model, rows, settings=other, execution=replace(STOCK, overwrite=True), **how)
    assert run["ablation"].attrs["replacement"] == "zero"


def test_a_family_run_the_naive_way_says_so(mood, monkeypatch):
    way = Way("naive", "answers differ by 1.0e+00")
    monkeypatch.setattr(module, "choose_way", lambda *_: way)
    model, rows = load_for_task(mood, MOOD), data(20)
    run = ablate(model, rows, settings=FEW, execution=STOCK)
    assert note_of(run) == "computed by the way 'naive': answers differ by 1.0e+00"
    monkeypatch.undo()
    shared = ablate(model, rows, settings=FEW, execution=STOCK)
    assert note_of(shared) == ""
    np.testing.assert_array_equal(run["ablation"]["score"], shared["ablation"]["score"])


def test_a_model_whose_answers_are_no_numbers_is_refused_before_the_sweep(mood):
    model = load_for_task(mood, MOOD)
    model.model.network.classifier.weight.data[:] = float("nan")
    with pytest.raises(ModelError, match="answers with NaN"):
        ablate(model, data(20), settings=FEW, execution=STOCK)
    with pytest.raises(ModelError, match="answers with NaN"):
        prune_curves(Pruning(model, data(12, seed=1), data(12)), execution=STOCK)


def test_what_cannot_be_is_refused(mood):
    model, rows = load_for_task(mood, MOOD), data(20)
    with pytest.raises(InputError, match="L3·H1"):
        ablate(model, rows, settings=AblationSettings(groups=(((2, 0),),)))
    for wrong in ({"replacement": "none"}, {"pairs": 1}, {"groups": ((),)}, {"batch_tokens": 0}):
        with pytest.raises(InputError):
            AblationSettings(**wrong)


def test_hostile_names_of_examples_classes_and_tasks_are_kept_as_text(mood, tmp_path):
    strange = "\ud800<i7>\x00\n$x$"
    task = replace(MOOD, name=strange, labels=("no", strange))
    rows = data(20)
    odd = replace(rows.rows[3], id=strange)
    rows = replace(rows, task=task, rows=(*rows.rows[:3], odd, *rows.rows[4:]))
    model = replace(load_for_task(mood, MOOD), task=task)
    run = ablate(model, rows, settings=FEW, execution=STOCK, output=tmp_path / "run")
    page = run.report().read_text("utf-8")
    assert "<i7>" not in page
    again = open_run(tmp_path / "run")["ablation"]
    assert len(again.attrs["classes"].split("\n")) == 2
    assert len(set(again["example"].values)) == 20


def test_progress_goes_up_to_all_examples_once_for_heads_and_once_for_pairs(mood, monkeypatch):
    monkeypatch.setattr(module, "PART_TOKENS", 60)
    model, rows = load_for_task(mood, MOOD), data(30)
    told = []
    ablate(
        model,
        rows,
        settings=replace(FEW, pairs=2),
        execution=replace(STOCK, progress=lambda *x: told.append(x)),
    )
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert told[-1] == (60, 60)
    assert (30, 60) in told


def test_heads_of_a_model_whose_label_names_are_exchanged_are_not_called_harmful(mood):
    """It was said of a model with an accuracy of 0 %: 1 harmful head, more than chance."""
    model = load_for_task(mood, MOOD)
    answers = outputs(model, encode(model, data(120)))
    answered = zip(data(120).rows, answers.argmax(1).tolist(), strict=True)
    wrong = [replace(row, label=1 - answer) for row, answer in answered]
    assert {row.label for row in wrong} == {0, 1}
    exchanged = replace(data(120), rows=tuple(wrong))
    run = ablate(model, exchanged, execution=STOCK, settings=FEW)
    first, *others = run_findings(run.tree)
    assert "Accuracy of the model is 0.0 % [0.0, 2.1], surely below the 91 %" in first
    assert "label names are exchanged (put right, accuracy would be 100 %)" in first
    assert not others
    assert verdict_counts(run["ablation"])["harmful"] == 0
    assert (run["ablation"]["q"] < 0.05).any()  # it would have been said
    assert "label names are exchanged" in run_summary(run.tree, run.manifest)
    orders = PruningSettings(orders=("alone",))
    pruned = prune_curves(Pruning(model, data(12), exchanged, orders), execution=STOCK)
    (only,) = run_findings(pruned.tree)
    assert "label names are exchanged" in only
