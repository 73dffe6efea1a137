"""The order of a network's nodes, and their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.core.accumulators import Ints
from headscope.core.head_names import HeadNames

INPUT = "input"
KINDS = (INPUT, "head", "mlp")


@dataclass(frozen=True)
class Nodes:
    """The nodes in the order of the network: input, then each layer's heads and feed-forward layer.

    layers, heads  how many there are
    """

    layers: int
    heads: int

    def __len__(self) -> int:
        return 1 + self.layers * (self.heads + 1)

    def head(self, layer: int, head: int) -> int:
        """The place of a head; layer and head from 0."""
        return 1 + layer * (self.heads + 1) + head

    def heads_of(self, layer: int) -> slice:
        """The places of the heads of a layer."""
        return slice(self.head(layer, 0), self.head(layer, self.heads))

    def feed_forward(self, layer: int) -> int:
        """The place of a feed-forward layer."""
        return self.head(layer, self.heads)

    def places_of_heads(self) -> Ints:
        """[layer, head] the place of each head."""
        layers = np.arange(self.layers)[:, None]
        return 1 + layers * (self.heads + 1) + np.arange(self.heads)

    def kinds(self) -> np.ndarray[Any, np.dtype[np.str_]]:
        """[node] which of KINDS each is."""
        layer = [*["head"] * self.heads, "mlp"]
        return np.array([INPUT, *layer * self.layers])

    def keys(self, names: HeadNames) -> list[str]:
        """[node] `input`, `a0.h0`, …, `m0`: what EAP calls them; layers by their own numbers."""
        keys = [INPUT]
        for number in map(names.number, range(self.layers)):
            keys += [*(f"a{number}.h{head}" for head in range(self.heads)), f"m{number}"]
        return keys

    def printed(self, names: HeadNames) -> list[str]:
        """[node] `input`, `L1·H1`, …, `MLP 1`, as pages name them."""
        printed = [INPUT]
        for layer in range(self.layers):
            printed += [names.head(layer, head) for head in range(self.heads)]
            printed.append(f"MLP {names.layer(layer)}")
        return printed
