"""Decoders with a planted circuit: a head that notes the previous token, one that induces by it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

import headscope as hs
from headscope.experiments.circuits.prompts import Prompt
from headscope.model.language_model import LanguageModel
from headscope.wired import WiredHead, wire
from headscope.wired.decks import deck

NOTES, INDUCES = "previous token, noted", "induction, copied"
OTHERS, SHARP = 5, 10.0
TOKENS, PLACES = 10, (1, 5)  # of a prompt, and of the two tokens that are swapped


@dataclass(frozen=True)
class Planted:
    """A decoder, and the (layer, head) of the two heads that are its circuit."""

    model: LanguageModel
    heads: tuple[tuple[int, int], ...]


@cache
def planted(family: str, seed: int, noise: float = 0.0) -> Planted:
    """Two layers, each with one head of the circuit among others that only look like it."""
    known = {head.name: head for head in deck(family, "circuits", SHARP)}
    rng = np.random.default_rng(seed)
    others = [name for name in known if name not in (NOTES, INDUCES)]
    early = [name for name in others if not known[name].late]
    rows: list[list[WiredHead]] = []
    for name, some in ((NOTES, early), (INDUCES, others)):
        row = [name, *rng.choice(some, OTHERS)]
        rows.append([known[one] for one in rng.permutation(row)])
    made = wire(family, rows, seed=seed, noise=noise, turned=True, speaks=True)
    model = hs.load(made.network, tokenizer=made.tokenizer)
    heads = [
        (layer, [head.name for head in row].index(name))
        for layer, (row, name) in enumerate(zip(rows, (NOTES, INDUCES), strict=True))
    ]
    return Planted(LanguageModel(model, "causal"), tuple(heads))


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
