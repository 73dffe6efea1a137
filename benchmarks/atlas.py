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
from benchmarks.inputs import Inputs, bert, fixed, treebank, twin
from benchmarks.pipelines import (
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
from benchmarks.timing import CLOCKS, Row, interleave, record, table
from headscope.engine.compute import threads_of
from headscope.engine.memory import keep_freed_memory
from headscope.linears import linears

TREEBANK_PER_FIXED = 16  # sentences for each segment of 128 tokens: enough for several batches
SLOW_HEADS = 12  # of the half-precision loop, which takes minutes for all


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

    def rows(self, inputs: Inputs, *, slow: Inputs) -> list[Row]:
        """All pipelines; the slowest on a few examples."""
        n = inputs.tokens
        rows = [Row("A", lambda: bare(self.stock, inputs), n)]
        if inputs.padded < 100 * len(inputs.examples):
            some = Inputs(inputs.name, inputs.examples[::8], [])
            rows.append(Row(
                "A, padded to 128 (an eighth of the inputs)",
                lambda: bare_padded(self.stock, some), some.tokens,
            ))  # fmt: skip
        rows.append(Row("B", lambda: bare(self.fast, inputs), n))
        if self.kind == "onednn":
            rows.append(Row("B + gelu fused", lambda: bare(self.fused, inputs), n))
        return rows + self._ours(inputs) + self._papers(inputs, slow)

    def _ours(self, inputs: Inputs) -> list[Row]:
        # 0.6 × A was set for CPUs on which B takes about 0.47 A.
        basic = {"B": 1.10} | ({"A": 0.60} if self.kind == "onednn" else {})
        ours = {
            "surface + entropy + norms": (BASIC, basic),
            "… + layer-level norms": (LAYER, {"B": 1.25}),
            "… + mixing": (MIXING, {}),
            "everything: … + all-pairs divergence": (EVERYTHING, {"B": 1.50}),
        }
        return [
            Row(name, Streamed(self.fast, inputs, options), inputs.tokens, limits)
            for name, (options, limits) in ours.items()
        ]

    def _papers(self, inputs: Inputs, slow: Inputs) -> list[Row]:
        def extract_and_average() -> None:
            papers.extract(self.eager, inputs, self.file)
            papers.average(self.file)

        share = SLOW_HEADS / (self.stock.config.num_hidden_layers * 12)
        some = f"({len(slow.examples)} of the inputs, scaled)"
        return [
            Row("papers: maps to fp16 pickle, then averages, entropies", extract_and_average,
                inputs.tokens),
            Row(f"papers: norms through (heads, T, T, d) {some}",
                lambda: papers.norms(self.eager, slow), slow.tokens),
            Row(f"papers: all-pairs JS, numpy loop, fp32 {some}",
                lambda: papers.divergences(self.eager, slow), slow.tokens),
            Row(f"papers: the same in fp16, as stored ({SLOW_HEADS} of 144 heads, scaled)",
                lambda: papers.divergences(
                    self.eager, slow.first(1), dtype=np.float16, heads=SLOW_HEADS
                ), slow.first(1).tokens * share),
        ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables and keep them."""
    given = _parse(arguments)
    kept = keep_freed_memory()
    found: dict[str, object] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        threads_of(given.threads),
        ExitStack() as stack,
    ):
        bench = Bench(stack, Path(folder))
        print(_conditions(given, bench.kind, kept))
        for inputs, few in (
            (fixed(given.examples), 1),
            (treebank(given.examples * TREEBANK_PER_FIXED), 8),
        ):
            middle = inputs.examples[len(inputs.examples) // 2 :][:few]
            slow = Inputs(inputs.name, middle, [[n] for n in range(len(middle))])
            rows = bench.rows(inputs, slow=slow)
            interleave(rows, rounds=given.rounds, clock=given.clock)
            print(f"\n**{inputs.name}**: {_size(inputs)}\n\n{table(rows)}", flush=True)
            found[inputs.name] = record(rows)
    if given.json is not None:
        conditions = _conditions(given, bench.kind, kept)
        given.json.write_text(json.dumps({"conditions": conditions, **found}, indent=2))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.atlas", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--rounds", type=int, default=7, help="after one to warm up (7)")
    parser.add_argument("--threads", type=int, default=cores, help="of torch (all cores)")
    parser.add_argument("--examples", type=int, default=32, help="of 128 tokens (32)")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall",
                        help="cpu: time of this process, for one thread on a busy machine")  # fmt: skip
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
        f"threads of torch, numpy's BLAS with one; {given.rounds} interleaved rounds, {given.clock} "
        f"time, medians of the ratios within a round; freed memory is {freed}. torch "
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


def _size(inputs: Inputs) -> str:
    share = 1 - inputs.tokens / inputs.padded
    return (
        f"{len(inputs.examples)} inputs, {inputs.tokens:,} tokens in {len(inputs.rows)} batches "
        f"sorted by length, {share:.0%} padding"
    )


if __name__ == "__main__":
    main()
