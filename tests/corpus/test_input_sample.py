"""Is a sample of inputs like the corpus that it stands for?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pytest

from headscope.corpus.document import Example
from headscope.corpus.input_sample import InputSample, drawn_queries

# As in the demo: many short inputs, and one in fifteen of seven times their length.
LENGTHS = [20 + at % 11 if at % 15 else 210 + at % 7 for at in range(210)]


def example(at: int, length: int) -> Example:
    ids = np.full(length, 5)
    return Example(str(at), f"document {at}", ids, np.zeros_like(ids), ids < 0)


def sample(inputs: Iterable[tuple[int, int]], *, most: int = 100_000, seed: int = 0) -> InputSample:
    found = InputSample(seed=seed, most=most)
    for at, length in inputs:
        found.consider(example(at, length))
    return found


@pytest.mark.parametrize("tokens", [512, 1024, 3000])
def test_its_lengths_are_those_of_the_corpus(tokens: int) -> None:
    for seed in range(5):
        found = [len(e) for e in sample(enumerate(LENGTHS), seed=seed, most=6000).within(tokens)]
        assert sum(found) <= tokens
        assert np.mean(found) == pytest.approx(np.mean(LENGTHS), rel=0.25)
        assert len(found) >= 0.75 * tokens / np.mean(LENGTHS)


def test_all_are_taken_where_there_are_enough_tokens() -> None:
    assert len(sample(enumerate(LENGTHS)).within(sum(LENGTHS))) == len(LENGTHS)


def test_part_of_one_input_is_taken_where_all_have_too_many_tokens() -> None:
    assert [len(e) for e in sample(enumerate([9, 50, 70])).within(10)] == [10]


def test_the_order_of_the_corpus_does_not_matter() -> None:
    inputs = list(enumerate(LENGTHS))
    one, other = (sample(each, most=2000).within(700) for each in (inputs, inputs[::-1]))
    assert [e.id for e in one] == [e.id for e in other]


@pytest.mark.parametrize("most", [20, 150, 2000, 100_000])
def test_samples_of_parts_merge_into_the_sample_of_the_whole(most: int) -> None:
    """A short input took the place left by a long one before it, where that came first."""
    inputs = list(enumerate(LENGTHS))
    whole = sample(inputs, most=most)
    for cuts in ((0, 50, 51, 210), (0, 0, 130, 210), (0, 1, 2, 210)):
        parts = [sample(inputs[a:b], most=most) for a, b in pairwise(cuts)]
        for order in (parts, parts[::-1]):
            merged = sample([], most=most)
            for part in order:
                merged.merge(part)
            assert merged.tokens == whole.tokens
            kept = [{e.id for e in one.within(10**9)} for one in (merged, whole)]
            assert kept[0] == kept[1]


def test_an_input_that_comes_twice_is_held_twice() -> None:
    twice = sample([(0, 20), (0, 20), (1, 30)])
    twice.merge(sample([(0, 20)]))
    assert sorted(map(len, twice.within(90))) == [20, 20, 20, 30]


def test_a_window_keeps_what_closes_its_input() -> None:
    """An encoder reads [SEP] at the end; without it nothing of a control would rest on one."""
    ids = np.arange(40)
    special = np.isin(ids, [0, 39])
    word = np.where(special, -1, ids)
    whole = Example("a", "a", ids, np.zeros_like(ids), special, word_index=word)
    part = whole.window(10)
    assert part.input_ids.tolist() == [*range(9), 39]
    assert part.word_index is not None
    assert part.word_index.tolist() == [-1, *range(1, 9), -1]
    assert part.special.tolist() == [True, *[False] * 8, True]
    assert whole.window(40) is whole


def test_a_window_of_an_input_that_nothing_closes_is_its_beginning() -> None:
    """Of a decoder: what it attends to in its first tokens does not depend on later ones."""
    assert example(0, 40).window(10).input_ids.tolist() == [5] * 10
    assert len(example(0, 9).window(10)) == 9


# --- the queries of an input ----------------------------------------------------------------


def test_every_stretch_of_an_input_has_one_drawn_query_which_counts_for_all_of_it() -> None:
    for length in (5, 32, 33, 50, 1000):
        queries, tokens = drawn_queries(example(0, length), 32, seed=0)
        assert len(queries) == min(length, 32)
        ends = np.cumsum(tokens)
        assert ends[-1] == length
        assert ((ends - tokens <= queries) & (queries < ends)).all()
        assert np.ptp(tokens) <= 1


def test_in_the_mean_over_seeds_every_token_counts_as_one() -> None:
    """Without the weights, tokens of short stretches would count for more."""
    seeds, total = 2000, np.zeros(50)
    for seed in range(seeds):
        queries, tokens = drawn_queries(example(0, 50), 32, seed=seed)
        total[queries] += tokens
    np.testing.assert_allclose(total / seeds, 1, atol=5 * seeds**-0.5)


def test_the_draw_depends_on_the_seed_and_the_names_alone() -> None:
    one = example(0, 1000)
    other = Example(
        "0", "document 1", *(getattr(one, n) for n in ("input_ids", "segment_ids", "special"))
    )
    queries = [drawn_queries(one, 32, seed=0)[0] for _ in range(2)]
    assert (queries[0] == queries[1]).all()
    assert (queries[0] != drawn_queries(one, 32, seed=1)[0]).any()
    assert (queries[0] != drawn_queries(other, 32, seed=0)[0]).any()
