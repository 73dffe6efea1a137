"""The inputs that each question reads.

Inputs of one kind, such as annotated sentences, are a reading, and no mean mixes two of them. What
needs no annotation reads the general reading of a run: the kind that has the most tokens, whole
documents only where there is nothing else. A question that needs an annotation which that lacks
reads the kind that has it. So documents that are read whole for their mentions serve coreference
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.claims.length_bands import NAMES, band_of, shortest_first
from headscope.core.intervals import FEWEST
from headscope.corpus import Example
from headscope.corpus.contents import DOCUMENTS, READINGS, SENTENCES, Annotations
from headscope.corpus.equal_documents import EqualDocuments
from headscope.corpus.input_sample import InputSample
from headscope.corpus.stored_inputs import StoredInputChoice

MOST_SAMPLED = 16_384  # ours: tokens that each network of a run's control reads
WINDOW = 512  # ours: tokens of each input of a sample: of longer ones the first, see `window`


@dataclass
class CorpusReading:
    """The statistics of the inputs of one kind, for a plan.

    token_counts   [vocabulary] how often each token id occurs
    stored_inputs  of which a few are shown
    sample         for the control of the run
    annotations    which of them they have
    counts         documents, examples, tokens
    equal          documents of equal content
    longest        tokens of the longest input
    lengths        band of lengths -> documents with such inputs
    """

    token_counts: npt.NDArray[np.int64]
    stored_inputs: StoredInputChoice
    sample: InputSample
    annotations: Annotations = field(default_factory=Annotations)
    counts: Counter[str] = field(default_factory=Counter)
    equal: EqualDocuments = field(default_factory=EqualDocuments)
    longest: int = 0
    lengths: Counter[str] = field(default_factory=Counter)

    @classmethod
    def new(cls, vocabulary: int, *, seed: int) -> CorpusReading:
        """An empty reading."""
        return cls(
            np.zeros(vocabulary, np.int64),
            StoredInputChoice(seed=seed),
            InputSample(seed=seed, most=MOST_SAMPLED),
        )

    def add(self, examples: Sequence[Example]) -> None:
        """Add all inputs of one document, except their ids."""
        self.counts.update(documents=1, examples=len(examples), tokens=sum(map(len, examples)))
        self.lengths.update({band_of(len(example)) for example in examples})
        self.equal.consider(examples)
        for example in examples:
            self.longest = max(self.longest, len(example))
            self.annotations.add(example)
            self.stored_inputs.consider(example)
            self.sample.consider(example.window(WINDOW))

    def counted(self) -> dict[str, Any]:
        """The counts for a manifest; documents of equal content count once, with a note.

        lengths  band -> documents with such inputs
        """
        copies = self.equal.counted(self.counts["documents"])
        units = self.counts["documents"] - copies.get("copies", 0)
        lengths = shortest_first(self.lengths)
        return dict(self.counts) | {"documents": units, "lengths": lengths} | copies

    def merge(self, after: CorpusReading) -> None:
        """Add the statistics of other documents."""
        self.token_counts += after.token_counts
        self.stored_inputs.merge(after.stored_inputs)
        self.sample.merge(after.sample)
        self.annotations.merge(after.annotations)
        self.counts += after.counts
        self.equal.merge(after.equal)
        self.lengths += after.lengths
        self.longest = max(self.longest, after.longest)

    @property
    def bands(self) -> list[str]:
        """Length bands with enough data for intervals; none for a single band."""
        bands = [name for name in NAMES if self.lengths[name] >= FEWEST]
        return bands if len(bands) > 1 else []


def merge_readings(into: dict[str, CorpusReading], after: Mapping[str, CorpusReading]) -> None:
    """Merge later readings into these, kind by kind."""
    for kind, reading in after.items():
        if kind in into:
            into[kind].merge(reading)
        else:
            into[kind] = reading


def general_reading(readings: Mapping[str, CorpusReading]) -> str:
    """The kind of inputs for questions that need no annotation."""
    order = list(READINGS)
    return min(
        readings,
        key=lambda kind: (kind == DOCUMENTS, -readings[kind].counts["tokens"], order.index(kind)),
    )


def reading_with(readings: Mapping[str, CorpusReading], annotations: Collection[str]) -> str:
    """The kind of inputs for questions that need these annotations: the one with most of them, the
    general reading first among equals.
    """
    general = general_reading(readings)

    def lacking(kind: str) -> int:
        return len(set(annotations) - set(readings[kind].annotations.documents))

    return min(
        readings,
        key=lambda kind: (lacking(kind), kind != general, -readings[kind].counts["tokens"]),
    )


def shown_inputs(readings: Mapping[str, CorpusReading]) -> tuple[Example, ...]:
    """A few inputs for a report: sentences with trees, and others of the general reading."""
    general = general_reading(readings)
    if SENTENCES in readings and general != SENTENCES:
        return readings[SENTENCES].stored_inputs.chosen(readings[general].stored_inputs)
    return readings[general].stored_inputs.chosen()
