"""Trains a probe so that a kill costs a minute at most and leaves every bit as it is.

A plain loop: one sentence a step, Adam, the sum of the cross-entropy over its words, as in Clark et
al. (2019). transformers' Trainer, which trains the models here, takes five times as long a step
(3.8 ms against 0.75 ms with 144 heads and 20 words): its bookkeeping outweighs so small a network.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.core.accumulators import generator
from headscope.errors import HeadscopeError
from headscope.run.store import State, pack, put, unpack

SAVE_SECONDS = 30.0
BETTER = 1e-4  # the loss on dev must fall by so much to count (Hewitt and Manning's code)
PATIENCE = 5  # epochs without that, after which training ends
Loss = Callable[[Sequence[int]], torch.Tensor]
Progress = Callable[[int], None]  # items seen since it was last called


@dataclass(frozen=True)
class ProbeSchedule:
    """How long a probe is trained, and how fast it learns.

    batch     items of a step
    patience  epochs without a better loss on dev before training ends
    plateau   the rate is multiplied by this after every epoch without a better loss on dev
    """

    epochs: int
    batch: int
    rate: float
    patience: int = PATIENCE
    plateau: float = 1.0
    seed: int = 0


def train(
    probe: nn.Module,
    losses: tuple[Loss, Loss],
    sizes: tuple[int, int],
    schedule: ProbeSchedule,
    *,
    state: Path,
    key: str,
    progress: Progress = lambda count: None,
) -> None:
    """Trains the probe in place, from its state on disk if there is one.

    losses  of some items of train, and of dev, by their numbers; a scalar that is summed over items
    sizes   how many items train and dev have; with several epochs and some of dev, the parameters
            of the epoch with the least loss on dev are kept
    state   the file that is written every SAVE_SECONDS
    key     names the training: the state of another is not taken
    """
    job = _TrainingState(probe, schedule)
    job.load(state, key)
    saved = time.monotonic()
    while job.epoch < schedule.epochs and job.worse < schedule.patience:
        order = generator(schedule.seed, "order", str(job.epoch)).permutation(sizes[0])
        while job.position < sizes[0]:
            items = order[job.position : job.position + schedule.batch].tolist()
            job.step(losses[0](items))
            job.position += len(items)
            progress(len(items))
            if time.monotonic() - saved > SAVE_SECONDS:
                put(state, pack(job.state(key)))
                saved = time.monotonic()
        watched = schedule.epochs > 1 and sizes[1] > 0
        job.end_epoch(_total(losses[1], sizes[1], schedule.batch) if watched else None)
    job.restore_best()


class _TrainingState:
    """Everything that decides how a training goes on: its attributes are the state on disk."""

    def __init__(self, probe: nn.Module, schedule: ProbeSchedule) -> None:
        self.parameters = dict(probe.named_parameters())
        self.optimizer = torch.optim.Adam(self.parameters.values(), lr=schedule.rate)
        self.schedule = schedule
        self.epoch = self.position = self.worse = 0
        self.least = float("inf")
        self.best: dict[str, torch.Tensor] = {}

    def step(self, loss: torch.Tensor) -> None:
        """One step of Adam."""
        if not torch.isfinite(loss):
            raise HeadscopeError(
                f"the loss of a probe is {loss.item()}; wanted a number: give a lower --rate"
            )
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    def end_epoch(self, loss: float | None) -> None:
        """Judge the epoch by the loss on dev, where there is one."""
        self.epoch, self.position = self.epoch + 1, 0
        if loss is None:
            return
        if loss < self.least - BETTER:
            self.least, self.worse = loss, 0
            self.best = {name: p.detach().clone() for name, p in self.parameters.items()}
            return
        self.worse += 1
        for group in self.optimizer.param_groups:
            group["lr"] *= self.schedule.plateau

    def restore_best(self) -> None:
        """The parameters of the best epoch, if epochs were judged."""
        with torch.no_grad():
            for name, value in self.best.items():
                self.parameters[name].copy_(value)

    # --- on disk ----------------------------------------------------------------------------

    def state(self, key: str) -> State:
        """Named arrays."""
        rate = self.optimizer.param_groups[0]["lr"]
        numbers = [self.epoch, self.position, self.worse, self.least, rate]
        found: State = {
            "numbers": np.array(numbers, np.float64),
            "key": np.frombuffer(key.encode(), np.uint8),
        }
        for name, parameter in self.parameters.items():
            found[f"now.{name}"] = parameter.detach().numpy()
            for part, value in self.optimizer.state[parameter].items():
                found[f"adam.{part}.{name}"] = value.numpy()
        return found | {f"best.{name}": value.numpy() for name, value in self.best.items()}

    def load(self, path: Path, key: str) -> None:
        """Go on from a state that is whole and of this training; else begin."""
        try:
            found = unpack(path.read_bytes())
        except Exception:  # absent, or damaged in whatever way
            return
        if found["key"].tobytes() != key.encode():
            return
        epoch, position, worse, self.least, rate = found["numbers"].tolist()
        self.epoch, self.position, self.worse = int(epoch), int(position), int(worse)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(_tensor(found, f"now.{name}"))
                self.optimizer.state[parameter] = {
                    part: _tensor(found, f"adam.{part}.{name}")
                    for part in ("step", "exp_avg", "exp_avg_sq")
                }
        named = {n.removeprefix("best.") for n in found if n.startswith("best.")}
        self.best = {name: _tensor(found, f"best.{name}") for name in named}


def _tensor(found: Mapping[str, Any], name: str) -> torch.Tensor:
    return torch.from_numpy(found[name].copy())


def _total(loss: Loss, size: int, batch: int) -> float:
    """The loss of all items."""
    with torch.no_grad():
        parts = [float(loss(range(at, min(at + batch, size)))) for at in range(0, size, batch)]
    return sum(parts)


@contextmanager
def drawn_with(seed: int, *names: str) -> Iterator[None]:
    """Seeds torch by this seed and these names inside the context."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(generator(seed, *names).integers(2**62)))
        yield
