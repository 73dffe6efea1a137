"""The sets of heads that are switched off together.

A variant of a model is a set of heads (layer, head), counted from 0, that are off in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from headscope.errors import InputError

Head = tuple[int, int]
Variant = frozenset[Head]


def single_heads(layers: int, heads: int) -> list[Variant]:
    """[layer * heads + head] each head by itself."""
    return [frozenset({(layer, head)}) for layer in range(layers) for head in range(heads)]


def whole_layers(layers: int, heads: int) -> list[Variant]:
    """[layer] all heads of a layer."""
    return [frozenset((layer, head) for head in range(heads)) for layer in range(layers)]


def pairs(heads: Sequence[tuple[int, int]]) -> list[Variant]:
    """Every pair of these heads."""
    return [frozenset(two) for two in combinations(heads, 2)]


def lowest_layer(variant: Variant) -> int:
    """The first layer that a variant changes."""
    return min(layer for layer, _ in variant)


def heads_in(variant: Variant, layer: int) -> list[int]:
    """The heads that are off in a layer, in order."""
    return sorted(head for at, head in variant if at == layer)


def variant_name(variant: Variant, heads: int) -> str:
    """`L4·H1 + L2·H12`, counted from 1 as in papers; a layer without heads is `L4`.

    heads  of a layer
    """
    words = []
    for layer in sorted({layer for layer, _ in variant}):
        off = heads_in(variant, layer)
        if len(off) == heads:
            words.append(f"L{layer + 1}")
        else:
            words += [f"L{layer + 1}·H{head + 1}" for head in off]
    return " + ".join(words)


def check(variants: Iterable[Variant], *, layers: int, heads: int) -> None:
    """Raises InputError for a head that the model does not have."""
    for variant in variants:
        for layer, head in variant:
            if not (0 <= layer < layers and 0 <= head < heads):
                raise InputError(
                    f"no head L{layer + 1}·H{head + 1}: the model has {layers} layers of {heads} "
                    "heads, counted from 1"
                )
