"""Are batches complete, within budget, and as little padded as sorting allows?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.corpus import batches
from headscope.corpus.packing import padded_length
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


@given(st.integers(1, 300), st.integers(1, 200), BUDGET)
def test_equal_examples_fill_every_batch_to_a_multiple_of_eight(length, count, budget):
    room = max(1, budget // padded_length(length))
    full = room - room % 8 or room
    *filled, last = made([length] * count, budget)
    assert all(len(batch) == full for batch in filled)
    assert len(last) <= room


@given(LENGTHS, BUDGET)
def test_batches_come_in_few_sizes(lengths, budget):
    found = made(lengths, budget)
    assert all(len(batch) < 8 or len(batch) % 8 == 0 for batch in found[:-1])


@given(st.integers(1, 5000))
def test_padding_to_a_step_costs_less_than_a_step(length):
    padded = padded_length(length)
    assert length <= padded < length + (4 if length <= 32 else 8)
    assert padded % 4 == 0


@given(st.integers(1, 100), st.integers(1, 100))
def test_no_more_is_padded_to_than_the_model_takes(length, limit):
    padded = padded_length(length, limit)
    assert padded == max(length, min(padded_length(length), limit))


def test_no_examples_make_no_batches():
    assert made([], 100) == []


def test_a_budget_below_one_token_is_refused():
    with pytest.raises(InputError, match="budget of 0"):
        made([1], 0)
