"""Are the inputs that are looked at chosen before the model runs, evenly, and few?"""

from __future__ import annotations

import random

import numpy as np
import pytest

from headscope.corpus.document import Example, Word
from headscope.corpus.stored_inputs import (
    INPUTS,
    SENTENCES,
    StoredInputChoice,
    is_sentence,
    places,
    segments,
)

RELATIONS = ("nsubj", "obj", "det", "obl", "advmod", "case", "amod", "cc", "mark", "aux")


def plain(name, tokens, *, second=0, marked=True):
    """[CLS] … [SEP], or [CLS] … [SEP] … [SEP] with `second` tokens behind the first [SEP]."""
    special = np.zeros(tokens, bool)
    special[[0, -1]] = True
    if second:
        special[tokens - second - 1] = True
    segment = np.zeros(tokens, np.int64)
    if second and marked:
        segment[tokens - second :] = 1
    return Example(name, name, np.arange(tokens), segment, special)


def sentence(name, words, *, seed=0):
    """One token per word."""
    draw = random.Random(f"{seed}{name}")
    row = tuple(
        Word(f"w{at}", head=0 if at else -1, relation=draw.choice(RELATIONS)) for at in range(words)
    )
    index = np.array([-1, *range(words), -1])
    return Example(name, name, np.arange(words + 2), index * 0, index < 0, index, row)


def chosen(examples, *, seed=0):
    stored_inputs = StoredInputChoice(seed=seed)
    for example in examples:
        stored_inputs.consider(example)
    return [example.id for example in stored_inputs.chosen()]


MIXED = [
    *(sentence(f"s{at}", 6 + at % 9) for at in range(60)),
    *(sentence(f"long{at}", 15 + at) for at in range(20)),
    *(plain(f"p{at}", 12 + at) for at in range(25)),
    *(plain(f"far{at}", 60 + at) for at in range(9)),
]


def test_eight_sentences_come_first_then_three_other_inputs_of_a_size_to_look_at():
    names = chosen(MIXED)
    assert len(names) == SENTENCES + INPUTS
    assert all(name[0] == "s" for name in names[:SENTENCES])
    sizes = {example.id: len(example) for example in MIXED}
    assert all(12 <= sizes[name] <= 40 for name in names[SENTENCES:])
    assert not {name[0] for name in names[SENTENCES:]} & {"s", "f"}


def test_the_choice_depends_on_the_seed_and_the_names_not_on_the_order():
    shuffled = random.Random(1).sample(MIXED, len(MIXED))
    assert chosen(shuffled) == chosen(MIXED)
    assert chosen(MIXED, seed=1) != chosen(MIXED)


def test_every_input_is_as_likely_as_another():
    times = dict.fromkeys((f"p{at}" for at in range(25)), 0)
    for seed in range(500):
        for name in chosen([plain(name, 20) for name in times], seed=seed):
            times[name] += 1
    expected = 500 * INPUTS / 25
    assert sum((n - expected) ** 2 / expected for n in times.values()) < 52  # χ², 24: p > 0.001


def test_where_nothing_fits_longer_inputs_are_shown_and_else_shorter_ones():
    far, short = (
        [plain(f"far{at}", 99) for at in range(9)],
        [plain(f"no{at}", 5) for at in range(9)],
    )
    one = plain("one", 30)
    assert {name[:3] for name in chosen([*far, *short])} == {"far"}
    assert {name[:2] for name in chosen(short)} == {"no"}
    assert [name[:3] for name in chosen([*short, *far, one])] == ["one", "far", "far"]
    assert chosen([]) == []


def test_where_there_are_sentences_no_long_input_joins_them():
    assert chosen([sentence("s", 9), *(plain(f"far{at}", 99) for at in range(9))]) == ["s"]


def test_little_of_the_corpus_is_held():
    stored_inputs = StoredInputChoice(seed=0)
    for at in range(3000):
        stored_inputs.consider(sentence(f"s{at}", 9))
        stored_inputs.consider(plain(f"p{at}", 20 + at % 400))
    held = [drawn for drawn in vars(stored_inputs).values() if hasattr(drawn, "kept")]
    assert sum(len(drawn.kept) for drawn in held) <= 200 + 3 * INPUTS


def test_sentences_have_a_tree_and_at_most_fourteen_words():
    assert is_sentence(sentence("s", 14))
    assert not is_sentence(sentence("s", 15))
    assert not is_sentence(plain("p", 12))


# --- where tokens stand ---------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [1, 12, 40])
def test_every_token_of_a_short_input_has_its_place(tokens):
    assert places(plain("p", tokens)).tolist() == list(range(tokens))


def test_the_middle_of_a_long_input_shares_a_place():
    first = places(plain("p", 128))
    sizes = np.diff(first, append=128)
    assert len(first) == 40
    assert sizes.max() == 128 - 39
    assert sorted(sizes)[:-1] == [1] * 39
    assert sizes[0] == sizes[-1] == 1


def test_a_long_pair_keeps_both_ends_of_both_segments():
    first = places(plain("p", 200, second=90))
    sizes = np.diff(first, append=200)
    assert len(first) == 40
    assert (sizes > 1).sum() == 2
    alone = set(first[sizes == 1].tolist())
    assert {0, 1, 108, 109, 110, 111, 199} <= alone  # 109: the [SEP] between


def test_a_short_segment_leaves_its_room_to_the_long_one():
    first = places(plain("p", 200, second=5))
    sizes = np.diff(first, append=200)
    assert len(first) == 40
    assert (sizes > 1).sum() == 1
    assert sizes[-5:].tolist() == [1] * 5
    turned = np.diff(places(plain("p", 200, second=193)), append=200)
    assert turned[:7].tolist() == [1] * 7
    assert (len(turned), (turned > 1).sum()) == (40, 1)


@pytest.mark.parametrize("marked", [True, False])
def test_the_second_segment_is_found_with_and_without_segment_ids(marked):
    found = segments(plain("p", 20, second=8, marked=marked))
    assert found.tolist() == [0] * 12 + [1] * 8


def test_one_segment_stays_one():
    assert segments(plain("p", 20)).tolist() == [0] * 20
