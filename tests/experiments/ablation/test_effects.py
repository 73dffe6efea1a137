"""Are differences, intervals, p and verdicts what statistics says?"""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.stats import skew, t
from sklearn.metrics import f1_score, log_loss

from headscope.core.intervals import Estimate
from headscope.experiments.ablation.effects import corrected, effects, losses_of, verdicts
from headscope.tasks.task import Task

TWO = Task("mood", ("no", "yes"), ("accuracy",))
THREE = Task("kind", ("a", "b", "c"), ("accuracy",))
F1 = Task("pair", ("no", "yes"), ("f1", "accuracy"))
AMOUNT = Task("amount", (), ("pearson", "spearman"))


def logits(labels, right, rng):
    """[example, 2] answers that are right where they should be."""
    told = np.where(right, labels, 1 - labels)
    out = rng.normal(size=(len(labels), 2))
    out[np.arange(len(labels)), told] = out.max(1) + rng.uniform(0.1, 1, len(labels))
    return out


@pytest.fixture
def answered():
    """60 examples; variants that lose 9 and gain 1, lose 0 and gain 7, change nothing."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    right = np.arange(60) < 45
    worse, better = right.copy(), right.copy()
    worse[:9], worse[50] = False, True
    better[45:52] = True
    every = [logits(labels, row, rng) for row in (right, worse, better)]
    return labels, np.stack([*every, every[0]])


def test_scores_and_changed_answers_are_counted(answered):
    labels, answers = answered
    found = effects(TWO, labels, answers, replicates=50)
    np.testing.assert_allclose(found.score, [37 / 60, 52 / 60, 45 / 60])
    np.testing.assert_allclose(found.difference.value, [-8 / 60, 7 / 60, 0])
    assert found.lost.tolist() == [9, 0, 0]
    assert found.gained.tolist() == [1, 7, 0]


def test_p_of_an_accuracy_is_that_of_a_fair_coin(answered):
    labels, answers = answered
    found = effects(TWO, labels, answers, replicates=10)
    tail = sum(comb(10, k) for k in (0, 1)) / 2**10
    np.testing.assert_allclose(found.p, [2 * tail, 2 / 2**7, 1.0])


def test_p_is_corrected_as_benjamini_and_hochberg_say():
    p = np.array([0.01, 0.04, 0.03, 0.005, np.nan])
    # by hand: sorted 0.005, 0.01, 0.03, 0.04, times 4/rank, then the least of all that follow
    np.testing.assert_allclose(corrected(p), [0.02, 0.04, 0.04, 0.02, np.nan])
    assert np.isnan(corrected(np.array([np.nan, np.nan]))).all()


def test_a_verdict_needs_more_than_the_corrected_level():
    value = np.array([-0.1, 0.1, -0.1, np.nan])
    words = verdicts(
        Estimate(value, value - 0.2, value + 0.2), np.array([0.049, 0.01, 0.05, 0.01]), 0.01
    )
    assert words == ["helpful", "harmful", "cannot tell", "cannot tell"]


def test_no_effect_is_said_only_where_the_whole_interval_lies_within_the_margin():
    value = np.zeros(3)
    low, high = np.array([-0.009, -0.02, -0.009]), np.array([0.009, 0.005, np.nan])
    words = verdicts(Estimate(value, low, high), np.ones(3), 0.01)
    assert words == ["no effect", "cannot tell", "cannot tell"]


def test_a_change_within_the_margin_is_no_effect_however_sure_it_is():
    """More examples would turn the one verdict into the other."""
    value = np.full(2, -0.004)
    low, high = np.array([-0.006, -0.012]), np.full(2, -0.002)
    words = verdicts(Estimate(value, low, high), np.full(2, 0.001), 0.01)
    assert words == ["no effect", "helpful"]


@pytest.mark.parametrize(("examples", "word"), [(200, "cannot tell"), (300, "no effect")])
def test_a_head_that_flips_no_answer_is_without_effect_only_if_there_are_examples_enough(
    examples, word
):
    """As many other answers may flip as one in n / 2.5 does: a point takes 250."""
    rng = np.random.default_rng(6)
    labels = rng.integers(0, 2, examples)
    same = logits(labels, rng.random(examples) < 0.7, rng)
    found = effects(TWO, labels, np.stack([same, same]), replicates=2000)
    assert found.verdict == [word]
    assert found.difference.low[0] <= 0 <= found.difference.high[0]


def test_a_head_is_helpful_where_the_score_falls_without_it(answered):
    labels, answers = answered
    found = effects(TWO, labels, answers, replicates=10)
    assert found.verdict == ["helpful", "harmful", "cannot tell"]


def test_corrections_are_made_within_what_is_compared(answered):
    """Layers are a family of their own: 1 of 3 heads is not 1 of 4 variants."""
    labels, answers = answered
    found = effects(TWO, labels, np.concatenate([answers, answers[1:2]]), replicates=10)
    single, layers = found.of(slice(0, 3)), found.of(slice(3, 4))
    np.testing.assert_allclose(layers.q, layers.p)
    np.testing.assert_allclose(single.q, corrected(found.p[:3]))
    np.testing.assert_allclose(layers.difference.value, single.difference.value[:1])


def test_differences_are_paired():
    """Two models that err on the same examples differ by little, however much each may vary."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 400)
    right = rng.random(400) < 0.6
    other = right.copy()
    other[np.flatnonzero(right)[:4]] = False
    answers = np.stack([logits(labels, right, rng), logits(labels, other, rng)])
    found = effects(TWO, labels, answers, replicates=2000)
    low, high = student(np.where(right & ~other, -1.0, 0.0))  # 4 of 400 changed
    np.testing.assert_allclose(found.difference.low, low, rtol=1e-9)
    np.testing.assert_allclose(found.difference.high, high, rtol=1e-9)


def student(values):
    """The interval of the mean of values by hand, the one that is farthest away counted twice.

    It is longer on the side to which the values are skewed.
    """
    n, away = len(values), (values - values.mean()) ** 2
    error = np.sqrt((away.sum() + away.max()) / (n * (n - 1)))
    freedom = min(2 / ((away**2).sum() / away.sum() ** 2 - 1 / n), n - 1)
    half = t.ppf(0.975, freedom) * error
    side = np.tanh(skew(values))
    down, up = (1 + (0.5 if way > 0 else 0.2) * way for way in (-side, side))
    return values.mean() - half * down, values.mean() + half * up


def test_a_score_that_is_no_accuracy_is_tested_by_its_spread():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 300)
    right = rng.random(300) < 0.9
    worse = right & (rng.random(300) < 0.6)
    answers = np.stack([logits(labels, row, rng) for row in (right, worse, right)])
    answers[2] = answers[0]
    found = effects(F1, labels, answers, replicates=500)
    np.testing.assert_allclose(found.score[0], f1_score(labels, answers[1].argmax(1)))
    assert found.p[0] < 1e-6
    assert found.p[1] == 1
    assert found.verdict == ["helpful", "no effect"]


def test_losses_are_those_of_scikit_learn():
    rng = np.random.default_rng(3)
    labels, answers = rng.integers(0, 3, 50), rng.normal(size=(50, 3)) * 3
    chances = np.exp(answers) / np.exp(answers).sum(1, keepdims=True)
    found = losses_of(THREE, labels, answers)
    np.testing.assert_allclose(found.mean(), log_loss(labels, chances, labels=[0, 1, 2]))
    numbers = np.array([1.0, 2.0])
    np.testing.assert_allclose(losses_of(AMOUNT, numbers, np.array([1.5, 0.0])), [0.25, 4.0])


def test_the_loss_tells_what_no_flipped_answer_does():
    """Every answer a little less certain: no example flips, and the loss is surely higher."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 100)
    sure = logits(labels, np.full(100, True), rng) * 3
    found = effects(TWO, labels, np.stack([sure, sure * 0.8]), replicates=100)
    assert found.verdict == ["cannot tell"]
    assert found.loss_verdict == ["helpful"]
    assert found.loss_difference.low[0] > 0
    more = losses_of(TWO, labels, sure * 0.8) - losses_of(TWO, labels, sure)
    np.testing.assert_allclose(found.loss_difference.high, student(more)[1], rtol=1e-6)


def test_a_regression_has_no_flips_and_constant_answers_no_score():
    rng = np.random.default_rng(5)
    labels = rng.normal(size=80)
    whole = labels + rng.normal(size=80)
    answers = np.stack([whole, rng.normal(size=80), np.zeros(80)])[..., None]
    found = effects(AMOUNT, labels, answers, replicates=300)
    np.testing.assert_allclose(found.score[0], np.corrcoef(labels, answers[1, :, 0])[0, 1])
    assert np.isnan(found.lost).all()
    assert found.verdict == ["helpful", "cannot tell"]
    assert np.isnan(found.q[1])
