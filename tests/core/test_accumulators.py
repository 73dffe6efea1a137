"""Are groups, sums, records, bins and rank correlations what numpy and scipy say they are?"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from headscope.core.accumulators import (
    Accumulator,
    Counts,
    Largest,
    LogBins,
    Sums,
    TopRecords,
    generator,
    groups_of,
    left_out,
    ratio,
    spearman,
)

FINITE = st.floats(1e-30, 1e30)
BINS = st.builds(
    LogBins,
    st.integers(-20, 0),
    st.integers(1, 20),
    st.integers(0, 8).map(lambda power: 2**power),
)
RECORD = np.dtype([("score", "f8"), ("key", "u8"), ("what", "i4", 2)])
KEPT = 3
offers = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(0, 10**6)),
    unique_by=lambda offer: offer[2],
    max_size=30,
)


# --- groups of documents --------------------------------------------------------------------


def test_a_group_depends_on_seed_and_document_only() -> None:
    alone = groups_of(["b"], replicates=50, seed=3)
    among = groups_of(["c", "b", "a", "b"], replicates=50, seed=3)
    assert (among[[1, 3]] == alone).all()
    assert 0 <= among.min() <= among.max() < 50
    names = [str(i) for i in range(40)]
    one, other = (groups_of(names, replicates=50, seed=seed) for seed in (3, 4))
    assert (one != other).any()


def test_groups_are_the_same_in_another_process() -> None:
    """Python's own hash differs from process to process."""
    code = (
        "from headscope.core.accumulators import groups_of as g;"
        "print(g(['é', '\\ud800'], replicates=20, seed=1).tolist())"
    )
    here = groups_of(["é", "\ud800"], replicates=20, seed=1).tolist()
    path = [p for p in sys.path if p]
    there = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    assert there.stdout.strip() == str(here)


def test_many_documents_fill_all_groups_about_evenly() -> None:
    names = [f"document {i}" for i in range(4000)]
    sizes = np.bincount(groups_of(names, replicates=20), minlength=20)
    assert stats.chisquare(sizes).pvalue > 1e-3


def test_listed_documents_are_groups_of_their_own() -> None:
    listed = {"c": 0, "a": 1, "b": 2}
    assert groups_of(["a", "b", "a", "c"], replicates=3, listed=listed).tolist() == [1, 2, 1, 0]


def test_without_replicates_all_are_in_one_group() -> None:
    assert groups_of(["a", "b"], replicates=0).tolist() == [0, 0]


def test_each_unit_is_left_out_once_with_all_of_its_name() -> None:
    found = left_out(["a", "b", "a"], replicates=9)
    np.testing.assert_array_equal(found, [[1, 0, 1], [1, 1, 0], [1, 0, 1]])
    assert left_out(["a", "b"], replicates=0).tolist() == [[1], [1]]
    assert left_out(list("abcdef"), replicates=4).sum(0).tolist() == [6, 4, 4, 5, 5]


def test_names_are_kept_apart() -> None:
    assert generator(0, "ab", "c").random() != generator(0, "a", "bc").random()


# --- sums and counts ------------------------------------------------------------------------


def test_sums_are_of_all_and_without_each_group() -> None:
    rng = np.random.default_rng(0)
    values, groups = rng.normal(size=(7, 2, 3)), np.array([0, 4, 1, 1, 2, 4, 0])
    total = Sums.zeros(4, 2, 3, replicates=5)
    total.add(values, groups, at=(2,))
    expected = [values.sum(0), *(values[groups != group].sum(0) for group in range(5))]
    np.testing.assert_allclose(total.sums[:, 2], expected, rtol=1e-13)
    assert not total.sums[:, [0, 1, 3]].any()
    np.testing.assert_array_equal(total.total, total.sums[0])


def test_fewer_groups_may_be_kept_and_are_what_folding_gives() -> None:
    groups, values = np.array([0, 7, 5, 8]), np.array([2.0, 5.0, 3.0, 1.0])
    few, many = Sums.zeros(replicates=3), Sums.zeros(replicates=9)
    for total in (few, many):
        total.add(values, groups)
    np.testing.assert_array_equal(few.by_group, [2, 5, 4])
    np.testing.assert_array_equal(many.folded(3).by_group, few.by_group)
    assert many.folded(9) is many
    assert few.sums.tolist() == [11, 9, 6, 7]


def test_without_replicates_there_is_the_sum_alone() -> None:
    total = Sums.zeros(2, replicates=0)
    total.add(np.ones((3, 2)), np.zeros(3, np.int64))
    assert total.sums.tolist() == [[3, 3]]


def test_sums_of_parts_are_the_sum_of_the_whole() -> None:
    rng = np.random.default_rng(1)
    values, groups = rng.normal(size=(9, 4)), rng.integers(0, 10, 9)
    whole, first, second = (Sums.zeros(4, replicates=10) for _ in range(3))
    whole.add(values, groups)
    first.add(values[:5], groups[:5])
    second.add(values[5:], groups[5:])
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
    with pytest.raises(
        ValueError, match=r"cannot merge \(.*\) into \(.*\): they belong to different runs"
    ):
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


# --- ratios and the largest -------------------------------------------------------------------


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
