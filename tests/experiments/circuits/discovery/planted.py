"""Decoders with a planted circuit: a head that notes the previous token, and one that induces by
it; or a small program of three layers, as Tracr compiles them, that looks a token up twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

import headscope as hs
from headscope.experiments.circuits.prompts import Prompt
from headscope.model.language_model import LanguageModel
from headscope.wired import Feature, Match, Value, WiredHead, wire
from headscope.wired.catalogue import RESTS, to
from headscope.wired.catalogue_circuits import NOTES
from headscope.wired.decks import deck
from headscope.wired.features import IDENTITY, NOTED, SPOKEN, WORD, WRITTEN

NOTING, INDUCES = "previous token, noted", "induction, copied"
HELD = Feature("held", IDENTITY, WRITTEN)
HOLDS = Value((WORD,), HELD, 0.5)
SAYS = Value((WORD,), SPOKEN, 1.0)  # louder than all others together
OTHERS, SHARP = 5, 10.0
TOKENS, PLACES = 10, (1, 5)  # of a prompt, and of the two tokens that are swapped


@dataclass(frozen=True)
class Planted:
    """A decoder, and the (layer, head) of the heads that are its circuit."""

    model: LanguageModel
    heads: tuple[tuple[int, int], ...]


@cache
def planted(family: str, seed: int, noise: float = 0.0) -> Planted:
    """Two layers, each with one head of the circuit among others that only look like it."""
    known = {head.name: head for head in deck(family, "circuits", SHARP)}
    return _among_others(family, [known[NOTING], known[INDUCES]], seed, noise)


@cache
def two_lookups(family: str, seed: int) -> Planted:
    """What stands behind the token that stands behind the last one: each layer has one step.

    The first notes the previous token; the second looks up what stands behind the token, and holds
    it; the third looks up what stands behind that, and says it.
    """
    known = {head.name: head for head in deck(family, "circuits", SHARP)}
    rest, sharp = to(RESTS[family].idle, 1.2 * SHARP), 2 * SHARP / NOTES.gain
    first = Match(WORD, NOTED, sharp)
    second = Match(HELD, NOTED, sharp / HOLDS.gain)
    steps = [
        known[NOTING],
        WiredHead("looked up, held", (first, rest), value=HOLDS),
        WiredHead("looked up again", (second, rest), value=SAYS),
    ]
    return _among_others(family, steps, seed)


def _among_others(family: str, circuit: list[WiredHead], seed: int, noise: float = 0.0) -> Planted:
    """A decoder with a layer for each head of the circuit, and heads there that look like it."""
    known = {head.name: head for head in deck(family, "circuits", SHARP)}
    rng = np.random.default_rng(seed)
    others = [name for name in known if name not in (NOTING, INDUCES)]
    early = [name for name in others if not known[name].late]
    rows = list[list[WiredHead]]()
    for layer, head in enumerate(circuit):
        row = [head, *(known[name] for name in rng.choice(others if layer else early, OTHERS))]
        rows.append([row[at] for at in rng.permutation(len(row))])
    made = wire(family, rows, seed=seed, noise=noise, turned=True, speaks=True)
    model = hs.load(made.network, tokenizer=made.tokenizer)
    places = [row.index(head) for row, head in zip(rows, circuit, strict=True)]
    return Planted(LanguageModel(model, "causal"), tuple(enumerate(places)))


def induction_prompts(model: LanguageModel, *, couples: int, seed: int = 0) -> list[Prompt]:
    """`… A B … C D … A` and the same with A and C swapped: B should follow, or D."""
    words = sorted(word for word in model.model.tokenizer.get_vocab() if word.isalpha())
    rng, prompts = np.random.default_rng(seed), []
    for couple in range(couples):
        clean = [str(word) for word in rng.choice(words, TOKENS, replace=False)]
        other = list(clean)
        one, two = PLACES
        other[one], other[two] = clean[two], clean[one]
        for read, corrupted in ((clean, other), (other, clean)):
            last = clean[one]
            answer, wrong = (f" {side[side.index(last) + 1]}" for side in (read, corrupted))
            texts = (" ".join([*side, last]) for side in (read, corrupted))
            text, broken = texts
            prompts.append(Prompt(text, answer, wrong, broken, f"couple {couple}"))
    return prompts


def lookup_prompts(model: LanguageModel, *, couples: int, seed: int = 0) -> list[Prompt]:
    """`… A B C … D E F … A` and the same with A and D swapped: C should follow, or F."""
    words = sorted(word for word in model.model.tokenizer.get_vocab() if word.isalpha())
    rng, prompts = np.random.default_rng(seed), []
    for couple in range(couples):
        a, b, c, d, e, f, *rest = (str(word) for word in rng.choice(words, TOKENS, replace=False))
        text, other = (
            " ".join([rest[0], one, b, c, *rest[1:3], two, e, f, *rest[3:], a])
            for one, two in ((a, d), (d, a))
        )
        prompts.append(Prompt(text, f" {c}", f" {f}", other, f"couple {couple}"))
        prompts.append(Prompt(other, f" {f}", f" {c}", text, f"couple {couple}"))
    return prompts
