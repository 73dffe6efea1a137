"""Trains a model on a task and records how its layers change; `finetune` reads the request.

transformers' Trainer with the settings of Kovaleva et al. (2019): 3 epochs, batches of 32. Beside
the checkpoint stands `finetuned.json`: scores before and after, settings, and for every part of the
network the norm of its gradients and how far its weights have moved.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

import headscope
from headscope.core.accumulators import REPLICATES
from headscope.core.results import json_number
from headscope.core.whole_file import held, put_folder, replaceable, told
from headscope.errors import InputError, RunFolderError, RunStopped
from headscope.experiments.finetune import training
from headscope.experiments.finetune.optimization import (
    freeze,
    norm,
    parts_of,
    rates,
    relative_change,
)
from headscope.experiments.finetune.settings import Progress, TrainingSchedule
from headscope.experiments.finetune.training import last_state
from headscope.model.checkpoint import quietly
from headscope.model.placement import refuse_spread
from headscope.run.life_cycle import run_in_progress
from headscope.run.manifest import deciding_versions, identity_of
from headscope.run.settings import fingerprint
from headscope.run.store import RunFolder
from headscope.tasks.metrics import chance, draws_of, score, score_estimate
from headscope.tasks.predict import MAX_LENGTH, EncodedTask, encode, outputs
from headscope.tasks.remembered_task import TRAINING_RECORD
from headscope.tasks.task_data import TaskData
from headscope.tasks.task_model import TaskModel

STATES = "states"  # in the working folder
INSTEAD = (
    "it is an unfinished training: give its settings to go on, delete it, or choose another folder "
    "with -o"
)
Record = dict[str, Any]


def teach(
    start: TaskModel,
    train_data: TaskData,
    dev: TaskData,
    output: str | Path,
    *,
    max_length: int = MAX_LENGTH,
    save_seconds: float = training.SAVE_SECONDS,
    progress: Progress | None = None,
    **schedule: Any,
) -> Record:
    """Trains a model on a task and writes it, with its record, to a folder.

    start        is trained in place
    output       the checkpoint: safetensors, configuration with the classes, tokenizer,
                 finetuned.json. A checkpoint of ours that is there is replaced at the end; one of
                 exactly this training is not made again. A training that was killed goes on from
                 its last state, at most `save_seconds` old
    progress     called with the steps done and all steps
    schedule     of `TrainingSchedule`: epochs, batch, rate, layer_decay, freeze, warm_up, seed
    returns      the record, as finetuned.json holds it: `metrics.before` is the score with an
                 untrained head; `layers` has gradient_norm (mean over the steps, before it is
                 cut) and relative_change ‖θ' - θ‖ / ‖θ‖ of each part
    raises       InputError for settings that make no sense, RunFolderError for a folder that is
                 not ours or a training of other settings in it, RunStopped on Ctrl-C,
                 HeadscopeError if it cannot be written or the loss is not finite
    """
    plan = TrainingPlan(
        start, train_data, dev, Path(output), TrainingSchedule(**schedule), max_length
    )
    check(plan)
    mine = fingerprint(spec_of(plan.settings()))  # of the model before it is trained
    record = finished_record(plan.output, mine)
    if record is not None and not working_folder(plan.output).exists():
        return record
    with held(plan.output):
        replaceable(plan.output, marks=(TRAINING_RECORD,))
        record = finished_record(plan.output, mine)
        if record is None:
            record = _written(plan, save_seconds=save_seconds, progress=progress)
        _remove_states(plan.output, mine)
    return record


def _written(plan: TrainingPlan, *, save_seconds: float, progress: Progress | None) -> Record:
    def write(draft: Path) -> None:
        with quietly():
            plan.start.model.network.save_pretrained(draft)
            plan.start.model.tokenizer.save_pretrained(draft)
        (draft / TRAINING_RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")

    with training_in_progress(plan) as states:
        record = _taught(plan, states, save_seconds=save_seconds, progress=progress)
        put_folder(plan.output, write, marks=(TRAINING_RECORD,))
    return record


def _remove_states(output: Path, mine: str) -> None:
    """Remove the working folder of this training; what a kill leaves is removed by the next one."""
    folder = working_folder(output)
    manifest = None
    with suppress(RunFolderError):  # damaged: nobody knows whose it is
        manifest = RunFolder(folder, parts=STATES).manifest()
    if manifest and manifest.get("fingerprint") == mine:
        shutil.rmtree(folder / STATES, ignore_errors=True)  # the manifest says whose it is: last
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # of another training it is not empty
        folder.rmdir()


def _taught(
    plan: TrainingPlan, folder: Path, *, save_seconds: float, progress: Progress | None
) -> Record:
    start, schedule, began = plan.start, plan.schedule, time.monotonic()
    network = start.model.network
    inputs, dev = (encode(start, x, max_length=plan.max_length) for x in (plan.train, plan.dev))
    settings = plan.settings()
    parts = parts_of(network)
    freeze(parts, schedule.freeze)
    speeds = rates(parts, rate=schedule.rate, decay=schedule.layer_decay)
    initial = {name: p.detach().cpu().clone() for name, p in network.named_parameters()}
    before = measured(start, dev)
    with told(plan.output), _stoppable(plan.output, folder):
        steps = training.train(
            start,
            inputs,
            schedule,
            parts=parts,
            speeds=speeds,
            folder=folder,
            save_seconds=save_seconds,
            progress=progress,
        )
    network.train(False)
    in_epoch = math.ceil(len(inputs.examples) / schedule.batch)
    means = training.by_epoch(steps, epochs=schedule.epochs, steps=in_epoch)  # [epoch, 1 + part]
    layers = []
    for (part, parameters), gradients in zip(parts.items(), means[:, 1:].T, strict=True):
        weights = {name: initial[name] for name in parameters}
        layers.append(
            {
                "part": part.name,
                "layer": part.layer,
                "parameters": sum(p.numel() for p in parameters.values()),
                "rate": speeds[part],
                "weight_norm": norm(weights),
                "gradient_norm": json_number(gradients.mean()),
                "gradient_norm_by_epoch": [json_number(x) for x in gradients],
                "relative_change": json_number(relative_change(weights, parameters)),
            }
        )
    return {
        "fingerprint": fingerprint(spec_of(settings)),
        **settings,
        "metrics": {"before": before, "after": measured(start, dev)},
        "chance": chance(start.task, dev.labels),
        "layers": layers,
        "loss": [json_number(mean) for mean in means[:, 0]],  # [epoch]
        "notes": _notes(plan, inputs, dev),
        "seconds": round(time.monotonic() - began, 1),
        "versions": {x.__name__: x.__version__ for x in (headscope, torch, transformers)},
    }


def measured(model: TaskModel, encoded: EncodedTask) -> dict[str, float | None]:
    """Every metric of the task, and a 95 % interval of the main one over examples.

    A value that does not exist, such as the correlation with predictions that are all the same, is
    None.
    """
    answers = outputs(model, encoded)
    values = score(model.task, encoded.labels, answers)
    draws = draws_of(model.task, encoded.labels, answers, replicates=REPLICATES)
    main = score_estimate(model.task, draws, len(encoded.labels))
    values |= {"ci_low": float(main.low), "ci_high": float(main.high)}
    return {name: json_number(value) for name, value in values.items()}


@contextmanager
def _stoppable(output: Path, folder: Path) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        state = last_state(folder)  # one that a full disk cut is deleted
        if not isinstance(error, KeyboardInterrupt):
            raise
        kept = "what was learned so far is kept" if state else "nothing is kept yet"
        raise RunStopped(
            f"stopped before {output} was done; {kept}: the same command goes on"
        ) from error


def _notes(plan: TrainingPlan, train_inputs: EncodedTask, dev_inputs: EncodedTask) -> list[str]:
    notes = [f"model: {note}" for note in (*plan.start.notes, *plan.start.model.notes)]
    both = (("train", plan.train, train_inputs), ("dev", plan.dev, dev_inputs))
    for name, data, inputs in both:
        notes += [f"{name}: {note}" for note in (*data.notes, inputs.note) if note]
    return notes


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
        start, model = self.start, self.start.model
        data = {"train": self.train, "dev": self.dev}
        values = {
            "task": asdict(start.task),
            "model": {
                "name": model.name,
                "revision": model.revision,
                "sha256": start.origin,
                "start_sha256": model.sha256,
                "architecture": model.architecture,
                "start": start.start,
                "identity": identity_of(model),
            },
            "data": {
                split: {
                    "source": one.source,
                    "sha256": one.sha256,
                    "examples": len(one),
                    "rows_sha256": one.rows_sha256,
                    "columns": dict(one.columns),
                }
                for split, one in data.items()
            },
            "settings": asdict(self.schedule)
            | {"max_length": self.max_length, "precision": training.precision(model.device)},
        }
        plain: Record = json.loads(json.dumps(values))
        return plain


def spec_of(settings: Record) -> Record:
    """The part of the settings that decides the weights: without paths and names."""
    model = {key: settings["model"][key] for key in ("start_sha256", "start", "identity")}
    rows = {split: data["rows_sha256"] for split, data in settings["data"].items()}
    return {
        "versions": deciding_versions(),
        "task": settings["task"],
        "model": model,
        "rows": rows,
        "settings": settings["settings"],
    }


def working_folder(folder: Path) -> Path:
    """The folder for the state of an unfinished training."""
    return folder.with_name(f".{folder.name}.training")


def check_installed() -> None:
    """Raise InputError where the package is missing that the Trainer needs."""
    try:
        import accelerate  # noqa: F401
    except ImportError as error:
        raise InputError(
            "training needs the package accelerate, which is not installed\n"
            "pip install 'headscope[train]'"
        ) from error


def check(plan: TrainingPlan) -> None:
    """Raise InputError or RunFolderError for an invalid request; nothing is computed."""
    check_installed()
    start, parts = plan.start, (plan.start, plan.train, plan.dev)
    if any(one.task != start.task for one in parts):
        shown = (f"{x.task.name} ({', '.join(x.task.labels)})" for x in parts)
        raise InputError(
            "model, train and dev are of {}, {} and {}; wanted one task".format(*shown)
        )
    network = start.model.network
    refuse_spread(network, "whose weights are trained")
    if network.dtype != torch.float32:
        raise InputError(
            f"weights of type {network.dtype}; wanted float32, which keeps small steps (on a GPU "
            "products are computed in half precision anyway)"
        )
    if network.device.index:
        raise InputError(
            f"device {network.device}; wanted cpu or cuda: choose the GPU with "
            f"CUDA_VISIBLE_DEVICES={network.device.index}"
        )
    if Path(start.model.name).resolve() == plan.output.resolve():
        raise InputError(f"{plan.output} is the model to train; choose another folder with -o")


def finished_record(output: Path, mine: str) -> Record | None:
    """The record of the training of that fingerprint, if its checkpoint is finished; else None."""
    try:
        record: Record = json.loads((output / TRAINING_RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    same = record.get("fingerprint") == mine
    return record if same and any(output.glob("*.safetensors")) else None


@contextmanager
def training_in_progress(plan: TrainingPlan) -> Iterator[Path]:
    """Lock the working folder of a training; yields the folder for its states.

    raises  RunFolderError if the folder holds an unfinished training of other settings
    """
    folder = RunFolder(working_folder(plan.output), parts=STATES)
    spec, states = spec_of(plan.settings()), folder.path / STATES
    manifest = {"spec": spec, "fingerprint": fingerprint(spec)}
    begins = last_state(states) is None
    with run_in_progress(folder, spec, lambda: manifest, overwrite=begins, instead=INSTEAD):
        yield states
