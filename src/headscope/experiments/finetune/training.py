"""Trains a network with checkpoints, so that a killed process loses a minute at most.

transformers' Trainer, with a state on disk that is written every minute, and the norm of every
part's gradient in every step.
"""

import json
import random
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from headscope.core.accumulators import Float64
from headscope.corpus.document import Example
from headscope.errors import HeadscopeError
from headscope.experiments.finetune import optimization
from headscope.experiments.finetune.settings import Progress, TrainingSchedule
from headscope.model.checkpoint import quietly
from headscope.tasks.predict import EncodedTask
from headscope.tasks.task_model import TaskModel

STATE = "trainer_state.json"  # which transformers writes last: a folder with it is whole
SAVE_SECONDS = 60.0
LARGEST_GRADIENT = 1.0  # BERT's own scripts cut the norm of the whole gradient to this


def train(
    model: TaskModel,
    encoded: EncodedTask,
    schedule: TrainingSchedule,
    *,
    parts: Mapping[optimization.ParameterGroup, Mapping[str, torch.nn.Parameter]],
    speeds: Mapping[optimization.ParameterGroup, float],
    folder: Path,
    save_seconds: float = SAVE_SECONDS,
    progress: Progress | None = None,
) -> list[list[float]]:
    """Trains the network in place, resuming from the state in the folder if there is one.

    parts, speeds   the parameters, and how fast each part learns
    folder          holds the state
    progress        called with the steps done and all steps
    returns         [step] its number, its loss, and the norm of each part's gradient before it
                    is cut
    """
    state = last_state(folder)
    with randomness_restored(), quietly():
        trainer = _Trainer(
            parts=list(parts.values()),
            model=model.model.network,
            args=_arguments(folder, schedule, model.model.device),
            data_collator=partial(_collated, model),
            train_dataset=list(zip(encoded.examples, encoded.labels.tolist(), strict=True)),
            optimizers=(optimization.optimizer(parts, speeds), None),
            callbacks=[_TrainingWatch(save_seconds, progress)],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=None if state is None else str(state))
    steps: list[Any] = [x for x in trainer.state.log_history if "gradients" in x]
    return [[entry["step"], entry["loss"], *entry["gradients"]] for entry in steps]


class _Trainer(Trainer):
    """The Trainer with batches of similar length; records gradients before they are clipped.

    They are part of transformers' own history of the training, and so of its state on disk.
    """

    def __init__(self, *, parts: list[Mapping[str, torch.nn.Parameter]], **options: Any) -> None:
        super().__init__(**options)
        self.parts = parts

    def get_train_dataloader(self) -> DataLoader[Any]:
        rows: Any = self.train_dataset
        order = optimization.Batches(
            [len(example) for example, _ in rows],
            size=self.args.per_device_train_batch_size,
            seed=self.args.seed,
            steps_done=lambda: self.state.global_step,
        )
        return DataLoader(rows, batch_sampler=order, collate_fn=self.data_collator)

    def training_step(self, *args: Any, **options: Any) -> torch.Tensor:
        loss: torch.Tensor = super().training_step(*args, **options)
        step = self.state.global_step
        if not torch.isfinite(loss):
            raise HeadscopeError(
                f"the loss is {float(loss)} in step {step + 1}; wanted a number: give a lower rate"
            )
        scaler = getattr(self.accelerator, "scaler", None)  # of float16
        scale = 1.0 if scaler is None else float(scaler.get_scale())
        gradients: Any = [optimization.gradient_norm(part) / scale for part in self.parts]
        self.state.log_history.append({"step": step, "loss": float(loss), "gradients": gradients})
        return loss


class _TrainingWatch(TrainerCallback):
    def __init__(self, seconds: float, progress: Progress | None) -> None:
        self.seconds, self.progress, self.saved = seconds, progress, time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.progress is not None:
            self.progress(state.global_step, state.max_steps)
        if time.monotonic() - self.saved >= self.seconds and state.global_step < state.max_steps:
            control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Called after a checkpoint is written: its time does not count."""
        self.saved = time.monotonic()


def _collated(
    model: TaskModel, rows: Sequence[tuple[Example, int | float]]
) -> dict[str, torch.Tensor]:
    """Examples as a padded batch, as in evaluation."""
    batch = model.model.batch([example for example, _ in rows])
    inputs = {"input_ids": batch.input_ids, "attention_mask": batch.mask.long()}
    if model.model.has_segments:
        inputs["token_type_ids"] = batch.segment_ids
    kind = torch.float32 if model.task.is_regression else torch.int64
    return inputs | {"labels": torch.tensor([label for _, label in rows], dtype=kind)}


class _OnOneDevice(TrainingArguments):
    """Training arguments for one device: several GPUs would silently multiply the batch."""

    @property
    def n_gpu(self) -> int:
        return min(int(super().n_gpu), 1)


def _arguments(folder: Path, schedule: TrainingSchedule, device: torch.device) -> TrainingArguments:
    mixed = precision(device)
    return _OnOneDevice(
        str(folder),
        num_train_epochs=schedule.epochs,
        per_device_train_batch_size=schedule.batch,
        learning_rate=schedule.rate,
        warmup_steps=schedule.warm_up,
        lr_scheduler_type="linear",
        max_grad_norm=LARGEST_GRADIENT,
        seed=schedule.seed,
        use_cpu=device.type == "cpu",
        bf16=mixed == "bfloat16",
        fp16=mixed == "float16",
        save_strategy="no",
        save_total_limit=1,
        logging_strategy="no",
        eval_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )


def precision(device: torch.device) -> str:
    """The type of products in training; weights stay in float32."""
    if device.type != "cuda":
        return "float32"
    return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"


def last_state(folder: Path) -> Path | None:
    """The newest complete checkpoint; incomplete ones are deleted."""
    whole: dict[int, Path] = {}  # by the steps behind it
    for state in folder.glob("checkpoint-*"):
        try:
            whole[int(json.loads((state / STATE).read_text("utf-8"))["global_step"])] = state
        except (OSError, ValueError, KeyError):
            shutil.rmtree(state)
    return whole[max(whole)] if whole else None


def by_epoch(rows: Sequence[Sequence[float]], *, epochs: int, steps: int) -> Float64:
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
    """Restore the random state of Python, numpy and torch, which the Trainer seeds."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
