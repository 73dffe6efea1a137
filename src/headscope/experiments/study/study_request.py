"""The request of a study: what `headscope study` and its function take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.options import argument, comma_separated, keyword, option, required
from headscope.experiments.ablation.settings import Replacement
from headscope.experiments.finetune.settings import TrainingSchedule
from headscope.experiments.study.trainings import PLAIN, VARIANTS
from headscope.model.request import BATCH_TOKENS, model_place
from headscope.run.execution import Execution, Intervals
from headscope.tasks.task_request import ExampleLength, Loading, TaskRequest

if TYPE_CHECKING:
    from headscope.model.model import Model


class StudyRequest(
    Loading,
    TrainingSchedule,
    Replacement,
    Intervals,
    ExampleLength,
    TaskRequest,
    kw_only=False,
    heading="The task",
):
    """Which model is trained on which tasks, how often, and how."""

    model: Model | str | Path = argument("A hub id or a folder.", reads=model_place)
    tasks: tuple[str, ...] | list[str] = required(
        "Comma-separated tasks, of GLUE or your own.",
        reads=comma_separated,
        metavar="A,B,…",
        before="data",
    )
    output: str | Path = required(
        "Run folder, with the checkpoints; re-running resumes.",
        names="-o --output",
        usual="study-{model}",
        metavar="RUN",
        heading="How to run",
        before="device",
    )
    _: KW_ONLY
    seeds: int = option(
        "Trainings of each task, from seeds --seed, --seed + 1, …; of one nothing is said of "
        "spread.",
        3,
        least=1,
        before="epochs",
    )
    variants: tuple[str, ...] | list[str] = option(
        f"Kinds of training, comma-separated: {', '.join(VARIANTS)}.",
        (PLAIN,),
        reads=comma_separated,
        values=tuple(VARIANTS),
        heading="The training",
        before="epochs",
    )
    layer_decay: float = option(
        "Of the variant layer-decay: each layer learns by this factor more slowly than the one "
        "above.",
        0.8,
        heading="The training",
    )
    freeze: int = option(
        "Of the variant frozen: layers, from the first, that do not learn; 0: half of them.",
        0,
        least=0,
        heading="The training",
    )
    dev_limit: int | None = option(
        "Examples to score on at most; --limit counts those to learn from.", least=1
    )
    batch_tokens: int = option(
        "Tokens of a forward pass at most, all heads included.",
        BATCH_TOKENS,
        least=1,
        heading="How to run",
    )
    execution: Execution | None = keyword("Its progress is called with trainings done, and all.")
    tell: Callable[[str], object] = keyword(
        "Called with each note on the examples.", lambda note: None
    )
