"""The classes of maps: how an annotator tells them, and of what kind tokens are.

Kovaleva et al. (2019), section 4.1. The definitions follow theirs, as precise as a glance allows.
They are tested in this order: block, line and columns, one of the two, else heterogeneous; so every
map has one class. "Plain" is what one would mention when describing the map in one breath. Columns
are those of special tokens and of punctuation; with `columns=any`, all, and squares are blocks
wherever they end.
"""

import numpy as np
import numpy.typing as npt

from headscope.analyses.patterns import CLASSES
from headscope.corpus.document import Example
from headscope.corpus.stored_inputs import segments

NAMES = tuple(c.name for c in CLASSES)
Kinds = npt.NDArray[np.int8]  # [token] one of
CONTENT, SPECIAL, PUNCTUATION = 0, 1, 2


def kinds_of(example: Example, marks: frozenset[int]) -> Kinds:
    """[token] CONTENT, SPECIAL or PUNCTUATION.

    In an input without any special token (a decoder that adds none) the first counts as one.
    """
    kinds = np.where([int(token) in marks for token in example.input_ids], PUNCTUATION, CONTENT)
    special = example.special if example.special.any() else np.arange(len(example)) == 0
    return np.where(special, SPECIAL, kinds).astype(np.int8)


def second_of(example: Example) -> int:
    """The first token of the second sentence; 0 where there is one sentence."""
    first = int((segments(example) == 0).sum())
    return first if first < len(example) else 0
