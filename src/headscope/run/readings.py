"""Which inputs each question reads.

Inputs of one kind, such as annotated sentences, are a reading, and no mean mixes two of them. What
needs no annotation reads the general reading of a run: the kind that has the most tokens, whole
documents only where there is nothing else. A question that needs an annotation which that lacks
reads the kind that has it. So documents that are read whole for their mentions serve coreference
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headscope.corpus import Example
from headscope.corpus.contents import DOCUMENTS, READINGS, SENTENCES, Annotations
from headscope.corpus.input_sample import InputSample
from headscope.corpus.stored_inputs import StoredInputChoice

MOST_SAMPLED = 16_384  # ours: tokens that each network of a run's control reads


@dataclass
class Reading:
    """What the inputs of one kind give to a plan.

    token_counts   [vocabulary] how often each token id occurs
    stored_inputs  of which a few are shown
    sample         for the control of the run
    annotations    which of them they have
    counts         documents, examples, tokens
    longest        tokens of the longest input
    """

    token_counts: npt.NDArray[np.int64]
    stored_inputs: StoredInputChoice
    sample: InputSample
    annotations: Annotations = field(default_factory=Annotations)
    counts: Counter[str] = field(default_factory=Counter)
    longest: int = 0
    _last: str | None = None  # the document last counted

    @classmethod
    def new(cls, vocabulary: int, *, seed: int) -> Reading:
        """Nothing read yet."""
        return cls(
            np.zeros(vocabulary, np.int64), StoredInputChoice(seed=seed),
            InputSample(seed=seed, most=MOST_SAMPLED),
        )  # fmt: skip

    def add(self, example: Example) -> None:
        """Take one input into account, but its ids; those of a document come together."""
        self.counts.update(
            documents=int(example.document != self._last), examples=1, tokens=len(example)
        )
        self._last, self.longest = example.document, max(self.longest, len(example))
        self.annotations.add(example)
        self.stored_inputs.consider(example)
        self.sample.consider(example)

    def merge(self, after: Reading) -> None:
        """Add what other documents gave."""
        self.token_counts += after.token_counts
        self.stored_inputs.merge(after.stored_inputs)
        self.sample.merge(after.sample)
        self.annotations.merge(after.annotations)
        self.counts += after.counts
        self.longest = max(self.longest, after.longest)


def merge_readings(into: dict[str, Reading], after: Mapping[str, Reading]) -> None:
    """Add the readings of what follows to those there, kind by kind."""
    for kind, reading in after.items():
        if kind in into:
            into[kind].merge(reading)
        else:
            into[kind] = reading


def general_reading(readings: Mapping[str, Reading]) -> str:
    """The kind of inputs that a question reads which needs no annotation."""
    order = list(READINGS)
    return min(
        readings,
        key=lambda kind: (kind == DOCUMENTS, -readings[kind].counts["tokens"], order.index(kind)),
    )


def reading_with(readings: Mapping[str, Reading], annotations: Collection[str]) -> str:
    """The kind that a question reads which needs these annotations: the one that has most of them,
    the general reading before others.
    """
    general = general_reading(readings)

    def lacking(kind: str) -> int:
        return len(set(annotations) - set(readings[kind].annotations.documents))

    return min(
        readings,
        key=lambda kind: (lacking(kind), kind != general, -readings[kind].counts["tokens"]),
    )


def shown_inputs(readings: Mapping[str, Reading]) -> tuple[Example, ...]:
    """A few inputs that a report shows: sentences with trees, and others of the general reading."""
    general = general_reading(readings)
    if SENTENCES in readings and general != SENTENCES:
        return readings[SENTENCES].stored_inputs.chosen(readings[general].stored_inputs)
    return readings[general].stored_inputs.chosen()
