"""Which head is best at finding each relation, and what do pictures say about it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.relation_names import shown_relations
from headscope.core.results import estimate

DIRECTIONS = {"dependent_to_head": "d→h", "head_to_dependent": "h→d"}


@dataclass(frozen=True, slots=True)
class Finder:
    """The best head of one relation.

    relation   as the treebank calls it
    count      words asked about
    place      (layer, head), from 0
    direction  a key of DIRECTIONS
    offset     the best fixed offset, in words
    score      accuracy on documents that the head was not chosen on
    chosen     accuracy on the data that it was chosen on
    baseline   accuracy of the best fixed offset
    advantage  score less the baseline
    """

    relation: str
    count: int
    place: tuple[int, int]
    direction: str
    offset: int
    score: Estimate
    chosen: Estimate
    baseline: Estimate
    advantage: Estimate

    @property
    def beats(self) -> bool:
        """Whether the interval of the advantage lies above 0; False where there is none."""
        return bool(self.advantage.low > 0)

    @property
    def ahead(self) -> float:
        """How far the head is ahead of the offset; where nothing was held out, on the same data."""
        held_out = float(self.advantage.value)
        return held_out if np.isfinite(held_out) else float(self.chosen.value - self.baseline.value)

    @property
    def shown(self) -> Estimate:
        """The score; where nothing could be held out, the accuracy on the same data."""
        return self.score if np.isfinite(self.score.value) else self.chosen

    @property
    def head(self) -> str:
        """As papers name it."""
        return f"L{self.place[0] + 1}·H{self.place[1] + 1}"


def finders(dependency: xr.Dataset) -> list[Finder]:
    """One for every relation that was scored: TOTALS, then the labels, the most frequent first."""
    found = (_finder(dependency, at) for at in range(dependency.sizes["relation"]))
    return [finder for finder in found if finder is not None]


def shown_finders(dependency: xr.Dataset) -> list[Finder]:
    """Those of frequent relations, without root and punctuation; see `shown_relations`."""
    found = (_finder(dependency, at) for at in shown_relations(dependency))
    return [finder for finder in found if finder is not None]


def chosen_where(shown: Sequence[Finder]) -> str:
    """On what the best heads were chosen and scored, in words for a caption."""
    if any(np.isfinite(finder.score.value) for finder in shown):
        return "chosen on one half of the documents and scored on the other, both ways"
    return "chosen and scored on the same data"


def _finder(dependency: xr.Dataset, at: int) -> Finder | None:
    here = dependency.isel(relation=at)
    where = [float(here[f"best_{name}"]) for name in ("layer", "head", "direction", "offset")]
    if not np.isfinite(where).all() or int(here["count"]) == 0:
        return None
    layer, head, direction, offset = (int(number) for number in where)
    return Finder(
        str(dependency["relation"].values[at]),
        int(here["count"]),
        (layer, head),
        str(dependency["direction"].values[direction]),
        offset,
        *(estimate(here, name) for name in ("held_out", "best_accuracy", "baseline", "advantage")),
    )
