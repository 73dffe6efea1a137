"""Are sums, records, intervals, bins and rank correlations what numpy and scipy say they are?"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from headscope.core.accumulators import (
    Accumulator,
    Counts,
    Largest,
    LogBins,
    Sums,
    TopRecords,
    bootstrap_weights,
    generator,
    ratio,
    spearman,
)
from headscope.core.intervals import estimate

FINITE = st.floats(1e-30, 1e30)
BINS = st.builds(
    LogBins, st.integers(-20, 0), st.integers(1, 20), st.integers(0, 8).map(lambda power: 2**power),
)  # fmt: skip
RECORD = np.dtype([("score", "f8"), ("key", "u8"), ("what", "i4", 2)])
KEPT = 3
offers = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(0, 10**6)),
    unique_by=lambda offer: offer[2], max_size=30,
)  # fmt: skip


# --- bootstrap weights ----------------------------------------------------------------------


def test_the_data_themselves_have_weight_one() -> None:
    weights = bootstrap_weights(["a", "b", "a"], replicates=5, seed=0)
    assert weights.shape == (3, 6)
    assert (weights[:, 0] == 1).all()


def test_weights_depend_on_seed_and_document_only() -> None:
    alone = bootstrap_weights(["b"], replicates=50, seed=3)
    among = bootstrap_weights(["c", "b", "a", "b"], replicates=50, seed=3)
    assert (among[[1, 3]] == alone).all()
    assert (bootstrap_weights(["b"], replicates=50, seed=4) != alone).any()
    assert (bootstrap_weights(["d"], replicates=50, seed=3) != alone).any()


def test_weights_are_the_same_in_another_process() -> None:
    """Python's own hash differs from process to process."""
    code = (
        "from headscope.core.accumulators import bootstrap_weights as w;"
        "print(w(['é', '\\ud800'], replicates=20, seed=1).astype(int).tolist())"
    )
    here = bootstrap_weights(["é", "\ud800"], replicates=20, seed=1).astype(int).tolist()
    path = [p for p in sys.path if p]
    there = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}; {code}"],
        capture_output=True, text=True, check=True, encoding="utf-8",
    )  # fmt: skip
    assert there.stdout.strip() == str(here)


def test_weights_are_poisson_with_mean_one() -> None:
    names = [f"document {i}" for i in range(400)]
    weights = bootstrap_weights(names, replicates=100, seed=0)[:, 1:]
    share = [(weights == k).mean() for k in range(5)]
    np.testing.assert_allclose(share, stats.poisson.pmf(range(5), 1), atol=0.01)
    assert weights.mean() == pytest.approx(1, abs=0.02)


def test_names_are_kept_apart() -> None:
    assert generator(0, "ab", "c").random() != generator(0, "a", "bc").random()


# --- sums and counts ------------------------------------------------------------------------


def test_sums_are_weighted_sums() -> None:
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=(7, 2, 3)), rng.integers(0, 4, (7, 6)).astype(float)
    total = Sums.zeros(4, 2, 3, replicates=5)
    total.add(values, weights, at=(2,))
    expected = sum(w[:, None, None] * v for w, v in zip(weights, values, strict=True))
    np.testing.assert_allclose(total.sums[:, 2], expected, rtol=1e-13)
    assert not total.sums[:, [0, 1, 3]].any()


def test_fewer_replicates_may_be_kept() -> None:
    weights = bootstrap_weights(["a", "b"], replicates=9, seed=0)
    few, all_of_them = Sums.zeros(replicates=3), Sums.zeros(replicates=9)
    for total in (few, all_of_them):
        total.add(np.array([2.0, 5.0]), weights)
    assert (few.sums == all_of_them.sums[:4]).all()
    assert few.sums[0] == 7


def test_sums_of_parts_are_the_sum_of_the_whole() -> None:
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=(9, 4)), rng.poisson(1, (9, 11)) * 1.0
    whole, first, second = (Sums.zeros(4, replicates=10) for _ in range(3))
    whole.add(values, weights)
    first.add(values[:5], weights[:5])
    second.add(values[5:], weights[5:])
    first.merge(second)
    np.testing.assert_allclose(first.sums, whole.sums, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (Sums.zeros(3, replicates=4), Sums.zeros(3, replicates=0)),
        (Counts.zeros(2, 3), Counts.zeros(3)),
        (Largest.empty(2, 3), Largest.empty(3)),
        (TopRecords.zeros(2, 3, record=RECORD), TopRecords.zeros(2, 2, record=RECORD)),
    ],
)
def test_merging_with_other_shapes_raises(mine: Accumulator, theirs: Accumulator) -> None:
    """numpy would broadcast (1, 3) to (5, 3) and say nothing."""
    with pytest.raises(ValueError, match=r"cannot merge \(.*\) into \(.*\): not of the same run"):
        mine.merge(theirs)


@given(st.lists(st.integers(0, 11), max_size=60), st.integers(0, 60))
def test_counts_are_those_of_numpy_and_merge(cells: list[int], cut: int) -> None:
    one, other = Counts.zeros(3, 4), Counts.zeros(3, 4)
    one.add(np.array(cells[:cut], np.int64))
    other.add(np.array(cells[cut:], np.int64))
    one.merge(other)
    assert one.counts.ravel().tolist() == [cells.count(c) for c in range(12)]


# --- the best records ------------------------------------------------------------------------


def kept_of(offered):
    best = TopRecords.zeros(2, KEPT, record=RECORD)
    for cell, score, key in offered:
        scores = np.zeros(2)
        scores[cell] = score / 4
        for (place,) in best.wanted(scores, key).tolist():
            best.put((place,), np.array((scores[place], key, (key, -key)), RECORD))
    return best


def by_sorting(offered):
    """[cell] the best (score, key) by sorting everything."""
    found = []
    for cell in range(2):
        there = sorted((-score / 4, key) for c, score, key in offered if c == cell and score)
        found.append([(-score, key) for score, key in there[:KEPT]])
    return found


def told(best):
    return [[(r["score"], r["key"]) for r in cell if r["score"] > 0] for cell in best.records]


@given(offers, st.randoms())
def test_the_best_are_kept_in_any_order(offered, random):
    shuffled = random.sample(offered, len(offered))
    assert told(kept_of(shuffled)) == told(kept_of(offered)) == by_sorting(offered)


@given(offers, st.integers(0, 30))
def test_what_two_have_kept_merges_into_what_one_would_have_kept(offered, cut):
    one, other = kept_of(offered[:cut]), kept_of(offered[cut:])
    backwards = kept_of(offered[cut:])
    backwards.merge(one)
    one.merge(other)
    assert told(one) == told(backwards) == by_sorting(offered)


def test_records_keep_what_goes_with_them():
    best = kept_of([(1, 4, 7), (1, 2, 9)])
    np.testing.assert_array_equal(best.records[1]["what"], [[7, -7], [9, -9], [0, 0]])
    again = TopRecords(best.array.copy(), RECORD)
    np.testing.assert_array_equal(again.records[1]["what"], best.records[1]["what"])


# --- ratios and intervals -------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(-1e9, 1e9))), st.integers(0, 20))
def test_the_largest_of_parts_is_that_of_the_whole(
    values: list[tuple[int, float]], cut: int
) -> None:
    parts = [Largest.empty(3), Largest.empty(3)]
    for place, (cell, value) in enumerate(values):
        parts[place >= cut].add(np.float64(value), at=(cell,))
    parts[0].merge(parts[1])
    there = [[value for at, value in values if at == cell] for cell in range(3)]
    expected = [max(found) if found else np.nan for found in there]
    np.testing.assert_array_equal(parts[0].seen, expected)


def test_a_ratio_is_nan_where_nothing_was_counted_and_says_so_without_a_warning() -> None:
    out = ratio(np.array([[1.0, 0.0, 3.0]]), np.array([[2.0], [0.0]]))
    np.testing.assert_array_equal(out, [[0.5, 0, 1.5], [np.nan] * 3])


def _draws(values: np.ndarray, *, replicates: int, seed: int = 0) -> np.ndarray:
    """[replicate + 1] the mean of values, one per document, on the data and on all replicates."""
    names = [str(i) for i in range(len(values))]
    weights = bootstrap_weights(names, replicates=replicates, seed=seed)
    total, count = Sums.zeros(replicates=replicates), Sums.zeros(replicates=replicates)
    total.add(values, weights)
    count.add(np.ones(len(values)), weights)
    return ratio(total.sums, count.sums)


def test_the_interval_of_a_mean_is_scipys_bootstrap_interval() -> None:
    values = np.random.default_rng(5).gamma(2, size=300)
    found = estimate(_draws(values, replicates=2000), documents=300)
    theirs = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=2000, rng=np.random.default_rng(0)
    ).confidence_interval
    width = theirs.high - theirs.low
    assert found.value == pytest.approx(values.mean(), rel=1e-14)
    assert found.low == pytest.approx(theirs.low, abs=0.08 * width)
    assert found.high == pytest.approx(theirs.high, abs=0.08 * width)


def test_the_interval_by_spread_is_that_of_normal_theory() -> None:
    values = np.random.default_rng(6).normal(size=400)
    found = estimate_by_spread(_draws(values, replicates=2000), documents=400)
    half = 1.959964 * values.std(ddof=1) / 20
    assert found.high - found.value == pytest.approx(half, rel=0.06)
    assert found.value - found.low == pytest.approx(half, rel=0.06)


@pytest.mark.parametrize("method", [estimate, estimate_by_spread])
def test_the_interval_covers_the_truth_about_as_often_as_it_says(method) -> None:
    """95 % of 200 samples, less what 40 documents and 200 replicates cost."""
    rng = np.random.default_rng(7)
    covered = 0
    for seed in range(200):
        found = method(_draws(rng.exponential(size=40), replicates=200, seed=seed), documents=40)
        covered += found.low <= 1 <= found.high
    assert 0.88 <= covered / 200 <= 0.985


@pytest.mark.parametrize("method", [estimate, estimate_by_spread])
@pytest.mark.parametrize("documents", [0, 1])
def test_fewer_than_two_documents_have_no_interval(method, documents: int) -> None:
    found = method(np.ones((11, 2, 3)), documents=documents)
    assert (found.value == 1).all()
    assert np.isnan(found.low).all()
    assert np.isnan(found.high).all()


@pytest.mark.parametrize("method", [estimate, estimate_by_spread])
def test_replicates_that_drew_no_document_are_left_out(method) -> None:
    """Of two documents every seventh replicate holds neither: 0/0 used to spoil the interval."""
    draws = _draws(np.array([1.0, 3.0]), replicates=200)
    assert np.isnan(draws).any()
    found = method(draws, documents=2)
    assert found.value == 2
    assert 0 < found.value - found.low < 2
    assert 0 < found.high - found.value < 2
    there = draws[1:][~np.isnan(draws[1:])]
    expected = {
        estimate: np.quantile(there, [0.025, 0.975]),
        estimate_by_spread: 2 + 1.959964 * there.std(ddof=1) * np.array([-1, 1]),
    }[method]
    np.testing.assert_allclose([found.low, found.high], expected)


@pytest.mark.parametrize("method", [estimate, estimate_by_spread])
def test_an_absent_value_has_an_absent_interval(method) -> None:
    draws = np.ones((21, 2))
    draws[:, 1] = np.nan
    found = method(draws, documents=9)
    assert np.isnan([found.value[1], found.low[1], found.high[1]]).all()
    assert found.value[0] == found.low[0] == found.high[0] == 1


@pytest.mark.parametrize("method", [estimate, estimate_by_spread])
def test_where_every_value_is_absent_there_is_no_interval(method) -> None:
    """The quantiles of nothing raised, as when a corpus has documents but all in one half."""
    found = method(np.full((21, 2), np.nan), documents=9)
    assert np.isnan([found.value, found.low, found.high]).all()


# --- logarithmic bins -----------------------------------------------------------------------


@given(BINS, FINITE, FINITE)
def test_bins_are_monotone(bins: LogBins, one: float, other: float) -> None:
    low, high = bins.index(np.array(sorted([one, other])))
    assert 0 <= low <= high < len(bins)


@given(BINS)
def test_every_value_lies_between_the_edges_of_its_bin(bins: LogBins) -> None:
    """Exactly: an edge belongs to the bin above it, the float just below to the one below."""
    edges = bins.edges().astype(np.float32)
    assert len(edges) == len(bins) + 1
    assert (np.diff(edges) > 0).all()
    assert bins.index(edges[:-1]).tolist() == list(range(len(bins)))
    below = np.nextafter(edges[1:], np.float32(0))
    assert bins.index(below).tolist() == list(range(len(bins)))


@given(BINS)
def test_bins_are_as_narrow_as_they_say(bins: LogBins) -> None:
    edges = bins.edges()[1:]
    widths = edges[1:] / edges[:-1] - 1
    assert widths.max() <= 1 / bins.per_octave + 1e-12
    assert widths.min() >= 1 / (2 * bins.per_octave) - 1e-12


def test_what_lies_outside_falls_into_the_outer_bins() -> None:
    bins = LogBins(-3, 2, 4)
    outside = np.array([0.0, -0.0, 1e-45, 0.12, 4.0, 1e30, np.inf], np.float32)
    last = len(bins) - 1
    assert bins.index(outside).tolist() == [0, 0, 0, 0, last, last, last]


def test_any_float_or_integer_and_any_layout_is_binned_alike() -> None:
    bins = LogBins(0, 10, 8)
    values = np.arange(1, 61).reshape(6, 10)
    expected = bins.index(values.astype(np.float32))
    assert (bins.index(values) == expected).all()
    assert (bins.index(values.astype(np.float64).T) == expected.T).all()


@given(BINS, st.integers(0, 4), st.lists(FINITE, min_size=1))
def test_a_coarser_binning_holds_whole_fine_bins(
    bins: LogBins, finer: int, values: list[float]
) -> None:
    fine = LogBins(bins.first, bins.last, bins.per_octave * 2**finer)
    array = np.array(values)
    assert (bins.coarsen(fine)[fine.index(array)] == bins.index(array)).all()


# --- rank correlation -----------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=2, max_size=80))
def test_spearman_of_a_table_is_scipys_with_ties(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs).T
    joint = np.zeros((5, 7))
    np.add.at(joint, (x, y), 1)
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert np.isnan(spearman(joint))
    else:
        assert spearman(joint) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


def test_spearman_takes_many_tables_and_weights_at_once() -> None:
    rng = np.random.default_rng(0)
    joint = rng.integers(0, 5, (3, 2, 4, 6))
    found = spearman(joint)
    assert found.shape == (3, 2)
    assert found[1, 1] == spearman(joint[1, 1])
    np.testing.assert_allclose(spearman(joint * 0.25), found, rtol=1e-12)
    np.testing.assert_allclose(spearman(joint.swapaxes(-1, -2)), found, rtol=1e-12)


def test_spearman_of_an_empty_table_is_nan() -> None:
    assert np.isnan(spearman(np.zeros((2, 3, 4)))).all()


@pytest.mark.parametrize("rho", [-0.7, -0.05, 0.3, 0.95])
def test_binning_costs_less_than_three_ten_thousandths(rho: float) -> None:
    """At the bins in use: 16 to the octave for weights over six decades, 64 for norms."""
    rng = np.random.default_rng(1)
    z = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], 40_000)
    weight, norm = np.exp(np.minimum(3 * z[:, 0] - 8, 0)), 3 * np.exp(0.3 * z[:, 1])
    rows, columns = LogBins(-30, 0, 16), LogBins(-5, 7, 64)
    joint = np.zeros((len(rows), len(columns)))
    np.add.at(joint, (rows.index(weight), columns.index(norm)), 1)
    exact = stats.spearmanr(weight, norm).statistic
    assert spearman(joint) == pytest.approx(exact, abs=3e-4)


def test_the_error_of_binning_falls_with_the_square_of_the_width() -> None:
    rng = np.random.default_rng(2)
    z = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 100_000)
    x, y = np.exp(z.T)
    exact = stats.spearmanr(x, y).statistic
    errors = []
    for per_octave in (1, 4):
        bins = LogBins(-10, 10, per_octave)
        joint = np.zeros((len(bins), len(bins)))
        np.add.at(joint, (bins.index(x), bins.index(y)), 1)
        errors.append(abs(spearman(joint) - exact))
    assert errors[1] < errors[0] / 8
