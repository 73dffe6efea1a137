"""Are the scores what their formulas say, and are two bootstraps of one seed paired?"""

import numpy as np
import pytest
from scipy.stats import rankdata

from headscope.errors import HeadscopeError
from headscope.tasks.metrics import drawn_times, main_score, resampled, score
from headscope.tasks.task import GLUE, Task

LABELS = np.array([0, 0, 0, 1, 1, 1, 1, 0, 1, 0])
SAID = np.array([0, 1, 0, 1, 1, 0, 1, 0, 1, 1])  # 4 of 5 ones found, 2 of 5 zeros called one
LOGITS = np.where(np.arange(2) == SAID[:, None], 1.5, -0.5)
TRUE, WRONG, MISSED, REST = 4, 2, 1, 3  # of class 1: called rightly, called wrongly, missed


def binary(*metrics: str) -> Task:
    return Task("t", ("no", "yes"), metrics)


def test_accuracy_f1_and_matthews_are_their_formulas():
    found = score(binary("accuracy", "f1", "matthews"), LABELS, LOGITS)
    below = np.sqrt((TRUE + WRONG) * (TRUE + MISSED) * (REST + WRONG) * (REST + MISSED))
    assert found == pytest.approx({
        "accuracy": (TRUE + REST) / 10,
        "f1": 2 * TRUE / (2 * TRUE + WRONG + MISSED),
        "matthews": (TRUE * REST - WRONG * MISSED) / below,
    })  # fmt: skip
    assert list(found) == ["accuracy", "f1", "matthews"]


def test_f1_of_three_classes_is_the_mean_of_each_alone():
    task = Task("t", ("a", "b", "c"), ("f1",))
    labels, said = np.array([0, 1, 2, 2, 1, 0]), np.array([0, 2, 2, 2, 1, 1])
    f1 = [2 * 1 / (2 * 1 + 0 + 1), 2 * 1 / (2 * 1 + 1 + 1), 2 * 2 / (2 * 2 + 1 + 0)]
    assert score(task, labels, np.eye(3)[said])["f1"] == pytest.approx(np.mean(f1))


def test_correlations_are_their_formulas():
    rng = np.random.default_rng(0)
    labels, said = rng.integers(0, 11, 40) / 2, rng.normal(size=40)

    def correlation(a, b):
        a, b = a - a.mean(), b - b.mean()
        return (a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum())

    found = score(GLUE["sts-b"], labels, said)
    assert found["pearson"] == pytest.approx(correlation(labels, said))
    assert found["spearman"] == pytest.approx(correlation(rankdata(labels), rankdata(said)))


def test_a_correlation_with_answers_that_are_all_alike_does_not_exist():
    found = score(GLUE["sts-b"], np.array([1.0, 2.0, 3.0]), np.full(3, 2.5))
    assert np.isnan(found["pearson"])
    assert np.isnan(found["spearman"])


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews"])
@pytest.mark.parametrize("said", [0, 1])
def test_one_class_only_gives_a_number_and_no_warning(metric, said):
    logits = np.eye(2)[np.full(4, said)]
    assert score(binary(metric), np.ones(4, int), logits)[metric] in (0.0, 1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_outputs_that_are_not_numbers_are_refused(bad):
    logits = LOGITS.copy()
    logits[3, 1] = bad
    with pytest.raises(HeadscopeError, match="outputs for 1 of 10 examples are not finite"):
        score(binary("accuracy"), LABELS, logits)


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews"])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_replicate_is_the_score_of_examples_drawn_with_replacement(metric, classes):
    """The quick sums over all replicates against scikit-learn on each drawn set by itself."""
    rng = np.random.default_rng(1)
    task = Task("t", ("a", "b", "c")[:classes], (metric,))
    labels, logits = rng.integers(0, classes, 30), rng.normal(size=(30, classes))
    found = resampled(task, labels, logits, replicates=25, seed=3)
    times = drawn_times(30, replicates=25, seed=3)
    assert (times.sum(1) == 30).all()
    assert times.max() > 1
    draws = [np.repeat(np.arange(30), row.astype(int)) for row in times]
    by_hand = [main_score(task, labels[draw], logits[draw]) for draw in draws]
    np.testing.assert_allclose(found, [main_score(task, labels, logits), *by_hand], atol=1e-12)


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_every_replicate_of_a_correlation_is_one_of_drawn_examples(metric):
    rng = np.random.default_rng(2)
    task = Task("t", (), (metric,))
    labels, said = rng.normal(size=25), rng.normal(size=25)
    found = resampled(task, labels, said, replicates=20, seed=0)
    times = drawn_times(25, replicates=20, seed=0)
    draws = [np.repeat(np.arange(25), row.astype(int)) for row in times]
    by_hand = [main_score(task, labels[draw], said[draw]) for draw in draws]
    np.testing.assert_allclose(found[1:], by_hand, atol=1e-12)


def test_the_interval_of_an_accuracy_is_as_wide_as_the_binomial_says():
    labels = np.zeros(400, int)
    logits = np.eye(2)[(np.arange(400) < 100).astype(int)]  # 300 of 400 right
    drawn = resampled(binary("accuracy"), labels, logits, replicates=4000)[1:]
    assert drawn.mean() == pytest.approx(0.75, abs=0.002)
    assert drawn.std() == pytest.approx(np.sqrt(0.75 * 0.25 / 400), rel=0.05)


def test_two_models_are_resampled_alike_so_their_difference_is_paired():
    """Two models that differ in one answer of 100 differ by -0.01 times how often it was drawn."""
    labels = np.arange(100) % 2
    right = np.eye(2)[labels]
    other = right.copy()
    other[7] = 1 - other[7]
    a, b = (resampled(binary("accuracy"), labels, x, replicates=500) for x in (right, other))
    times = np.round((a - b) * 100).astype(int)
    np.testing.assert_allclose(a - b, times / 100, atol=1e-12)
    assert times[0] == 1
    assert set(times[1:]) >= {0, 1, 2}
    assert times[1:].mean() == pytest.approx(1, abs=0.15)
    unpaired = resampled(binary("accuracy"), labels, other, replicates=500, seed=1)
    assert not np.array_equal(b, unpaired)


def test_a_replicate_of_examples_that_are_all_alike_has_no_correlation():
    """With 3 examples of which 2 are alike, some draws hold one value only."""
    labels, said = np.array([1.0, 1.0, 2.0]), np.array([0.1, 0.1, 0.7])
    drawn = resampled(Task("t", (), ("pearson",)), labels, said, replicates=300)
    there = drawn[np.isfinite(drawn)]
    assert 0.2 < np.isnan(drawn).mean() < 0.5  # (2/3)³ + (1/3)³ = 1/3
    np.testing.assert_allclose(there, 1, atol=1e-9)
