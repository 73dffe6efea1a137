"""Keep the sums behind claims separately by length of the input as well.

The inputs of one band of lengths are read together. What they add to an analysis goes to the sums
of their band, in fewer groups of documents, and is then set aside for the sums of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy

import xarray as xr

from headscope.claims.length_bands import NAMES, band_of
from headscope.claims.question import questions
from headscope.core.accumulators import Accumulator, Sums
from headscope.corpus import Example
from headscope.run.analysis import Analysis

GROUPS = 20  # ours: of documents, at most, in a band; an interval of as many is hardly longer


def banded(names: Iterable[str]) -> list[str]:
    """The analyses that make claims about heads."""
    claiming = {question.name for question in questions() if question.claims is not None}
    return [name for name in names if name in claiming]


class OfBand(Analysis):
    """An analysis of the inputs of one length band; keeps only its sums."""

    def __init__(self, whole: Analysis) -> None:
        super().__init__(whole.scope)
        self.whole, self.name = whole, whole.name  # type: ignore[misc]
        self.needs = whole.needs  # type: ignore[misc]

    @property
    def accumulators(self) -> dict[str, Accumulator]:
        """Its sums by name: the whole state."""
        return dict(self.sums_by_name)

    @property
    def sums_by_name(self) -> dict[str, Sums]:
        """As `accumulators`."""
        every = self.whole.accumulators
        return {name: sums for name, sums in every.items() if isinstance(sums, Sums)}

    def result(self) -> xr.Dataset:
        """The results that follow from the sums; others are missing."""
        return self.whole.result()


class BandSums:
    """Divides the sums of analyses over inputs of one kind by length band.

    of_bands  band -> name of an analysis -> the one that is of its inputs alone
    """

    def __init__(
        self, analyses: Sequence[Analysis], of_bands: Mapping[str, Mapping[str, OfBand]]
    ) -> None:
        # Each of the sums, what other bands gave it, and those of bands that have data enough.
        self.sums: list[tuple[Sums, Sums, dict[str, Sums]]] = []
        for analysis in analyses:
            parts = {
                band: few[analysis.name].sums_by_name
                for band, few in of_bands.items()
                if analysis.name in few
            }
            for key, sums in analysis.accumulators.items():
                own = {band: part[key] for band, part in parts.items() if key in part}
                if own and isinstance(sums, Sums):
                    self.sums.append((sums, deepcopy(sums), own))

    def apart(self, places: Sequence[int], examples: Sequence[Example]) -> Iterator[list[int]]:
        """The places of the examples of each band, the longest band first.

        What is added until the next ones are wanted goes to the sums of their band, too.
        """
        if not self.sums:
            yield list(places)
            return
        by_band: dict[str, list[int]] = {}
        for at in places:
            by_band.setdefault(band_of(len(examples[at])), []).append(at)
        for sums, aside, _ in self.sums:  # what was read before is of no band of these
            aside.array[...] = sums.array
            sums.array[...] = sums.nothing
        for band in sorted(by_band, key=NAMES.index, reverse=True):
            yield by_band[band]
            for sums, aside, own in self.sums:
                if band in own:
                    own[band].merge(sums.folded(len(own[band].by_group)))
                aside.merge(sums)
                sums.array[...] = sums.nothing
        for sums, aside, _ in self.sums:
            sums.merge(aside)
