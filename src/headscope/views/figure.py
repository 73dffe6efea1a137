"""Draw chosen heads of an example as a figure for a paper: lines, a matrix or neurons."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from headscope.draw.token_axes import Sides
from headscope.errors import InputError
from headscope.views.captured_example import Floats, StackMaps, TokenSide
from headscope.views.figure_lines import attention_lines
from headscope.views.figure_map import attention_map
from headscope.views.figure_neurons import attention_neurons
from headscope.views.figure_page import Head, check_heads

KINDS = ("lines", "matrix", "neurons")


def figure_of(
    stack: StackMaps,
    sides: Sequence[TokenSide],
    heads: Sequence[Head],
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
    check_heads(stack.attention, heads, stack.names)
    if kind != "lines" and len(heads) != 1:
        raise InputError(f"found {len(heads)} heads; wanted one for this kind of picture")
    rows, keys = sides[stack.queries], sides[stack.keys]
    tokens = Sides(rows.pieces, keys.pieces, rows.special, keys.special)
    look: dict[str, Any] = {} if columns is None else {"columns": columns}
    name = stack.names.head(*heads[0])
    if kind == "neurons":
        place, vectors = heads[0], stack.vectors
        if vectors is None:
            raise InputError(f"there is no neuron picture: {stack.why_none}")
        chosen = _plainest_query(stack.attention[place], rows) if query is None else query
        if not 0 <= chosen < len(rows):
            raise InputError(f"found the token {chosen}; wanted 0 to {len(rows) - 1}")
        return attention_neurons(
            tokens,
            vectors.queries[place],
            vectors.keys[place],
            stack.attention[place],
            query=chosen,
            scaling=float(vectors.scaling[place[0]]),
            softcap=vectors.softcap,
            bias=None if vectors.bias is None else vectors.bias[place],
            name=name,
            **look,
        )
    maps = _maps(stack, measure)
    if measure == "weighted_norm":
        look |= {"label": "weighted norm ‖αf(x)‖", "unit": "1"}
    for further in stack.measures:
        if further.name == measure:
            look |= {"label": further.label, "unit": further.unit}
            name = (
                f"Layer {stack.names.layer(heads[0][0])}"
                if further.maps.shape[1] < maps.shape[1]
                else name
            )
    if kind == "matrix":
        return attention_map(tokens, maps[heads[0]], name=name, **look)
    return attention_lines(tokens, maps, stack.names, heads=heads, labels=labels, **look)


def _plainest_query(weights: Floats, rows: TokenSide) -> int:
    there = np.flatnonzero(~rows.special) if (~rows.special).any() else np.arange(len(rows))
    return int(there[weights[there].max(-1).argmax()])


def _maps(stack: StackMaps, measure: str) -> Floats:
    known = {"attention": stack.attention, "weighted_norm": stack.weighted_norm}
    for further in stack.measures:
        known[further.name] = np.broadcast_to(further.maps, stack.attention.shape)
    maps = known.get(measure)
    if maps is None:
        there = ", ".join(name for name, m in known.items() if m is not None)
        raise InputError(f"no measure {measure!r}; this example has {there}")
    return maps
