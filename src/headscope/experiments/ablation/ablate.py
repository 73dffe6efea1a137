"""Switches every head and every layer off in turn: `headscope ablate` and `hs.ablate`.

    run = ablate("my-checkpoint", "rte", data="glue", output="run")
    run["ablation"]["difference"]

Nothing heavy is imported before the request is known to be right; `ablating` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headscope.core.head_names import Head, head_named
from headscope.core.options import (
    argument,
    keyword,
    option,
    required,
    several,
    takes,
    whole,
)
from headscope.errors import InputError
from headscope.model.request import BATCH_TOKENS, model_place
from headscope.run.execution import Execution, Intervals
from headscope.tasks.task_request import (
    TASK,
    TASK_READ,
    ExampleLength,
    Loading,
    TaskRequest,
    model_and_examples,
)

if TYPE_CHECKING:
    import xarray as xr

    from headscope.run.store import Run
    from headscope.tasks.task import Task
    from headscope.tasks.task_data import TaskData
    from headscope.tasks.task_model import TaskModel


def group_named(text: str) -> tuple[Head, ...]:
    """`4-1+2-12` as ((3, 0), (1, 11)); InputError for what is no head."""
    return tuple(map(head_named, text.split("+")))


class AblationSettings(Intervals, ExampleLength, heading="What is switched off"):
    """Settings of an ablation."""

    replacement: Literal["uniform", "zero", "mean"] = option(
        "What a head gives instead: even attention, nothing, or its mean output.", "uniform"
    )
    groups: tuple[tuple[Head | str, ...], ...] = several(
        "A group of heads to be off together, say 4-1+2-12 or, from 0, 3.0+1.11; repeatable.",
        names="--together",
        reads=group_named,
        metavar="HEADS",
        python="Each is ((layer, head), …) from 0, by the model's own numbers of layers, or "
        'names: ("L4H1", "1.11").',
    )
    pairs: int = option(
        "Also every two of the N heads that matter most alone.",
        0,
        least=0,
        metavar="N",
        shown=False,
    )
    batch_tokens: int = option(
        "Tokens of a forward pass at most, all variants included.",
        BATCH_TOKENS,
        least=1,
        heading="How to run",
    )

    def __post_init__(self) -> None:
        """Raise InputError for one pair, or a group without heads."""
        super().__post_init__()
        if self.pairs == 1:
            raise InputError("found pairs=1; wanted 0 or at least 2 pairs")
        if any(not group for group in self.groups):
            raise InputError("found a group without heads; wanted one head or more in each")


class AblateRequest(AblationSettings, Loading, TaskRequest, kw_only=False, heading="The task"):
    """What is to be switched off, and how."""

    model: TaskModel | str | Path = argument(
        "A checkpoint with a head for the task, as `finetune` makes it: a folder, a hub id.",
        reads=model_place,
        metavar="CHECKPOINT",
    )
    task: TaskData | Task | str = required(
        TASK, reads=str, metavar="NAME", before="data", python=TASK_READ
    )
    _: KW_ONLY
    output: str | Path | None = option(
        "Run folder; re-running resumes.",
        names="-o --output",
        reads=Path,
        usual="ablate-{model}",
        metavar="RUN",
        python="None: in memory.",
        heading="How to run",
        before="batch_tokens",
    )
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
    settings = AblationSettings.of(request)
    if request.output is not None:
        from headscope.run.store import RunFolder

        RunFolder(request.output).check()
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
