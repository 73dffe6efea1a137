"""Attention by token: key tokens of a head, and the tokens of what is not explained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch

from headscope.analyses.explained.prediction import HeadRules, RuleMaps
from headscope.core.accumulators import Float64, Ints
from headscope.corpus.document import Example
from headscope.model.batch import to_float64

KEY_TOKENS = 32  # ours: of a head
SHRUNK = 1.0  # ours: queries that each token is thought to have had as predicted


class TokenMass:
    """What the tokens of some inputs get, by head."""

    def __init__(self, layers: int, heads: int, examples: Sequence[Example]) -> None:
        ids = [example.input_ids for example in examples]
        self.ids: Ints = np.unique(np.concatenate(ids)) if ids else np.zeros(0, np.int64)
        self.mass: Float64 = np.zeros((layers, heads, len(self.ids)))

    def add(self, layer: int, ids: Ints, received: torch.Tensor) -> None:
        """Add what each token of an input gets in one layer, [head, key]."""
        columns = np.searchsorted(self.ids, ids)
        np.add.at(self.mass[layer].T, columns, to_float64(received).T)


def with_key_tokens(
    rules: HeadRules,
    received: TokenMass,
    examples: Sequence[Example],
    maps_of: Callable[[Example], Iterable[tuple[int, RuleMaps]]],
) -> HeadRules:
    """The rules with the tokens that get more, or less, than these predict: a factor of each.

    received  what the heads give to the tokens of these inputs
    maps_of   of an input, layers and the rules in each
    """
    layers, heads, _ = received.mass.shape
    predicted = TokenMass(layers, heads, examples)
    for example in examples:
        for layer, maps in maps_of(example):
            predicted.add(layer, example.input_ids, rules.layer(layer).mixed(maps).sum(1))
    factor = (received.mass + SHRUNK) / (predicted.mass + SHRUNK)
    moved = np.abs(received.mass - predicted.mass)
    most = np.argsort(-moved, axis=-1, kind="stable")[..., :KEY_TOKENS]
    return HeadRules(
        rules.rule,
        rules.weight,
        rules.rest,
        received.ids[most],
        np.take_along_axis(factor, most, -1),
    )
