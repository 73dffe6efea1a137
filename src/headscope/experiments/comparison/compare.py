"""Compares a checkpoint with the model that it was trained from: `headscope compare`, `hs.compare`.

    run = compare("demo", "checkpoint", demo_corpus(), output="run")
    run["similarity"], run["change"]

The run folder is that of an atlas of the second model, with two more groups, and the
results of the first one as the group `base`. Of two finished runs, of models of any shape, it
compares what the heads do: `compare("atlas-demo", "atlas-other")["same_roles"]`. Nothing heavy is
imported before the request is known to be right; `comparing` and `compared_runs` compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from headscope.core.options import argument, declared, keyword, option, several, takes
from headscope.errors import InputError
from headscope.model.request import PACKAGES, model_place, refuse_length
from headscope.run.atlas import CorpusRequest, checked_corpus
from headscope.run.execution import Execution, control_option, run_option
from headscope.run.manifest_file import is_run, model_or_run, run_place
from headscope.run.settings import Settings, analyses_option
from headscope.tasks.remembered_task import remembered_task, with_remembered_task
from headscope.tasks.task_request import (
    TASK,
    TASK_READ,
    Loading,
    TaskRequest,
    TaskSource,
    examples_of,
    loaded,
)

if TYPE_CHECKING:
    from headscope.corpus import CorpusLike
    from headscope.model.model import Model
    from headscope.run.store import Run
    from headscope.tasks.task import Task
    from headscope.tasks.task_data import TaskData

OF_RUNS = ("base", "tuned", "also", "output")  # options that two finished runs take


class CompareRequest(CorpusRequest, TaskSource, kw_only=False):
    """Which two models are compared, and on what; or which two finished runs."""

    base: Model | Run | str | Path = argument(
        "A loaded model, or what `load` takes; or a finished run or its folder.",
        reads=model_or_run,
        values=tuple(PACKAGES),
    )
    tuned: Model | Run | str | Path = argument(
        "Likewise; where `headscope finetune` made it, its record of the training is read.",
        reads=model_or_run,
        values=tuple(PACKAGES),
    )
    corpus: CorpusLike | None = keyword(
        "Texts, files, a column of a table, or a corpus: see `corpus_of`."
    )
    _: KW_ONLY
    task: TaskData | Task | str | None = option(
        TASK, reads=str, metavar="NAME", python=TASK_READ, heading="The task", before="data"
    )
    analyses: tuple[str, ...] | list[str] | None = analyses_option("by default all that are quick")
    also: Sequence[Run | str | Path] = several(
        "Of two finished runs: further runs of either model, say of circuits beside atlas.",
        metavar="RUN",
        reads=run_place,
        heading="What to compute",
        before="seed",
    )
    output: str | Path | None = run_option("compare-{base}-{tuned}", before="batch_tokens")
    padded_to: int | None = option(
        "Also compare maps padded to so many tokens; Kovaleva et al.: 200.",
        least=4,
        metavar="TOKENS",
        heading="What to compute",
        before="seed",
    )
    control: str | Path | None = control_option(
        "the heads", heading="What to compute", before="seed"
    )
    base_revision: str | None = option(
        "Branch, tag or commit of BASE on the hub.", heading="The model", before="device"
    )
    tell: Callable[[str], object] = keyword(
        "Called with each note on the examples of a task.", lambda note: None
    )


@takes(CompareRequest)
def compare(request: CompareRequest) -> Run:
    """How alike the heads of two models are, and what changes from the first to the second.

    Two models are of one shape, with one tokenizer, and run in one process. By default the analyses
    are left out that compare the heads of one model with each other, have no number per head, or
    take very long. Two finished runs, of models of any shape, say which heads have the same role:
    the group `same_roles` of the run, see docs/compare.md. Raises InputError and its kinds before
    anything is computed; RunStopped on Ctrl-C.
    """
    if any(map(is_run, (request.base, request.tuned))):
        return _of_runs(request)
    if request.also:
        raise InputError("found also, and two models; wanted two finished runs: it is for these")
    models = cast("tuple[Model | str | Path, ...]", (request.base, request.tuned))
    if request.corpus is None and remembered_task(models[1]):
        request, remembered = with_remembered_task(request, models[1])
        for note in remembered:
            request.tell(note)
    of_task = TaskSource.of(request) != TaskSource()
    if (request.corpus is None) == (request.task is None) or (request.task is None and of_task):
        raise InputError("wanted a corpus, or task=NAME with its data: one of the two")
    from headscope.run.store import folder_of

    settings, execution = Settings.of(request), request.execution or Execution()
    folder_of(request.output, execution)
    for model in models:
        if isinstance(model, str | Path):
            model_place(str(model))
            if request.task is None:  # whose examples are cut
                refuse_length(str(model), settings.max_length)
    data, corpus = _examples(request), None
    if request.corpus is not None:
        corpus = checked_corpus(request, request.corpus)
        request.before_loading(corpus)
    from headscope.experiments.comparison.comparing import comparison_run
    from headscope.experiments.comparison.paired_inputs import check_comparable, task_corpus

    base = loaded(models[0], Loading.of(request, revision=request.base_revision))
    tuned = loaded(models[1], Loading.of(request))
    check_comparable(base, tuned)
    if data is not None:
        corpus, settings = task_corpus(base, tuned, data, settings)
        for note in filter(None, (*data.notes, corpus.note)):
            request.tell(note)
    assert corpus is not None
    return comparison_run(
        base,
        tuned,
        corpus,
        settings,
        execution,
        output=request.output,
        padded_to=request.padded_to,
        control=request.control,
    )


def _of_runs(request: CompareRequest) -> Run:
    """The run that compares two finished ones; InputError for options that are of models."""
    places = request.base, request.tuned
    if not all(map(is_run, places)):
        which = next(place for place in places if not is_run(place))
        raise InputError(
            f"found one finished run, and {which}; wanted two runs, or two models: run atlas with "
            "each model, then compare the runs"
        )
    plain = CompareRequest(*places)
    named = [
        each.name
        for each in fields(request)
        if (how := declared(each)) is not None
        and (how.kind == "option" or each.name == "corpus")
        and each.name not in OF_RUNS
        and getattr(request, each.name) != getattr(plain, each.name)
    ]
    if named:
        raise InputError(
            f"found {named[0]} beside two finished runs; leave it out: they are compared by what "
            "they hold, and no model is read"
        )
    from headscope.experiments.comparison.compared_runs import compared_runs

    return compared_runs(
        *cast("tuple[Run | str | Path, Run | str | Path]", places),
        request.also,
        output=request.output,
        execution=request.execution or Execution(),
    )


def _examples(request: CompareRequest) -> TaskData | None:
    if request.task is None:
        return None
    tuned = cast("Model | str | Path", request.tuned)
    place: dict[str, Any] = {"checkpoint": tuned, "revision": request.revision}
    if not isinstance(tuned, str | Path):
        place = {"checkpoint": tuned.name, "revision": tuned.revision or None}
    return examples_of(request.task, TaskRequest.of(request), seed=request.seed, **place)
