"""The loss of a task, which is differentiated; `TokenLoss` is that of a language model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.nn import functional
from transformers import PreTrainedModel

from headscope.core.accumulators import Array
from headscope.model.language_model import TokenLoss
from headscope.tasks.task import Task


@dataclass(frozen=True)
class TaskLoss:
    """A task's own loss: cross-entropy in nats, or the squared error of a regression.

    The right answer is scored by its probability (Hao et al. 2021); in a regression by −(error²),
    which is ours.

    labels  [example] ids of classes, or numbers
    """

    task: Task
    labels: Array

    @property
    def name(self) -> str:
        """The name of the loss."""
        return "squared error" if self.task.is_regression else "cross-entropy"

    @property
    def units(self) -> str:
        """The unit of the loss."""
        return "1" if self.task.is_regression else "nats"

    def losses(self, logits: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        """[row] losses; logits [row, output]."""
        right = torch.from_numpy(self.labels[list(places)]).to(logits.device)
        if self.task.is_regression:
            return (logits[:, 0] - right.to(logits.dtype)) ** 2
        return functional.cross_entropy(logits, right, reduction="none")

    def answers(self, logits: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        """[row] probability of the right class, or minus a regression's loss."""
        losses = self.losses(logits, places)
        return -losses if self.task.is_regression else torch.exp(-losses)

    @contextmanager
    def asking(self, _network: PreTrainedModel, _places: Sequence[int]) -> Iterator[None]:
        """Does nothing: a task's head computes one row per example."""
        yield


Objective = TaskLoss | TokenLoss
