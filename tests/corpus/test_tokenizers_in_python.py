"""Does a tokenizer that says no words and no places give the same ids, and words all the same?"""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headscope.corpus.tokenizer import TokenizerReader, word_begins

FORMS = [
    "the",
    "cat",
    "sat",
    "n't",
    ".",
    ",",
    "did",
    "it",
    "?",
    "no",
    "cats",
    "!",
    "can",
    "not",
    "cannot",
    "do",
    "mat's",
    "'",
    "ate",
    "tired",
    "on",
    "dog",
]
EXOTIC = ["日本", "ä", "ﬁn", "Été"]


class InPython:
    """A fast tokenizer that tells no more than those that transformers runs in Python."""

    is_fast = False

    def __init__(self, fast: Any) -> None:
        self._fast = fast

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fast, name)

    def __len__(self) -> int:
        return len(self._fast)

    def __call__(self, *texts: Any, **options: Any) -> SimpleNamespace:
        return SimpleNamespace(input_ids=self._fast(*texts, **options).input_ids)


@pytest.fixture(scope="module")
def both(tokenizer):
    return TokenizerReader(tokenizer), TokenizerReader(InPython(tokenizer))


def sentences(count):
    """Words, and which of them stand without a space before them; made anew from one seed."""
    draw = random.Random(0)
    for at in range(count):
        known = [*FORMS, *EXOTIC] if at % 3 == 0 else FORMS
        forms = [draw.choice(known) for _ in range(draw.randint(1, 20))]
        yield forms, [at for at in range(1, len(forms)) if draw.random() < 0.4]


def test_special_tokens_stand_where_the_fast_tokenizer_says(both):
    fast, slow = both
    for kind in ("single", "pair"):
        parts = zip(getattr(fast.frame, kind), getattr(slow.frame, kind), strict=True)
        assert all(np.array_equal(a, b) for a, b in parts)
    sides = fast.tokenizer("the", "the.").input_ids
    assert slow.frame.wrap(slow.text("the"), slow.text("the."))[0].tolist() == sides


def test_words_one_by_one_have_the_same_ids_and_words(both):
    fast, slow = both
    for forms, glued in sentences(30):
        for a, b in zip(*(one.words(forms, glued=glued) for one in both), strict=True):
            np.testing.assert_array_equal(a, b)
    assert slow.words([])[0].size == fast.words([])[0].size == 0


def test_running_words_have_the_ids_of_the_text_and_the_words_of_the_places(both):
    """But what is unknown: its letters are not in the vocabulary, so it may be told of the next."""
    unknown = both[0].tokenizer.unk_token_id
    for forms, glued in sentences(60):
        (ids, word), (same, laid) = (one.running_words(forms, glued=glued) for one in both)
        np.testing.assert_array_equal(ids, same)
        surely = np.ones_like(ids, bool) if unknown not in ids else ids != unknown
        surely[:-1] &= surely[1:]  # a sign for a space before what is unknown
        np.testing.assert_array_equal(word[surely], laid[surely])


def test_a_token_belongs_to_the_word_in_which_it_begins():
    word = np.array([0, 0, 1, 1])
    alone = ["a@@", "b", "c@@", "d"]  # ab, cd
    assert word_begins(["abc@@", "d"], alone, word).tolist() == [0, 1]
    assert word_begins(["a@@", "bcd"], alone, word).tolist() == [0, 0]
    assert word_begins(["ab", "##cd"], ["ab", "cd"], np.array([0, 1])).tolist() == [0, 1]
    assert word_begins(["cat", ".</w>"], ["cat</w>", ".</w>"], np.array([0, 1])).tolist() == [0, 1]
    assert word_begins(["?"], ["a"], np.array([0])).tolist() == [0]  # no letter in common
    assert word_begins([], [], np.array([], int)).tolist() == []


def test_ids_behind_the_vocabulary_are_counted(bert):
    """M2M100's languages frame its inputs and are in no count of its tokens."""

    class Holes(InPython):
        def get_vocab(self) -> dict[str, int]:
            return {"a": 0, "b": 90_000}

    assert TokenizerReader(bert).ids == len(bert)
    assert TokenizerReader(Holes(bert)).ids == 90_001
