"""The losses that are differentiated, and the score of the right answer, for each example.

A loss is a number per example, and what is differentiated is the sum over the examples of a batch:
an example's gradients are then its own, whatever it is batched with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional
from transformers import PreTrainedModel

from headscope.errors import ModelError
from headscope.tasks.task import Task

Ids = npt.NDArray[np.int64]


class Objective(Protocol):
    """A loss of examples, which are known by their places."""

    @property
    def name(self) -> str:
        """Of the loss, in words."""

    @property
    def units(self) -> str:
        """Of the loss."""

    def losses(self, logits: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        """[row] the loss of the example at each place, which may be the same several times."""

    def answers(self, logits: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        """[row] how well the right answer is told: what AttAttr attributes."""

    def asking(self, network: PreTrainedModel, places: Sequence[int]) -> Any:
        """A context in which the network tells the logits that the others take."""


@dataclass(frozen=True)
class TaskLoss:
    """A task's own loss: cross-entropy in nats, or the squared error of a regression.

    The right answer is told by its probability (Hao et al. 2021); in a regression by −(error²),
    which is ours.

    labels  [example] ids of classes, or numbers
    """

    task: Task
    labels: npt.NDArray[Any]

    @property
    def name(self) -> str:
        """Of the loss."""
        return "squared error" if self.task.is_regression else "cross-entropy"

    @property
    def units(self) -> str:
        """Of the loss."""
        return "1" if self.task.is_regression else "nats"

    def losses(self, logits: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        """[row]; logits [row, output]."""
        right = torch.from_numpy(self.labels[list(places)]).to(logits.device)
        if self.task.is_regression:
            return (logits[:, 0] - right.to(logits.dtype)) ** 2
        return functional.cross_entropy(logits, right, reduction="none")

    def answers(self, logits: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        """[row]; logits [row, output]."""
        losses = self.losses(logits, places)
        return -losses if self.task.is_regression else torch.exp(-losses)

    @contextmanager
    def asking(self, _network: PreTrainedModel, _places: Sequence[int]) -> Iterator[None]:
        """Changes nothing."""
        yield


@dataclass(frozen=True)
class TokenLoss:
    """A language model's loss: cross-entropy in nats, the mean over an example's asked places.

    The right answer is told by the mean probability of the right tokens.

    name    "masked-language-model loss" or "causal language-model loss"
    asked   by example, the places [place] at which a token is to be told
    right   by example, the ids [place] of the right ones
    """

    name: str
    asked: Sequence[Ids]
    right: Sequence[Ids]
    units: str = "nats"

    @property
    def digest(self) -> str:
        """Hex sha256 over all that is asked."""
        digest = hashlib.sha256()
        for places, ids in zip(self.asked, self.right, strict=True):
            digest.update(places.tobytes() + b"\x1f" + ids.tobytes() + b"\x1e")
        return digest.hexdigest()

    def losses(self, logits: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        """[row]; logits [asked place of any row, vocabulary]."""
        return self._means(self._each(logits, places), places)

    def answers(self, logits: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        """[row]; logits as before."""
        return self._means(torch.exp(-self._each(logits, places)), places)

    @contextmanager
    def asking(self, network: PreTrainedModel, places: Sequence[int]) -> Iterator[None]:
        """The language-model head computes only the places that are asked for."""
        head: Any = network.get_output_embeddings()  # type: ignore[no-untyped-call]
        if head is None:
            raise ModelError(
                f"{type(network).__name__} does not say where its language-model head is; wanted "
                "one with output embeddings"
            )
        rows = np.repeat(np.arange(len(places)), [len(self.asked[at]) for at in places])
        columns = np.concatenate([self.asked[at] for at in places])

        def chosen(_module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
            return (args[0][rows, columns], *args[1:])  # [asked place of any row, model]

        hook = head.register_forward_pre_hook(chosen)
        try:
            yield
        finally:
            hook.remove()

    def _each(self, logits: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        right = torch.from_numpy(np.concatenate([self.right[at] for at in places]))
        if logits.shape[:-1] != right.shape:
            raise ModelError(
                f"the language-model head gave {tuple(logits.shape)} for {len(right)} asked "
                "places; please report this model"
            )
        return functional.cross_entropy(logits, right.to(logits.device), reduction="none")

    def _means(self, values: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        parts = torch.split(values, [len(self.asked[at]) for at in places])
        return torch.stack([part.mean() for part in parts])  # [row]
