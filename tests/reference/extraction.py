"""What does a model compute inside its attention blocks for one input, in float64?

One unpadded example at a time, stock eager attention, so that batching, padding and the product's
own attention function play no part.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Blocks(TypedDict):
    """The attention blocks of one example (a dict of arrays)."""

    attention: Array  # [layer, head, query, key]  after softmax
    f: Array  # [layer, head, token, d]  (x W_V + b_V) W_O of each head; b_O is not in it
    x: Array  # [layer, token, d]  input of the attention block
    pre_norm: Array  # [layer, token, d]  input of its LayerNorm: x + sum_h sum_j alpha f + b_O
    gamma: Array  # [layer, d]  scale of that LayerNorm
    eps: float  # its epsilon
    output_bias: Array  # [layer, d]  b_O


def float64_copy(model: Any) -> Any:
    """A deep copy of a transformers model in float64, eager attention, dropout off."""
    double = copy.deepcopy(model).double().eval()
    double.set_attn_implementation("eager")
    return double


def attention_maps(
    model: Any,
    input_ids: Sequence[int],
    segment_ids: Sequence[int] | None = None,
    *,
    field: str = "attentions",
    **inputs: Any,
) -> Array:
    """Attention of any family that has eager attention, [layer, head, query, key].

    model   what `float64_copy` gave (another model is copied first, which is slow when repeated)
    field   "attentions"; or "encoder_attentions", "decoder_attentions", "cross_attentions"
    inputs  further batched tensors for the model, e.g. decoder_input_ids [1, token]

    Llama-like families and ModernBERT take their softmax in float32 whatever the model's dtype:
    there the maps, and their row sums, are only good to about 2e-7.
    """
    ids = {"input_ids": torch.tensor([[int(i) for i in input_ids]])}
    if segment_ids is not None:
        ids["token_type_ids"] = torch.tensor([[int(i) for i in segment_ids]])
    with torch.no_grad():
        output = _as_float64(model)(**ids, output_attentions=True, **inputs)
    maps = [layer[0].numpy() for layer in getattr(output, field)]
    return np.stack(maps).astype(np.float64)  # [layer, head, query, key]


def bert_blocks(
    model: Any, input_ids: Sequence[int], segment_ids: Sequence[int] | None = None
) -> Blocks:
    """Everything the norm analyses need from a BertModel (or a model with one as `.bert`).

    input_ids, segment_ids   [token], special tokens included, unpadded
    """
    model = _as_float64(model)
    blocks = [layer.attention for layer in getattr(model, "bert", model).encoder.layer]
    norms = [block.output.LayerNorm for block in blocks]
    x: list[Array] = []
    pre_norm: list[Array] = []
    handles = [block.register_forward_pre_hook(_keep_input(x)) for block in blocks]
    handles += [norm.register_forward_pre_hook(_keep_input(pre_norm)) for norm in norms]
    try:
        attention = attention_maps(model, input_ids, segment_ids)
    finally:
        for handle in handles:
            handle.remove()
    return Blocks(
        attention=attention,
        f=np.stack([_value_vectors(*one) for one in zip(blocks, x, strict=True)]),
        x=np.stack(x),
        pre_norm=np.stack(pre_norm),
        gamma=np.stack([_numpy(norm.weight) for norm in norms]),
        eps=float(norms[0].eps),
        output_bias=np.stack([_numpy(block.output.dense.bias) for block in blocks]),
    )


def _value_vectors(block: Any, x: Array) -> Array:
    """f^h(x) = (x W_V^h + b_V^h) W_O^h of every head, [head, token, d] (Kobayashi et al. 2020)."""
    width = block.self.attention_head_size
    w_v, b_v = _numpy(block.self.value.weight), _numpy(block.self.value.bias)
    w_o = _numpy(block.output.dense.weight)  # torch keeps weights as [out, in]
    f = []
    for h in range(block.self.num_attention_heads):
        rows = slice(h * width, (h + 1) * width)
        f.append((x @ w_v[rows].T + b_v[rows]) @ w_o[:, rows].T)  # [token, d]
    return np.stack(f)  # [head, token, d]


def _keep_input(kept: list[Array]) -> Callable[[Any, tuple[torch.Tensor, ...]], None]:
    def hook(module: Any, args: tuple[torch.Tensor, ...]) -> None:
        kept.append(_numpy(args[0][0]))  # [token, d]

    return hook


def _as_float64(model: Any) -> Any:
    ready = model.dtype == torch.float64 and model.config._attn_implementation == "eager"
    return model if ready and not model.training else float64_copy(model)


def _numpy(tensor: torch.Tensor) -> Array:
    return tensor.detach().numpy().astype(np.float64)  # astype copies
