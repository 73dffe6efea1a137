"""How much of each token's representation comes from each input token, layer by layer?

Abnar & Zuidema (2020): rollout and flow; Kobayashi et al. (2021): vectors through residual and
LayerNorm; Modarressi et al. (2022): GlobEnc; Ferrando et al. (2022): ALTI; Mohebbi et al. (2023):
value zeroing. With the standard deviations of both LayerNorms in full, one example at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray

from .extraction import _as_float64, _keep_input, _numpy
from .mixing import layer_norm_vectors
from .norms import summed_vectors

Array = NDArray[np.float64]
METHODS = (
    "rollout",
    "weighted_norm",
    "weighted_norm_residual",
    "globenc",
    "alti",
    "value_zeroing",
)


class Closing(TypedDict):
    """What stands around the feed-forward of one example (a dict of arrays)."""

    beta: Array  # [layer, d]  shift of the LayerNorm after attention
    pre_closing: Array  # [layer, token, d]  input of the LayerNorm that closes the layer
    closing_gamma: Array  # [layer, d]  its scale
    hidden: Array  # [layer, token, d]  what the layer gives
    zeroed: Array  # [layer, zeroed token, token, d]  the same with one token's values set to 0


def bert_closing(
    model: Any, input_ids: Sequence[int], segment_ids: Sequence[int] | None = None
) -> Closing:
    """Everything that `bert_blocks` leaves out; the whole model runs for every layer and token."""
    model = _as_float64(model)
    layers = getattr(model, "bert", model).encoder.layer
    ids = {"input_ids": torch.tensor([[int(i) for i in input_ids]])}
    if segment_ids is not None:
        ids["token_type_ids"] = torch.tensor([[int(i) for i in segment_ids]])
    pre: list[Array] = []
    handles = [lay.output.LayerNorm.register_forward_pre_hook(_keep_input(pre)) for lay in layers]
    try:
        hidden = _hidden(model, ids)
    finally:
        for handle in handles:
            handle.remove()
    zeroed = [
        [
            _hidden_without(model, ids, lay.attention.self.value, j)[at]
            for j in range(len(input_ids))
        ]
        for at, lay in enumerate(layers)
    ]
    return Closing(
        beta=np.stack([_numpy(lay.attention.output.LayerNorm.bias) for lay in layers]),
        pre_closing=np.stack(pre),
        closing_gamma=np.stack([_numpy(lay.output.LayerNorm.weight) for lay in layers]),
        hidden=hidden,
        zeroed=np.array(zeroed),
    )


def layer_matrices(blocks: Mapping[str, Any], closing: Mapping[str, Any], method: str) -> Array:
    """[layer, query, key] contributions by one method, rows divided by their sums."""
    of_layer = _OF[method]
    return np.stack([_rows(of_layer(blocks, closing, at)) for at in range(len(blocks["x"]))])


def rollout(matrices: Array) -> Array:
    """[layer, query, key] what of each layer's output comes from each input token."""
    found = [matrices[0]]
    for matrix in matrices[1:]:
        found.append(matrix @ found[-1])
    return np.stack(found)


def shares(
    product: Array, cls: NDArray[np.bool_], sep: NDArray[np.bool_], stop: NDArray[np.bool_]
) -> dict[str, Array]:
    """How much of every token comes from each target, each source counted once, {target: [query]}.

    product  [query, key]; cls, sep, stop  [token] what the tokens are
    """
    n = len(product)
    names = ("self", "previous", "next", "cls", "sep", "punctuation", "other")
    found = {name: np.zeros(n) for name in names}
    for i in range(n):
        for j in range(n):
            near = {0: "self", -1: "previous", 1: "next"}.get(j - i)
            kind = "cls" if cls[j] else "sep" if sep[j] else "punctuation" if stop[j] else "other"
            found[near or kind][i] += product[i, j]
    return found


def _rows(matrix: Array) -> Array:
    return matrix / matrix.sum(axis=-1, keepdims=True)


def _with_residual(blocks: Mapping[str, Any], layer: int) -> Array:
    vectors = summed_vectors(blocks["attention"][layer], blocks["f"][layer])  # [query, key, d]
    for i, x in enumerate(blocks["x"][layer]):
        vectors[i, i] += x
    return vectors


def _normed(blocks: Mapping[str, Any], layer: int) -> Array:
    """[query, key, d] after attention, residual and LayerNorm, without β."""
    pre, gamma = blocks["pre_norm"][layer], blocks["gamma"][layer]
    return layer_norm_vectors(_with_residual(blocks, layer), pre, gamma, blocks["eps"])


def normed_whole(blocks: Mapping[str, Any], closing: Mapping[str, Any], layer: int) -> Array:
    """[query, d] what leaves the LayerNorm after attention, β included."""
    pre = blocks["pre_norm"][layer]
    s = np.sqrt(pre.var(axis=-1, keepdims=True) + blocks["eps"])
    return blocks["gamma"][layer] * (pre - pre.mean(-1, keepdims=True)) / s + closing["beta"][layer]


def _rollout(blocks: Mapping[str, Any], _closing: Mapping[str, Any], layer: int) -> Array:
    return blocks["attention"][layer].mean(axis=0) + np.eye(len(blocks["x"][layer]))


def _weighted_norm(blocks: Mapping[str, Any], _closing: Mapping[str, Any], layer: int) -> Array:
    vectors = summed_vectors(blocks["attention"][layer], blocks["f"][layer])
    return np.linalg.norm(vectors, axis=-1)


def _weighted_norm_residual(
    blocks: Mapping[str, Any], _closing: Mapping[str, Any], layer: int
) -> Array:
    return np.linalg.norm(_with_residual(blocks, layer), axis=-1)


def _globenc(blocks: Mapping[str, Any], closing: Mapping[str, Any], layer: int) -> Array:
    pre, gamma = closing["pre_closing"][layer], closing["closing_gamma"][layer]
    vectors = layer_norm_vectors(_normed(blocks, layer), pre, gamma, blocks["eps"])
    return np.linalg.norm(vectors, axis=-1)


def _alti(blocks: Mapping[str, Any], closing: Mapping[str, Any], layer: int) -> Array:
    y, vectors = normed_whole(blocks, closing, layer), _normed(blocks, layer)
    near = np.abs(y).sum(-1)[:, None] - np.abs(y[:, None] - vectors).sum(-1)
    return np.maximum(near, 0)


def _value_zeroing(_blocks: Mapping[str, Any], closing: Mapping[str, Any], layer: int) -> Array:
    whole, zeroed = closing["hidden"][layer], closing["zeroed"][layer]
    n = len(whole)
    changes = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            a, b = whole[i], zeroed[j, i]
            changes[i, j] = 1 - a @ b / np.sqrt((a @ a) * (b @ b))
    return changes


_OF: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any], int], Array]] = {
    "rollout": _rollout,
    "weighted_norm": _weighted_norm,
    "weighted_norm_residual": _weighted_norm_residual,
    "globenc": _globenc,
    "alti": _alti,
    "value_zeroing": _value_zeroing,
}


def _hidden(model: Any, ids: Mapping[str, torch.Tensor]) -> Array:
    """[layer, token, d] what every layer gives."""
    with torch.no_grad():
        states = model(**ids, output_hidden_states=True).hidden_states
    return np.stack([_numpy(state[0]) for state in states[1:]])


def _hidden_without(model: Any, ids: Mapping[str, torch.Tensor], value: Any, token: int) -> Array:
    """The same when one layer's value projection gives nothing for one token."""

    def zero(_module: Any, _args: Any, output: torch.Tensor) -> torch.Tensor:
        output = output.clone()
        output[:, token] = 0
        return output

    handle = value.register_forward_hook(zero)
    try:
        return _hidden(model, ids)
    finally:
        handle.remove()
