"""How much slower than a bare forward pass are headscope's analyses, and the papers' own code?

python -m benchmarks.atlas [--quick] [--rounds N] [--threads N] [--examples N] [--json FILE]

A   the stock transformers forward pass (sdpa attention), nothing kept
B   the same with the fastest linear maps that this CPU has, stock ones or oneDNN's
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import torch
import transformers

from benchmarks import papers
from benchmarks.inputs import FULL, Inputs, bert, fixed, treebank, twin
from benchmarks.pipelines import (
    ALL_QUERIES,
    BASIC,
    EVERYTHING,
    LAYER,
    MIXING,
    Streamed,
    bare,
    bare_padded,
    fastest,
    fused_gelu,
)
from benchmarks.timing import Row, interleave, options, record, table
from headscope.model.linears import linears
from headscope.model.threads import threads_of
from headscope.run.memory import keep_few_products, keep_freed_memory

TREEBANK_PER_FIXED = 8  # sentences for each segment of 128 tokens: enough for several batches
SLOW_HEADS = 4  # of the half-precision loop, which takes minutes for all
SLOW_ROUNDS = 2


class Bench:
    """The networks, all with the same weights, and the rows of a table."""

    def __init__(self, stack: ExitStack, folder: Path, kind: str | None = None) -> None:
        self.stock = bert()
        self.stock.set_attn_implementation("sdpa")
        self.eager = twin(self.stock, "eager")
        self.eager.config.output_attentions = True
        self.fast, self.fused = twin(self.stock, "sdpa"), twin(self.stock, "sdpa")
        self.file = folder / "attention.pickle"
        with torch.inference_mode():
            self.kind = kind or fastest(self.fast, fixed(16))
        stack.enter_context(linears(self.fast, self.kind))
        if self.kind == "onednn":
            stack.enter_context(fused_gelu(self.fused))
            stack.enter_context(linears(self.fused, "onednn"))

    def rows(self, inputs: Inputs, *, few: Inputs) -> list[Row]:
        """All pipelines; the papers' on a few inputs."""
        n = inputs.shown
        rows = [Row("A", lambda: bare(self.stock, inputs), n)]
        if inputs.padded < FULL * len(inputs.examples):
            some = Inputs(inputs.name, inputs.examples[::8], [])
            rows.append(
                Row(
                    "A, padded to 128 (an eighth of the inputs)",
                    lambda: bare_padded(self.stock, some),
                    sum(map(len, some.examples)),
                )
            )
        rows.append(Row("B", lambda: bare(self.fast, inputs), n))
        if self.kind == "onednn":
            rows.append(Row("B + gelu fused", lambda: bare(self.fused, inputs), n))
        return rows + self._ours(inputs) + self._papers(inputs, few)

    def _ours(self, inputs: Inputs) -> list[Row]:
        # 0.6 × A was set for CPUs on which B takes about 0.47 A.
        basic = {"B": 1.10} | ({"A": 0.60} if self.kind == "onednn" else {})
        ours = {
            "surface + entropy + norms": (BASIC, basic),
            "… + layer-level norms": (LAYER, {"B": 1.25}),
            "… + mixing": (MIXING, {}),
            "everything: … + all-pairs divergence": (EVERYTHING, {"B": 1.50}),
            "everything, all queries": (ALL_QUERIES, {}),
        }
        return [
            Row(name, Streamed(self.fast, inputs, options), inputs.shown, limits)
            for name, (options, limits) in ours.items()
        ]

    def _papers(self, inputs: Inputs, few: Inputs) -> list[Row]:
        """On a few inputs, in few rounds: what takes many times as long needs no digits."""
        middle = Inputs(inputs.name, inputs.examples, inputs.rows[len(inputs.rows) // 2 :][:1])
        half = [papers.maps_of(self.eager, few)[0].astype(np.float16)]
        share = SLOW_HEADS / len(half[0])

        def extract_and_average() -> None:
            papers.extract(self.eager, middle, self.file)
            papers.average(self.file)

        # name: (run, tokens)
        slow = {
            f"maps to fp16 pickle, then averages and entropies (on {_count(middle)}, scaled)": (
                extract_and_average,
                middle.shown,
            ),
            f"norms through (heads, T, T, d) (on {_count(few)}, scaled)": (
                lambda: papers.norms(self.eager, few),
                few.shown,
            ),
            f"all-pairs JS in a numpy loop, fp32 (on {_count(few)}, scaled)": (
                lambda: papers.divergences(papers.maps_of(self.eager, few)),
                few.shown,
            ),
            f"the loop alone in fp16, as stored (on 1 input, {SLOW_HEADS} of {len(half[0])} heads, "
            "scaled)": (
                lambda: papers.divergences(half, heads=SLOW_HEADS),
                half[0].shape[-1] * share,
            ),
        }
        return [Row(f"papers: {k}", run, n, rounds=SLOW_ROUNDS) for k, (run, n) in slow.items()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables and keep them."""
    given = _parse(arguments)
    kept = keep_freed_memory()
    keep_few_products()
    found: dict[str, object] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        threads_of(given.threads),
        ExitStack() as stack,
    ):
        bench = Bench(stack, Path(folder))
        print(_conditions(given, bench.kind, kept))
        for inputs, count in (
            (fixed(given.examples), 1),
            (treebank(given.examples * TREEBANK_PER_FIXED), 8),
        ):
            rows = bench.rows(inputs, few=inputs.first(count))
            interleave(rows, rounds=given.rounds, clock=given.clock)
            print(f"\n**{inputs.name}**: {_size(inputs)}\n\n{table(rows)}", flush=True)
            found[inputs.name] = record(rows)
    if given.json is not None:
        conditions = _conditions(given, bench.kind, kept)
        given.json.write_text(json.dumps({"conditions": conditions, **found}, indent=2))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser = options("atlas", __doc__, examples=32, threads=cores or 1)
    parser.add_argument("--quick", action="store_true", help="3 rounds, 16 examples")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all timings")
    given = parser.parse_args(arguments)
    if given.quick:
        given.rounds, given.examples = 3, 16
    return given


def _conditions(given: argparse.Namespace, kind: str, kept: bool) -> str:
    freed = "kept by the process, for all pipelines alike" if kept else "given back to the system"
    return (
        f"BERT-base shape, random weights, float32; linear maps of B: {kind}; {given.threads} "
        f"threads of torch, numpy's BLAS with one; {given.rounds} interleaved rounds, "
        f"{given.clock} time, medians of the ratios within a round; freed memory is {freed}. torch "
        f"{torch.__version__}, transformers {transformers.__version__}, {_processor()}."
    )


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _count(inputs: Inputs) -> str:
    count = sum(map(len, inputs.rows))
    return f"{count} input{'s' if count > 1 else ''}"


def _size(inputs: Inputs) -> str:
    share = 1 - inputs.shown / inputs.padded
    return (
        f"{len(inputs.examples)} inputs, {inputs.shown:,} tokens in {len(inputs.rows)} batches "
        f"sorted by length, {share:.0%} padding"
    )


if __name__ == "__main__":
    main()
