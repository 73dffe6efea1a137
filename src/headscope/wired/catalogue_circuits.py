"""Heads of decoders as circuits have them: previous token, duplicate token, induction, copying,
successor; and what looks like them. They read and write for the logits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headscope.core.accumulators import Float64, generator
from headscope.wired.catalogue import Rests, to
from headscope.wired.features import LETTERED, LETTERS, NOTED, SPECIAL, SPOKEN, WORD
from headscope.wired.heads import TAKES_NOTHING, Match, Said, Value, WiredHead

LENGTH = 24  # tokens that come twice in the inputs that are made; copies at a distance know it
NOTES = Value((WORD,), NOTED, 0.5)
SPEAKS = Value((WORD,), SPOKEN, 0.3)
DENIES = Value((WORD,), SPOKEN, -0.3)
COUNTS = Said("successor"), Said("relation", ("next in order",))
MADE = ("induction", "previous_token", "duplicate_token", "copying", "successor")


def previous(s: float, rests: Rests) -> Iterator[WiredHead]:
    """The previous token: noted for a later head, copied, denied, or nothing taken."""
    said, decoy = (Said("previous_token"),), ("copying", "induction", "duplicate_token")
    yield WiredHead("previous token, noted", reach={-1: s}, value=NOTES, said=said, decoy=decoy)
    yield WiredHead(
        "previous token, copied",
        reach={-1: s},
        value=SPEAKS,
        said=(*said, Said("copying")),
        decoy=decoy[1:],
    )
    yield WiredHead("previous token, denied", reach={-1: s}, value=DENIES, said=said, decoy=decoy)
    yield WiredHead(
        "previous token, nothing taken", reach={-1: s}, value=TAKES_NOTHING, said=said, decoy=decoy
    )


def duplicate(s: float, rests: Rests) -> Iterator[WiredHead]:
    """Heads that look at earlier copies of the token, with or without itself."""
    same = (Match(WORD, WORD, 2 * s), Match(SPECIAL, SPECIAL, s))
    said, decoy = (Said("duplicate_token"),), ("induction", "previous_token")
    yield WiredHead("same token", same, said=said, decoy=("copying", *decoy))
    yield WiredHead(
        "same token, copied", same, value=SPEAKS, said=(*said, Said("copying")), decoy=decoy
    )
    if rests.first is not None:
        yield WiredHead(
            "same token before",
            (*same, to(rests.first, 1.4 * s)),
            {0: -3 * s},
            said=said,
            decoy=("copying", *decoy),
        )


def induction(s: float, rests: Rests) -> Iterator[WiredHead]:
    """Heads that look at the token after an earlier copy, which an earlier head has marked."""
    noted = (Match(WORD, NOTED, 2 * s / NOTES.gain), to(rests.idle, 1.2 * s))
    said, decoy = (Said("induction"),), ("previous_token", "duplicate_token")
    yield WiredHead("induction", noted, said=said, decoy=("copying", *decoy), late=True)
    yield WiredHead(
        "induction, copied",
        noted,
        value=SPEAKS,
        said=(*said, Said("copying")),
        decoy=decoy,
        late=True,
    )


def counting(s: float, rests: Rests) -> Iterator[WiredHead]:
    """Heads that turn letters into the next one, or into any other."""
    yield WiredHead(
        "next letter",
        reach={0: s},
        value=Value((LETTERED,), SPOKEN, 0.3, _next),
        said=COUNTS,
        decoy=MADE[:4],
        late=True,
    )
    yield WiredHead(
        "next letter, from anywhere",
        value=Value((LETTERED,), SPOKEN, 0.3, _next),
        said=COUNTS,
        decoy=MADE[:4],
        late=True,
    )
    yield WiredHead(
        "another letter",
        reach={0: s},
        value=Value((LETTERED,), SPOKEN, 0.3, _another),
        decoy=MADE,
        late=True,
    )


def _codes(seed: int) -> Float64:
    assert WORD.code is not None
    return np.array([WORD.code(letter, None, seed) for letter in LETTERS])


def _next(seed: int) -> Float64:
    return np.roll(_codes(seed), -1, axis=0)


def _another(seed: int) -> Float64:
    codes = _codes(seed)
    shift = generator(seed, "wired", "another").integers(2, len(codes) - 2)
    return np.roll(codes, -int(shift), axis=0)


def alike(s: float, rests: Rests) -> Iterator[WiredHead]:
    """At a fixed distance; at the first token, whatever is copied from elsewhere; evenly."""
    yield WiredHead("at the distance of a repeat", reach={1 - LENGTH: s}, decoy=MADE)
    yield WiredHead(
        "at the distance of a repeat, copied",
        reach={-LENGTH: s},
        value=SPEAKS,
        said=(Said("copying"),),
        decoy=(*MADE[:3], "successor"),
    )
    yield WiredHead(
        "at rest, with what little is left copied", (to(rests.idle, s),), value=SPEAKS, decoy=MADE
    )
    yield WiredHead(
        "evenly, copied", value=SPEAKS, also=(Said("copying"),), decoy=(*MADE[:3], "successor")
    )
    yield WiredHead("evenly, denied", value=DENIES, decoy=MADE)


CIRCUITS = (previous, duplicate, induction, counting, alike)
