"""What heads are wired to match: features of a token, of its place, of its segment, of what an
earlier head wrote; each a block of the residual stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from string import ascii_uppercase

import numpy as np

from headscope.core.accumulators import Float64, generator
from headscope.wired.language import ENTITIES, SLOTS, Form, forms

IDENTITY = 40  # numbers of the code of a word form
HASH = 16
SPECIALS = ("[CLS]", "[SEP]", "<s>", "</s>")
OF_TOKENS, OF_PLACES, OF_SEGMENTS, WRITTEN = "token", "place", "segment", "written"
Known = Callable[[Form], bool]


@dataclass(frozen=True)
class Feature:
    """A block of the stream that heads match or read.

    name    two features of one name are one block
    width   of the block
    source  "token", "place", "segment", or "written": by an earlier head
    code    of a token's feature: its text, what is known of it (None of a special one), and the
            seed of the network -> [width], of norm 1 or 0
    """

    name: str
    width: int = 1
    source: str = OF_TOKENS
    code: Callable[[str, Form | None, int], Float64] | None = None


def flag(name: str, holds: Known) -> Feature:
    """1 for the word forms with a property."""
    return Feature(
        name, code=lambda _, form, __: np.array([form is not None and holds(form)]) * 1.0
    )


def lacks(name: str, holds: Known) -> Feature:
    """1 for all tokens without the property, special ones included."""
    return Feature(
        f"not {name}", code=lambda _, form, __: np.array([form is None or not holds(form)]) * 1.0
    )


def special(text: str) -> Feature:
    """1 for one special token."""
    return Feature(text, code=lambda token, *_: np.array([token == text]) * 1.0)


def one_hot(name: str, width: int, of: Callable[[Form], int]) -> Feature:
    """A one-hot vector for the number of a form; 0 for a negative number."""

    def code(_: str, form: Form | None, __: int) -> Float64:
        row, at = np.zeros(width), -1 if form is None else of(form)
        if at >= 0:
            row[at] = 1
        return row

    return Feature(name, width, code=code)


def one_hot_of_text(name: str, texts: str) -> Feature:
    """A unit vector for each of these tokens of one letter."""
    return Feature(
        name, len(texts), code=lambda token, *_: np.array([token == one for one in texts]) * 1.0
    )


def _random(name: str, width: int) -> Feature:
    def code(text: str, form: Form | None, seed: int) -> Float64:
        if text.startswith(("[", "<")):
            return np.zeros(width)
        row = generator(seed, "wired", name, text).standard_normal(width)
        return np.asarray(row / np.linalg.norm(row))

    return Feature(name, width, code=code)


def _specials(text: str, _: Form | None, __: int) -> Float64:
    return np.array([text == one for one in SPECIALS]) * 1.0


def _salience(text: str, form: Form | None, seed: int) -> Float64:
    """Salience of the forms of each tag: from 0 to 1 in even steps, shuffled, so that no tag has
    more."""
    if form is None or form.tag == "PUNCT":
        return np.zeros(1)
    return np.array([_saliences(form.tag, seed)[text]])


@cache
def _saliences(tag: str, seed: int) -> dict[str, float]:
    texts = [text for text, form in forms().items() if form.tag == tag]
    places = generator(seed, "wired", "salience", tag).permutation(len(texts))
    return dict(zip(texts, ((places + 0.5) / len(texts)).tolist(), strict=True))


ONE = Feature("one", code=lambda *_: np.ones(1))
#: Which place of the made sentence a word has.
SLOT = one_hot("slot", SLOTS, lambda form: form.slot)
#: Which place the syntactic head of a word has.
HEAD_SLOT = one_hot("head slot", SLOTS, lambda form: form.head_slot)
ENTITY = one_hot("entity", ENTITIES, lambda form: form.entity)
ASKING, ASKED = _random("asking", HASH), _random("asked", HASH)  # two codes that share nothing
WORD = _random("word", IDENTITY)
SALIENCE = Feature("salience", code=_salience)
SPECIAL = Feature("special", len(SPECIALS), code=_specials)
PLACE = Feature("place", 0, OF_PLACES)  # as wide as the network makes it
OPENING = Feature("opening", 1, OF_PLACES)
LATE = Feature("late", 1, OF_PLACES)
SEGMENT = Feature("segment", 2, OF_SEGMENTS)
BESIDE = Feature("beside", 2, OF_SEGMENTS)  # the code of the other segment
NOTED = Feature("noted", IDENTITY, WRITTEN)  # for a later head to match
SPOKEN = Feature("spoken", IDENTITY, WRITTEN)  # what the logits are read from
LETTERS = ascii_uppercase
LETTER = one_hot_of_text("letter", LETTERS)
LETTERED = Feature("lettered", len(LETTERS), WRITTEN)  # by the first feed-forward layer, of LETTER
JUNK = Feature("junk", IDENTITY + len(SPECIALS), WRITTEN)  # read by nobody


def relation(name: str) -> Feature:
    """1 for words of a relation; `not_relation` for all others."""
    return flag(name, lambda form: form.relation == name)


def not_relation(*names: str) -> Feature:
    """1 for all tokens but the words of these relations."""
    return lacks(" ".join(names), lambda form: form.relation in names)


def head_slot_of(name: str, holds: Known) -> Feature:
    """Where the head stands, of the words alone of which something holds."""
    return one_hot(
        f"head slot of {name}", SLOTS, lambda form: form.head_slot if holds(form) else -1
    )


def entity_of(name: str, holds: Known) -> Feature:
    """The entity that a word speaks of, of the words alone of which something holds."""
    return one_hot(f"entity of {name}", ENTITIES, lambda form: form.entity if holds(form) else -1)
