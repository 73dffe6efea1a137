"""What does following information through the layers cost, beside the other analyses?

python -m benchmarks.flow [--rounds N] [--threads N] [--examples N] [--clock cpu]

On a random model of BERT-base shape, inputs of 128 tokens and sentences of treebank lengths; one
interleaved run, see `benchmarks.atlas`. Value zeroing is measured on two inputs of 128 tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import torch

from benchmarks.inputs import Inputs, bert, fixed, treebank
from benchmarks.pipelines import MIXING, Streamed, bare, fastest
from benchmarks.timing import Row, interleave, options, table
from headscope.analyses.flow import METHODS
from headscope.analyses.flow.measure import DEFAULT
from headscope.model.linears import linears
from headscope.model.threads import threads_of
from headscope.run.memory import keep_few_products, keep_freed_memory

USUAL = "surface + entropy + norms + mixing"
FEW = 2


def pipelines(inputs: Inputs, few: Inputs, stack: ExitStack) -> list[Row]:
    """A bare forward pass, each method by itself, and the usual methods beside other analyses."""
    network = bert()
    network.set_attn_implementation("sdpa")
    with torch.inference_mode():
        kind = fastest(network, inputs)
    stack.enter_context(linears(network, kind))
    wanted = {method: {"flow": {"methods": method}} for method in METHODS}
    slow = wanted.pop("value_zeroing")
    wanted |= {USUAL: MIXING, "… + flow": {**MIXING, "flow": {"methods": ",".join(DEFAULT)}}}
    rows = [Row("B", lambda: bare(network, inputs), inputs.shown)]
    rows += [
        Row(name, Streamed(network, inputs, options), inputs.shown)
        for name, options in wanted.items()
    ]
    run = Streamed(network, few, slow)
    return [*rows, Row(f"value_zeroing (on {FEW} inputs, scaled)", run, few.shown, rounds=1)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the tables."""
    given = options("flow", __doc__, examples=16, threads=None).parse_args(arguments)
    keep_freed_memory()
    keep_few_products()
    for inputs in (fixed(given.examples), treebank(given.examples * 6)):
        with threads_of(given.threads), ExitStack() as stack:
            rows = pipelines(inputs, inputs.first(FEW), stack)
            interleave(rows, rounds=given.rounds, clock=given.clock)
        print(f"{inputs.name}: {len(inputs.examples)} inputs, {inputs.shown:,} tokens\n")
        print(table(rows, stock=USUAL, fast="B"), "\n", flush=True)


if __name__ == "__main__":
    main()
