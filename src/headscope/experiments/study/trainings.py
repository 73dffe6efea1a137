"""The trainings of a study: which there are, what each changes, and where its checkpoint lies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import InputError, unknown
from headscope.experiments.finetune.settings import TrainingSchedule

if TYPE_CHECKING:
    from headscope.tasks.task_data import TaskData

CHECKPOINTS = "checkpoints"  # folder of a study's checkpoints
PLAIN, RANDOM_LABELS, FROM_SCRATCH = "plain", "random-labels", "from-scratch"
LAYER_DECAY, FROZEN = "layer-decay", "frozen"
VARIANTS = {
    PLAIN: "as finetune trains",
    LAYER_DECAY: "lower layers learn more slowly",
    FROZEN: "the first layers do not learn",
    RANDOM_LABELS: "the labels of the training examples are shuffled",
    FROM_SCRATCH: "the weights before training are random",
}


@dataclass(frozen=True)
class StudyTraining:
    """One training of a study: of a variant, on a task, from a seed."""

    variant: str
    task: str
    seed: int

    @property
    def name(self) -> str:
        """The name of its checkpoint: `rte-seed0`, `rte-seed0-random-labels`."""
        task = re.sub(r"[^\w.-]", "-", self.task)
        return f"{task}-seed{self.seed}" + (f"-{self.variant}" if self.variant != PLAIN else "")

    def place(self, study: Path) -> Path:
        """The folder of its checkpoint."""
        return study / CHECKPOINTS / self.name

    def schedule(self, usual: TrainingSchedule) -> TrainingSchedule:
        """How it is trained; `usual` holds the numbers of all variants."""
        return replace(
            usual,
            seed=self.seed,
            layer_decay=usual.layer_decay if self.variant == LAYER_DECAY else 1.0,
            freeze=usual.freeze if self.variant == FROZEN else 0,
        )

    def examples(self, train: TaskData) -> TaskData:
        """What it learns from: with shuffled labels in that variant, drawn by its seed."""
        if self.variant != RANDOM_LABELS:
            return train
        from headscope.core.accumulators import generator  # help needs no numpy

        order = generator(self.seed, "shuffled labels", self.task).permutation(len(train))
        labels = [train.rows[at].label for at in order]
        rows = tuple(
            replace(row, label=label) for row, label in zip(train.rows, labels, strict=True)
        )
        return replace(train, rows=rows, notes=(*train.notes, "labels shuffled"))


def trainings_of(
    variants: Sequence[str], tasks: Sequence[str], seeds: Iterable[int]
) -> list[StudyTraining]:
    """All trainings, in the order in which they are made: every task once, before more seeds."""
    numbers = list(seeds)
    return [
        StudyTraining(variant, task, seed)
        for variant in variants
        for seed in numbers
        for task in tasks
    ]


def check_variants(variants: Sequence[str]) -> None:
    """Raise InputError for an unknown variant, one named twice, or a list without plain."""
    for name in variants:
        if name not in VARIANTS:
            raise unknown("variant", name, VARIANTS)
    if variants[:1] != (PLAIN,) or len(set(variants)) < len(variants):
        raise InputError(
            f"variants are {', '.join(variants) or 'none'}; wanted {PLAIN} first, then others of "
            f"{', '.join(VARIANTS)}, each once"
        )
