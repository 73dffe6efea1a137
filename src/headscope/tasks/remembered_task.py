"""The task of a checkpoint that `headscope finetune` made: its finetuned.json remembers it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from headscope.core.whole_file import file_sha256
from headscope.errors import InputError
from headscope.tasks.task import known_task
from headscope.tasks.task_request import TaskSource

TRAINING_RECORD = "finetuned.json"  # `headscope finetune` writes it beside the weights
Some = TypeVar("Some", bound=TaskSource)


@dataclass(frozen=True)
class RememberedTask:
    """What a checkpoint learned, and from which files.

    name        of the task
    train, dev  where the examples were read: files, or a dataset of the hub
    columns     of them, by role; {} where they were recognised
    dev_sha256  of the file
    """

    name: str
    train: str
    dev: str
    columns: Mapping[str, str]
    dev_sha256: str


def remembered_task(checkpoint: object) -> RememberedTask | None:
    """The task of a checkpoint in a folder; None where no record of ours says it."""
    if not isinstance(checkpoint, str | Path):
        return None
    try:
        record = json.loads((Path(checkpoint) / TRAINING_RECORD).read_text("utf-8"))
        train, dev = (record["data"][split] for split in ("train", "dev"))
        columns = {str(role): str(name) for role, name in dict(dev.get("columns", {})).items()}
        of_task = str(record["task"]["name"])
        return RememberedTask(
            of_task, str(train["source"]), str(dev["source"]), columns, str(dev["sha256"])
        )
    except (AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError):
        return None


def with_remembered_task(
    request: Some, checkpoint: object, instead: str = ""
) -> tuple[Some, list[str]]:
    """A request that names no task, with that of its checkpoint; and the note that says so.

    Options of the request stay as they are: --data, --columns and others overrule the record.

    instead  what may be named in the place of a task
    raises   InputError where the checkpoint has no record, or the examples are not there
    """
    if getattr(request, "task", None) is not None:
        return request, []
    own = remembered_task(checkpoint)
    if own is None:
        raise InputError(
            f"found no task{instead}, and no {TRAINING_RECORD} beside the weights that names one; "
            "give --task NAME, and --data FOLDER for one of your own"
        )
    changes: dict[str, Any] = {"task": own.name}
    place = own.dev
    if request.data is None:
        changes |= _source(own, request, checkpoint)
    else:
        place = str(request.data)
    note = f"task {own.name}, examples of {place}: what {checkpoint} learned ({TRAINING_RECORD})"
    if "data" in changes and file_sha256(Path(own.dev)) != own.dev_sha256:
        note += "; the file has changed since"
    known = {each.name for each in fields(request)}
    changes = {name: value for name, value in changes.items() if name in known}
    return replace(request, **changes), [note]


def _source(own: RememberedTask, request: TaskSource, checkpoint: object) -> dict[str, Any]:
    """Where the examples are; nothing for a task of GLUE that was read from the hub."""
    file = Path(own.dev)
    if not file.is_file():
        if known_task(own.name) is not None and not file.suffix:
            return {}
        raise InputError(
            f"{checkpoint} learned the task {own.name} and was scored on {own.dev}, which is not "
            "here; give --data FOLDER, or go to the folder where it was trained"
        )
    changes: dict[str, Any] = {"data": str(file if request.split == "dev" else file.parent)}
    if request.columns is None and own.columns:
        changes["columns"] = dict(own.columns)
    if getattr(request, "choose_file", "") is None and Path(own.train).is_file():
        changes["choose_file"] = own.train
    return changes
