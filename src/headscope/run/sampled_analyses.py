"""Run the analyses that read a sample of the inputs, after all inputs were read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from headscope.core.progress import Advance, unheard
from headscope.corpus.document import Example
from headscope.model.model import Model
from headscope.run.analysis import SampledAnalysis
from headscope.run.compute import Computer, ShardJob
from headscope.run.known_analyses import known_analyses
from headscope.run.readings import MOST_SAMPLED

SHARE = 0.03  # ours: of the tokens of a run; each of them costs about three of it
LEAST = 3072  # ours: tokens, where the run has as many
BATCH_TOKENS = 1024  # ours: an analysis may hold several maps of each input


def sampled(names: Iterable[str]) -> list[str]:
    """Those of the analyses that read a sample."""
    known = known_analyses()
    return [name for name in names if known[name].sampled]


def streamed(names: Iterable[str]) -> list[str]:
    """Those of the analyses that read all inputs."""
    known = known_analyses()
    return [name for name in names if not known[name].sampled]


def tokens_of(run: int) -> int:
    """How many tokens of a run of that many tokens they read."""
    return max(LEAST, min(MOST_SAMPLED, int(SHARE * run)))


def few_of(examples: Sequence[Example], tokens: int = LEAST) -> list[Example]:
    """Inputs at even steps, about this number of tokens; by default as a control reads."""
    step = max(1, -(-sum(map(len, examples)) // tokens))
    return list(examples[::step])


def read_sample(
    name: str,
    model: Model,
    job: ShardJob,
    examples: Sequence[Example],
    advance: Advance = unheard,
    *,
    made: dict[str, Any] | None = None,
) -> SampledAnalysis:
    """One such analysis, of these examples and a model.

    advance  gets the number of inputs read
    made     what other networks have made of the same examples; more is added
    """
    analysis = job.new(name)
    assert isinstance(analysis, SampledAnalysis)
    if made is not None:
        analysis.made = made
    few = min(BATCH_TOKENS, job.settings.batch_tokens)
    settings = replace(job.settings, batch_tokens=few)
    computer = Computer(model, replace(job, names=(), bands={}, settings=settings))
    for some in analysis.passes(model, examples):
        computer.show(some, analysis, advance)
    return analysis
