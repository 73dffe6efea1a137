"""Which head looks from a frame element to the word that evokes its frame?

For every sentence the largest weight among all links of a core frame element to the target; then
the mean over sentences (Kovaleva et al. 2019, §4.2). Whether that is more than the distances alone
would give is tested by moving the links to random places of their sentences.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import xarray as xr

from headscope.analyses.frames.measure_links import PAIRING, QUANTILES, Links, ScoreBins
from headscope.core.accumulators import Counts, Estimate, Float64, ratio
from headscope.core.labelled import Variable, labelled
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.run.analysis import MEASURES, Analysis, Scope, check_option

PERMUTATIONS = 200
STATISTIC = ("standardised", "score")
WAYS = ("", "_reversed")  # from the frame element to the target, and back
TIE = 1e-5  # relative: what float32 rounds apart is equal, and counts against the head
UNITS = {"attention": "probability", "weighted_norm": "1"}
GRID = ("layer", "head")


class Frames(Analysis):
    """Attention from frame elements to their target, and back, with a permutation test.

    pairing       "product": every token of an element with every token of the target; "zip": as in
                  the authors' code, see `links_of`
    measure       "attention" or "weighted_norm"
    permutations  how often the links are moved; the smallest p is 1 / (permutations + 1)
    statistic     what is compared across heads: by how many standard deviations of its own
                  permutations a head is above their mean ("standardised"), or the "score" itself

    Each permutation moves every link (with "zip", every frame) to a place drawn evenly from all at
    which it fits among the tokens of its input that are not special, distances kept, and scores
    every head anew. p of a head is the share of permutations, the annotated one among them, whose
    largest statistic of any head is at least that head's: corrected for having looked at all heads
    (Westfall and Young 1993). With "score", one head whose weights are large wherever it looks
    hides all others; "standardised" judges each by what is usual for it. `chance` is a head's own
    mean over the permutations. The test is not in the paper, which compares heads with each other;
    that a head passes says that it looks at these words more than at others as far apart, not why.

    Inputs without frames, or none of whose links has tokens at both ends, do not count.
    """

    name: ClassVar[str] = "frames"
    needs: ClassVar[frozenset[str]] = frozenset({"attention", "frames"})
    summary: ClassVar[str] = "which head links frame elements and the word that evokes the frame"
    source: ClassVar[str] = "Kovaleva et al. 2019, §4.2"

    def __init__(
        self,
        scope: Scope,
        *,
        pairing: str = "product",
        measure: str = "attention",
        permutations: int = PERMUTATIONS,
        statistic: str = "standardised",
    ) -> None:
        super().__init__(scope)
        check_option("pairing", pairing, PAIRING)
        check_option("measure", measure, MEASURES)
        check_option("statistic", statistic, STATISTIC)
        if permutations < 1:
            raise ValueError(f"permutations is {permutations!r}; wanted at least 1")
        self.pairing, self.measure, self.statistic = pairing, measure, statistic
        self.permutations = permutations
        self.bins = ScoreBins.of(measure)
        self.total = self.sums(scope.layers, scope.heads, len(WAYS))
        self.count = self.sums()
        self.moved = self.sums(scope.layers, scope.heads, len(WAYS), permutations, replicates=0)
        self.spread = Counts.zeros(scope.layers, scope.heads, len(self.bins))
        self._links: Links | None = None

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each sentence's largest weight, as annotated and moved."""
        if layer.index == 0:
            self._begin(batch)
        links = self._links
        if links is None:
            return
        maps, weights = layer.measured(self.measure), batch.bootstrap[links.rows]
        both = [links.largest(maps, reversed_=way == 1) for way in range(len(WAYS))]
        scores = np.stack(both, -1)  # [linked, draw, head, way]
        self.total.add(scores[:, 0], weights, at=(layer.index,))
        by_head = np.moveaxis(scores[:, 1:], 1, -1)  # [linked, head, way, permutation]
        self.moved.add(by_head, weights, at=(layer.index,))
        self.bins.add(self.spread, scores[:, 0, :, 0], layer=layer.index)

    def _begin(self, batch: Batch) -> None:
        """Look up the links once per batch, and count the sentences that have any."""
        found = Links.of(
            batch, pairing=self.pairing, permutations=self.permutations, seed=self.scope.seed
        )
        self._links = found if len(found.rows) else None
        if self._links is not None:
            self.count.add(np.ones(len(found.rows)), batch.bootstrap[found.rows])

    def finish(self, batch: Batch) -> None:
        """Forget the batch."""
        self._links = None

    def result(self) -> xr.Dataset:
        """score[layer, head], its chance, p-value and spread over sentences; both directions.

        score, score_reversed        mean over sentences; the measure's unit
        chance, chance_reversed      the same with the links moved
        p_value, p_value_reversed    in (0, 1], corrected for looking at all heads
        distribution[…, bin]         share of sentences by score; `bin` is the lower edge
        score_quantile[…, quantile]  of the sentences' scores, to within 0.001 (attention) or 2.2 %
        sentences                    how many there were
        """
        unit = UNITS[self.measure]
        moved = ratio(self.moved.sums[0], self.count.sums[0])  # [layer, head, way, permutation]
        means = self.mean(self.total, self.count)
        variables: dict[str, Variable] = {}
        for way, suffix in enumerate(WAYS):
            words = "from target to frame element" if way else "from frame element to target"
            drawn = None if means.draws is None else means.draws[..., way]
            ends = means.low[..., way], means.high[..., way]
            score = Estimate(means.value[..., way], *ends, drawn)
            p = family_wise(score.value, moved[..., way, :], statistic=self.statistic)
            variables |= {
                f"score{suffix}": Variable(
                    score, GRID, f"largest weight {words}, mean", unit, self.source
                ),
                f"chance{suffix}": Variable(
                    moved[..., way, :].mean(-1), GRID, f"{words} with links moved", unit, "ours"
                ),
                f"p_value{suffix}": Variable(
                    p,
                    GRID,
                    f"share of permutations in which any head stands as high, {words}",
                    "1",
                    "ours",
                ),
            }
        return labelled(
            variables | self._spread(unit),
            coords={"bin": self.bins.shown.tolist(), "quantile": QUANTILES},
        ).assign_attrs(
            measure=self.measure, pairing=self.pairing, permutations=self.permutations,
            statistic=self.statistic,
        )  # fmt: skip

    def _spread(self, unit: str) -> dict[str, Variable]:
        """How the scores of sentences are distributed."""
        return {
            "distribution": Variable(
                self.bins.shares(self.spread), (*GRID, "bin"),
                "share of sentences with such a largest weight", "1", self.source,
            ),
            "score_quantile": Variable(
                self.bins.quantiles(self.spread), (*GRID, "quantile"),
                "quantile over sentences of the largest weight", unit, self.source,
            ),
            "sentences": Variable(
                int(self.count.sums[0]), (), "sentences with a link", "1", self.source
            ),
        }  # fmt: skip


def family_wise(score: Float64, moved: Float64, *, statistic: str) -> Float64:
    """[layer, head] p-values corrected for looking at all heads; NaN where there is no score.

    score  [layer, head]               as annotated
    moved  [layer, head, permutation]  the same with the links moved
    """
    draws = np.concatenate([score[..., None], moved], -1)  # [layer, head, draw]
    if statistic == "standardised":
        draws = _standardised(draws)
    found, highest = draws[..., :1], draws[..., 1:].max((0, 1))
    reached = highest >= found - TIE * np.abs(found)  # [layer, head, permutation]
    p = (1 + reached.sum(-1)) / (1 + len(highest))
    return np.where(np.isnan(score), np.nan, p)


def _standardised(draws: Float64) -> Float64:
    """Standard deviations above the mean, of all draws alike so that the test stays exact.

    0 where moving the links changes nothing.
    """
    mean, spread = draws.mean(-1, keepdims=True), draws.std(-1, keepdims=True)
    moves = spread > TIE * np.abs(mean)
    above: Float64 = (draws - mean) * moves / np.where(moves, spread, 1)  # [layer, head, draw]
    return above
