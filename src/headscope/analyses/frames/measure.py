"""Which head looks from a frame element to the word that evokes its frame?

For every sentence the largest weight among all links of a core frame element to the target; then
the mean over sentences (Kovaleva et al. 2019, §4.2). Whether that is more than the distances alone
would give is tested by moving the links to random places of their sentences.
"""

from typing import ClassVar

import numpy as np
import xarray as xr

from headscope.analyses.frames import QUESTION
from headscope.analyses.frames.measure_links import QUANTILES, Links, ScoreBins
from headscope.core.accumulators import Counts, Float64, ratio
from headscope.core.intervals import Estimate
from headscope.core.results import Variable, labelled
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope, bounds_of

PERMUTATIONS = 200
WAYS = ("", "_reversed")  # from the frame element to the target, and back
TIE = 1e-5  # relative: what float32 rounds apart is equal, and counts against the head
GRID = ("layer", "head")


class Frames(Analysis, question=QUESTION):
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

    whole_maps: ClassVar[bool] = False

    def __init__(
        self, scope: Scope, *, pairing: str = "product", measure: str = "attention",
        permutations: int = PERMUTATIONS, statistic: str = "standardised",
    ) -> None:  # fmt: skip
        super().__init__(scope)
        self.options = self.checked(measure=measure, pairing=pairing, statistic=statistic)
        self.checked(permutations=permutations)
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
            self._links = Links.of(
                batch, pairing=self.options["pairing"], permutations=self.permutations,
                seed=self.scope.seed,
            )  # fmt: skip
        links = self._links
        if links is None or not len(links.rows):
            return
        groups = batch.groups[links.rows]
        if layer.index == 0:
            self.count.add(np.ones(len(links.rows)), groups)
        measure = self.options["measure"]
        both = [
            links.largest(layer, batch, measure=measure, reversed_=way == 1)
            for way in range(len(WAYS))
        ]
        scores = np.stack(both, -1)  # [linked, draw, head, way]
        self.total.add(scores[:, 0], groups, at=(layer.index,))
        by_head = np.moveaxis(scores[:, 1:], 1, -1)  # [linked, head, way, permutation]
        self.moved.add(by_head, groups, at=(layer.index,))
        self.bins.add(self.spread, scores[:, 0, :, 0], layer=layer.index)

    def result(self) -> xr.Dataset:
        """[layer, head] the mean score of sentences, its chance and its p-value, both directions.

        p is in (0, 1]; `bin` of the distribution of the sentences' scores is its lower edge; their
        quantiles are right to within 0.001 (attention) or 2.2 %.
        """
        unit = "probability" if self.options["measure"] == "attention" else "1"
        moved = ratio(self.moved.total, self.count.total)  # [layer, head, way, permutation]
        means = self.mean(self.total, self.count, bounds=bounds_of(self.options["measure"]))
        assert means.draws is not None
        parts = (means.value, means.low, means.high, means.draws)
        above = "share of permutations in which any head stands as high"
        variables: dict[str, Variable] = {}
        for way, end in enumerate(WAYS):
            words = "from target to frame element" if way else "from frame element to target"
            score = Estimate(*(part[..., way] for part in parts))
            drawn = moved[..., way, :]
            p = family_wise(score.value, drawn, statistic=self.options["statistic"])
            rows = {
                f"score{end}": (score, f"largest weight {words}, mean", unit, self.source),
                f"chance{end}": (drawn.mean(-1), f"{words} with links moved", unit, "ours"),
                f"p_value{end}": (p, f"{above}, {words}", "1", "ours"),
            }
            variables |= {name: Variable(row[0], GRID, *row[1:]) for name, row in rows.items()}
        variables |= {
            "distribution": Variable(
                self.bins.shares(self.spread), (*GRID, "bin"),
                "share of sentences with such a largest weight", "1", self.source,
            ),
            "score_quantile": Variable(
                self.bins.quantiles(self.spread), (*GRID, "quantile"),
                "quantile over sentences of the largest weight", unit, self.source,
            ),
            "sentences": Variable(
                int(self.count.total), (), "sentences with a link", "1", self.source
            ),
        }  # fmt: skip
        coords = {"bin": self.bins.shown.tolist(), "quantile": QUANTILES}
        attributes = self.options | {"permutations": self.permutations}
        return labelled(variables, coords=coords).assign_attrs(attributes)


def family_wise(score: Float64, moved: Float64, *, statistic: str) -> Float64:
    """[layer, head] p-values corrected for looking at all heads; NaN where there is no score.

    score  [layer, head]               as annotated
    moved  [layer, head, permutation]  the same with the links moved
    """
    draws = np.concatenate([score[..., None], moved], -1)  # [layer, head, draw]
    if statistic == "standardised":
        # Above the mean of all draws alike, so that the test stays exact; 0 where moving the links
        # changes nothing.
        mean, spread = draws.mean(-1, keepdims=True), draws.std(-1, keepdims=True)
        moves = spread > TIE * np.abs(mean)
        draws = (draws - mean) * moves / np.where(moves, spread, 1)
    found, highest = draws[..., :1], draws[..., 1:].max((0, 1))
    reached = highest >= found - TIE * np.abs(found)  # [layer, head, permutation]
    p = (1 + reached.sum(-1)) / (1 + len(highest))
    return np.where(np.isnan(score), np.nan, p)
