"""Draw chosen heads of an example as a figure for a paper: lines, a matrix or neurons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from headscope.core.results import head_name
from headscope.errors import InputError
from headscope.views.captured_example import Floats, StackMaps, TokenSide
from headscope.views.figure_lines import attention_lines
from headscope.views.figure_map import attention_map
from headscope.views.figure_neurons import attention_neurons

KINDS = ("lines", "matrix", "neurons")


def figure_of(
    stack: StackMaps,
    sides: Sequence[TokenSide],
    heads: Sequence[tuple[int, int]],
    *,
    kind: str,
    measure: str,
    query: int | None,
    columns: int | None,
    labels: Sequence[Sequence[str]],
) -> Figure:
    """The figure of some heads of a stack; `View.picture` explains the options."""
    if kind not in KINDS:
        raise InputError(f"kind is {kind!r}; wanted one of {', '.join(KINDS)}")
    _check_heads(stack, heads, one=kind != "lines")
    rows, keys = sides[stack.queries], sides[stack.keys]
    look: dict[str, Any] = {"special": rows.special}
    if columns is not None:
        look["columns"] = columns
    if stack.queries != stack.keys:
        look |= {"key_tokens": keys.tokens, "key_special": keys.special}
    layer, head = heads[0]
    name = _name(stack, heads[0])
    if kind == "neurons":
        return _neurons(stack, rows, heads[0], query, look)
    maps = _maps(stack, measure)
    if measure == "weighted_norm":
        look |= {"label": "weighted norm ‖αf(x)‖", "unit": "1"}
    for further in stack.measures:
        if further.name == measure:
            look |= {"label": further.label, "unit": further.unit}
            name = f"Layer {layer + 1}" if further.maps.shape[1] < maps.shape[1] else name
    if kind == "matrix":
        return attention_map(rows.tokens, maps[layer, head], name=name, **look)
    return attention_lines(rows.tokens, maps, heads=heads, labels=labels, **look)


def _neurons(
    stack: StackMaps,
    rows: TokenSide,
    place: tuple[int, int],
    query: int | None,
    look: dict[str, Any],
) -> Figure:
    vectors, weights = stack.vectors, stack.attention[place]
    if vectors is None:
        raise InputError(f"there is no neuron picture: {stack.why_none}")
    chosen = _plainest_query(weights, rows) if query is None else query
    if not 0 <= chosen < len(rows):
        raise InputError(f"found the token {chosen}; wanted 0 to {len(rows) - 1}")
    return attention_neurons(
        rows.tokens, vectors.queries[place], vectors.keys[place], weights, query=chosen,
        scaling=float(vectors.scaling[place[0]]), softcap=vectors.softcap,
        bias=None if vectors.bias is None else vectors.bias[place], name=_name(stack, place),
        **look,
    )  # fmt: skip


def _plainest_query(weights: Floats, rows: TokenSide) -> int:
    """The ordinary token with the largest weight; any, where all are special."""
    there = np.flatnonzero(~rows.special) if (~rows.special).any() else np.arange(len(rows))
    return int(there[weights[there].max(-1).argmax()])


def _maps(stack: StackMaps, measure: str) -> Floats:
    found = {"attention": stack.attention, "weighted_norm": stack.weighted_norm}
    for further in stack.measures:
        found[further.name] = np.broadcast_to(further.maps, stack.attention.shape)
    maps = found.get(measure)
    if maps is None:
        there = ", ".join(name for name, m in found.items() if m is not None)
        raise InputError(f"found the measure {measure!r}; this example has {there}")
    return maps


def _name(stack: StackMaps, place: tuple[int, int]) -> str:
    heads = stack.attention.shape[1]
    return head_name(place[0] * heads + place[1], heads)


def _check_heads(stack: StackMaps, heads: Sequence[tuple[int, int]], *, one: bool) -> None:
    layers, count = stack.attention.shape[:2]
    for layer, head in heads:
        if not (0 <= layer < layers and 0 <= head < count):
            raise InputError(
                f"found layer {layer + 1}, head {head + 1}; wanted layers 1 to {layers} and heads "
                f"1 to {count}"
            )
    if one and len(heads) != 1:
        raise InputError(f"found {len(heads)} heads; wanted one for this kind of picture")
