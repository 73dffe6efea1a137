"""Tells how much a loss depends on each head, by gradients: `headscope importance`.

    run = importance("my-checkpoint", "rte", data="glue", output="run")
    run["importance"]["head_importance"].sel(variant="michel")

    run = importance("bert-base-uncased", corpus="wiki.txt")
    run["gradients"]["magnitude"].sel(category="sep")

Nothing heavy is imported before the request is known to be right; `measuring` computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.options import argument, keyword, option, takes, whole
from headscope.errors import InputError
from headscope.experiments.importance.settings import ImportanceSettings
from headscope.model.request import model_place, refuse_length
from headscope.run.execution import Execution, run_option
from headscope.run.manifest_file import run_place
from headscope.tasks.remembered_task import with_remembered_task
from headscope.tasks.task_request import (
    TASK,
    TASK_READ,
    Loading,
    TaskRequest,
    language_model,
    model_and_examples,
)

if TYPE_CHECKING:
    from headscope.corpus import CorpusLike
    from headscope.model.language_model import LanguageModel
    from headscope.model.model import Model
    from headscope.run.store import Run
    from headscope.tasks.task import Task
    from headscope.tasks.task_data import TaskData
    from headscope.tasks.task_model import TaskModel


class ImportanceRequest(ImportanceSettings, Loading, TaskRequest, kw_only=False):
    """Which model and loss, and how they are measured."""

    model: TaskModel | LanguageModel | Model | str | Path = argument(
        "A checkpoint with a head for the task, or with its language-model head: a folder, a hub "
        "id.",
        reads=model_place,
    )
    task: TaskData | Task | str | None = option(
        TASK, reads=str, metavar="NAME", python=TASK_READ, heading="The task", before="data"
    )
    _: KW_ONLY
    corpus: CorpusLike | None = keyword(
        "Instead: texts, files, a column of a table, or a corpus, see `corpus_of`."
    )
    output: str | Path | None = run_option("importance-{model}", before="batch_tokens")
    ablation: Run | str | Path | None = option(
        "A run of `headscope ablate` to compare the importances with.",
        reads=run_place,
        metavar="RUN2",
        heading="What to compute",
    )
    settings: ImportanceSettings | None = whole(ImportanceSettings)
    execution: Execution | None = keyword("Its progress is called with inputs done, and all.")
    tell: Callable[[str], object] = keyword(
        "Called with each note on the model and its examples.", lambda note: None
    )


@takes(ImportanceRequest)
def importance(request: ImportanceRequest) -> Run:
    """Computes how much a loss depends on each head: that of a task, or of a language model.

    Raises InputError and its kinds before anything is computed.
    """
    if request.corpus is None:
        request, remembered = with_remembered_task(request, request.model, " and no corpus")
        for note in remembered:
            request.tell(note)
    elif request.task is not None:
        raise InputError("found a task and a corpus; wanted importance(model, task) or (corpus=…)")
    from headscope.run.store import check_run_folder

    check_run_folder(request.output)
    return _of_task(request) if request.corpus is None else _of_text(request)


def _of_text(request: ImportanceRequest) -> Run:
    examples, usual = vars(TaskRequest.of(request, limit=None)), vars(TaskRequest())
    of_task = [name for name, value in examples.items() if value != usual[name]]
    if request.ablation is not None:
        of_task.append("ablation")
    if of_task:
        raise InputError(f"found a corpus and {', '.join(sorted(of_task))}, which a task has")
    assert request.corpus is not None
    from headscope.corpus import corpus_of

    settings, corpus, model = (
        ImportanceSettings.of(request),
        corpus_of(request.corpus),
        request.model,
    )
    if isinstance(model, str | Path):
        refuse_length(str(model), settings.max_length)
    from headscope.experiments.importance.measuring import importance_to_text
    from headscope.tasks.task_model import TaskModel

    if isinstance(model, TaskModel):
        raise InputError("found a model with a head for a task; wanted a language model")
    return importance_to_text(
        language_model(model, Loading.of(request)),
        corpus,
        output=request.output,
        settings=settings,
        execution=request.execution,
    )


def _of_task(request: ImportanceRequest) -> Run:
    from headscope.run.store import open_run

    settings, ablation, model = ImportanceSettings.of(request), request.ablation, request.model
    against = open_run(ablation) if isinstance(ablation, str | Path) else ablation
    if not isinstance(model, str | Path):
        from headscope.model.language_model import LanguageModel

        if isinstance(model, LanguageModel):
            wanted = "importance(model, corpus=…)"
            raise InputError(f"found a language model and a task; wanted {wanted}")
    assert request.task is not None
    examples, load = TaskRequest.of(request), Loading.of(request)
    model, data = model_and_examples(model, request.task, examples, load, seed=settings.seed)
    for note in (*model.notes, *data.notes):
        request.tell(note)
    from headscope.experiments.importance.measuring import importance_to_task

    return importance_to_task(
        model,
        data,
        replace(settings, limit=None),
        output=request.output,
        ablation=against,
        execution=request.execution,
    )
