"""How does the attention in one example differ from another model's, or from another text's?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from headscope.errors import InputError
from headscope.views.example import Measure, Shown, Side, Stack


def beside_model(shown: Shown, other: Shown) -> Shown:
    """The example with another model's attention beside its own, head by head.

    raises  InputError if the two cut the text into other tokens, or have other layers or heads
    """
    for mine, theirs in zip(shown.sides, other.sides, strict=False):
        if mine.tokens != theirs.tokens:
            raise InputError(
                f"{other.model!r} cuts the text into {len(theirs)} tokens ({_first(theirs)}), "
                f"{shown.model!r} into {len(mine)} ({_first(mine)}); wanted the same tokens: "
                "compare models with one tokenizer"
            )
    return _with(shown, other, f"attention, {Path(other.model).name}")


def beside_text(shown: Shown, other: Shown) -> Shown:
    """The example with another text's attention beside its own, token by token.

    Tokens that differ are shown as `this/that`.

    raises  InputError if the two have different numbers of tokens
    """
    lengths = [(len(a), len(b)) for a, b in zip(shown.sides, other.sides, strict=True)]
    if any(mine != theirs for mine, theirs in lengths):
        told = ", ".join(f"{mine} and {theirs}" for mine, theirs in lengths)
        raise InputError(
            f"the two texts have {told} tokens; wanted equally many: only then each weight of one "
            "stands beside one of the other"
        )
    sides = tuple(_joined(a, b) for a, b in zip(shown.sides, other.sides, strict=True))
    return replace(_with(shown, other, "attention, other text"), sides=sides)


def _with(shown: Shown, other: Shown, label: str) -> Shown:
    mine = [(s.name, s.attention.shape) for s in shown.stacks]
    theirs = [(s.name, s.attention.shape) for s in other.stacks]
    if mine != theirs:
        raise InputError(
            f"{shown.model!r} has maps of {mine}, {other.model!r} of {theirs}; wanted the same "
            "layers and heads"
        )
    stacks = tuple(_compared(a, b, label) for a, b in zip(shown.stacks, other.stacks, strict=True))
    return replace(shown, stacks=stacks)


def _compared(stack: Stack, other: Stack, label: str) -> Stack:
    return replace(stack, versus=Measure("versus", label, "probability", other.attention))


def _joined(side: Side, other: Side) -> Side:
    pairs = zip(side.tokens, other.tokens, strict=True)
    tokens = tuple(a if a == b else f"{a}/{b}" for a, b in pairs)
    # A word is one of both texts only where it ends at the same token in both.
    same = np.array_equal(side.word, other.word)
    return replace(side, tokens=tokens, word=side.word if same else np.full_like(side.word, -1))


def _first(side: Side) -> str:
    return " ".join(side.tokens[:6])[:60]
