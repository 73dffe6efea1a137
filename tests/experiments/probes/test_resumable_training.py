"""Does a training that was stopped end in the same bits, and stop when dev says so?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from headscope.errors import HeadscopeError
from headscope.experiments.probes import resumable_training
from headscope.experiments.probes.resumable_training import LearningSchedule, drawn_with, train

DATA = torch.linspace(-1, 1, 12)


class Line(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.slope = torch.nn.Parameter(torch.tensor([3.0]))


def loss_of(line: Line, items, stop_after: list[int] | None = None) -> torch.Tensor:
    if stop_after is not None:
        stop_after[0] -= 1
        if stop_after[0] < 0:
            raise KeyboardInterrupt
    x = DATA[list(items)]
    return ((line.slope * x - x) ** 2).sum()


def trained(folder: Path, schedule: LearningSchedule, stop_after: int | None = None) -> Line:
    line = Line()
    stop = None if stop_after is None else [stop_after]
    train(
        line,
        (lambda items: loss_of(line, items, stop), lambda items: loss_of(line, items)),
        (9, 3),
        schedule,
        state=folder / "state",
        key="k",
    )
    return line


@pytest.mark.parametrize("stop_after", [1, 7, 13])
def test_a_training_that_was_stopped_ends_in_the_same_bits(
    tmp_path: Path, monkeypatch, stop_after: int
) -> None:
    schedule = LearningSchedule(epochs=3, batch=2, rate=0.1, plateau=0.1)
    whole = trained(tmp_path / "a", schedule)
    monkeypatch.setattr(resumable_training, "SAVE_SECONDS", 0)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "b", schedule, stop_after)
    assert (tmp_path / "b" / "state").exists() == (stop_after > 0)
    again = trained(tmp_path / "b", schedule)
    assert torch.equal(again.slope, whole.slope)


def test_the_state_of_another_training_is_not_taken(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(resumable_training, "SAVE_SECONDS", 0)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, LearningSchedule(1, 1, 0.1), stop_after=5)
    line = Line()
    steps = []
    train(
        line,
        (lambda items: steps.append(1) or loss_of(line, items), lambda items: None),
        (9, 0),
        LearningSchedule(1, 1, 0.1),
        state=tmp_path / "state",
        key="another",
    )
    assert len(steps) == 9


def test_training_ends_when_dev_gets_no_better_and_keeps_the_best(tmp_path: Path) -> None:
    line, epochs = Line(), []
    losses = iter([5.0, 4.0, 6.0, 4.5, 0.0])

    def dev(items):
        epochs.append(line.slope.item())
        return torch.tensor(next(losses))

    train(
        line,
        (lambda items: loss_of(line, items), dev),
        (4, 1),
        LearningSchedule(9, 1, 0.1, patience=2),
        state=tmp_path / "s",
        key="k",
    )
    assert len(epochs) == 4
    assert line.slope.item() == epochs[1]


def test_one_epoch_asks_nothing_of_dev(tmp_path: Path) -> None:
    line = Line()
    train(
        line,
        (lambda items: loss_of(line, items), lambda items: 1 / 0),
        (4, 2),
        LearningSchedule(1, 1, 0.1),
        state=tmp_path / "s",
        key="k",
    )
    assert line.slope.item() != 3


def test_a_loss_that_is_no_number_is_told(tmp_path: Path) -> None:
    with pytest.raises(HeadscopeError, match="lower --rate"):
        train(
            Line(),
            (lambda items: torch.tensor(np.nan), lambda items: None),
            (4, 0),
            LearningSchedule(1, 1, 0.1),
            state=tmp_path / "s",
            key="k",
        )


def test_drawing_by_a_seed_leaves_the_callers_chance_alone() -> None:
    before = torch.random.get_rng_state()
    with drawn_with(0, "a"):
        first = torch.rand(2)
    with drawn_with(0, "a"):
        assert torch.equal(torch.rand(2), first)
    with drawn_with(1, "a"):
        assert not torch.equal(torch.rand(2), first)
    assert torch.equal(torch.random.get_rng_state(), before)
