"""What do the gradients of all attention maps cost, beside a bare forward pass?

python -m benchmarks.gradients [--rounds N] [--threads N] [--examples N] [--clock cpu]

On a random model of BERT-base shape with a classification head and inputs of 128 tokens: the
forward and the backward pass that give the mean |∂loss/∂α| of every head. Beside headscope's own
(streaming: at most 2.3 × B is wanted) stand what one writes by hand: `retain_grad` on the maps of
an eager model that is ready to be trained, and `autograd.grad` with frozen weights. One interleaved
run, see `benchmarks.atlas`; all must give the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.ablation import classifier
from benchmarks.inputs import Inputs, fixed, twin
from benchmarks.timing import Row, interleave, options, table
from headscope.core.head_names import HeadNames
from headscope.experiments.importance.gradients import Streaming
from headscope.experiments.importance.result import GradientSums
from headscope.model import linears
from headscope.model.model import forward, run_network
from headscope.model.threads import threads_of
from headscope.run.memory import keep_few_products, keep_freed_memory

STREAMING = "streaming, with sums by category"
AGREE = 1e-4  # relative, of float32 sums


@dataclass
class Means:
    """A way to get [layer, head] the mean |∂loss/∂α|; the last ones are kept."""

    network: Any
    inputs: Inputs
    found: np.ndarray[Any, Any] | None = None

    def __call__(self) -> None:
        parts = [self.of(rows) for rows in self.inputs.rows]
        self.found = np.mean(parts, axis=0)  # batches are of one size

    def of(self, rows: list[int]) -> np.ndarray[Any, Any]:
        raise NotImplementedError

    def loss(self, logits: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(logits, torch.arange(len(logits)) % 2, reduction="sum")


class Streamed(Means):
    def of(self, rows: list[int]) -> np.ndarray[Any, Any]:
        batch, config = self.inputs.batch(rows), self.network.config
        gather = GradientSums(
            batch, layers=config.num_hidden_layers, heads=config.num_attention_heads
        )
        with Streaming(self.network, gather, HeadNames(())) as stream:
            answer = run_network(self.network, batch.input_ids, batch.mask, batch.segment_ids)
            stream.backward(self.loss(answer.logits))
        return gather.magnitude.sum((0, 3)) / gather.edges.sum((0, 2))[:, None]


class Retained(Means):
    """As one would: everything takes part, the maps keep their gradients."""

    def of(self, rows: list[int]) -> np.ndarray[Any, Any]:
        batch = self.inputs.batch(rows)
        self.network.zero_grad()
        answer = self.network(
            batch.input_ids, attention_mask=batch.mask.long(), output_attentions=True
        )
        for maps in answer.attentions:
            maps.retain_grad()
        self.loss(answer.logits).backward()
        return _means([maps.grad for maps in answer.attentions])


class Frozen(Means):
    """Weights that are not trained ask for no gradient."""

    def of(self, rows: list[int]) -> np.ndarray[Any, Any]:
        batch = self.inputs.batch(rows)
        embedded = self.network.bert.embeddings.word_embeddings(batch.input_ids)
        answer = self.network(
            inputs_embeds=embedded.detach().requires_grad_(),
            attention_mask=batch.mask.long(),
            output_attentions=True,
        )
        return _means(torch.autograd.grad(self.loss(answer.logits), answer.attentions))


def _means(gradients: Sequence[torch.Tensor]) -> np.ndarray[Any, Any]:
    return np.stack([g.abs().mean((0, 2, 3)).numpy() for g in gradients])


def pipelines(inputs: Inputs, stack: ExitStack, **shape: Any) -> tuple[list[Row], list[Means]]:
    """Bare forward passes, and three ways to the same numbers."""
    network = classifier(**shape)
    stock, eager, fast = (twin(network, way) for way in ("sdpa", "eager", "sdpa"))  # type: ignore[arg-type]
    cold: Any = twin(network, "eager")  # type: ignore[arg-type]
    for one in (cold, fast):
        for module in one.modules():
            for name, parameter in list(module._parameters.items()):
                if parameter is not None:
                    module._parameters[name] = torch.nn.Parameter(parameter.data, False)

    def bare(one: Any) -> None:
        for rows in inputs.rows:
            batch = inputs.batch(rows)
            forward(one, batch.input_ids, batch.mask, batch.segment_ids)

    kind = linears.choose(fast, lambda: forward(fast, *_first(inputs)).logits)
    stack.enter_context(linears.linears(fast, kind))
    ways: list[Means] = [
        Streamed(fast, inputs),
        Retained(eager, inputs),
        Frozen(cold, inputs),
    ]
    rows = [
        Row("A", lambda: bare(stock), inputs.shown),
        Row("B", lambda: bare(fast), inputs.shown),
        Row(STREAMING, ways[0], inputs.shown, {"B": 2.3}),
        Row("retain_grad, weights ask too", ways[1], inputs.shown),
        Row("autograd.grad, weights frozen", ways[2], inputs.shown),
    ]
    return rows, ways


def disagreement(ways: Sequence[Means]) -> float:
    """The largest relative difference of any head's mean between the ways."""
    first = ways[0].found
    assert first is not None
    gaps = [np.abs(first / way.found - 1).max() for way in ways[1:] if way.found is not None]
    return float(max(gaps))


def _first(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
    batch = inputs.batch(inputs.rows[0])
    return batch.input_ids, batch.mask


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, and how far the ways agree."""
    given = options("gradients", __doc__, examples=8).parse_args(arguments)
    keep_freed_memory()
    keep_few_products()
    with threads_of(given.threads), ExitStack() as stack:
        inputs = fixed(given.examples)
        rows, ways = pipelines(inputs, stack)
        interleave(rows, rounds=given.rounds, clock=given.clock)
    print(f"{len(inputs.examples)} inputs, {inputs.shown:,} tokens\n")
    print(table(rows))
    print(f"\nlargest relative difference of a head’s mean: {disagreement(ways):.1e}")


if __name__ == "__main__":
    main()
