"""Checks what is to be trained, and finds a training that is finished or was stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from headscope.errors import InputError
from headscope.experiments.finetune.checkpoint_folder import replaceable, working_folder
from headscope.experiments.finetune.training import TrainingSchedule, last_state, precision
from headscope.run.life_cycle import run_in_progress
from headscope.run.manifest import TRAINING_RECORD
from headscope.run.settings import fingerprint
from headscope.run.store import RunFolder
from headscope.tasks.task_data import TaskData
from headscope.tasks.task_model import TaskModel

STATES = "states"  # in the working folder
INSTEAD = (
    "it is an unfinished training: give its settings to go on, delete it, or choose another folder "
    "with -o"
)
Record = dict[str, Any]


@dataclass(frozen=True)
class TrainingPlan:
    """A request: the model, the task's data, how to train, and where the checkpoint goes."""

    start: TaskModel
    train: TaskData
    dev: TaskData
    output: Path
    schedule: TrainingSchedule
    max_length: int

    def settings(self) -> Record:
        """The request as plain values; the record of the training begins with it."""
        model = self.start.model
        values = {
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
        plain: Record = json.loads(json.dumps(values))
        return plain


def _described(data: TaskData) -> Record:
    return {
        "source": data.source,
        "sha256": data.sha256,
        "examples": len(data),
        "rows_sha256": data.rows_sha256,
    }


def spec_of(settings: Record) -> Record:
    """The part of the settings that decides the weights: no paths and no names."""
    model = {key: settings["model"][key] for key in ("start_sha256", "architecture", "start")}
    rows = {split: data["rows_sha256"] for split, data in settings["data"].items()}
    return {
        "task": settings["task"], "model": model, "rows": rows, "settings": settings["settings"],
    }  # fmt: skip


def check(plan: TrainingPlan) -> None:
    """Raise InputError or RunFolderError for what cannot be trained; nothing is computed."""
    try:
        import accelerate  # noqa: F401  # the Trainer needs it
    except ImportError as error:
        raise InputError(
            "training needs the package accelerate, which is not installed\n"
            "pip install 'headscope[train]'"
        ) from error
    _check_schedule(plan.schedule)
    start, train, dev = plan.start, plan.train, plan.dev
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
    if Path(start.model.name).resolve() == plan.output.resolve():
        raise InputError(
            f"{plan.output} is the model that is trained; choose another folder with -o"
        )
    replaceable(plan.output)


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


def finished_record(plan: TrainingPlan) -> Record | None:
    """The record of exactly this training, if its checkpoint is finished; else None."""
    try:
        record: Record = json.loads((plan.output / TRAINING_RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    same = record.get("fingerprint") == fingerprint(spec_of(plan.settings()))
    return record if same and any(plan.output.glob("*.safetensors")) else None


@contextmanager
def training_in_progress(plan: TrainingPlan) -> Iterator[Path]:
    """Hold the working folder of a training; gives the folder for its states.

    raises  RunFolderError if another process trains there, or if the folder holds an unfinished
            training of other settings
    """
    folder = RunFolder(working_folder(plan.output), parts=STATES)
    spec, states = spec_of(plan.settings()), folder.path / STATES
    manifest = {"spec": spec, "fingerprint": fingerprint(spec)}
    begins = last_state(states) is None
    with run_in_progress(folder, spec, lambda: manifest, overwrite=begins, instead=INSTEAD):
        yield states
