"""How far do a few features of a map get, without a network? What the network has to beat."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeClassifier

from headscope.analyses.patterns.resize import SIDE, Seen

Floats = npt.NDArray[np.float64]


class Rules:
    """A tree of at most 12 rules on `features`; seed breaks ties."""

    def __init__(self, *, seed: int = 0) -> None:
        self.tree = DecisionTreeClassifier(
            max_leaf_nodes=12, min_samples_leaf=5, class_weight="balanced", random_state=seed
        )

    def fit(self, seen: Seen, labels: npt.NDArray[np.int64]) -> Rules:
        """Learn the rules from labelled maps."""
        self.tree.fit(features(seen), labels)
        return self

    def predict(self, seen: Seen) -> npt.NDArray[np.int64]:
        """[map] class."""
        return np.asarray(self.tree.predict(features(seen)), np.int64)


def features(seen: Seen) -> Floats:
    """[map, feature] of the maps as the classifier sees them: [map, 2, SIDE, SIDE].

    Shares of the pooled weight: on the diagonal and beside it, in the largest column, in the three
    largest, in the first and in the last; within halves of the map; how unequal columns and rows
    are; how much is dark at all.
    """
    largest, mean = (seen[:, place].astype(np.float64) / 255 for place in (0, 1))
    total = np.maximum(mean.sum((1, 2)), 1e-9)
    away = np.abs(np.subtract.outer(np.arange(SIDE), np.arange(SIDE)))
    columns, rows = mean.sum(1), mean.sum(2)  # [map, column], [map, row]
    ordered = -np.sort(-columns, axis=1)
    half = SIDE // 2
    within = mean[:, :half, :half].sum((1, 2)) + mean[:, half:, half:].sum((1, 2))
    bands = [(mean * (away <= width)).sum((1, 2)) / total for width in (0, 1, 3)]
    ridge = [(largest * (away <= width)).sum((1, 2)) / (away <= width).sum() for width in (0, 1)]
    return np.stack(
        [
            *bands, *ridge, ordered[:, 0] / total, ordered[:, :3].sum(1) / total,
            columns[:, 0] / total, columns[:, -1] / total, within / total,
            columns.std(1) / columns.mean(1).clip(1e-9), rows.std(1) / rows.mean(1).clip(1e-9),
            largest.mean((1, 2)), mean.mean((1, 2)),
        ],
        axis=1,
    )  # [map, feature]  # fmt: skip
