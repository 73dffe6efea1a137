"""When is induction born in a small decoder that learns repeats, and what does the callback cost?

python -m benchmarks.born_induction [--steps N] [--seed N] [-o RUN]      # a run and its figures
python -m benchmarks.born_induction --cost ROUNDS [--steps N]            # with and without, in turn

Two layers of four heads (`benchmarks.trained_decoder`), followed by `hs.HeadscopeCallback` while
they learn. The figure of docs/evolve.md is RUN/figures/evolution.png. Of the cost: trainings with
and without the callback take turns, by wall clock and by the time of the processor. Wanted: at most
5 % at the default interval. Two minutes of one core for 2,000 steps.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import headscope as hs
from benchmarks.trained_decoder import trainer
from headscope.claims.reading import run_findings
from headscope.model.checkpoint import quietly

STEPS, WANTED = 2000, 0.05
LENGTH = 16  # tokens that come twice, of made inputs


def followed(output: str | Path, steps: int, *, seed: int, **more: Any) -> hs.Run:
    """The evolution of one training."""
    with tempfile.TemporaryDirectory() as folder, quietly():
        teacher = trainer(folder, steps, seed=seed)
        teacher.add_callback(hs.HeadscopeCallback(teacher, output=output, length=LENGTH, **more))
        teacher.train()
    return hs.open_run(output)


def seconds(steps: int, *, seed: int, callback: bool, report: bool) -> tuple[float, float]:
    """Wall-clock seconds and seconds of the processor of one training."""
    with tempfile.TemporaryDirectory() as folder, quietly():
        teacher = trainer(folder, steps, seed=seed)
        if callback:
            run = Path(folder) / "run"
            teacher.add_callback(
                hs.HeadscopeCallback(teacher, output=run, length=LENGTH, report=report)
            )
        start = time.perf_counter(), time.process_time()
        teacher.train()
        return time.perf_counter() - start[0], time.process_time() - start[1]


def costs(rounds: int, steps: int, *, seed: int, report: bool) -> list[str]:
    """The ratio of training time with and without the callback, of trainings that take turns."""
    taken = dict[bool, list[tuple[float, float]]]({False: [], True: []})
    for number in range(rounds):
        for callback in (False, True) if number % 2 else (True, False):
            one = seconds(steps, seed=seed, callback=callback, report=report)
            taken[callback].append(one)
            print(f"  {'with' if callback else 'without'}: {one[0]:.1f} s, {one[1]:.1f} s of CPU")
    lines = []
    for at, clock in enumerate(("wall clock", "processor")):
        ratio = statistics.median(
            one[at] / other[at] for one, other in zip(taken[True], taken[False], strict=True)
        )
        passed = "PASS" if ratio <= 1 + WANTED else "miss"
        lines.append(f"{clock}: × {ratio:.3f} {passed} (≤ {1 + WANTED})")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, follow and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.born_induction")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--every", type=int, help="steps between measurements (by cost)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cost", type=int, metavar="ROUNDS")
    parser.add_argument("--no-report", action="store_true", help="without the page at the end")
    parser.add_argument("-o", "--output", default="born-induction")
    chosen = parser.parse_args(arguments)
    if chosen.cost:
        print(f"{chosen.steps} steps, {chosen.cost} rounds")
        how = {"seed": chosen.seed, "report": not chosen.no_report}
        print(*costs(chosen.cost, chosen.steps, **how), sep="\n")
        return
    more = {"every": chosen.every, "report": not chosen.no_report}
    run = followed(chosen.output, chosen.steps, seed=chosen.seed, **more)
    print(*run_findings(run.tree), f"report: {run.path}/report.html", sep="\n")


if __name__ == "__main__":
    main()
