"""Circuits as the Mechanistic Interpretability Benchmark runs them: by edges, with plain hooks.

A node outside of the circuit has no edge to any other, so each reader of the stream (attention, the
feed-forward layer, the logits) gets what the node gave in the corrupted prompt, less what it gives
now. The benchmark corrects the input of each reader in this way; here the reader's norm is hooked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

PARTS = {  # names of: embedding, layers, attention's norm, W_O, feed-forward norm, that, last norm
    "llama": (
        "model.embed_tokens",
        "model.layers",
        "input_layernorm",
        "self_attn.o_proj",
        "post_attention_layernorm",
        "mlp",
        "model.norm",
    ),
    "gpt2": (
        "transformer.wte",
        "transformer.h",
        "ln_1",
        "attn.c_proj",
        "ln_2",
        "mlp",
        "transformer.ln_f",
    ),
}
SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)


class ByEdges:
    """A network whose readers can be given a corrupted prompt's part of some nodes."""

    def __init__(self, network: Any, heads: int) -> None:
        self.network, self.heads = network, heads
        family = network.config.model_type
        embed, layers, ln1, w_o, ln2, mlp, last = PARTS[family]
        at = network.get_submodule
        self.embed, self.layers, self.last = at(embed), at(layers), at(last)
        self.ln1, self.w_o, self.ln2, self.mlp = (
            [layer.get_submodule(name) for layer in self.layers] for name in (ln1, w_o, ln2, mlp)
        )

    def written(self, layer: int, mixed: torch.Tensor) -> list[torch.Tensor]:
        """By head [token, model] what it adds to the stream, without biases."""
        weight = self.w_o[layer].weight.detach()
        by_input = weight if self.network.config.model_type == "gpt2" else weight.T
        parts = zip(mixed.chunk(self.heads, -1), by_input.chunk(self.heads), strict=True)
        return [z @ w for z, w in parts]

    def run(self, ids: Any, ends: tuple[int, int], out: Any = (), instead: Any = None):
        """The logit difference, and what each node gave; nodes `out` give what `instead` has."""
        now: list[torch.Tensor] = []

        def corrected(_module: Any, args: Any) -> Any:
            gone = [at for at in out if at < len(now)]
            return (args[0] + sum(instead[at] - now[at] for at in gone), *args[1:])

        def heads_at(layer: int):
            return lambda _m, args: now.extend(self.written(layer, args[0][0]))

        hooks = [self.embed.register_forward_hook(lambda _m, _a, gave: now.append(gave[0]))]
        for layer in range(len(self.layers)):
            hooks += [
                self.ln1[layer].register_forward_pre_hook(corrected),
                self.w_o[layer].register_forward_pre_hook(heads_at(layer)),
                self.ln2[layer].register_forward_pre_hook(corrected),
                self.mlp[layer].register_forward_hook(lambda _m, _a, gave: now.append(gave[0])),
            ]
        hooks.append(self.last.register_forward_pre_hook(corrected))
        with torch.no_grad():
            logits = self.network(input_ids=torch.as_tensor(ids)[None]).logits[0, -1]
        for hook in hooks:
            hook.remove()
        return float(logits[ends[0]] - logits[ends[1]]), now


def areas_of(network: ByEdges, prompts: list[Any], scores: Any, *, absolute: bool):
    """CPR, CMD and faithfulness by share of nodes; prompts are (clean, corrupted, ends)."""
    nodes = len(scores)
    order = np.argsort(-(np.abs(scores) if absolute else np.asarray(scores)), kind="stable")
    source = [network.run(other, ends)[1] for _, other, ends in prompts]

    def mean_without(out: Any) -> float:
        pairs = zip(prompts, source, strict=True)
        return float(
            np.mean([network.run(one, ends, out, gave)[0] for (one, _, ends), gave in pairs])
        )

    whole, empty = mean_without([]), mean_without(range(nodes))
    faithful = []
    for share in SHARES:
        stay = set(order[: int(share * nodes)].tolist())
        told = mean_without([at for at in range(nodes) if at not in stay])
        faithful.append((told - empty) / (whole - empty))
    below = beside = 0.0
    for at in range(len(SHARES) - 1):
        width = SHARES[at + 1] - SHARES[at]
        one, other = faithful[at : at + 2]
        below += width * (one + other) / 2
        beside += width * (abs(1 - one) + abs(1 - other)) / 2
    return below, beside, faithful
