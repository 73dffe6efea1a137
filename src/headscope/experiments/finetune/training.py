"""Trains a network so that a process that is killed loses a minute at most.

transformers' Trainer, with a state on disk that is written every minute, and the norm of every
part's gradient in every step.
"""

from __future__ import annotations

import csv
import json
import random
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from headscope.core.whole_file import write_whole
from headscope.corpus.document import Example
from headscope.errors import HeadscopeError
from headscope.experiments.finetune.optimization import (
    Batches,
    ParameterGroup,
    gradient_norm,
    optimizer,
)
from headscope.model.batch import Batch
from headscope.model.checkpoint import quietly
from headscope.tasks.predict import EncodedTask
from headscope.tasks.task_model import TaskModel

STATE = "trainer_state.json"  # which transformers writes last: a folder with it is whole
STEPS = "steps.csv"  # a line for each step: its number, the loss, and each part's gradient
SAVE_SECONDS = 60.0
LARGEST_GRADIENT = 1.0  # BERT's own scripts cut the norm of the whole gradient to this
Progress = Callable[[int, int], None]  # steps done, all steps


@dataclass(frozen=True)
class TrainingSchedule:
    """How long and how fast; the defaults are the paper's, and where it is silent, BERT's.

    warm_up  share of the steps in which the rate rises from 0; it falls to 0 after that
    """

    epochs: int = 3
    batch: int = 32
    rate: float = 2e-5
    layer_decay: float = 1.0
    warm_up: float = 0.1
    seed: int = 0


def train(
    model: TaskModel,
    encoded: EncodedTask,
    schedule: TrainingSchedule,
    *,
    parts: Mapping[ParameterGroup, Mapping[str, torch.nn.Parameter]],
    speeds: Mapping[ParameterGroup, float],
    folder: Path,
    save_seconds: float = SAVE_SECONDS,
    progress: Progress | None = None,
) -> list[list[float]]:
    """Trains the network in place, from the state in the folder if there is one.

    parts, speeds   the parameters, and how fast each part learns
    folder          holds the state, and STEPS
    progress        called with the steps done and all steps
    returns         [step] its number, its loss, and the norm of each part's gradient before it
                    is cut
    """
    state = last_state(folder)
    resumed = _steps(state)
    with (
        randomness_restored(),
        quietly(),
        StepLog(folder / STEPS, parts, resumed=resumed) as log,
    ):
        trainer = _Trainer(
            step_log=log,
            model=model.model.network,
            args=_arguments(folder, schedule, model.model.device),
            data_collator=_Collator(model),
            train_dataset=list(zip(encoded.examples, encoded.labels.tolist(), strict=True)),
            optimizers=(optimizer(parts, speeds), None),
            callbacks=[_TrainingWatch(save_seconds, progress)],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=None if state is None else str(state))
    return read_steps(folder / STEPS)


class _Trainer(Trainer):
    """The Trainer, in batches of similar length; gradients are written down before they are cut."""

    def __init__(self, *, step_log: StepLog, **options: Any) -> None:
        super().__init__(**options)
        self.step_log = step_log

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Batches in the order of `Batches`."""
        rows: Any = self.train_dataset
        order = Batches(
            [len(example) for example, _ in rows],
            size=self.args.per_device_train_batch_size, seed=self.args.seed,
            steps_done=lambda: self.state.global_step,
        )  # fmt: skip
        return DataLoader(rows, batch_sampler=order, collate_fn=self.data_collator)

    def training_step(self, *args: Any, **options: Any) -> torch.Tensor:
        """One forward and backward pass."""
        loss: torch.Tensor = super().training_step(*args, **options)
        step = self.state.global_step
        if not torch.isfinite(loss):
            raise HeadscopeError(
                f"the loss is {float(loss)} in step {step + 1}; wanted a number: give a lower rate"
            )
        scaler = getattr(self.accelerator, "scaler", None)  # of float16
        scale = 1.0 if scaler is None else float(scaler.get_scale())
        self.step_log.write(step, float(loss), scale=scale)
        return loss


class _TrainingWatch(TrainerCallback):
    """Asks for the state to be written when it is time, and tells how far it is."""

    def __init__(self, seconds: float, progress: Progress | None) -> None:
        self.seconds, self.progress, self.saved = seconds, progress, time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """After every step."""
        if self.progress is not None:
            self.progress(state.global_step, state.max_steps)
        if time.monotonic() - self.saved >= self.seconds and state.global_step < state.max_steps:
            control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """After the state was written: the time it takes does not count."""
        self.saved = time.monotonic()


class _Collator:
    """Examples as a padded batch, exactly as they are evaluated."""

    def __init__(self, model: TaskModel) -> None:
        self.model = model

    def __call__(self, rows: Sequence[tuple[Example, int | float]]) -> dict[str, torch.Tensor]:
        model = self.model.model
        batch = Batch.of([example for example, _ in rows], model.vocabulary, replicates=0)
        inputs = {"input_ids": batch.input_ids, "attention_mask": batch.mask.long()}
        if model.has_segments:
            inputs["token_type_ids"] = batch.segment_ids
        kind = torch.float32 if self.model.task.is_regression else torch.int64
        return inputs | {"labels": torch.tensor([label for _, label in rows], dtype=kind)}


def _arguments(folder: Path, schedule: TrainingSchedule, device: torch.device) -> TrainingArguments:
    mixed = precision(device)
    arguments = TrainingArguments(
        str(folder), num_train_epochs=schedule.epochs, per_device_train_batch_size=schedule.batch,
        learning_rate=schedule.rate, warmup_steps=schedule.warm_up, lr_scheduler_type="linear",
        max_grad_norm=LARGEST_GRADIENT, seed=schedule.seed, use_cpu=device.type == "cpu",
        bf16=mixed == "bfloat16", fp16=mixed == "float16",
        save_strategy="no", save_total_limit=1, logging_strategy="no", eval_strategy="no",
        report_to=[], disable_tqdm=True, remove_unused_columns=False, dataloader_pin_memory=False,
    )  # fmt: skip
    _ = arguments.device  # finds all GPUs; more than one would silently multiply the batch
    arguments._n_gpu = min(arguments._n_gpu, 1)
    return arguments


def precision(device: torch.device) -> str:
    """In which type the products of a training are computed; weights stay in float32."""
    if device.type != "cuda":
        return "float32"
    return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"


# --- the state on disk ----------------------------------------------------------------------


def last_state(folder: Path) -> Path | None:
    """The newest state that was written to its end; what a kill left half done is deleted."""
    whole = []
    for state in folder.glob("checkpoint-*"):
        if _steps(state) is None:
            shutil.rmtree(state)
        else:
            whole.append(state)
    return max(whole, key=lambda state: _steps(state) or 0, default=None)


def _steps(state: Path | None) -> int | None:
    """How many steps a state has behind it; None for one that is not whole."""
    if state is None:
        return None
    try:
        return int(json.loads((state / STATE).read_text("utf-8"))["global_step"])
    except (OSError, ValueError, KeyError):
        return None


class StepLog:
    """Loss and the norm of every part's gradient, as a file that grows by a line a step.

    resumed  steps that the training has behind it; lines from there on are written again
    """

    def __init__(
        self,
        path: Path,
        parts: Mapping[ParameterGroup, Mapping[str, torch.nn.Parameter]],
        *,
        resumed: int | None,
    ) -> None:
        self.path, self.parts = path, parts
        kept = [[int(row[0]), *row[1:]] for row in read_steps(path) if row[0] < (resumed or 0)]
        header = ["step", "loss", *(part.label for part in parts)]
        write_whole(path, lambda draft: _write_lines(draft, [header, *kept]))
        self.file = path.open("a", newline="")
        self.writer = csv.writer(self.file)

    def write(self, step: int, loss: float, *, scale: float) -> None:
        """The loss, and the gradients as they are now, divided by `scale`."""
        norms = [gradient_norm(parameters) / scale for parameters in self.parts.values()]
        self.writer.writerow([step, loss, *norms])
        self.file.flush()

    def __enter__(self) -> StepLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def _write_lines(path: str, lines: Sequence[Sequence[object]]) -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(lines)


def read_steps(path: Path) -> list[list[float]]:
    """The lines of STEPS that are whole."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        header, *lines = list(csv.reader(file)) or [[]]
    return [[float(cell) for cell in line] for line in lines if len(line) == len(header)]


def by_epoch(
    rows: Sequence[Sequence[float]], *, epochs: int, steps: int
) -> npt.NDArray[np.float64]:
    """[epoch, 1 + part] mean loss and mean norms over the `steps` of each epoch.

    Steps whose gradient overflowed (in float16 only; they are not taken) do not count.
    """
    table = np.array(rows, np.float64)  # [step, 2 + part]
    table = table[np.isfinite(table).all(1)]
    epoch = table[:, 0] // steps
    means = np.full((epochs, table.shape[1] - 1), np.nan)  # [epoch, 1 + part]
    for at in np.unique(epoch).astype(int):
        means[at] = table[epoch == at, 1:].mean(0)
    return means


@contextmanager
def randomness_restored() -> Iterator[None]:
    """The Trainer seeds Python, numpy and torch; afterwards they are as they were."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
