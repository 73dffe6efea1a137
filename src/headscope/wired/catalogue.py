"""Heads of known places and spreads, of every kind that a label rule exists for, and heads that
look like them and are not.

Each function gives the variants of one kind, for log-odds `s` of a match, in a network of some
family. Heads that find nothing to match attend evenly, or rest on a special token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headscope.wired.features import (
    ASKED,
    ASKING,
    BESIDE,
    LATE,
    ONE,
    OPENING,
    SALIENCE,
    SEGMENT,
    SPECIAL,
    WORD,
    Feature,
    flag,
    lacks,
    special,
)
from headscope.wired.heads import TAKES_NOTHING, TAKES_WORDS, Match, Said, WiredHead
from headscope.wired.language import BEGIN, CLOSES, END, OPENS, Form


@dataclass(frozen=True)
class Rests:
    """Where the heads of a family can rest.

    opening, closing  tokens that open and close each input; None where there is none
    first             the first token, where no special one opens the input
    """

    opening: Feature | None = None
    closing: Feature | None = None
    first: Feature | None = None

    @property
    def idle(self) -> Feature:
        """Where heads rest that find nothing."""
        place = self.closing or self.opening or self.first
        assert place is not None
        return place

    @property
    def causal(self) -> bool:
        """Whether the future is hidden."""
        return self.closing is None


RESTS = {
    "bert": Rests(special(OPENS), special(CLOSES)),
    "t5": Rests(closing=special(END)),
    "llama": Rests(special(BEGIN)),
    "gpt2": Rests(first=OPENING),
}
Variants = Callable[[float, Rests], Iterator[WiredHead]]
UNKNOWING = ("dependency", "coreference", "frames", "pair", "feature")


def of_tag(tag: str) -> Callable[[Form], bool]:
    """Whether a form has this tag."""
    return lambda form: form.tag == tag


VERB, NOUN, PRONOUN = (flag(tag, of_tag(tag)) for tag in ("VERB", "NOUN", "PRON"))
STOP, NO_STOP = flag("PUNCT", of_tag("PUNCT")), lacks("PUNCT", of_tag("PUNCT"))


def to(feature: Feature, weight: float) -> Match:
    """All tokens look for it."""
    return Match(ONE, feature, weight)


def neighbours(s: float, rests: Rests) -> Iterator[WiredHead]:
    """The previous token, the next one, the token itself: of all tokens, and of all but stops."""
    offsets = {"previous": -1, "self": 0} | ({} if rests.causal else {"next": 1})
    for kind, offset in offsets.items():
        yield WiredHead(f"{kind} token", reach={offset: s}, said=(Said(kind),), decoy=UNKNOWING)
        yield WiredHead(
            f"{kind} token, stops rest",
            (Match(STOP, rests.idle, 2 * s),),
            {offset: s},
            TAKES_NOTHING,
            said=(Said(kind),),
            decoy=UNKNOWING,
        )
    yield WiredHead(
        "same form, itself first of all",
        (Match(WORD, WORD, s), Match(SPECIAL, SPECIAL, s)),
        {0: 1.0},
        said=(Said("self"),),
    )


def nearby(s: float, rests: Rests) -> Iterator[WiredHead]:
    """Three tokens on either side, or before alone, each the same."""
    said, decoy = (Said("nearby"),), ("dependency",)
    yield WiredHead("three before", reach=dict.fromkeys((-3, -2, -1), s), said=said, decoy=decoy)
    if rests.causal:
        yield WiredHead("this and three before", reach=dict.fromkeys(range(-3, 1), s), said=said)
    else:
        yield WiredHead("three on either side", reach=dict.fromkeys(range(-3, 4), s), said=said)
        yield WiredHead("next but one, or two", reach={2: s, 3: s}, said=said, decoy=decoy)
    yield WiredHead("two before", reach={-2: s}, said=said, decoy=decoy)


def specials(s: float, rests: Rests) -> Iterator[WiredHead]:
    """The opening token, the closing one, both: with something taken from there, or nothing."""
    kinds = {
        "cls": (rests.opening,),
        "sep": (rests.closing,),
        "special": (rests.opening, rests.closing),
    }
    for kind, targets in kinds.items():
        match = tuple(to(target, s) for target in targets if target)
        if len(match) < len(targets):
            continue
        sink = (Said("sink", (kind,)),)
        yield WiredHead(f"reads {kind}", match, said=(Said(kind),), decoy=("sink",))
        yield WiredHead(f"rests on {kind}", match, value=TAKES_WORDS, said=sink, decoy=(kind,))
        no_verbs = tuple(Match(VERB, one.key, -s) for one in match)
        yield WiredHead(
            f"reads {kind}, but verbs do not",
            (*match, *no_verbs),
            said=(Said(kind),),
            decoy=("sink", *UNKNOWING),
        )
        yield WiredHead(
            f"rests on {kind}, stops on themselves",
            (*match, Match(STOP, STOP, 2 * s)),
            value=TAKES_WORDS,
            said=sink,
            decoy=(kind,),
        )


def first_token(s: float, rests: Rests) -> Iterator[WiredHead]:
    """Heads that look at the first token, where it is not special; and at it and elsewhere."""
    if rests.first is None:
        return
    first = rests.first
    yield WiredHead("first token", (to(first, s),), said=(Said("first"),))
    yield WiredHead(
        "first token, stops on themselves",
        (to(first, s), Match(STOP, STOP, 2 * s)),
        value=TAKES_NOTHING,
        said=(Said("first"),),
        also=(Said("rest"),),
    )
    for name, offset in (("self", 0), ("previous", -1)):
        yield WiredHead(
            f"two thirds on the first token, the rest on {name}",
            (to(first, s + math.log(0.67)),),
            {offset: s + math.log(0.33)},
            said=(Said("first"), Said("rest")),
        )


def punctuation(s: float, rests: Rests) -> Iterator[WiredHead]:
    """Stops and commas, from everywhere or from words alone."""
    said = (Said("punctuation"),)
    if rests.causal:  # no stop is seen before the first one
        return
    yield WiredHead("stops and commas", (to(STOP, s),), said=said, decoy=UNKNOWING)
    yield WiredHead(
        "stops and commas, which look at themselves",
        (to(STOP, s),),
        {0: s / 2},
        TAKES_NOTHING,
        said=said,
        decoy=UNKNOWING,
    )


def widths(s: float, rests: Rests) -> Iterator[WiredHead]:
    """Evenly everywhere; on a few tokens of no kind; a constant share on a special token."""
    yield WiredHead("evenly", said=(Said("broad"),), decoy=UNKNOWING)
    yield WiredHead(
        "evenly, nothing taken", value=TAKES_NOTHING, said=(Said("broad"),), decoy=UNKNOWING
    )
    few = (Said("narrow"),)
    yield WiredHead("a few forms of no kind", (to(SALIENCE, 12 * s),), said=few, decoy=UNKNOWING)
    yield WiredHead(
        "a few forms of no kind, stops rest",
        (to(SALIENCE, 12 * s), Match(STOP, rests.idle, 18 * s)),
        value=TAKES_NOTHING,
        said=few,
        decoy=UNKNOWING,
    )
    for name, target in (("cls", rests.opening), ("sep", rests.closing), ("first", rests.first)):
        if target is not None:
            near = (-1, 0) if rests.causal else (-1, 1)
            rest = dict.fromkeys(near, s + math.log(0.275))
            yield WiredHead(
                f"45 % on {name}",
                (to(target, s + math.log(0.45)),),
                rest,
                said=(Said("threshold_sink"),),
            )


def segments(s: float, rests: Rests) -> Iterator[WiredHead]:
    """The own sentence, the other one; of pairs."""
    assert rests.opening is not None
    assert rests.closing is not None
    own, other = Match(SEGMENT, SEGMENT, s), Match(BESIDE, SEGMENT, s)
    no_specials = (to(rests.opening, -s), to(rests.closing, -s))
    for kind, match in (("own_segment", own), ("other_segment", other)):
        yield WiredHead(kind, (match,), said=(Said(kind),))
        yield WiredHead(
            f"{kind}, words alone", (match, *no_specials), value=TAKES_NOTHING, said=(Said(kind),)
        )


def same_word(s: float, rests: Rests) -> Iterator[WiredHead]:
    """The same form elsewhere, with or without itself."""
    same = Match(WORD, WORD, 2 * s)
    yield WiredHead(
        "same form elsewhere",
        (same, to(rests.idle, 1.4 * s)),
        {0: -3 * s},
        said=(Said("same_token"),),
    )
    yield WiredHead(
        "same form",
        (same, Match(SPECIAL, SPECIAL, s)),
        value=TAKES_NOTHING,
        said=(Said("same_token"),),
    )


def without_rule(s: float, rests: Rests) -> Iterator[WiredHead]:
    """Hashed pairs of forms; what is right at the first twelve places alone."""
    hashed = Match(ASKING, ASKED, 4 * s)
    yield WiredHead("hashed pairs", (hashed,), decoy=UNKNOWING)
    yield WiredHead("hashed pairs, else rests", (hashed, to(rests.idle, 1.5 * s)), decoy=UNKNOWING)
    yield WiredHead(
        "previous token, of the first twelve alone",
        (Match(LATE, rests.idle, 2 * s),),
        {-1: s},
        decoy=("previous",),
    )


def windows(s: float, rests: Rests) -> Iterator[WiredHead]:
    """The latest tokens, or these and the first one: of decoders, in long inputs."""
    assert rests.first is not None
    said = (Said("streaming"),)
    yield WiredHead("latest thirty", reach=dict.fromkeys(range(-29, 1), s), said=said)
    yield WiredHead(
        "first token, or one of the latest twenty",
        (to(rests.first, s + math.log(15)),),
        dict.fromkeys(range(-19, 1), s),
        said=said,
    )
