"""Checks what is to be trained, and finds a training that is finished or was stopped."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from headscope.core.whole_file import write_whole
from headscope.errors import InputError, RunFolderError
from headscope.experiments.finetune.checkpoint_folder import replaceable, told, working_folder
from headscope.experiments.finetune.training import TrainingSchedule, last_state, precision
from headscope.run.manifest import TRAINING_RECORD
from headscope.run.settings import differences, fingerprint
from headscope.tasks.task_data import TaskData
from headscope.tasks.task_model import TaskModel

SETTINGS = "settings.json"  # in the working folder
Record = dict[str, Any]


@dataclass(frozen=True)
class TrainingPlan:
    """A model, what it is to learn, and where it goes."""

    start: TaskModel
    train: TaskData
    dev: TaskData
    output: Path
    schedule: TrainingSchedule
    max_length: int

    def settings(self) -> Record:
        """What the record says of it, as JSON gives it back."""
        model = self.start.model
        found = {
            "task": asdict(self.start.task),
            "model": {
                "name": model.name,
                "revision": model.revision,
                "sha256": self.start.origin,
                "start_sha256": model.sha256,
                "architecture": model.architecture,
                "start": self.start.start,
            },
            "data": {"train": _described(self.train), "dev": _described(self.dev)},
            "settings": asdict(self.schedule)
            | {"max_length": self.max_length, "precision": precision(model.device)},
        }
        again: Record = json.loads(json.dumps(found))
        return again


def _described(data: TaskData) -> Record:
    return {
        "source": data.source,
        "sha256": data.sha256,
        "examples": len(data),
        "rows_sha256": data.rows_sha256,
    }


def identity(settings: Record) -> str:
    """Hash of what decides the weights: not of where things lie, or how they are called."""
    model = {key: settings["model"][key] for key in ("start_sha256", "architecture", "start")}
    rows = {split: data["rows_sha256"] for split, data in settings["data"].items()}
    deciding = {"task": settings["task"], "model": model, "rows": rows}
    return fingerprint({**deciding, "settings": settings["settings"]})


def check(wanted: TrainingPlan) -> None:
    """Raises InputError or RunFolderError before anything is computed."""
    try:
        import accelerate  # noqa: F401  # the Trainer needs it
    except ImportError as error:
        raise InputError(
            "training needs the package accelerate, which is not installed\n"
            "pip install 'headscope[train]'"
        ) from error
    _check_schedule(wanted.schedule)
    start, train, dev = wanted.start, wanted.train, wanted.dev
    if not start.task == train.task == dev.task:
        shown = (f"{x.task.name} ({', '.join(x.task.labels)})" for x in (start, train, dev))
        raise InputError(
            "model, train and dev are of {}, {} and {}; wanted one task".format(*shown)
        )
    network = start.model.network
    if network.dtype != torch.float32:
        raise InputError(
            f"weights of type {network.dtype}; wanted float32, in which small steps are not lost "
            "(on a GPU products are computed in half precision anyway)"
        )
    if network.device.index:
        raise InputError(
            f"device {network.device}; wanted cpu or cuda: choose the GPU with "
            f"CUDA_VISIBLE_DEVICES={network.device.index}"
        )
    if Path(start.model.name).resolve() == wanted.output.resolve():
        raise InputError(
            f"{wanted.output} is the model that is trained; choose another folder with -o"
        )
    replaceable(wanted.output)


def _check_schedule(schedule: TrainingSchedule) -> None:
    s = schedule
    rules = {
        "epochs": (s.epochs >= 1, "1 or more"),
        "batch": (s.batch >= 1, "1 or more"),
        "rate": (s.rate > 0, "more than 0"),
        "layer_decay": (0 < s.layer_decay <= 1, "more than 0 and at most 1"),
        "warm_up": (0 <= s.warm_up < 1, "0 or more and less than 1"),
    }
    for name, (holds, rule) in rules.items():
        if not holds:
            raise InputError(f"{name} is {getattr(s, name)}; wanted {rule}")


def done(wanted: TrainingPlan) -> Record | None:
    """The record of exactly this training, if its checkpoint is there."""
    try:
        record: Record = json.loads((wanted.output / TRAINING_RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    whole = any(wanted.output.glob("*.safetensors"))
    return record if whole and record.get("fingerprint") == identity(wanted.settings()) else None


def open_work(wanted: TrainingPlan) -> Path:
    """The folder of the unfinished training; RunFolderError if it is one of other settings."""
    folder, settings = working_folder(wanted.output), wanted.settings()
    file = folder / SETTINGS
    with told(wanted.output):
        folder.mkdir(parents=True, exist_ok=True)
        if last_state(folder) is None:
            text = json.dumps(settings)
            write_whole(file, lambda draft: Path(draft).write_text(text, "utf-8"))
            return folder
        found = json.loads(file.read_text("utf-8"))
    if identity(found) != identity(settings):
        raise RunFolderError(
            f"{folder} holds an unfinished training of other settings "
            f"({'; '.join(differences(found, settings)[:3])})\n"
            "give the same ones to go on, delete it, or choose another folder with -o"
        )
    return folder
