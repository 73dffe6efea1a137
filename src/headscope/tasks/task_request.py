"""Which task a model has, and with which examples: as names, files and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headscope.core.options import Options, flag, option
from headscope.errors import InputError
from headscope.model.request import DEVICE_NAMES, Stack, device_named, refuse_device
from headscope.tasks.task import Task, find_task, known_task, own_task

if TYPE_CHECKING:  # the examples are read before torch is imported
    from headscope.model.language_model import LanguageModel
    from headscope.model.model import Model
    from headscope.tasks.task_data import TaskData
    from headscope.tasks.task_model import TaskModel


TASK = "A task of GLUE (rte, sst-2, sts-b, mrpc, qqp, qnli, mnli, cola, wnli), or your own."
TASK_READ = "Or examples that are read already."


def learned_task_option() -> Any:
    """The field for a task, which a checkpoint that `finetune` made knows."""
    said = f"{TASK} By default the one that CHECKPOINT learned."
    return option(said, reads=str, metavar="NAME", before="data", python=TASK_READ)


def parse_columns(text: str) -> dict[str, str] | None:
    """`text_a=premise,label=y` as {"text_a": "premise", "label": "y"}."""
    if not text:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not (role.strip() and equals) for role, equals, _ in pairs):
        raise InputError(f"--columns {text!r}; wanted ROLE=NAME,ROLE=NAME, say text_a=premise")
    return {role.strip(): name.strip() for role, _, name in pairs}


class TaskSource(Options, heading="The task"):
    """Where the examples of a task are, and how they are read."""

    data: str | Path | None = option(
        "Folder with train.tsv and dev.tsv (or .csv, .jsonl, .parquet), or one file; by default "
        "GLUE from the hub.",
        metavar="FOLDER",
    )
    split: str = option("Which file of the folder is scored.", "dev")
    columns: Mapping[str, str] | None = option(
        "Columns of text_a, text_b, label and id, where they are not recognised.",
        reads=parse_columns,
        metavar="ROLE=NAME,…",
    )
    labels: Sequence[str] | None = option(
        "Classes of your own task, in the order of their ids.",
        reads=lambda text: text.split(",") if text else None,
        metavar="A,B,…",
    )
    regression: bool = flag("The labels of your own task are numbers.")


class TaskRequest(TaskSource, heading="The task"):
    """The same, and how many of them."""

    limit: int | None = option("Examples at most, drawn by --seed.", least=1)


class ExampleLength(Options, heading="The task"):
    """How long an example of a task may be."""

    max_length: int = option(
        "Tokens of an example; longer ones are cut, and counted.", 128, least=4
    )


class Loading(Options, heading="The model"):
    """How a checkpoint is loaded."""

    device: str = option("cpu, cuda (or gpu), cuda:1 or mps.", "cpu", values=DEVICE_NAMES)
    device_map: (
        Literal["auto", "balanced", "balanced_low_0", "sequential"] | Mapping[str, Any] | None
    ) = option("Let accelerate place the model: on several devices, in the host's memory, on disk.")
    dtype: Literal["float32", "float64", "bfloat16", "float16", "auto"] = option(
        "Precision; entropies were seen to err by up to 1.8e-2 nats in bfloat16, 1.4e-3 in "
        "float16.",
        "float32",
    )
    revision: str | None = option("Branch, tag or commit of a hub model.")
    trust_remote_code: bool = flag("Let the model's repository run its own code on this machine.")

    def __post_init__(self) -> None:
        """Raise ModelError for a device that cannot be here, before torch is imported."""
        object.__setattr__(self, "device", device_named(self.device))
        refuse_device(self.device)
        super().__post_init__()


def stack_option(**kind: Any) -> Any:
    """The field for the stack of an encoder-decoder that is read."""
    return option(
        "Of an encoder-decoder, which self-attention: the encoder’s (default), or that of the "
        "decoder, which reads each text while the encoder reads the same one.",
        **kind,
    )


def loaded(model: Model | str | Path, loading: Loading, stack: Stack | None = None) -> Model:
    """A model loaded by name, or the given one; InputError for loading options with the latter.

    stack  which is looked at, see `load`
    """

    from headscope.model.model import load

    if not isinstance(model, str | Path) and loading != Loading():
        raise InputError(f"found a model that is loaded already, and {loading}; wanted one")
    return load(model, **asdict(loading), stack=stack)


def checkpoint_of(model: Any, loading: Loading) -> tuple[str | Path, Loading]:
    """Where a model was loaded from, and how; InputError for one that has no such place."""
    if isinstance(model, str | Path):
        return model, loading
    own = loaded(model, loading)
    if own.load_options is None:
        raise InputError(
            f"found {own.name!r} as a loaded network; wanted the folder or hub id of a checkpoint, "
            "which is read from the start"
        )
    known = {name: own.load_options[name] for name in asdict(loading)}
    return own.name, Loading(**known)


def language_model(model: Any, loading: Loading | None = None) -> LanguageModel:
    """A model with its language-model head: by name, or of anything that `hs.load` takes or gives.

    raises  ModelError as `load_language_model`; InputError for loading options with a loaded model
    """
    from headscope.model.language_model import (
        LanguageModel,
        load_language_model,
        with_language_head,
    )

    loading = loading or Loading()
    if isinstance(model, str | Path):
        return load_language_model(model, **asdict(loading))
    return with_language_head(model if isinstance(model, LanguageModel) else loaded(model, loading))


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
    from headscope.tasks.task_data import TaskData, check_source, read_task

    if isinstance(task, TaskData):
        if request != TaskRequest():
            raise InputError(f"found examples that are read already, and {request}; wanted one")
        return task
    if isinstance(task, str):
        if request.data is not None:  # before the checkpoint says which classes there are
            check_source(task, request.data, split=request.split, columns=request.columns)
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
            f"{learned.source} is both training and test data; wanted two files: --data FOLDER "
            "with "
            "train.tsv and dev.tsv, or --train FILE --dev FILE"
        )
    return learned, replace(scored, notes=(*scored.notes, *overlap_note(learned, scored)))


def overlap_note(learned: TaskData, scored: TaskData) -> tuple[str, ...]:
    """The note of how many scored examples were learned from, or chosen by; none for none."""
    known = {(row.text_a, row.text_b) for row in learned.rows}
    shared, count = sum((row.text_a, row.text_b) in known for row in scored.rows), len(scored)
    if not shared:
        return ()
    many = f"all {count:,}" if shared == count else f"{shared:,} of {count:,}"
    return (f"{many} examples of {scored.source} are in {learned.source}, too",)


def model_and_examples(
    model: TaskModel | Model | str | Path,
    task: TaskData | Task | str,
    request: TaskRequest,
    loading: Loading,
    *,
    seed: int,
) -> tuple[TaskModel, TaskData]:
    """A checkpoint with its head for a task, and the examples that it answers.

    raises  InputError, CorpusError or ModelError: as `read_task` and `load_for_task`
    """
    if isinstance(model, str | Path):
        data = examples_of(task, request, seed=seed, checkpoint=model, revision=loading.revision)
        from headscope.tasks.task_model import load_for_task

        return load_for_task(model, data.task, **asdict(loading)), data
    from headscope.tasks.task_model import TaskModel, with_task_head

    if not isinstance(model, TaskModel):
        own = loaded(model, loading)
        data = examples_of(task, request, seed=seed, checkpoint=own.name)
        return with_task_head(own, data.task), data
    if loading != Loading():
        raise InputError(f"found a model that is loaded already, and {loading}; wanted one")
    task = model.task if task == model.task.name else task
    return model, examples_of(task, request, seed=seed)
