"""How a claim's number is read off the runs of a paper, and of what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec

from headscope.core.results import naming_layers
from headscope.papers.quantities import Measured, PaperRun, PaperRuns

NETWORK, BEFORE, RULE = "network", "before", "rule"  # what a number is about


@dataclass(frozen=True)
class Measure:
    """How a claim's number is read.

    runs   those it cannot do without
    read   raises Unmeasured
    about  NETWORK: of a fine-tuned one asked only if it beats chance; BEFORE: one before that;
           RULE: a rule, or the data alone, which no network without training can have too
    """

    runs: tuple[str, ...]
    read: Callable[[PaperRuns], Measured]
    about: str = NETWORK


Choice = ParamSpec("Choice")


def reads(
    *names: str, about: str = NETWORK
) -> Callable[[Callable[Concatenate[PaperRun, Choice], Measured]], Callable[Choice, Measure]]:
    """Turns read(run, choice…) into a function of the choice, which gives a claim's measure.

    names  of the runs that it cannot do without; `read` gets the first. One that ends in ":" is of
           a task, the first of the choice
    about  see Measure
    """

    def decorate(
        read: Callable[Concatenate[PaperRun, Choice], Measured],
    ) -> Callable[Choice, Measure]:
        @wraps(read)
        def measure(*args: Choice.args, **named: Choice.kwargs) -> Measure:
            runs = tuple(f"{name}{args[0]}" if name.endswith(":") else name for name in names)

            def measured(all_runs: PaperRuns) -> Measured:
                run = all_runs.run(runs[0])
                with naming_layers(run.tree):
                    return read(run, *args, **named)

            return Measure(runs, measured, about)

        return measure

    return decorate


def example_count(name: str) -> Measure:
    """How many inputs a run has read."""

    def read(runs: PaperRuns) -> Measured:
        run = runs.run(name)
        return Measured(float(run.manifest["counts"]["examples"]), n=run.counted, exact=True)

    return Measure((name,), read, RULE)
