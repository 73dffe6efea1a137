"""Is a gain that only choice makes told from one that is there?"""

from __future__ import annotations

import numpy as np
import pytest

from headscope.experiments.ablation.effects import effects
from headscope.experiments.study.gains import best_head, gains
from headscope.tasks.task import Task

TASK = Task("mood", ("no", "yes"), ("accuracy",))
EXAMPLES, HEADS, SEEDS = 200, 8, 3


def answers(rng, *, helping):
    """[unit + 1, example, class] answers of which half are right; without any head a tenth of them
    change by chance; without head 5 (`helping`) half of the wrong ones become right.
    """
    labels = np.arange(EXAMPLES) % 2
    right = np.tile(rng.random(EXAMPLES) < 0.5, (HEADS + 1, 1))
    right[1:] ^= rng.random((HEADS, EXAMPLES)) < 0.1
    if helping:
        right[6] = right[0] | (rng.random(EXAMPLES) < 0.5)
    said = np.where(right, labels, 1 - labels)
    return labels, np.eye(2)[said].astype(np.float32)


def made(*, helping):
    rng = np.random.default_rng(0)
    labels, _ = answers(rng, helping=helping)
    some = [answers(rng, helping=helping)[1] for _ in range(SEEDS)]
    without = [effects(TASK, labels, one, replicates=50) for one in some]
    best = [best_head(one.difference.value, one.loss_difference.value) for one in without]
    others = [one[[best[at] + 1] * 2] for at, one in enumerate(some)]
    how = {"heads": 4, "replicates": 50, "seed": 0}
    return without, gains(TASK, labels, some, others, without, **how)


def test_a_gain_that_is_there_survives_the_other_seeds_and_the_other_half():
    _, each = made(helping=True)
    for one in each:
        assert one.unit == 5
        assert one.held_out.low > 0
        assert one.elsewhere.value > 0.05


def test_a_gain_that_choice_makes_is_gone_on_the_other_half():
    _, each = made(helping=False)
    chosen = np.mean([one.chosen.value for one in each])
    assert np.mean([one.half for one in each]) > 0
    assert np.mean([one.held_out.value for one in each]) < chosen
    assert not any(one.held_out.low > 0 for one in each)


def test_the_rows_are_what_they_say():
    without, each = made(helping=False)
    for at, one in enumerate(each):
        own = without[at].difference.value
        assert own[one.unit] == own.max() == one.chosen.value
        rest = [w.difference.value[one.unit] for k, w in enumerate(without) if k != at]
        np.testing.assert_allclose(one.elsewhere.value, np.mean(rest))
        layer = np.delete(own.reshape(2, 4)[one.unit // 4], one.unit % 4)
        np.testing.assert_allclose(one.beside, layer.mean())
        np.testing.assert_allclose(one.replaced.value, [own[one.unit]] * 2)


def test_of_equal_gains_the_smallest_loss_decides():
    assert best_head(np.array([0.1, 0.2, 0.2]), np.array([0.0, 0.3, -0.1])) == 2
    assert best_head(np.array([np.nan, 0.2]), np.array([-1.0, 0.3])) == pytest.approx(1)
