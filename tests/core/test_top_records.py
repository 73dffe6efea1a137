"""Are the best records kept, whatever the order they came in?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.core.top_records import TopRecords

RECORD = np.dtype([("score", "f8"), ("key", "u8"), ("what", "i4", 2)])
KEPT = 3
offers = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(0, 10**6)),
    unique_by=lambda offer: offer[2], max_size=30,
)  # fmt: skip


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


def test_other_shapes_do_not_merge():
    with pytest.raises(ValueError, match="not of the same run"):
        TopRecords.zeros(2, 3, record=RECORD).merge(TopRecords.zeros(2, 2, record=RECORD))
