"""How much must be read until something is known: `hs.forecast`, and `headscope plan`.

A small sample of the documents is measured, as a run with `--until` reads them. Errors fall with
the root of what is read: so the sample says how many tokens each number, or label, will take.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headscope.core.head_names import renamed
from headscope.core.options import takes
from headscope.run.atlas import OneModelRequest, checked_corpus
from headscope.run.execution import LABELS, Execution, checked_until, until_option
from headscope.run.settings import Settings
from headscope.tasks.task_request import Loading, loaded

SHOWN = 12  # numbers or labels, those that take most


@dataclass(frozen=True)
class Forecast:
    """About how much a run with `--until` will read.

    until      a width, or "labels"
    documents, tokens  of the sample
    needed     name of a number, or of a label that is open after the sample -> tokens
    of_tokens  tokens of the corpus; about as many where `estimated`
    measured   whether anything that was asked has an interval
    seconds    of processor time for a token, without the control
    why        what the sample tells
    """

    until: float | str
    documents: int
    tokens: int
    needed: dict[str, float]
    of_tokens: int
    estimated: bool
    measured: bool
    seconds: float
    why: str

    @property
    def total(self) -> float:
        """Tokens until all is known; at least the sample, NaN where nothing has an interval."""
        return max([self.tokens, *self.needed.values()]) if self.measured else math.nan

    @property
    def reachable(self) -> bool:
        """Whether the corpus has as many; False where nothing has an interval."""
        return self.total <= self.of_tokens

    @property
    def core_hours(self) -> float:
        """Processor time for what will be read of this corpus, in hours of one core."""
        read = self.total if self.reachable else self.of_tokens
        return read * self.seconds / 3600

    def lines(self) -> Iterator[str]:
        """The forecast in words."""
        yield f"sample: {self.documents:,} documents, {self.tokens:,} tokens in random order"
        about, corpus = "about " * self.estimated, f"{self.of_tokens:,} tokens"
        most = sorted(self.needed, key=lambda name: -self.needed[name])
        for name in most[:SHOWN]:
            yield f"  {renamed(name)}: {_rounded(self.needed[name])} tokens"
        if len(most) > SHOWN:
            yield f"  and {len(most) - SHOWN} more, with fewer"
        if self.reachable:
            share = self.total / self.of_tokens
            yield (
                f"--until {self.until}: about {_rounded(self.total)} of {about}{corpus} "
                f"({share:.2g} of all), {self.core_hours:.2g} core hours"
            )
        elif self.total > self.of_tokens:
            yield (
                f"--until {self.until} is out of reach: it takes about {_rounded(self.total)} "
                f"tokens, and the corpus has {about}{corpus}; all of it takes "
                f"{self.core_hours:.2g} core hours: ask for less, or for fewer --analyses"
            )
        else:
            yield (
                f"--until {self.until}: {renamed(self.why)}; the corpus has {about}{corpus}, which "
                f"take {self.core_hours:.2g} core hours"
            )

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, for programs; None for what is not known."""
        return vars(self) | {
            "total": self.total if self.measured else None,
            "reachable": self.reachable,
            "core_hours": self.core_hours,
        }


class ForecastRequest(OneModelRequest):
    """Which model would read what, and what it would tell."""

    until: float | str = until_option(
        "How much must be read until every interval is narrower than this, or, by default, until "
        "every label is decided: labels.",
        default=LABELS,
    )

    def __post_init__(self) -> None:
        """Raise InputError also for what no run can stop at."""
        super().__post_init__()
        checked_until(self.until)


@takes(ForecastRequest)
def forecast(request: ForecastRequest) -> Forecast:
    """How many tokens and core hours a run with `until` will take, from a small first sample.

    Raises InputError and its kinds as `atlas` does; nothing is written.
    """
    corpus = checked_corpus(request, request.corpus)
    request.before_loading(corpus)
    from headscope.run.corpus_run import corpus_run
    from headscope.run.stopping import SAMPLE, Goal

    run = corpus_run(
        loaded(request.model, Loading.of(request), request.stack),
        corpus,
        None,
        Settings.of(request),
        request.execution or Execution(),
        frequency=None,
        control=None,
        own=None,
        goal=Goal(request.until, SAMPLE),
    )
    until = run.manifest["until"]
    names = ("documents", "tokens", "of_tokens", "estimated", "measured", "why")
    return Forecast(
        request.until,
        needed=until["tokens_needed"],
        seconds=until["seconds"] / until["tokens"],
        **{name: until[name] for name in names},
    )


def _rounded(tokens: float) -> str:
    """Two digits: it is no more exact."""
    return f"{float(f'{tokens:.2g}'):,.0f}"
