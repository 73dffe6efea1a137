"""How much does a token's output of a layer change when the value of another token is taken away?

Mohebbi et al. (2023): the value vectors of token j are set to 0 in all heads of one layer, whose
input stays the original one and whose attention weights stay; c_ij is 1 - cos of token i's output
of the whole layer with and without them. The layer runs once for every token, several at a time.
"""

from __future__ import annotations

import torch

from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.model.replay_layer import run_again

MOST_NUMBERS = 1 << 24  # of weights and hidden numbers in one go: 64 MiB in float32
_WIDTHS = 10  # numbers of a token alive at once, in widths of the model; feed-forwards have 4


def value_zeroing(layer: LayerView, batch: Batch) -> torch.Tensor:
    """[example, query, key] 1 - cos, 0 … 2; 0 where a query attends to the key in no head."""
    assert layer.values is not None
    changes = torch.zeros_like(layer.attention[:, 0])  # [example, query, key]
    for example, tokens in enumerate(batch.lengths.tolist()):
        values = layer.values[example]  # [head, key, dim]
        whole = _direction(run_again(layer, example=example, values=values[None]))
        at_once = _at_once(layer)
        for start in range(0, tokens, at_once):
            zeroed = _zeroed(values, range(start, min(start + at_once, tokens)))
            other = _direction(run_again(layer, example=example, values=zeroed))
            # ½‖a - b‖² of unit vectors is 1 - cos, without taking two numbers near 1 apart.
            gone = (other - whole).square().sum(-1) / 2  # [copy, query]
            changes[example, :, start : start + len(zeroed)] = gone.T.to(changes.dtype)
    return changes.where(layer.attention.amax(1) > 0, 0.0)


def _zeroed(values: torch.Tensor, tokens: range) -> torch.Tensor:
    """[copy, head, key, dim] copies of the values, each with one of the tokens set to 0."""
    copies = values.repeat(len(tokens), 1, 1, 1)  # [copy, head, key, dim]
    for copy, token in enumerate(tokens):
        copies[copy, :, token] = 0
    return copies


def _direction(hidden: torch.Tensor) -> torch.Tensor:
    """[copy, token, model] unit vectors, wide enough for small differences."""
    return torch.nn.functional.normalize(hidden.double(), dim=-1)


def _at_once(layer: LayerView) -> int:
    """How many copies of one example fit into MOST_NUMBERS."""
    _, heads, tokens, _ = layer.attention.shape
    assert layer.values is not None
    width = heads * layer.values.shape[-1]
    return max(1, MOST_NUMBERS // (tokens * (heads * tokens + _WIDTHS * width)))
