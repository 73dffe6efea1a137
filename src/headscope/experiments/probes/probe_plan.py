"""The plan of a run of probes: its model, sentences, word vectors and trainings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from headscope.errors import InputError
from headscope.experiments.probes.settings import NETWORK, TRAINED, ProbeSettings
from headscope.experiments.probes.treebank_splits import Splits
from headscope.experiments.probes.word_vectors import WordVectors
from headscope.model.model import Model


@dataclass(frozen=True)
class ProbePlan:
    """Everything that decides the numbers.

    names    the probes that are run
    lacking  those that are not, for want of word vectors
    labels   [layer][head] what an atlas says of each head; None without one
    """

    model: Model
    splits: Splits
    settings: ProbeSettings
    names: tuple[str, ...]
    lacking: tuple[str, ...]
    vectors: WordVectors | None
    labels: Sequence[Sequence[str]] | None = None

    def __post_init__(self) -> None:
        """Raises InputError for a curve, layers or labels that cannot be."""
        _ = self.jobs
        layers, heads = self.model.shape.layers, self.model.shape.heads
        if any(not 0 <= layer < layers for layer in self.layers):
            raise InputError(
                f"found layer {max(self.layers) + 1}; {self.model.name} has layers 1 to {layers}"
            )
        if self.labels is not None and [len(row) for row in self.labels] != [heads] * layers:
            raise InputError(f"found labels of another shape; wanted {layers} × {heads} heads")

    @cached_property
    def jobs(self) -> list[ProbeTraining]:
        """All trainings of probes that score pairs."""
        size, settings = len(self.splits[0].sentences), self.settings
        return jobs(self.names, curve=settings.curve, size=size, seeds=settings.seeds)

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers of the structural probe, from 0."""
        asked = self.settings.structural_layers
        if "structural" not in self.names:
            return ()
        return tuple(range(self.model.shape.layers)) if asked is None else asked

    @property
    def kinds(self) -> list[str]:
        """Which features are needed, in the order of the work."""
        needed = {NETWORK.get(job.probe) for job in self.jobs}
        return [k for k in ("model", "random") if k in needed] + ["hidden"] * bool(self.layers)

    @property
    def spec(self) -> dict[str, Any]:
        """What decides the numbers beside the model and its inputs, as values that JSON knows."""
        return asdict(self.settings) | {
            "probes": self.names, "structural_layers": self.layers,
            "gold": [split.sha256 for split in self.splits],
            "words": None if self.vectors is None else self.vectors.sha256,
            "labels": self.labels,
        }  # fmt: skip


@dataclass(frozen=True)
class ProbeTraining:
    """One training: a probe on the first `size` sentences in random order, from one seed."""

    probe: str
    size: int
    seed: int


def jobs(
    probes: Sequence[str], *, curve: Sequence[int], size: int, seeds: int
) -> list[ProbeTraining]:
    """All trainings of probes that score pairs, in a fixed order; the curve from the first seed.

    raises  InputError for a training set of the curve that is larger than there are sentences
    """
    if too_large := [part for part in curve if part > size]:
        raise InputError(
            f"found {too_large[0]} sentences in --curve, and {size} to train on; give sizes below"
        )
    sizes = sorted({part for part in curve if part < size})
    found = []
    for probe in TRAINED:
        if probe in probes:
            found += [ProbeTraining(probe, size, seed) for seed in range(seeds)]
            found += [ProbeTraining(probe, part, 0) for part in sizes]
    return found
