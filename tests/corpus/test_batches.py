"""Are batches complete, within budget, and as little padded as sorting allows?"""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.corpus import batches
from headscope.errors import InputError

LENGTHS = st.lists(st.integers(0, 300), max_size=200)
BUDGET = st.integers(1, 2000)


def made(lengths, budget):
    return list(batches([range(n) for n in lengths], budget=budget))


@given(LENGTHS, BUDGET)
def test_every_example_is_in_exactly_one_batch(lengths, budget):
    assert sorted(i for batch in made(lengths, budget) for i in batch) == [*range(len(lengths))]


@given(LENGTHS, BUDGET)
def test_padded_tokens_stay_within_budget_unless_one_example_exceeds_it(lengths, budget):
    for batch in made(lengths, budget):
        assert len(batch) == 1 or max(lengths[i] for i in batch) * len(batch) <= budget


@given(LENGTHS, BUDGET)
def test_examples_come_by_length_and_equal_ones_in_their_order(lengths, budget):
    order = [i for batch in made(lengths, budget) for i in batch]
    assert order == sorted(order, key=lambda i: (lengths[i], i))


@given(LENGTHS, BUDGET)
def test_no_batch_had_room_for_the_next_example(lengths, budget):
    found = made(lengths, budget)
    for batch, following in pairwise(found):
        assert lengths[following[0]] * (len(batch) + 1) > budget


def test_no_examples_make_no_batches():
    assert made([], 100) == []


def test_a_budget_below_one_token_is_refused():
    with pytest.raises(InputError, match="budget of 0"):
        made([1], 0)
