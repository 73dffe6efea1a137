"""How are scores spread over sentences, without keeping a single one?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import Counts, Float64, ratio

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
OCTAVES = range(-10, 7)


@dataclass(frozen=True)
class ScoreBins:
    """Fine bins, for quantiles, and wide ones made of so many fine ones each, to be shown.

    edges  [fine + 1] ascending; what lies above the last falls into the last bin
    each   fine bins in a wide one
    """

    edges: Float64
    each: int

    @classmethod
    def of(cls, measure: str) -> ScoreBins:
        """Attention: wide bins of 0.05 from 0 to 1, fine ones of 0.001. Weighted norm: one wide bin
        below 2⁻¹⁰, then one an octave up to 2⁶; a fine one is a 32nd of it."""
        if measure == "attention":
            return cls(np.linspace(0, 1, 1001), 50)
        below = np.linspace(0, 2.0 ** OCTAVES[0], 32, endpoint=False)
        above = 2.0 ** (np.arange(32 * OCTAVES[0], 32 * OCTAVES[-1] + 1) / 32)
        return cls(np.concatenate([below, above]), 32)

    def __len__(self) -> int:
        """Number of fine bins."""
        return len(self.edges) - 1

    @property
    def shown(self) -> Float64:
        """[bin] lower edges of the wide bins."""
        return self.edges[: -1 : self.each]

    def add(self, counts: Counts, scores: Float64, *, layer: int) -> None:
        """Count scores [sentence, head] of one layer into counts [layer, head, fine]."""
        place = np.searchsorted(self.edges, scores, "right") - 1
        heads = counts.counts.shape[1]
        head = layer * heads + np.arange(heads)
        counts.add(head * len(self) + np.clip(place, 0, len(self) - 1))

    def shares(self, counts: Counts) -> Float64:
        """[layer, head, bin] share of the scores in each wide bin; NaN without any."""
        wide = counts.counts.reshape(*counts.counts.shape[:2], -1, self.each).sum(-1)
        return ratio(wide.astype(np.float64), wide.sum(-1, keepdims=True))  # [layer, head, bin]

    def quantiles(self, counts: Counts) -> Float64:
        """[layer, head, quantile] QUANTILES, to within a fine bin: inside it, a straight line."""
        layers, heads, fine = counts.counts.shape
        flat: npt.NDArray[np.int64] = counts.counts.reshape(-1, fine)  # [layer·head, fine]
        found = np.full((len(flat), len(QUANTILES)), np.nan)
        for row, count in enumerate(flat):
            if count.any():
                reached = np.concatenate([[0], count.cumsum()]) / count.sum()
                border = np.append(count > 0, False) | np.append(False, count > 0)
                found[row] = np.interp(QUANTILES, reached[border], self.edges[border])
        return found.reshape(layers, heads, -1)  # [layer, head, quantile]
