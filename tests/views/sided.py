"""The figures of one example, given tokens and flags in the place of both sides."""

from __future__ import annotations

from functools import wraps

import numpy as np

from headscope.core.head_names import HeadNames
from headscope.draw.token_axes import Sides
from headscope.errors import InputError
from headscope.views import figure_lines, figure_map, figure_neurons


def sides_of(tokens, *, special, key_tokens, key_special):
    """The same tokens on both sides, unless there are others to look at (cross-attention).

    raises  InputError where there are none, or flags do not fit
    """
    if key_tokens is None and key_special is not None:
        raise InputError("found key_special without key_tokens; wanted both, or neither")
    keys, flags = (tokens, special) if key_tokens is None else (key_tokens, key_special)
    for found, name in ((tokens, "tokens"), (keys, "key_tokens")):
        if len(found) == 0:
            raise InputError(f"found no {name}; wanted at least one")
    both = ((special, tokens, "special"), (flags, keys, "key_special"))
    query_special, key_flags = (_flags(*one) for one in both)
    return Sides(tokens, keys, query_special, key_flags)


def _flags(special, tokens, name):
    if special is None:
        return np.zeros(len(tokens), dtype=bool)
    if np.shape(special) != (len(tokens),):
        raise InputError(f"{name} has the shape {np.shape(special)}; wanted ({len(tokens)},)")
    return np.asarray(special, dtype=bool)


def sided(draw):
    @wraps(draw)
    def drawn(tokens, *arrays, special=None, key_tokens=None, key_special=None, **options):
        sides = sides_of(tokens, special=special, key_tokens=key_tokens, key_special=key_special)
        return draw(sides, *arrays, **options)

    return drawn


attention_map = sided(figure_map.attention_map)
attention_neurons = sided(figure_neurons.attention_neurons)


def attention_lines(tokens, maps, **options):
    return sided(figure_lines.attention_lines)(tokens, maps, HeadNames(()), **options)
