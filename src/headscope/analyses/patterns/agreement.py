"""How far do two annotators agree, beyond what chance alone would give?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headscope.analyses.patterns.classes import NAMES


@dataclass(frozen=True)
class Agreement:
    """Two annotators on the maps that both labelled.

    count      how many those are
    same       on how many they agree
    kappa      Cohen's kappa (1960), at most 1; NaN where chance alone would agree everywhere
    confusion  [label of the first, label of the second] counts in the order of NAMES
    """

    count: int
    same: int
    kappa: float
    confusion: npt.NDArray[np.int64]


def agreement(first: Mapping[int, str], second: Mapping[int, str]) -> Agreement:
    """How far they agree; each given as number → label."""
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    both = sorted(first.keys() & second.keys())
    if not both:
        return Agreement(0, 0, float("nan"), np.zeros((len(NAMES), len(NAMES)), np.int64))
    pair = [first[number] for number in both], [second[number] for number in both]
    confusion = confusion_matrix(*pair, labels=list(NAMES)).astype(np.int64)
    alone = len({*pair[0], *pair[1]}) == 1  # one class for all: nothing beyond chance
    kappa = float("nan") if alone else float(cohen_kappa_score(*pair, labels=list(NAMES)))
    return Agreement(len(both), int(np.trace(confusion)), kappa, confusion)
