"""Trains a model on a task and records which of its layers change.

transformers' Trainer with the settings of Kovaleva et al. (2019): 3 epochs, batches of 32. Beside
the checkpoint stands `finetuned.json`: scores before and after, settings, and for every part of the
network the norm of its gradients and how far its weights have moved.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import headscope
from headscope.core.accumulators import Float64
from headscope.errors import RunStopped
from headscope.experiments.finetune.checkpoint_folder import put_folder, told
from headscope.experiments.finetune.optimization import (
    ParameterGroup,
    norm,
    parts_of,
    rates,
    relative_change,
)
from headscope.experiments.finetune.training import (
    SAVE_SECONDS,
    Progress,
    TrainingSchedule,
    by_epoch,
    last_state,
    train,
)
from headscope.experiments.finetune.training_plan import (
    Record,
    TrainingPlan,
    check,
    finished_record,
    spec_of,
    training_in_progress,
)
from headscope.model.checkpoint import quietly
from headscope.run.manifest import TRAINING_RECORD
from headscope.run.settings import fingerprint
from headscope.tasks.metrics import resampled, score
from headscope.tasks.predict import MAX_LENGTH, EncodedTask, encode, outputs
from headscope.tasks.task_data import TaskData
from headscope.tasks.task_model import TaskModel

REPLICATES = 1000  # of the bootstrap over dev examples


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
    schedule = TrainingSchedule(epochs, batch, rate, layer_decay, warm_up, seed)
    plan = TrainingPlan(start, train_data, dev, Path(output), schedule, max_length)
    check(plan)
    if (found := finished_record(plan)) is not None:
        return found
    with training_in_progress(plan) as states:
        record = _taught(plan, states, save_seconds=save_seconds, progress=progress)
        _save(start, record, plan.output)
        shutil.rmtree(states.parent)
    return record


def _taught(
    plan: TrainingPlan, folder: Path, *, save_seconds: float, progress: Progress | None
) -> Record:
    """Trains the network in place; the record of it."""
    start, schedule, began = plan.start, plan.schedule, time.monotonic()
    inputs, dev = (encode(start, x, max_length=plan.max_length) for x in (plan.train, plan.dev))
    settings = plan.settings()
    parts = parts_of(start.model.network)
    speeds = rates(parts, rate=schedule.rate, decay=schedule.layer_decay)
    weights = {part: _copies(parameters) for part, parameters in parts.items()}
    before = measured(start, dev)
    with told(plan.output), _stoppable(plan.output, folder):
        steps = train(
            start, inputs, schedule, parts=parts, speeds=speeds, folder=folder,
            save_seconds=save_seconds, progress=progress,
        )  # fmt: skip
    start.model.network.train(False)
    in_epoch = math.ceil(len(inputs.examples) / schedule.batch)
    means = by_epoch(steps, epochs=schedule.epochs, steps=in_epoch)  # [epoch, 1 + part]
    return {
        "fingerprint": fingerprint(spec_of(settings)),
        **settings,
        "metrics": {"before": before, "after": measured(start, dev)},
        "layers": _layers(parts, weights, means[:, 1:], speeds),
        "loss": [_finite(float(mean)) for mean in means[:, 0]],  # [epoch]
        "notes": _notes(plan, inputs, dev),
        "seconds": round(time.monotonic() - began, 1),
        "versions": _versions(),
    }


def measured(model: TaskModel, encoded: EncodedTask) -> dict[str, float | None]:
    """Every metric of the task, and a 95 % interval of the main one over examples.

    A value that does not exist, such as the correlation with predictions that are all the same, is
    None.
    """
    found = outputs(model, encoded)
    values = score(model.task, encoded.labels, found)
    drawn = resampled(model.task, encoded.labels, found, replicates=REPLICATES)[1:]
    there = drawn[np.isfinite(drawn)]
    low, high = np.quantile(there, [0.025, 0.975]) if len(there) else (np.nan, np.nan)
    values |= {"ci_low": float(low), "ci_high": float(high)}
    return {name: _finite(value) for name, value in values.items()}


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


# --- the record -----------------------------------------------------------------------------


def _copies(parameters: Mapping[str, torch.nn.Parameter]) -> dict[str, torch.Tensor]:
    return {name: p.detach().cpu().clone() for name, p in parameters.items()}


def _layers(
    parts: Mapping[ParameterGroup, Mapping[str, torch.nn.Parameter]],
    weights: Mapping[ParameterGroup, Mapping[str, torch.Tensor]],
    gradients: Float64,
    speeds: Mapping[ParameterGroup, float],
) -> list[dict[str, Any]]:
    """A row for each part of the network; gradients [epoch, part]."""
    return [
        {
            "part": part.name,
            "layer": part.layer,
            "parameters": sum(p.numel() for p in parameters.values()),
            "rate": speeds[part],
            "weight_norm": norm(weights[part]),
            "gradient_norm": _finite(float(gradients[:, at].mean())),
            "gradient_norm_by_epoch": [_finite(float(x)) for x in gradients[:, at]],
            "relative_change": _finite(relative_change(weights[part], parameters)),
        }
        for at, (part, parameters) in enumerate(parts.items())
    ]


def _finite(value: float) -> float | None:
    """For JSON, which has no NaN."""
    return value if math.isfinite(value) else None


def _notes(plan: TrainingPlan, train_inputs: EncodedTask, dev_inputs: EncodedTask) -> list[str]:
    notes = [f"model: {note}" for note in plan.start.notes]
    both = (("train", plan.train, train_inputs), ("dev", plan.dev, dev_inputs))
    for name, data, inputs in both:
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
        (draft / TRAINING_RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")

    put_folder(output, write)
