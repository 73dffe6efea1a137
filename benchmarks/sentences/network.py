"""What a model gives for one input: eager attention in float64, and vectors by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Look:
    """The maps of an input.

    maps   [layer, head, query, key]
    norms  [layer, head, key] ‖f(x)‖ of Kobayashi et al. (2020)
    """

    maps: Array
    norms: Array


class Network:
    """A folder's model in float64, with eager attention."""

    def __init__(self, folder: str | Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        network = AutoModel.from_pretrained(folder, attn_implementation="eager")
        self.network = network.double().eval()
        config = network.config
        self.layers, self.heads = config.num_hidden_layers, config.num_attention_heads
        encoder = getattr(network, "encoder", None)
        self.causal = encoder is None
        self.blocks = network.layers if encoder is None else [b.attention for b in encoder.layer]

    def look(self, ids: list[int], segments: list[int] | None = None) -> Look:
        given = {"input_ids": torch.tensor([ids])}
        if segments is not None and not self.causal:
            given["token_type_ids"] = torch.tensor([segments])
        kept: list[torch.Tensor] = []
        hooks = [
            self._value(block).register_forward_pre_hook(lambda _, a: kept.append(a[0][0]))
            for block in self.blocks
        ]
        try:
            with torch.no_grad():
                maps = self.network(**given, output_attentions=True).attentions
        finally:
            for hook in hooks:
                hook.remove()
        norms = [self._norms(*one) for one in zip(self.blocks, kept, strict=True)]
        return Look(np.stack([m[0].double().numpy() for m in maps]), np.stack(norms))

    def _value(self, block: Any) -> Any:
        return block.self_attn.v_proj if self.causal else block.self.value

    def value_output(self, block: Any) -> list[tuple[Array, Array, Array]]:
        """By head: W_V [d, dim], b_V [dim], W_O [dim, d]; heads of a group share their values."""
        value = self._value(block)
        output = block.self_attn.o_proj if self.causal else block.output.dense
        w_v, w_o = value.weight.detach().numpy(), output.weight.detach().numpy()
        b_v = np.zeros(len(w_v)) if value.bias is None else value.bias.detach().numpy()
        size = w_o.shape[1] // self.heads
        shared = self.heads * size // len(w_v)  # heads that read the same values
        parts = []
        for head in range(self.heads):
            own, rows = slice(head * size, (head + 1) * size), head // shared * size
            into = slice(rows, rows + size)
            parts.append((w_v[into].T, b_v[into], w_o[:, own].T))
        return parts

    def _norms(self, block: Any, x: torch.Tensor) -> Array:
        """[head, token]"""
        vectors = [(x.numpy() @ w_v + b_v) @ w_o for w_v, b_v, w_o in self.value_output(block)]
        return np.stack([np.linalg.norm(one, axis=-1) for one in vectors])
