"""How are pipelines timed so that a busy machine does not decide who wins?

All run in turn, round after round, every second round backwards; ratios are formed within a round,
so a slow minute slows both sides. Reported is the median over rounds.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass
class Row:
    """One pipeline.

    run      does the work once
    tokens   real tokens that one run is worth; below those of other rows where it is slow
    limits   {baseline's row: the largest ratio we allow ourselves}
    rounds   run in the first so many only; None for all
    clock    seconds spent so far on work that another process does; None: as all rows
    seconds  of each round
    """

    name: str
    run: Callable[[], object]
    tokens: float
    limits: Mapping[str, float] = field(default_factory=dict)
    rounds: int | None = None
    clock: Callable[[], float] | None = None
    seconds: list[float] = field(default_factory=list)

    def ratios(self, other: Row) -> list[float]:
        """Time per token over that of another row, round by round."""
        scale = other.tokens / self.tokens
        return [s / o * scale for s, o in zip(self.seconds, other.seconds, strict=False)]

    def verdict(self, rows: Mapping[str, Row]) -> str:
        """PASS or miss against each limit."""
        words = []
        for base, limit in self.limits.items():
            passed = median(self.ratios(rows[base])) <= limit
            words.append(f"{'PASS' if passed else 'miss'} (≤ {limit:.2f} × {base})")
        return ", ".join(words)


def options(
    name: str, about: str | None, *, examples: int | None, rounds: int = 5, threads: int | None = 1
) -> argparse.ArgumentParser:
    """The command line that all have.

    examples  how many inputs; None: the option is not there
    threads   of torch; None: as many as it would take
    """
    threads = threads or torch.get_num_threads()
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=rounds, help=f"after a first ({rounds})")
    parser.add_argument("--threads", type=int, default=threads, help=f"of torch ({threads})")
    if examples is not None:
        parser.add_argument("--examples", type=int, default=examples, help=f"inputs ({examples})")
    only = "cpu: time of this process alone, for one thread on a busy machine"
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help=only)
    return parser


def interleave(rows: Sequence[Row], *, rounds: int, clock: str) -> None:
    """Fill in the seconds, after one round to warm up."""
    for row in rows:
        row.run()
    for number in range(rounds):
        gc.collect()
        turn = [row for row in rows if row.rounds is None or number < row.rounds]
        for row in turn if number % 2 == 0 else reversed(turn):
            now = row.clock or CLOCKS[clock]
            start = now()
            row.run()
            row.seconds.append(now() - start)


def table(rows: Sequence[Row], *, stock: str = "A", fast: str = "B") -> str:
    """Markdown: ratios to the baselines, tokens per second, spread, and whether limits hold."""
    named = {row.name: row for row in rows}
    a, b = named[stock], named[fast]
    lines = [
        f"| pipeline | × {stock} | × {fast} (min–max) | tokens/s | target |",
        "|---|---:|---:|---:|---|",
    ]
    for row in rows:
        to_a, to_b = row.ratios(a), row.ratios(b)
        speed = row.tokens / median(row.seconds)
        lines.append(
            f"| {row.name} | {_short(median(to_a))} | {_short(median(to_b))} "
            f"({_short(min(to_b))}–{_short(max(to_b))}) | {speed:,.0f} | {row.verdict(named)} |"
        )
    return "\n".join(lines)


def record(rows: Sequence[Row], *, stock: str = "A", fast: str = "B") -> list[dict[str, Any]]:
    """The same as plain values."""
    named = {row.name: row for row in rows}
    return [
        {
            "pipeline": row.name,
            "tokens": row.tokens,
            "seconds": row.seconds,
            f"ratio_to_{stock}": median(row.ratios(named[stock])),
            f"ratio_to_{fast}": median(row.ratios(named[fast])),
            "target": row.verdict(named),
        }
        for row in rows
    ]


def _short(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
