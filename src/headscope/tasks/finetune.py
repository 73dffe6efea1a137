"""What does a model learn from a task, and which of its layers change by it?

transformers' Trainer with the settings of Kovaleva et al. (2019): 3 epochs, batches of 32. Beside
the checkpoint stands `finetuned.json`: scores before and after, settings, and for every part of the
network the norm of its gradients and how far its weights have moved.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import headscope
from headscope.accumulate import Float64
from headscope.checkpoint import quietly
from headscope.errors import InputError, RunFolderError, RunStopped
from headscope.spec import differences, fingerprint
from headscope.tasks.checkpoint import TaskModel
from headscope.tasks.encode import MAX_LENGTH, Encoded, encode
from headscope.tasks.evaluate import outputs
from headscope.tasks.metrics import resampled, score
from headscope.tasks.parts import Part, norm, parts_of, rates, relative_change
from headscope.tasks.read import TaskData
from headscope.tasks.saving import RECORD, put_folder, replaceable, told, working_folder
from headscope.tasks.training import (
    GRADIENTS,
    SAVE_SECONDS,
    Progress,
    Schedule,
    finite_or_none,
    last_state,
    mean_gradients,
    precision,
    read_gradients,
    train,
)
from headscope.whole_file import write_whole

REPLICATES = 1000  # of the bootstrap over dev examples
SETTINGS = "settings.json"
Record = dict[str, Any]


def finetune(
    start: TaskModel,
    train_data: TaskData,
    dev: TaskData,
    output: str | Path,
    *,
    epochs: int = 3,
    batch: int = 32,
    rate: float = 2e-5,
    layer_decay: float = 1.0,
    warm_up: float = 0.1,
    seed: int = 0,
    max_length: int = MAX_LENGTH,
    save_seconds: float = SAVE_SECONDS,
    progress: Progress | None = None,
) -> Record:
    """Trains a model on a task and writes it, with its record, to a folder.

    start        is trained in place
    output       the checkpoint: safetensors, configuration with the classes, tokenizer,
                 finetuned.json. A checkpoint of ours that is there is replaced at the end; one of
                 exactly this training is not made again. A training that was killed goes on from
                 its last state, at most `save_seconds` old
    rate         largest learning rate; it rises over `warm_up` (share of the steps), then falls
    layer_decay  each layer learns by this factor more slowly than the one above; see `parts.rates`
    progress     called with the steps done and all steps
    returns      the record, as finetuned.json holds it: `metrics.before` is the score with an
                 untrained head; `layers` has gradient_norm (mean over the steps, before it is
                 cut) and relative_change ‖θ' - θ‖ / ‖θ‖ of each part
    raises       InputError for settings that make no sense, RunFolderError for a folder that is
                 not ours or a training of other settings in it, RunStopped on Ctrl-C,
                 HeadscopeError if it cannot be written or the loss is not finite
    """
    output = Path(output)
    schedule = Schedule(epochs, batch, rate, layer_decay, warm_up, seed)
    _check(schedule, start, train_data, dev, output)
    settings = _settings(schedule, start, train_data, dev, max_length)
    if (done := _done(output, settings)) is not None:
        return done
    folder = _open_work(output, settings)
    encoded, encoded_dev = (
        encode(start, data, max_length=max_length) for data in (train_data, dev)
    )
    parts = parts_of(start.model.network)
    speeds = rates(parts, rate=rate, decay=layer_decay)
    weights = {part: _copies(parameters) for part, parameters in parts.items()}
    before = measured(start, encoded_dev)
    began = time.monotonic()
    with told(output), _stoppable(output, folder):
        losses = train(
            start, encoded, schedule, parts=parts, speeds=speeds, folder=folder,
            save_seconds=save_seconds, progress=progress,
        )  # fmt: skip
    start.model.network.train(False)
    rows = read_gradients(folder / GRADIENTS)
    gradients = mean_gradients(rows, epochs=epochs, steps=-(-len(train_data) // batch))
    record = {
        "fingerprint": _fingerprint(settings),
        **settings,
        "metrics": {"before": before, "after": measured(start, encoded_dev)},
        "layers": _layers(parts, weights, gradients, speeds),
        "loss": [row["loss"] for row in losses],  # [epoch] mean over its steps
        "notes": _notes(start, train_data, dev, encoded, encoded_dev),
        "seconds": round(time.monotonic() - began, 1),
        "versions": _versions(),
    }
    _save(start, record, output)
    shutil.rmtree(folder)
    return record


def measured(model: TaskModel, encoded: Encoded) -> dict[str, Any]:
    """Every metric of the task, and a 95 % interval of the main one over examples.

    A value that does not exist, such as the correlation with predictions that are all the same, is
    None.
    """
    found = outputs(model, encoded)
    values = score(model.task, encoded.labels, found)
    drawn = resampled(model.task, encoded.labels, found, replicates=REPLICATES, seed=0)[1:]
    low, high = np.nanquantile(drawn, [0.025, 0.975]) if np.isfinite(drawn).any() else (np.nan,) * 2
    interval = {"ci_low": float(low), "ci_high": float(high)}
    return {name: finite_or_none(value) for name, value in (values | interval).items()}


# --- what is asked --------------------------------------------------------------------------


def _check(
    schedule: Schedule, start: TaskModel, train_data: TaskData, dev: TaskData, output: Path
) -> None:
    """Raises before anything is computed."""
    wanted = {
        "epochs": schedule.epochs >= 1,
        "batch": schedule.batch >= 1,
        "rate": schedule.rate > 0,
    }
    wanted |= {"layer_decay": 0 < schedule.layer_decay <= 1, "warm_up": 0 <= schedule.warm_up < 1}
    for name, holds in wanted.items():
        if not holds:
            raise InputError(
                f"{name} = {getattr(schedule, name)}; wanted epochs and batch of 1 or more, a "
                "positive rate, 0 < layer_decay <= 1, 0 <= warm_up < 1"
            )
    if not start.task == train_data.task == dev.task:
        raise InputError(
            f"the model is for {start.task.name} {start.task.labels}, train is "
            f"{train_data.task.name} {train_data.task.labels}, dev {dev.task.name} "
            f"{dev.task.labels}; wanted one task"
        )
    if start.model.network.dtype != torch.float32:
        raise InputError(
            f"weights of type {start.model.network.dtype}; wanted float32, in which small steps "
            "are not lost (on a GPU products are computed in half precision anyway)"
        )
    if start.model.device.index:
        raise InputError(
            f"device {start.model.device}; wanted cpu or cuda: choose the GPU with "
            f"CUDA_VISIBLE_DEVICES={start.model.device.index}"
        )
    if Path(start.model.name).resolve() == output.resolve():
        raise InputError(f"{output} is the model that is trained; choose another folder with -o")
    replaceable(output)


def _settings(
    schedule: Schedule, start: TaskModel, train_data: TaskData, dev: TaskData, max_length: int
) -> Record:
    """Everything that decides the weights; two trainings of the same settings are one."""
    model = start.model
    return {
        "task": json.loads(json.dumps(asdict(start.task))),  # tuples as they are read again
        "model": {
            "name": model.name,
            "revision": model.revision,
            "sha256": model.sha256,
            "architecture": model.architecture,
            "start": start.start,
        },
        "data": {"train": _described(train_data), "dev": _described(dev)},
        "settings": asdict(schedule)
        | {"max_length": max_length, "precision": precision(model.device)},
    }


def _fingerprint(settings: Record) -> str:
    """Of what decides the weights: not of where things lie, or how they are called."""
    task, settings_of, rows = settings["task"], settings["settings"], settings["data"]
    model = {key: settings["model"][key] for key in ("sha256", "architecture", "start")}
    digests = {split: rows[split]["rows_sha256"] for split in rows}
    return fingerprint({"task": task, "model": model, "rows": digests, "settings": settings_of})


def _described(data: TaskData) -> Record:
    return {
        "source": data.source,
        "sha256": data.sha256,
        "examples": len(data),
        "rows_sha256": data.rows_sha256,
    }


def _done(output: Path, settings: Record) -> Record | None:
    """The record of exactly this training, if it is there."""
    try:
        record: Record = json.loads((output / RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return record if record.get("fingerprint") == _fingerprint(settings) else None


def _open_work(output: Path, settings: Record) -> Path:
    """The folder of the unfinished training; RunFolderError if it is one of other settings."""
    folder = working_folder(output)
    with told(output):
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / SETTINGS
        if last_state(folder) is None:
            text = json.dumps(settings)
            write_whole(file, lambda draft: Path(draft).write_text(text, "utf-8"))
            return folder
    found = json.loads(file.read_text("utf-8"))
    if _fingerprint(found) != _fingerprint(settings):
        raise RunFolderError(
            f"{folder} holds an unfinished training of other settings "
            f"({'; '.join(differences(found, settings)[:3])})\n"
            "give the same ones to go on, delete it, or choose another folder with -o"
        )
    return folder


@contextmanager
def _stoppable(output: Path, folder: Path) -> Iterator[None]:
    """Ctrl-C ends in RunStopped, which says what is kept."""
    try:
        yield
    except KeyboardInterrupt as error:
        kept = "what was learned so far is kept" if last_state(folder) else "nothing is kept yet"
        raise RunStopped(
            f"stopped before {output} was done; {kept}: the same command goes on"
        ) from error


# --- what came of it ------------------------------------------------------------------------


def _copies(parameters: Mapping[str, torch.nn.Parameter]) -> dict[str, torch.Tensor]:
    return {name: p.detach().cpu().clone() for name, p in parameters.items()}


def _layers(
    parts: Mapping[Part, Mapping[str, torch.nn.Parameter]],
    weights: Mapping[Part, Mapping[str, torch.Tensor]],
    gradients: Float64,
    speeds: Mapping[Part, float],
) -> list[Record]:
    """A row for each part of the network; gradients [epoch, part]."""
    return [
        {
            "part": part.name,
            "layer": part.layer,
            "parameters": sum(p.numel() for p in parameters.values()),
            "rate": speeds[part],
            "weight_norm": norm(weights[part]),
            "gradient_norm": finite_or_none(float(gradients[:, at].mean())),
            "gradient_norm_by_epoch": [finite_or_none(float(x)) for x in gradients[:, at]],
            "relative_change": finite_or_none(relative_change(weights[part], parameters)),
        }
        for at, (part, parameters) in enumerate(parts.items())
    ]


def _notes(
    start: TaskModel, train_data: TaskData, dev: TaskData, encoded: Encoded, encoded_dev: Encoded
) -> list[str]:
    notes = [f"model: {note}" for note in start.notes]
    for name, data, inputs in (("train", train_data, encoded), ("dev", dev, encoded_dev)):
        notes += [f"{name}: {note}" for note in (*data.notes, inputs.note) if note]
    return notes


def _versions() -> dict[str, str]:
    return {
        "headscope": headscope.__version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def _save(model: TaskModel, record: Record, output: Path) -> None:
    def write(draft: Path) -> None:
        with quietly():
            model.model.network.save_pretrained(draft)
            model.model.tokenizer.save_pretrained(draft)
        (draft / RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")

    put_folder(output, write)
