"""Compares a checkpoint with the model that it was trained from: `headscope compare`, `hs.compare`.

    run = compare("demo", "checkpoint", demo_corpus(), output="run")
    run["similarity"], run["change"]

The run folder is that of an atlas of the second model, with two more groups, and the
results of the first one as the group `base`. Nothing heavy is imported before the request is known
to be right; `comparing` computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.options import argument, keyword, option, takes
from headscope.errors import InputError
from headscope.model.request import model_place, refuse_length
from headscope.run.atlas import CorpusRequest, checked_corpus
from headscope.run.execution import Execution, control_option, run_option
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


class CompareRequest(CorpusRequest, TaskSource, kw_only=False):
    """Which two models are compared, and on what."""

    base: Model | str | Path = argument("A loaded model, or what `load` takes.", reads=model_place)
    tuned: Model | str | Path = argument(
        "Likewise; where `headscope finetune` made it, its record of the training is read.",
        reads=model_place,
    )
    corpus: CorpusLike | None = keyword(
        "Texts, files, a column of a table, or a corpus: see `corpus_of`."
    )
    _: KW_ONLY
    task: TaskData | Task | str | None = option(
        TASK, reads=str, metavar="NAME", python=TASK_READ, heading="The task", before="data"
    )
    analyses: tuple[str, ...] | list[str] | None = analyses_option("by default all that are quick")
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

    Both are of one shape, with one tokenizer, and run in one process. By default the analyses are
    left out that compare the heads of one model with each other, have no number per head, or take
    very long. Raises InputError and its kinds before anything is computed; RunStopped on Ctrl-C.
    """
    if request.corpus is None and remembered_task(request.tuned):
        request, remembered = with_remembered_task(request, request.tuned)
        for note in remembered:
            request.tell(note)
    of_task = TaskSource.of(request) != TaskSource()
    if (request.corpus is None) == (request.task is None) or (request.task is None and of_task):
        raise InputError("wanted a corpus, or task=NAME with its data: one of the two")
    from headscope.run.store import folder_of

    settings, execution = Settings.of(request), request.execution or Execution()
    folder_of(request.output, execution)
    for model in (request.base, request.tuned):
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

    base = loaded(request.base, Loading.of(request, revision=request.base_revision))
    tuned = loaded(request.tuned, Loading.of(request))
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


def _examples(request: CompareRequest) -> TaskData | None:
    if request.task is None:
        return None
    place: dict[str, Any] = {"checkpoint": request.tuned, "revision": request.revision}
    if not isinstance(request.tuned, str | Path):
        place = {"checkpoint": request.tuned.name, "revision": request.tuned.revision or None}
    return examples_of(request.task, TaskRequest.of(request), seed=request.seed, **place)
