"""Switches every head and every layer off in turn: `headscope ablate` and `hs.ablate`.

    run = ablate("my-checkpoint", "rte", data="glue", output="run")
    run["ablation"]["difference"]

Nothing heavy is imported before the request is known to be right; `ablating` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.options import argument, keyword, takes, whole
from headscope.experiments.ablation.settings import AblationSettings
from headscope.model.request import model_place
from headscope.run.execution import Execution, run_option
from headscope.tasks.remembered_task import with_remembered_task
from headscope.tasks.task_request import (
    Loading,
    TaskRequest,
    learned_task_option,
    model_and_examples,
)

if TYPE_CHECKING:
    import xarray as xr

    from headscope.model.model import Model
    from headscope.run.store import Run
    from headscope.tasks.task import Task
    from headscope.tasks.task_data import TaskData
    from headscope.tasks.task_model import TaskModel


class AblateRequest(AblationSettings, Loading, TaskRequest, kw_only=False, heading="The task"):
    """What is to be switched off, and how."""

    model: TaskModel | Model | str | Path = argument(
        "A checkpoint with a head for the task, as `finetune` makes it: a folder, a hub id.",
        reads=model_place,
        metavar="CHECKPOINT",
    )
    task: TaskData | Task | str | None = learned_task_option()
    _: KW_ONLY
    output: str | Path | None = run_option("ablate-{model}", before="batch_tokens")
    settings: AblationSettings | None = whole(AblationSettings)
    execution: Execution | None = keyword(
        "Its progress is called with examples done, and all; with pairs each is done twice."
    )
    tell: Callable[[str], object] = keyword(
        "Called with each note on the model and its examples.", lambda note: None
    )


@takes(AblateRequest)
def ablate(request: AblateRequest) -> Run:
    """Switches off every head, every layer and the groups that were named, one after the other.

    Raises InputError and its kinds before anything is computed.
    """
    request, remembered = with_remembered_task(request, request.model)
    for note in remembered:
        request.tell(note)
    settings = AblationSettings.of(request)
    from headscope.run.store import check_run_folder

    check_run_folder(request.output)
    assert request.task is not None
    examples, load = TaskRequest.of(request), Loading.of(request)
    model, data = model_and_examples(
        request.model, request.task, examples, load, seed=settings.seed
    )
    for note in (*model.notes, *data.notes):
        request.tell(note)
    from headscope.experiments.ablation.ablating import ablation_run

    return ablation_run(model, data, settings, output=request.output, execution=request.execution)


def note_of(run: Mapping[str, xr.Dataset] | Run) -> str:
    """How the variants of a run were computed; '' for the usual way."""
    attrs = run["ablation"].attrs
    if attrs["way"] == "shared":
        return ""
    return f"computed by the way {attrs['way']!r}: {attrs['way_reason']}"
