"""Are the scores what their formulas say, and are draws of two models paired?"""

import numpy as np
import pytest
from scipy import stats
from scipy.stats import rankdata

from headscope.errors import HeadscopeError
from headscope.tasks.metrics import below_chance, draws_of, main_score, score, score_estimate
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
    assert found == pytest.approx(
        {
            "accuracy": (TRUE + REST) / 10,
            "f1": 2 * TRUE / (2 * TRUE + WRONG + MISSED),
            "matthews": (TRUE * REST - WRONG * MISSED) / below,
        }
    )
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


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews", "pearson", "spearman"])
@pytest.mark.parametrize(("classes", "replicates"), [(2, 99), (3, 99), (3, 7)])
def test_every_replicate_is_the_score_without_a_group_of_examples(metric, classes, replicates):
    """The quick sums over all replicates against scikit-learn on each set by itself."""
    rng = np.random.default_rng(1)
    of_numbers = metric in ("pearson", "spearman")
    task = Task("t", () if of_numbers else ("a", "b", "c")[:classes], (metric,))
    labels, said = rng.integers(0, classes, 30), rng.normal(size=(30, classes))
    if of_numbers:
        labels, said = rng.normal(size=30), said[:, 0]
    found = draws_of(task, labels, said, replicates=replicates)
    groups = np.arange(30) % replicates
    by_hand = [
        main_score(task, labels[groups != group], said[groups != group])
        for group in range(min(replicates, 30))
    ]
    np.testing.assert_allclose(found, [main_score(task, labels, said), *by_hand], atol=1e-12)


def test_the_interval_of_an_accuracy_is_as_wide_as_the_binomial_says():
    labels = np.zeros(400, int)
    logits = np.eye(2)[(np.arange(400) < 100).astype(int)]  # 300 of 400 right
    found = score_estimate(
        binary("accuracy"), draws_of(binary("accuracy"), labels, logits, replicates=400), 400
    )
    ends = stats.beta(300.5, 100.5).ppf([0.025, 0.975])
    np.testing.assert_allclose([found.low, found.high], ends, rtol=0.01)


def test_an_accuracy_that_is_perfect_has_a_width():
    draws = draws_of(binary("accuracy"), LABELS, np.eye(2)[LABELS], replicates=100)
    found = score_estimate(binary("accuracy"), draws, len(LABELS))
    assert found.low == pytest.approx(stats.beta(len(LABELS) + 0.5, 0.5).ppf(0.025))
    assert found.high == 1


def test_two_models_leave_out_the_same_examples_so_their_difference_is_paired():
    """Two models that differ in one answer of 100 differ by nothing where that is left out."""
    labels = np.arange(100) % 2
    right = np.eye(2)[labels]
    other = right.copy()
    other[7] = 1 - other[7]
    a, b = (draws_of(binary("accuracy"), labels, x, replicates=500) for x in (right, other))
    expected = np.full(101, 1 / 99)
    expected[0], expected[1 + 7] = 0.01, 0
    np.testing.assert_allclose(a - b, expected, atol=1e-12)


def test_without_one_example_the_rest_may_be_all_alike_and_has_no_correlation():
    labels, said = np.array([1.0, 1.0, 2.0]), np.array([0.1, 0.1, 0.7])
    drawn = draws_of(Task("t", (), ("pearson",)), labels, said, replicates=300)
    np.testing.assert_allclose(drawn, [1, 1, 1, np.nan], atol=1e-9)


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews"])
def test_a_score_below_any_constant_answer_is_doubted_and_names_exchanged_labels(metric):
    labels = np.arange(60) % 2
    exchanged = np.eye(2)[1 - labels]
    why = below_chance(binary(metric), labels, exchanged)
    assert "label names are exchanged (put right, accuracy would be 100 %)" in why
    assert below_chance(binary(metric), labels, exchanged[:, ::-1]) == ""


def test_a_regression_that_runs_the_wrong_way_is_doubted():
    labels = np.random.default_rng(0).normal(size=60)
    assert "reversed" in below_chance(GLUE["sts-b"], labels, -labels + 0.1)
    assert below_chance(GLUE["sts-b"], labels, labels + 0.1) == ""


def test_a_model_that_always_gives_the_rare_answer_has_not_learned_the_task():
    labels = np.arange(100) % 4 > 0
    why = below_chance(binary("accuracy"), labels.astype(int), np.eye(2)[np.zeros(100, int)])
    assert "has not learned this task" in why


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews"])
def test_models_that_know_a_little_are_not_doubted(metric):
    """Right in 60 of 100 answers or more, and those whose F1 is below that of a constant answer."""
    rng, doubted = np.random.default_rng(1), 0
    for _ in range(200):
        labels = (rng.random(200) < 0.5).astype(int)
        right = rng.random(200) < 0.6
        doubted += (
            below_chance(binary(metric), labels, np.eye(2)[np.where(right, labels, 1 - labels)])
            != ""
        )
    assert doubted <= 2
