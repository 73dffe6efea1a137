"""In which order do heads go?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headscope.experiments.ablation import removal_curves
from headscope.experiments.ablation.effects import losses_of
from headscope.experiments.ablation.removal_curves import (
    Pruner,
    alone,
    counts,
    given,
    greedy,
    random,
)
from headscope.model.variant_answers import Way, naive
from headscope.model.variants import StandIn
from headscope.tasks.predict import encode
from headscope.tasks.task_model import load_for_task
from tasks.made import AMOUNT, MOOD, data

HEADS = [(layer, head) for layer in range(2) for head in range(3)]


def pruner_of(folder, task):
    model = load_for_task(folder, task)
    return Pruner(model, encode(model, data(15, task=task)), Way("shared"), batch_tokens=150)


def losses_without(pruner, every):
    """The mean losses with each set of heads off, from full passes over each example by itself."""
    model, encoded = pruner.model, pruner.choosing
    with torch.inference_mode():
        told = [
            naive(model.model.network, model.model.batch([e]), every, StandIn("zero"))[1:, 0]
            for e in encoded.examples
        ]
    answers = torch.stack(told, 1).numpy()  # [set, example, output]
    given = answers[..., 0] if model.task.is_regression else answers
    return [losses_of(model.task, encoded.labels, one).mean() for one in given]


def test_alone_those_heads_go_first_without_which_the_loss_rises_least(mood):
    pruner = pruner_of(mood, MOOD)
    found = alone(pruner)
    whole, *losses = losses_without(pruner, [frozenset(), *(frozenset([head]) for head in HEADS)])
    assert list(found.values()) == sorted(found.values())
    for head, loss in zip(HEADS, losses, strict=True):
        assert found[head] == pytest.approx(loss - whole, abs=1e-5)


@pytest.mark.parametrize(("task", "name"), [(MOOD, "mood"), (AMOUNT, "amount")])
def test_greedy_takes_at_every_step_the_head_that_is_least_needed_then(
    task, name, monkeypatch, request
):
    pruner = pruner_of(request.getfixturevalue(name), task)
    monkeypatch.setattr(removal_curves, "LOOKED_AT", len(HEADS))  # looks at all that are left
    order = greedy(pruner, step=1, start=alone(pruner))
    gone: list[tuple[int, int]] = []
    for taken in order[:-1]:
        left = [head for head in HEADS if head not in gone]
        losses = losses_without(pruner, [frozenset([*gone, head]) for head in left])
        assert losses[left.index(taken)] <= min(losses) + 1e-6
        gone.append(taken)
    assert sorted(order) == HEADS


def test_greedy_looks_again_at_a_few_only(mood):
    pruner = pruner_of(mood, MOOD)
    looks = []
    own = Pruner.rises_without

    class Watched(Pruner):
        def rises_without(self, heads, removed):
            looks.append((len(heads), len(removed)))
            return own(self, heads, removed)

    watched = Watched(pruner.model, pruner.choosing, pruner.way, batch_tokens=150)
    start = alone(pruner)
    order = greedy(watched, step=1, start=start)
    assert looks == [(3, 0), (3, 1), (3, 2), (3, 3), (2, 4)]
    assert sorted(order) == HEADS
    assert order[0] == next(iter(start))


def test_by_importance_the_least_important_go_first():
    importance = np.array([[0.3, np.nan, 0.1], [0.2, 0.05, 9.0]])
    assert given(importance) == [(0, 1), (1, 1), (0, 2), (1, 0), (0, 0), (1, 2)]


def test_random_orders_follow_their_seed():
    first, again, other = (random(HEADS, seed=seed) for seed in (0, 0, 1))
    assert first == again != other
    assert sorted(first) == HEADS


def test_a_curve_has_a_point_for_none_every_step_and_all():
    assert counts(7, 3) == [0, 3, 6, 7]
    assert counts(6, 3, also=4) == [0, 3, 4, 6]


def test_the_weights_are_as_they_were_after_a_look(mood):
    pruner = pruner_of(mood, MOOD)
    before = [p.detach().clone() for p in pruner.model.model.network.parameters()]
    pruner.rises_without(HEADS[:2], HEADS[2:4])
    pruner.answers_without(pruner.choosing, HEADS)
    for tensor, parameter in zip(before, pruner.model.model.network.parameters(), strict=True):
        assert torch.equal(tensor, parameter)
