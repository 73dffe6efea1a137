"""All variants of all kinds of heads that a family and a kind of inputs allow."""

from __future__ import annotations

from collections.abc import Iterator

from headscope.wired import catalogue as looks
from headscope.wired import catalogue_language as language
from headscope.wired.catalogue import RESTS, Variants
from headscope.wired.catalogue_circuits import CIRCUITS
from headscope.wired.features import OF_PLACES
from headscope.wired.heads import WiredHead

LOOKS: tuple[Variants, ...] = (
    looks.neighbours,
    looks.nearby,
    looks.specials,
    looks.first_token,
    looks.punctuation,
    looks.widths,
    looks.same_word,
    looks.without_rule,
)
KNOWS: tuple[Variants, ...] = (
    language.relations,
    language.coreference,
    language.frames,
    language.kinds_of_words,
    language.pairs,
    language.roles,
    language.looking_alike,
)
DECKS: dict[str, tuple[Variants, ...]] = {
    "sentences": (*LOOKS, *KNOWS),
    "pairs": (looks.segments, looks.same_word, looks.neighbours, looks.specials, looks.widths),
    "long": (looks.windows, looks.neighbours, looks.first_token, looks.widths),
    "circuits": CIRCUITS,
}
CAUSAL = (language.relations, language.coreference, language.kinds_of_words)  # of KNOWS


def deck(family: str, inputs: str, s: float) -> Iterator[WiredHead]:
    """The variants, for log-odds `s` of a match.

    family  "bert", "gpt2", "llama" or "t5"
    inputs  "sentences", annotated; "pairs" of them; "long" texts; or "circuits": made inputs
    """
    rests = RESTS[family]
    for variants in DECKS[inputs]:
        if rests.causal and variants in KNOWS and variants not in CAUSAL:
            continue
        for head in variants(s, rests):
            placed = any(feature.source == OF_PLACES for feature in head.features)
            if placed and family not in ("bert", "gpt2"):
                continue
            if family == "llama" and head.reach and head.matches:
                continue  # waves are low elsewhere, by how much is not said
            yield head
