"""`headscope study`: what training on tasks changes, and which heads count, over seeds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from headscope.cli import options as shared
from headscope.cli.terminal_output import ProgressBar, size_of
from headscope.cli.typed_command import run_command
from headscope.experiments.study.study import study
from headscope.experiments.study.study_request import StudyRequest
from headscope.run.processes import noting_failure

if TYPE_CHECKING:
    from headscope.run.store import Run


class _StudyOptions(shared.SharedRunOptions, StudyRequest):
    pass


@run_command("study", _StudyOptions)
def study_command(options: _StudyOptions) -> None:
    """Train MODEL on every task from several seeds: what holds in all of them?

    Each checkpoint is compared with its start, and its heads are switched off in turn.
    Checkpoints stand in RUN/checkpoints. A training that is at chance says nothing of heads.

    \b
    headscope study bert-base-uncased --tasks rte,sst2,stsb --seeds 5 --data glue -o study
    headscope study demo --tasks rte --data glue --variants plain,random-labels -o labels
    """
    notes: list[str] = []
    with (
        noting_failure(options.output, options.shard),
        ProgressBar(quiet=options.quiet, unit="trainings") as bar,
    ):
        how = shared.execution_of(bar, options)
        run = study(**vars(StudyRequest.of(options, execution=how, tell=notes.append)))
    shared.conclude(run, options, lines=chain(notes, _lines(run)), summary=_summary)


def _lines(run: Run) -> Iterator[str]:
    from headscope.claims.reading import run_findings

    yield size_of(run.manifest["model"])
    yield from run_findings(run.tree)


def _summary(run: Run) -> dict[str, Any]:
    from headscope.experiments.study.terms import learned_seeds

    data = run["study"]
    return {
        "tasks": [str(task) for task in data["task"].values],
        "seeds": [int(seed) for seed in data["seed"].values],
        "variants": [str(variant) for variant in data["variant"].values],
        "learned": {str(task): learned_seeds(data, str(task)) for task in data["task"].values},
    }
