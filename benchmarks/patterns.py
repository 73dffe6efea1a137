"""What does telling the classes of all maps cost, beside a bare forward pass?

python -m benchmarks.patterns [--rounds N] [--threads N] [--examples N] [--clock cpu]

On a random model of BERT-base shape and inputs of 128 tokens: 144 maps each. One interleaved run,
see `benchmarks.atlas`; at most 1.3 × B is wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import torch

from benchmarks.inputs import Inputs, bert, fixed
from benchmarks.pipelines import Streamed, bare, fastest
from benchmarks.timing import Row, interleave, options, table
from headscope.model.linears import linears
from headscope.model.threads import threads_of
from headscope.run.memory import keep_few_products, keep_freed_memory

SURFACE = "surface + entropy"


def pipelines(inputs: Inputs, stack: ExitStack) -> list[Row]:
    """A bare forward pass, `patterns` alone, and beside two other analyses."""
    network = bert()
    network.set_attn_implementation("sdpa")
    with torch.inference_mode():
        kind = fastest(network, inputs)
    stack.enter_context(linears(network, kind))
    both: dict[str, dict[str, object]] = {"surface": {}, "entropy": {}}
    wanted = {"patterns": {"patterns": {}}, SURFACE: both, "… + patterns": {**both, "patterns": {}}}
    limits = {"patterns": {"B": 1.3}}
    return [
        Row("B", lambda: bare(network, inputs), inputs.shown),
        *(
            Row(name, Streamed(network, inputs, options), inputs.shown, limits.get(name, {}))
            for name, options in wanted.items()
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    given = options("patterns", __doc__, examples=64, threads=None).parse_args(arguments)
    keep_freed_memory()
    keep_few_products()
    with threads_of(given.threads), ExitStack() as stack:
        inputs = fixed(given.examples)
        rows = pipelines(inputs, stack)
        interleave(rows, rounds=given.rounds, clock=given.clock)
    print(f"{len(inputs.examples)} inputs, {inputs.shown:,} tokens\n")
    print(table(rows, stock=SURFACE, fast="B"))


if __name__ == "__main__":
    main()
