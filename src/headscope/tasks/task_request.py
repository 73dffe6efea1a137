"""Which task a model is asked, and by which examples: as names, files and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from headscope.core.settings_table import SettingsTable
from headscope.errors import InputError
from headscope.tasks.task import Task, find_task, known_task, own_task
from headscope.tasks.task_data import TaskData, read_task

if TYPE_CHECKING:  # the examples are read before torch is imported
    from headscope.model.model import Model
    from headscope.tasks.task_model import TaskModel


@dataclass(frozen=True, repr=False)
class TaskRequest(SettingsTable):
    """Which examples of a task to read, and how.

    data        a folder with train.tsv and dev.tsv (.csv, .jsonl, .parquet), or one file; None:
                GLUE on the hub
    split       which file of the folder is scored
    columns     {"text_a": …, "text_b": …, "label": …, "id": …} where they are not recognised
    labels      classes of a task of your own, in the order of their ids
    regression  whether the labels of a task of your own are numbers
    limit       examples at most, drawn by the seed; None: all
    """

    data: str | Path | None = None
    split: str = "dev"
    columns: Mapping[str, str] | None = None
    labels: Sequence[str] | None = None
    regression: bool = False
    limit: int | None = None


@dataclass(frozen=True, repr=False)
class Loading(SettingsTable):
    """How a checkpoint is loaded.

    device             "cpu", "cuda", "cuda:1" or "mps"
    device_map         "auto" and the like, or a map for accelerate, as for `load`
    dtype              "float32", "float64", "bfloat16", "float16" or "auto"
    revision           branch, tag or commit on the hub
    trust_remote_code  let the model's repository run its own code on this machine
    """

    device: str = "cpu"
    device_map: str | Mapping[str, Any] | None = None
    dtype: str = "float32"
    revision: str | None = None
    trust_remote_code: bool = False


def loaded(model: Model | str | Path, loading: Loading) -> Model:
    """A model loaded by name, or the given one; InputError for loading options with the latter."""

    from headscope.model.model import Model, load

    if isinstance(model, Model) and loading != Loading():
        raise InputError(f"found a model that is loaded already, and {loading}; wanted one")
    return load(model, **asdict(loading))


class LoadingFields(TypedDict, total=False):
    """The fields of `Loading`, as keywords."""

    device: str
    device_map: str | Mapping[str, Any] | None
    dtype: str
    revision: str | None
    trust_remote_code: bool


class TaskFields(LoadingFields, total=False):
    """The fields of `TaskRequest` and `Loading`, as keywords."""

    data: str | Path | None
    split: str
    columns: Mapping[str, str] | None
    labels: Sequence[str] | None
    regression: bool
    limit: int | None


def task_named(
    name: str,
    request: TaskRequest,
    checkpoint: str | Path | None = None,
    *,
    revision: str | None = None,
) -> Task | str:
    """The task of that name; a name alone where its labels will tell.

    checkpoint  its configuration knows the classes of a task of the user's
    raises      InputError for labels or a regression with a task of GLUE, or both
    """
    labels, regression = request.labels, request.regression
    if known_task(name) is not None:
        if labels or regression:
            raise InputError(
                f"{name} is a task of GLUE, whose labels are known; leave out --labels and "
                "--regression, or give the task a name of your own"
            )
        return find_task(name)
    if labels and regression:
        raise InputError("found --labels and --regression; a task has classes or numbers")
    if regression:
        return own_task(name, None)
    if labels:
        return own_task(name, [label.strip() for label in labels])
    if checkpoint is None:
        return name
    from headscope.tasks.task_model import task_of

    return task_of(checkpoint, name, revision=revision)


def examples_of(
    task: TaskData | Task | str,
    request: TaskRequest,
    *,
    seed: int,
    checkpoint: str | Path | None = None,
    revision: str | None = None,
) -> TaskData:
    """The requested examples; examples that are read already are returned unchanged."""
    if isinstance(task, TaskData):
        if request != TaskRequest():
            raise InputError(f"found examples that are read already, and {request}; wanted one")
        return task
    if isinstance(task, str):
        task = task_named(task, request, checkpoint, revision=revision)
    return read_task(
        task,
        request.data,
        split=request.split,
        columns=request.columns,
        limit=request.limit,
        seed=seed,
    )


def train_and_dev(
    task: Task | str,
    request: TaskRequest,
    *,
    train: str | Path | None,
    dev: str | Path | None,
    dev_limit: int | None,
    seed: int,
) -> tuple[TaskData, TaskData]:
    """Examples to learn from and to be scored on; classes of a task of one's own are read off
    the first. InputError where both are the same file.
    """
    first = replace(request, split="train", data=train or request.data)
    learned = examples_of(task, first, seed=seed)
    scored = examples_of(
        learned.task, replace(request, data=dev or request.data, limit=dev_limit), seed=seed
    )
    if learned.source == scored.source:
        raise InputError(
            f"{learned.source} would be learned from and scored on; wanted two: --data FOLDER with "
            "train.tsv and dev.tsv, or --train FILE --dev FILE"
        )
    return learned, scored


def model_and_examples(
    model: TaskModel | str | Path,
    task: TaskData | Task | str,
    request: TaskRequest,
    loading: Loading,
    *,
    seed: int,
) -> tuple[TaskModel, TaskData]:
    """A checkpoint with its head for a task, and the examples that it is asked.

    raises  InputError, CorpusError or ModelError: as `read_task` and `load_for_task`
    """
    from headscope.tasks.task_model import TaskModel, load_for_task

    if not isinstance(model, TaskModel | str | Path):
        raise InputError(
            f"found a {type(model).__name__} for a checkpoint with a head for its task; wanted its "
            "folder or hub id"
        )
    if isinstance(model, TaskModel):
        if loading != Loading():
            raise InputError(f"found a model that is loaded already, and {loading}; wanted one")
        task = model.task if task == model.task.name else task
        return model, examples_of(task, request, seed=seed)
    data = examples_of(task, request, seed=seed, checkpoint=model, revision=loading.revision)
    return load_for_task(model, data.task, **asdict(loading)), data
