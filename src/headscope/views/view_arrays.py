"""View attention maps from any framework, given as tokens and arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headscope.core.wording import grid_size
from headscope.errors import InputError
from headscope.views import captured_example
from headscope.views.captured_example import Floats, NamedMaps, StackMaps, TokenSide
from headscope.views.example_labels import stack_labels
from headscope.views.packed_arrays import Detail
from headscope.views.view_text import View

ROUNDING = 1e-2  # a row of half-precision probabilities may sum to a little more than 1


def view_arrays(
    tokens: Sequence[str],
    attention: Any,
    *,
    key_tokens: Sequence[str] | None = None,
    queries: Any = None,
    keys: Any = None,
    scaling: float | None = None,
    value_norm: Any = None,
    measures: Mapping[str, Any] | None = None,
    special: Sequence[bool] | None = None,
    boundary: int | None = None,
    words: Sequence[int] | None = None,
    labels: Sequence[Sequence[str]] | None = None,
    name: str = "arrays",
    detail: Detail = "auto",
) -> View:
    """Views of attention maps computed elsewhere, with numpy, torch, jax or lists.

    tokens      [query] what looks
    attention   [layer, head, query, key], [head, query, key] or [query, key]; or one
                [1, head, query, key] per layer, as transformers gives them. Rows sum to at most 1
    key_tokens  [key] what is looked at, where it is something else (cross-attention)
    queries, keys   [layer, head, token, dim] for the neuron view, as they were multiplied
    scaling     factor of q·k; None: 1/√dim
    value_norm  [layer, head, key] ‖f(x)‖, for the weighted norm
    measures    further maps by name, shaped as attention, at least 0
    special     [token] tokens to set back; None: those of the form [CLS], <s>, <|x|>
    boundary    the first token of the second segment
    words       [token] the word that each token belongs to, -1 for none
    labels      [layer][head] what a head does; None: found in the maps
    raises      InputError: shapes that do not fit, batch > 1, no tokens, NaN, numbers below 0
    """
    rows = _side(tokens, special, boundary, words)
    columns = rows if key_tokens is None else _side(key_tokens, None, None, None)
    shape = (len(rows), len(columns))
    maps = _attention(attention, shape)
    more = tuple(
        NamedMaps(key, key, "1", _maps(key, value, shape, like=maps.shape))
        for key, value in (measures or {}).items()
    )
    norms = None
    if value_norm is not None:
        norms = _array("value_norm", value_norm, (*maps.shape[:2], shape[1]))
    stack = StackMaps(
        "self",
        0,
        0 if columns is rows else 1,
        maps,
        norms,
        _vectors(queries, keys, scaling, maps.shape),
        "No queries and keys were given.",
        more,
    )
    sides = (rows,) if columns is rows else (rows, columns)
    label_rows = [list(row) for row in labels] if labels else stack_labels(stack, sides)
    if [len(row) for row in label_rows] != [maps.shape[1]] * maps.shape[0]:
        raise InputError(f"labels do not fit {grid_size(*maps.shape[:2])}")
    return View(captured_example.ExampleMaps(name, sides, (stack,)), [label_rows], detail)


def _side(
    tokens: Sequence[str],
    special: Sequence[bool] | None,
    boundary: int | None,
    words: Sequence[int] | None,
) -> TokenSide:
    n = len(tokens)
    if n == 0:
        raise InputError("found no tokens; wanted at least one")
    if boundary is not None and not 0 < boundary < n:
        raise InputError(f"boundary is {boundary}; wanted the place of a token, 1 to {n - 1}")
    shown = tuple(str(token) for token in tokens)
    # What looks like tokens that a tokenizer adds: [CLS], <s>, <|endoftext|>.
    framed = [len(t) > 2 and t[0] + t[-1] in ("[]", "<>") for t in shown]
    flags = np.array(framed if special is None else special, bool)
    word = np.full(n, -1) if words is None else np.asarray(words)
    for what, array in (("special", flags), ("words", word)):
        if array.shape != (n,):
            raise InputError(
                f"{what} has {len(array)} entries for {n} tokens; wanted one for each token"
            )
    segment = (np.arange(n) >= (n if boundary is None else boundary)).astype(np.int64)
    opening = np.arange(n) == 0
    punctuation = np.isin(shown, (".", ","))
    return TokenSide(
        shown, flags, segment, word.astype(np.int64), flags & opening, flags & ~opening, punctuation
    )


def _attention(value: Any, shape: tuple[int, int]) -> Floats:
    maps = _maps("attention", value, shape)
    if (sums := maps.sum(-1)).size and sums.max() > 1 + ROUNDING:
        raise InputError(
            f"rows of attention sum to as much as {sums.max():.3g}; wanted probabilities, at most "
            "1; give other maps as measures={name: maps} beside an attention"
        )
    return maps


def _maps(
    name: str, values: Any, shape: tuple[int, int], *, like: tuple[int, ...] | None = None
) -> Floats:
    """[layer, head, query, key] from maps in any of the usual shapes."""
    layers = [_numpy(name, one) for one in values] if isinstance(values, list | tuple) else None
    if layers and all(one.ndim == 4 for one in layers):
        if any(len(one) != 1 for one in layers):
            raise InputError(
                f"{name} holds {len(layers[0])} examples; wanted one: take maps[:1] of each layer"
            )
        maps = np.concatenate(layers)  # [layer, head, query, key]
    else:
        maps = _numpy(name, values)
    if maps.ndim == 5 and maps.shape[1] == 1:
        maps = maps[:, 0]
    if maps.ndim not in (2, 3, 4):
        raise InputError(f"{name} has the shape {maps.shape}; wanted [layer, head, query, key]")
    maps = maps.reshape((1,) * (4 - maps.ndim) + maps.shape)
    if maps.shape[2:] != shape or 0 in maps.shape:
        raise InputError(
            f"{name} has {maps.shape[2]} rows and {maps.shape[3]} columns for {shape[0]} and "
            f"{shape[1]} tokens; wanted a row for each attending token, a column for each "
            "attended one"
        )
    if like is not None and maps.shape != like:
        raise InputError(f"{name} has the shape {maps.shape}; wanted that of attention, {like}")
    _finite(name, maps)
    if (maps < 0).any():
        raise InputError(f"{name} holds numbers below 0 (least {maps.min():.3g}); wanted 0 or more")
    return maps


def _vectors(
    queries: Any, keys: Any, scaling: float | None, shape: tuple[int, ...]
) -> captured_example.Vectors | None:
    if queries is None and keys is None:
        return None
    if queries is None or keys is None:
        raise InputError("found queries or keys alone; wanted both, or neither")
    q, k = _numpy("queries", queries), _numpy("keys", keys)
    layers, heads, rows, columns = shape
    dim = q.shape[-1] if q.ndim else 0
    q = _array("queries", q, (layers, heads, rows, dim))
    k = _array("keys", k, (layers, heads, columns, dim))
    factor = dim**-0.5 if scaling is None else scaling
    return captured_example.Vectors(q, k, np.full(layers, factor, np.float32))


def _array(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    array = _numpy(name, value)
    if array.shape != shape:
        raise InputError(f"{name} has the shape {array.shape}; wanted {shape}")
    _finite(name, array)
    return array


def _finite(name: str, array: Floats) -> None:
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds NaN or infinite numbers; wanted a number for every pair")


def _numpy(name: str, value: Any) -> Floats:
    """Any array as float32 on the host."""
    if hasattr(value, "detach"):  # torch, where numpy() refuses gradients and bfloat16
        value = value.detach().cpu().float()
    try:
        return np.asarray(value, np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is no array of numbers ({error})") from error
