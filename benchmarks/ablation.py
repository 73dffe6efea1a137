"""How much faster than full forward passes are all heads and layers switched off in turn?

python -m benchmarks.ablation [--rounds N] [--threads N] [--tokens N] [--clock cpu]

On a random model of BERT-base shape with a classification head, 144 heads and 12 layers, inputs of
32 and of 128 tokens; one interleaved run, see `benchmarks.atlas`. Naive is one full pass for every
variant, in batches as large as the product's, measured on a few variants and scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from transformers import BertConfig, BertForSequenceClassification

from benchmarks.inputs import VOCABULARY, Inputs, fixed, twin
from benchmarks.timing import Row, interleave, options, table
from headscope.model import linears
from headscope.model.batch import Batch
from headscope.model.model import forward
from headscope.model.request import BATCH_TOKENS
from headscope.model.threads import threads_of
from headscope.model.variant_answers import (
    Way,
    answering,
    naive,
    small_batches,
)
from headscope.model.variants import StandIn, single_heads, whole_layers
from headscope.run.memory import keep_few_products, keep_freed_memory

MEASURED = 6  # variants of the naive way; each costs the same
STOCK, FAST = "naive, stock linears", "naive, fast linears"


def classifier(**shape: Any) -> BertForSequenceClassification:
    """A random BERT with a head for two classes that attends unevenly."""
    torch.manual_seed(0)
    network: Any = BertForSequenceClassification(BertConfig(**shape)).eval()
    for layer in network.bert.encoder.layer:
        for part in (layer.attention.self.query, layer.attention.self.key):
            part.weight.data *= 3
    found: BertForSequenceClassification = network
    return found


def pipelines(network: Any, inputs: Inputs, kind: str, stack: ExitStack) -> list[Row]:
    """Naive and shared, each with both kinds of linear maps."""
    fast = twin(network, "eager")
    stack.enter_context(linears.linears(fast, kind))
    config = network.config
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    variants = [*single_heads(layers, heads), *whole_layers(layers, heads)]
    few = variants[:: len(variants) // MEASURED][:MEASURED]
    share = (len(few) + 1) / (len(variants) + 1)
    small = small_batches(inputs.examples, variants, batch_tokens=BATCH_TOKENS)

    def plainly(run_on: Any) -> Callable[[], torch.Tensor]:
        def run() -> torch.Tensor:
            found = [naive(run_on, _batch(inputs, rows), few, StandIn()) for rows in inputs.rows]
            return torch.cat(found, 1)  # [variant + 1, example, output]

        return run

    def sharing(run_on: Any) -> Callable[[], torch.Tensor]:
        def run() -> torch.Tensor:
            with answering(run_on, Way("shared"), StandIn()) as answers:
                found = [answers(_batch(inputs, rows), variants) for rows in small]
            return torch.cat(found, 1)  # [variant + 1, example, output]

        return run

    wanted = {STOCK: 0.25} if kind == "onednn" else {}
    return [
        Row(STOCK, plainly(network), inputs.shown * share),
        Row(FAST, plainly(fast), inputs.shown * share),
        Row("shared prefix, stock linears", sharing(network), inputs.shown, {STOCK: 1 / 1.9}),
        Row("shared prefix, fast linears", sharing(fast), inputs.shown, wanted),
    ]


def _batch(inputs: Inputs, rows: list[int]) -> Batch:
    return Batch.of([inputs.examples[at] for at in rows], VOCABULARY, replicates=0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = options("ablation", __doc__, examples=None, rounds=3)
    parser.add_argument("--tokens", type=int, default=512, help="of all inputs together (512)")
    given = parser.parse_args(arguments)
    keep_freed_memory()
    keep_few_products()
    with threads_of(given.threads):
        network = classifier()
        kind = _fastest(network)
        print(f"fast linears: {kind}; {given.threads} threads, {given.rounds} rounds\n")
        for length in (32, 128):
            inputs = fixed(given.tokens // length, length=length)
            with ExitStack() as stack:
                rows = pipelines(network, inputs, kind, stack)
                interleave(rows, rounds=given.rounds, clock=given.clock)
            print(f"**{inputs.name}**\n\n{table(rows, stock=STOCK, fast=FAST)}\n", flush=True)


def _fastest(network: BertForSequenceClassification) -> str:
    batch = _batch(fixed(16), list(range(16)))

    def once() -> torch.Tensor:
        logits: torch.Tensor = forward(network, batch.input_ids, batch.mask).logits
        return logits

    return linears.choose(network, once)


if __name__ == "__main__":
    main()
