"""The best head at something, and how good it is on data that it was not chosen on.

The best of 144 heads on some data is better there than anywhere else. So it is also chosen on one
half of the documents and scored on the other, both ways, and the two scores are pooled.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from headscope.core.accumulators import Array, Float64, Ints, Sums, ratio
from headscope.core.intervals import Estimate, estimate_difference, estimate_share
from headscope.core.results import Variable

DIFFERENCES = ("advantage",)  # of two shares: no share itself
CHOSEN = ("held_out", "advantage")  # hang on which head is chosen as well
WORDS = {
    "best_layer": "layer of the best head",
    "best_head": "the best head within its layer",
    "best_accuracy": "accuracy of the best head, chosen on the same data",
    "held_out": "accuracy of heads chosen on the other half of the data",
}


@dataclass(frozen=True)
class HeldOutChoice:
    """The best candidate of each column, as the data choose it.

    The best one on a half depends on the documents, too: for `held_out` it is chosen again in
    every replicate. Else the choices are those of the data in all of them.

    unit      [column] index of the candidate that is best on all data; -1 where none is ever right
    chosen    [replicate + 1, column] its accuracy on the data that it was chosen on
    held_out  [replicate + 1, column] accuracy of the candidates chosen on the other half; NaN where
              on a half none is ever right
    shape     of the candidates, whose flat index `unit` is
    """

    unit: Ints
    chosen: Float64
    held_out: Float64
    shape: tuple[int, ...]

    @property
    def places(self) -> list[Float64]:
        """[column] where the best candidate stands on each axis of them; NaN without one."""
        places = np.unravel_index(np.maximum(self.unit, 0), self.shape)
        return [np.where(self.unit < 0, np.nan, place) for place in places]


def best(correct: Float64, count: Float64) -> HeldOutChoice:
    """The best candidate of each column, on all data and across halves.

    correct  [replicate + 1, half, *candidate, column] sums of correct answers; replicate 0
             is the data
    count    [replicate + 1, half, column] sums of questions
    """
    shape = correct.shape[2:-1]
    correct = correct.reshape(*correct.shape[:2], -1, correct.shape[-1])  # [.., half, unit, column]
    total, questions = correct.sum(1), count.sum(1)
    unit = _argmax(total[0])
    columns, replicates = np.arange(len(unit)), np.arange(len(correct))[:, None]
    first, second = (correct[:, half].argmax(1) for half in (0, 1))  # [replicate + 1, column]
    crossed = correct[replicates, 0, second, columns] + correct[replicates, 1, first, columns]
    held_out = ratio(crossed, questions)  # [replicate + 1, column]
    held_out[:, ~correct[0].any(1).all(0)] = np.nan
    return HeldOutChoice(unit, ratio(total[:, unit, columns], questions), held_out, shape)


def counted(
    rows: Mapping[str, tuple[Array, tuple[str, ...]]],
    words: Mapping[str, str],
    totals: Float64,
    *,
    source: str,
) -> dict[str, Variable]:
    """Variables of unit 1, from values and their dims by name.

    rows   values that have a leading axis beyond their dims are draws: shares of right answers, or
           their differences, whose last axis is the column
    words  what each is, where WORDS do not say it
    totals  [replicate + 1, column] questions
    """
    known = {**WORDS, **words}
    variables = {}
    for name, (values, dims) in rows.items():
        value: Estimate | Array = values
        if values.ndim > len(dims):
            middle = [1] * (values.ndim - 2)
            questions = totals.reshape(len(totals), *middle, -1)  # [replicate + 1, 1, …, column]
            made = estimate_difference if name in DIFFERENCES else estimate_share
            value = made(values, questions, twice=name in CHOSEN)
        variables[name] = Variable(value, dims, known[name], "1", source)
    return variables


def add_by_half(
    sums: Sums, values: Array, half: Array, groups: Ints, *, at: tuple[int, ...] = ()
) -> None:
    """Add a batch to the half of the corpus that each example belongs to.

    sums     of cells [half, *cell]
    values   [example, *cell[len(at):]]
    half     [example] 0 or 1, from `halves`
    groups   [example] see `groups_of`
    at       the leading cell indices behind the half, say (layer,)
    """
    for which in (0, 1):
        rows = half == which
        if rows.any():
            sums.add(values[rows], groups[rows], at=(which, *at))


def chosen_where(held_out: Iterable[Estimate]) -> str:
    """On what the best heads were chosen and scored, in words for a caption."""
    if any(np.isfinite(parts.value).any() for parts in held_out):
        return "chosen on one half of the documents and scored on the other, both ways"
    return "chosen and scored on the same data"


def _argmax(correct: Float64) -> Ints:
    """[column] the first of the largest of correct [unit, column]; -1 where all are 0."""
    return np.where(correct.any(0), correct.argmax(0), -1).astype(np.int64)
