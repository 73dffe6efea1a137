"""Do the curves tell what is left, and does the written checkpoint lack just those heads?"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score
from transformers import AutoModelForSequenceClassification

from experiments.ablation.test_ablate import one_by_one
from headscope.core.intervals import estimate
from headscope.errors import InputError, RunFolderError, RunStopped
from headscope.experiments.ablation import pruning as module
from headscope.experiments.ablation.pruned_checkpoint import (
    chosen_heads,
    note_of,
    refuse_strangers,
    write_pruned,
)
from headscope.experiments.ablation.pruning import Pruning, prune_curves
from headscope.experiments.ablation.removal_curves import (
    Curves,
    greedy,
    greedy_variants,
    pruning_result,
    random,
)
from headscope.experiments.ablation.settings import PruningSettings
from headscope.experiments.ablation.terms import best_order
from headscope.model.variants import StandIn
from headscope.run.execution import Execution
from headscope.run.store import open_run
from headscope.tasks.metrics import draws_of
from headscope.tasks.predict import encode, outputs
from headscope.tasks.task import Task
from headscope.tasks.task_model import load_for_task
from tasks.made import AMOUNT, MOOD, data

STOCK = Execution(linears="stock")

HEADS = [(layer, head) for layer in range(2) for head in range(3)]
FEW = PruningSettings(step=2, draws=2, replicates=30, batch_tokens=200)


def asked_of(folder, task=MOOD, **changes):
    model = load_for_task(folder, task)
    pruning = Pruning(model, data(16, seed=1, task=task), data(40, task=task), FEW)
    return replace(pruning, **changes)


@pytest.fixture(scope="module")
def asked(mood):
    return asked_of(mood)


@pytest.fixture(scope="module")
def run(asked):
    return prune_curves(asked, execution=STOCK)


def gone_in(pruning, name, count):
    turns = pruning["turn"].sel(order=name).values
    return [tuple(head) for head in np.argwhere(turns < count).tolist()]


def test_points_of_a_curve_are_scores_with_those_heads_giving_nothing(asked, run):
    found = run["pruning"]
    assert list(found["order"].values) == ["greedy", "alone", "random 1", "random 2"]
    assert found["removed"].values.tolist() == [0, 2, 4, 6]
    for name in ("greedy", "random 2"):
        variants = [frozenset(gone_in(found, name, count)) for count in (2, 4, 6)]
        answers = one_by_one(asked.model, asked.scoring, variants, StandIn("zero"))
        scores = [accuracy_score(asked.scoring.labels, a.argmax(-1)) for a in answers]
        np.testing.assert_allclose(found["score"].sel(order=name).values, scores)
        assert len(set(scores)) > 1
    expected = random(HEADS, seed=0)
    assert sorted(expected[:2]) == gone_in(found, "random 1", 2)


def test_as_many_heads_can_go_as_the_allowance_permits(run):
    found = run["pruning"]
    for name in found["order"].values:
        one = found.sel(order=name)
        lost = one["score"].values[0] - one["score"].values
        within = one["removed"].values[lost <= 0.005 + 1e-12]
        assert float(one["can_go"]) == within.max()


def made_curves(rng, *, examples=200):
    task = Task("mood", ("no", "yes"), ("accuracy",))
    labels = rng.integers(0, 2, examples)
    right = rng.random((3, examples)) < np.array([[0.8], [0.79], [0.6]])
    told = np.where(right, labels, 1 - labels)  # [point, example]
    answers = np.eye(2)[told][None]  # [order, point, example, class]
    ids = [f"e{at}" for at in range(examples)]
    return Curves(task, labels, ids, (1, 2), {"greedy": [(0, 0), (0, 1)]}, [0, 1, 2], answers)


def test_what_is_chosen_on_one_half_is_scored_on_the_other():
    from headscope.core.accumulators import halves

    curves = made_curves(np.random.default_rng(0))
    found = pruning_result(curves, allowance=0.05, replicates=100, seed=0)
    half = halves(curves.ids, seed=0)
    right = curves.answers[0].argmax(-1) == curves.labels  # [point, example]
    first, second = right[:, half == 0].mean(1), right[:, half == 1].mean(1)
    count = int(np.flatnonzero(first - first[0] >= -0.05).max())
    assert found["can_go_half"].item() == count
    assert found["held_out"].item() == pytest.approx(second[count] - second[0])
    whole = right.mean(1)
    np.testing.assert_allclose(found["score"].values[0], whole)


def test_a_score_that_is_undefined_does_not_pass_for_no_head_that_can_go():
    """All answers alike have no correlation with anything."""
    curves = made_curves(np.random.default_rng(0))
    numbers = np.arange(float(len(curves.labels)))
    alike = replace(curves, task=AMOUNT, labels=numbers, answers=np.ones((1, 3, len(numbers))))
    with pytest.raises(InputError, match="score that is undefined on these examples"):
        pruning_result(alike, allowance=0.05, replicates=20, seed=0)


def test_differences_along_a_curve_are_paired():
    curves = made_curves(np.random.default_rng(1))
    found = pruning_result(curves, allowance=0.05, replicates=400, seed=0)
    draws = [draws_of(curves.task, curves.labels, a, replicates=400) for a in curves.answers[0]]
    expected = estimate(draws[2] - draws[0])
    np.testing.assert_allclose(found["difference_ci_low"].values[0, 2], expected.low)
    np.testing.assert_allclose(found["difference_ci_high"].values[0, 2], expected.high)


def test_the_order_in_which_most_heads_can_go_is_taken_and_never_one_by_chance(run):
    found = run["pruning"].copy(deep=True)
    found["can_go"].values[:] = [2, 4, 6, 6]
    assert best_order(found) == "alone"
    assert chosen_heads(found) == ("alone", gone_in(found, "alone", 4))
    found["can_go"].values[:] = [4, 4, 6, 6]
    assert best_order(found) == "greedy"
    assert chosen_heads(found, order="random 1", remove=2)[1] == gone_in(found, "random 1", 2)
    with pytest.raises(InputError, match="random 1"):
        chosen_heads(found, order="alphabet")


def test_the_written_checkpoint_answers_in_stock_transformers_as_if_the_heads_gave_nothing(
    asked, run, tmp_path
):
    order, heads = chosen_heads(run["pruning"], order="greedy", remove=4)
    folder = write_pruned(asked.model.model, run, order, heads, tmp_path / "pruned")
    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    wanted = one_by_one(asked.model, asked.scoring, [frozenset(heads)], StandIn("zero"))[1]
    encoded = encode(asked.model, asked.scoring)
    with torch.no_grad():
        found = [
            network(
                input_ids=torch.from_numpy(e.input_ids)[None],
                token_type_ids=torch.from_numpy(e.segment_ids)[None],
            )
            .logits[0]
            .numpy()
            for e in encoded.examples
        ]
    np.testing.assert_allclose(np.array(found), wanted, atol=1e-5)
    again = load_for_task(folder, MOOD)
    np.testing.assert_allclose(outputs(again, encode(again, asked.scoring)), wanted, atol=1e-5)
    assert {p.name for p in folder.iterdir()} >= {
        "config.json",
        "model.safetensors",
        "pruned.json",
        "pruned.svg",
        "pruned.png",
    }


def test_the_model_that_was_pruned_keeps_its_heads(asked, run, tmp_path):
    before = {k: v.clone() for k, v in asked.model.model.network.state_dict().items()}
    write_pruned(asked.model.model, run, "greedy", HEADS[:4], tmp_path / "pruned")
    for name, tensor in asked.model.model.network.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_the_note_says_which_heads_are_gone_and_what_it_costs(asked, run, tmp_path):
    order, heads = chosen_heads(run["pruning"], order="alone", remove=4)
    write_pruned(asked.model.model, run, order, heads, tmp_path / "pruned")
    note = json.loads((tmp_path / "pruned/pruned.json").read_text())
    assert note["removed"] == [f"L{layer + 1}·H{head + 1}" for layer, head in sorted(heads)]
    assert note["removed_from_0"] == [list(head) for head in sorted(heads)]
    one = run["pruning"].sel(order="alone")
    difference = one["score"].values[2] - one["score"].values[0]
    assert note["score"]["difference"]["value"] == pytest.approx(difference)
    assert note["checkpoint"]["sha256"] == asked.model.model.sha256 != note["sha256"]
    assert note_of(run, order, heads)["order"] == "alone"


def test_a_number_of_heads_that_is_asked_for_is_a_point_of_the_curve(mood):
    settings = replace(FEW, remove=3, orders=("alone",))
    run = prune_curves(asked_of(mood, settings=settings), execution=STOCK)
    assert run["pruning"]["removed"].values.tolist() == [0, 2, 3, 4, 6]
    with pytest.raises(InputError, match="found 7 heads to remove; the model has 6"):
        prune_curves(asked_of(mood, settings=replace(FEW, remove=7)), execution=STOCK)


def test_an_importance_gives_an_order_under_its_own_name(mood):
    importance = np.array([[0.3, 0.5, 0.1], [0.2, 0.0, 9.0]])
    settings = replace(FEW, orders=("given",))
    run = prune_curves(
        asked_of(mood, settings=settings, importance=importance, importance_name="michel"),
        execution=STOCK,
    )
    assert list(run["pruning"]["order"].values) == ["michel"]
    assert gone_in(run["pruning"], "michel", 2) == [(0, 2), (1, 1)]
    bad = asked_of(mood, settings=settings, importance=np.zeros((1, 2)))
    with pytest.raises(InputError, match="1 layers of 2 heads; wanted 2 of 3"):
        prune_curves(bad, execution=STOCK)
    with pytest.raises(InputError, match="--importance"):
        prune_curves(asked_of(mood, settings=settings), execution=STOCK)


def test_a_regression_is_pruned_by_its_correlation(amount, tmp_path):
    asked = asked_of(amount, AMOUNT)
    found = prune_curves(asked, execution=STOCK)["pruning"]
    variants = [frozenset(gone_in(found, "greedy", 4))]
    told = one_by_one(asked.model, asked.scoring, variants, StandIn("zero"))[1, :, 0]
    wanted = np.corrcoef(asked.scoring.labels, told)[0, 1]
    np.testing.assert_allclose(found["score"].sel(order="greedy", removed=4), wanted, atol=1e-5)


def test_a_stopped_run_goes_on(asked, mood, tmp_path, monkeypatch):
    whole = prune_curves(asked, execution=STOCK)
    own = module.Pruner.answers_without
    calls = []

    def stopping(self, scoring, removed):
        calls.append(len(removed))
        if len(calls) == 6:
            raise KeyboardInterrupt
        return own(self, scoring, removed)

    monkeypatch.setattr(module.Pruner, "answers_without", stopping)
    with pytest.raises(RunStopped):
        prune_curves(asked, output=tmp_path / "run", execution=STOCK)
    monkeypatch.setattr(module.removal_curves, "greedy", None)
    monkeypatch.setattr(module.removal_curves, "alone", None)
    run = prune_curves(asked, output=tmp_path / "run", execution=STOCK)
    assert calls[6:] == [0, 2, 4, 6] * 3  # the order that was finished is not scored again
    assert run["pruning"].equals(whole["pruning"])
    run.report()
    assert (tmp_path / "run/figures/pruning.svg").is_file()
    assert open_run(tmp_path / "run")["pruning"].equals(whole["pruning"])


def test_a_folder_that_is_not_ours_is_left_alone(mood, tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters/dear.txt").write_text("you")
    with pytest.raises(RunFolderError, match=r"pruned\.json"):
        refuse_strangers(tmp_path / "letters", checkpoint=mood)
    with pytest.raises(InputError, match="is the checkpoint to prune"):
        refuse_strangers(mood, checkpoint=mood)
    refuse_strangers(tmp_path / "new", checkpoint=mood)


def test_examples_that_choose_heads_and_are_scored_are_told(asked, run):
    """Of train and dev only the same file was noticed, here and nowhere else."""
    assert run.notes == ()
    shared = replace(asked.scoring, rows=asked.choosing.rows[:3] + asked.scoring.rows, source="dev")
    settings = replace(FEW, orders=("alone",))
    plan = replace(asked, scoring=shared, settings=settings)
    plan = replace(plan, choosing=replace(asked.choosing, source="train"))
    told = prune_curves(plan, execution=STOCK)
    assert told.notes == ("3 of 43 examples of dev are in train, too",)
    same = replace(plan, choosing=shared)  # said in other words
    assert prune_curves(same, execution=STOCK).notes == ()


def test_what_cannot_be_is_refused():
    for wrong in (
        {"orders": ()},
        {"orders": ("random",)},
        {"orders": ("best",)},
        {"allowance": -1.0},
        {"step": 0},
        {"draws": 0},
    ):
        with pytest.raises(InputError):
            PruningSettings(**wrong)


def test_the_passes_that_are_said_before_are_those_that_are_made(asked):
    told, parts = [], []
    progress = Execution(linears="stock", progress=lambda *at: told.append(at))
    prune_curves(asked, execution=progress, begin=parts.append)
    said = asked.passes
    assert parts == list(said)
    assert told[-1] == (sum(said.values()), sum(said.values()))
    heads, chosen = asked.model.model.shape.layers * asked.model.model.shape.heads, asked.choosing
    assert said["look at each head alone"] == (heads + 1) * len(chosen)
    assert any(done == said["look at each head alone"] for done, _ in told)


@pytest.mark.parametrize(("heads", "step"), [(6, 1), (12, 2), (7, 3), (72, 3), (3, 5)])
def test_greedy_runs_as_many_variants_as_it_says(heads, step):
    class Counting:
        ran = 0

        def rises_without(self, some, removed):
            self.ran += len(some) + 1
            return [float(place) for place, _ in enumerate(some)]

    pruner = Counting()
    greedy(pruner, step=step, start={(0, head): float(head) for head in range(heads)})
    assert pruner.ran == greedy_variants(heads, step)
