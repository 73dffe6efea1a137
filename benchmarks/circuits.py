"""How much faster than one pass per head is patching all heads of a decoder?

python -m benchmarks.circuits [--rounds N] [--threads N] [--clock cpu]

On a random decoder of GPT-2's shape, 12 × 12 heads, with pairs of prompts of 16 tokens that differ
in the last six, as IOI prompts do; one interleaved run, see `benchmarks.atlas`. One pass per head
is transformers' own, with a hook on the input of W_O and all logits; it is measured on a few heads,
and scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.inputs import VOCABULARY, twin
from benchmarks.timing import Row, interleave, options, table
from headscope.corpus.document import Example
from headscope.experiments.circuits.patching import patched_differences
from headscope.experiments.circuits.prompts import Prompt, PromptSet
from headscope.experiments.importance.objectives import LanguageModel
from headscope.model.model import Model
from headscope.run.compute import threads_of

ONE = "one pass per head"
TOKENS, COMMON = 16, 10
MEASURED = 6  # heads of one pass each


def decoder(**shape: Any) -> GPT2LMHeadModel:
    """A random GPT-2."""
    torch.manual_seed(0)
    network: GPT2LMHeadModel = GPT2LMHeadModel(GPT2Config(**shape)).eval()
    return network


def pairs(count: int, *, words: int) -> PromptSet:
    """Random prompts, corrupted in their last tokens."""
    rng = np.random.default_rng(0)
    clean = rng.integers(1, words, (count, TOKENS))
    other = np.concatenate([clean[:, :COMMON], rng.integers(1, words, (count, 6))], 1)
    sides = [
        [Example(str(at), str(at), row, np.zeros_like(row), row < 0) for at, row in enumerate(side)]
        for side in (clean, other)
    ]
    answers = [np.array([[one]]) for one in (1, 2)]
    right, wrong = ([answer[0]] * count for answer in answers)
    return PromptSet("random", (Prompt("", "", ""),) * count, *sides, right, wrong)


def each_by_itself(network: Any, asked: PromptSet) -> Callable[[], list[float]]:
    """A pass of all prompts for each of a few heads."""
    clean, other = (
        torch.from_numpy(np.stack([one.input_ids for one in side]))
        for side in (asked.clean, asked.corrupted)
    )
    layers, size = network.transformer.h, network.config.n_embd // network.config.n_head

    def run() -> list[float]:
        kept: list[torch.Tensor] = []
        hooks = [
            layer.attn.c_proj.register_forward_pre_hook(lambda _, args: kept.append(args[0]))
            for layer in layers
        ]
        found = []
        with torch.inference_mode():
            network(input_ids=clean)
            for hook in hooks:
                hook.remove()
            heads = network.config.n_head
            for unit in np.linspace(0, len(layers) * heads - 1, MEASURED).astype(int).tolist():
                layer, head = divmod(unit, heads)
                own = slice(head * size, (head + 1) * size)

                def put(
                    _module: Any, args: Any, own: slice = own, z: torch.Tensor = kept[layer]
                ) -> Any:
                    given = args[0].clone()
                    given[..., own] = z[..., own]
                    return (given,)

                hook = layers[layer].attn.c_proj.register_forward_pre_hook(put)
                logits = network(input_ids=other).logits[:, -1]
                hook.remove()
                found.append(float((logits[:, 1] - logits[:, 2]).mean()))
        return found

    return run


def rows(network: Any, asked: PromptSet) -> list[Row]:
    """One pass per head, and ours."""
    tokens = sum(map(len, asked.clean))
    heads = network.config.n_layer * network.config.n_head
    plain = twin(network, "eager")
    model = Model(network, None, "random", "", "")
    vars(model)["vocabulary"] = VOCABULARY  # its inputs need no tokenizer
    language = LanguageModel(model, "causal")

    def ours() -> Any:
        return patched_differences(
            language, asked.clean, asked.corrupted, asked, positions=False, batch_tokens=2048
        )

    return [
        Row(ONE, each_by_itself(plain, asked), tokens * (MEASURED + 1) / (heads + 1)),
        Row("all heads of a layer together", ours, tokens, {ONE: 0.25}),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    given = options("circuits", __doc__, examples=None, rounds=3).parse_args(arguments)
    with threads_of(given.threads):
        network = decoder()
        for count in (1, 8):
            asked = pairs(count, words=network.config.vocab_size)
            timed = rows(network, asked)
            interleave(timed, rounds=given.rounds, clock=given.clock)
            print(
                f"**{count} pairs of {TOKENS} tokens**\n\n{table(timed, stock=ONE, fast=ONE)}\n",
                flush=True,
            )


if __name__ == "__main__":
    main()
