"""The best head at something, and how good it is on data that it was not chosen on.

The best of 144 heads on some data is better there than anywhere else. So it is also chosen on one
half of the documents and scored on the other, both ways, and the two scores are pooled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import Array, Float64, Sums, ratio


@dataclass(frozen=True)
class HeldOutChoice:
    """The best candidate of each column; the choices are those of the data, in all replicates.

    unit      [column] index of the candidate that is best on all data; -1 where none is ever right
    chosen    [replicate + 1, column] its accuracy on the data that it was chosen on
    held_out  [replicate + 1, column] accuracy of the candidates chosen on the other half; NaN where
              on a half none is ever right
    """

    unit: npt.NDArray[np.int64]
    chosen: Float64
    held_out: Float64


def best(correct: Float64, count: Float64) -> HeldOutChoice:
    """The best candidate of each column, on all data and across halves.

    correct  [replicate + 1, half, unit, column] weighted sums of correct answers; replicate 0 is
             the data
    count    [replicate + 1, half, column] weighted sums of questions
    """
    total, asked = correct.sum(1), count.sum(1)
    unit = _argmax(total[0])
    of_half = [_argmax(correct[0, half]) for half in (0, 1)]
    columns = np.arange(len(unit))
    crossed = correct[:, 0, of_half[1], columns] + correct[:, 1, of_half[0], columns]
    held_out = ratio(crossed, asked)  # [replicate + 1, column]
    held_out[:, (of_half[0] < 0) | (of_half[1] < 0)] = np.nan
    return HeldOutChoice(unit, ratio(total[:, unit, columns], asked), held_out)


def add_by_half(
    sums: Sums, values: Array, half: Array, weights: Float64, *, at: tuple[int, ...] = ()
) -> None:
    """Add a batch to the half of the corpus that each example belongs to.

    sums     [replicate + 1, half, *cell]
    values   [example, *cell[len(at):]]
    half     [example] 0 or 1, from `halves`
    weights  [example, replicate + 1] bootstrap weights
    at       the leading cell indices behind the half, say (layer,)
    """
    for which in (0, 1):
        rows = half == which
        if rows.any():
            sums.add(values[rows], weights[rows], at=(which, *at))


def _argmax(correct: Float64) -> npt.NDArray[np.int64]:
    """[column] the first of the largest of correct [unit, column]; -1 where all are 0."""
    return np.where(correct.any(0), correct.argmax(0), -1).astype(np.int64)
