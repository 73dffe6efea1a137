"""Which head looks from a frame element to the word that evokes its frame?

For every sentence the largest weight among all links of a core frame element to the target; then
the mean over sentences (Kovaleva et al. 2019, §4.2). Whether that is more than the distances alone
would give is tested by moving the links to random places of their sentences.

A link is moved as a whole: its pairs keep their distances, and so does each to the others. What a
head gives a link wherever it stands comes from the distances alone, not from the words. Nor is a
frame element found by a head that looks at the target from everywhere: so the words beside the one
end are scored, too, with the other end in its place. Scores are counted in bins, so that their
spread over sentences is known without keeping a single one.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
import xarray as xr

from headscope.analyses.frames import QUESTION
from headscope.analyses.language.specific import against_rivals, words_beside
from headscope.core.accumulators import Counts, Float64, Ints, generator, ratio
from headscope.core.intervals import Estimate
from headscope.core.results import Variable, labelled
from headscope.corpus.document import Example
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope, bounds_of, ratio_of, sizes_of

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
OCTAVES = range(-10, 7)


@dataclass(frozen=True)
class Links:
    """The links of a batch as annotated and at drawn places; examples without any are left out.

    rows    [linked] the examples of the batch that have links
    first   [linked] the first link of each
    placed  [link, draw] a place of each link; draw 0 is where it is annotated
    start   [place] the first pair of each place
    pairs   [axis, pair] example, token of the frame element, token of the target
    beside  [way, side, axis, pair] example, query and key where the end that looks is moved to the
            words beside it; to itself where there are none
    ends    [link] the first pair of each link in `beside`
    """

    rows: Ints
    first: Ints
    placed: Ints
    start: Ints
    pairs: Ints
    beside: Ints
    ends: Ints

    @classmethod
    def of(cls, batch: Batch, *, pairing: str, permutations: int, seed: int) -> Self:
        """The links of all examples, with draws that depend on seed, document and example only."""
        rows, placed, sizes = list[int](), list[Ints](), list[int]()
        pairs, beside = [np.empty((3, 0), np.int64)], [np.empty((2, 2, 3, 0), np.int64)]
        for row, example in enumerate(batch.examples):
            draw = generator(seed, "frames", example.document, example.id)
            links = links_of(example, pairing=pairing)
            for link in links:
                beside.append(np.insert(beside_of(link, links, example), 0, row, axis=2))
                rows.append(row)
                places = places_of(link, example)  # [place, 2, pair]
                drawn = draw.integers(len(places), size=permutations)
                annotated = int((places == link).all((1, 2)).argmax())
                placed.append(len(sizes) + np.concatenate([[annotated], drawn]))
                sizes += [link.shape[1]] * len(places)
                flat = places.transpose(1, 0, 2).reshape(2, -1)  # [2, place·pair]
                pairs.append(np.stack([np.full_like(flat[0], row), *flat]))
        return cls(
            *np.unique(np.array(rows, np.int64), return_index=True),
            np.array(placed, np.int64).reshape(len(placed), permutations + 1),
            np.cumsum([0, *sizes])[:-1],
            np.concatenate(pairs, 1),
            np.concatenate(beside, -1),
            np.cumsum([0, *(part.shape[-1] for part in beside[1:])])[:-1],
        )

    def largest(self, layer: LayerView, batch: Batch, *, measure: str, reversed_: bool) -> Float64:
        """[linked, draw, head] the largest weight of each example's links.

        measure    "attention" or "weighted_norm"
        reversed_  from the target to the frame element, instead of to the target
        """
        example, element, target = torch.from_numpy(self.pairs).to(batch.mask.device)
        query, key = (target, element) if reversed_ else (element, target)
        weights = to_float64(layer.pairs(example, query, key, measure=measure))  # [pair, head]
        by_place = np.maximum.reduceat(weights, self.start)  # [place, head]
        by_link = by_place[self.placed]  # [link, draw, head]
        return np.maximum.reduceat(by_link, self.first)  # [linked, draw, head]

    def largest_beside(self, layer: LayerView, batch: Batch, *, measure: str) -> Float64:
        """[linked, head, way] the largest weight of each example's links, from the words beside."""
        both = []
        for way in torch.from_numpy(self.beside).to(batch.mask.device):
            by_side = []
            for example, query, key in way:
                weights = to_float64(layer.pairs(example, query, key, measure=measure))
                by_link = np.maximum.reduceat(weights, self.ends)  # [link, head]
                by_side.append(np.maximum.reduceat(by_link, self.first))  # [linked, head]
            both.append(sum(by_side) / len(by_side))
        return np.stack(both, -1)


def links_of(example: Example, *, pairing: str) -> list[Ints]:
    """The links of an example, each [2, pair]: tokens of a core frame element, and of its target.

    pairing  "product": every element is a link, each of its tokens with each of the target's;
             "zip", as the authors' code does: every frame is a link, the tokens of all its elements
             in order with those of the target one by one until one side has no more, each token
             where its like stands first in the input

    Words without tokens in this input are not there; nor is an element that has no other.
    """
    if example.word_index is None:
        return []
    index, ids, links = example.word_index, example.input_ids, list[Ints]()

    def tokens(first: int, last: int) -> Ints:
        return np.flatnonzero((index >= first) & (index <= last))

    for frame in example.frames:
        target = tokens(frame.first, frame.last)
        core = sorted((e.first, e.last) for e in frame.elements if e.core)
        elements = [tokens(*span) for span in core]
        if pairing == "product":
            grids = (np.meshgrid(element, target, indexing="ij") for element in elements)
            links += [np.stack(grid).reshape(2, -1) for grid in grids]  # [2, pair]
        elif elements:
            pairs = np.array(list(zip(np.concatenate(elements), target, strict=False)), np.int64)
            pairs = pairs.reshape(-1, 2).T  # [2, pair]
            links.append((ids == ids[pairs][..., None]).argmax(-1))  # [2, pair]
    return [link for link in links if link.size]


def beside_of(link: Ints, links: list[Ints], example: Example) -> Ints:
    """[way, side, query or key, pair] the link with its looking end on the words beside that end.

    No end of another link is beside; nor are words beyond the key, where there are others.
    """
    moved = []
    for way in range(len(WAYS)):
        query, key = link[way], link[1 - way]
        shifts = np.arange(-query.min(), len(example) - query.max())
        places = query + shifts[:, None]  # [shift, pair]
        goal = np.any(np.isin(places, key), 1)
        taken = np.any(np.isin(places, np.concatenate([one[way] for one in links])), 1)
        usable = ~goal & ~taken & ~np.any(example.special[places], 1)
        by = words_beside(np.zeros(1, np.int64), shifts, usable[None], goal[None])[0]  # [side]
        moved.append([[query + shift, key] for shift in by])
    return np.array(moved)


def places_of(link: Ints, example: Example) -> Ints:
    """[place, 2, pair] the link wherever it fits among the tokens that are not special."""
    shifts = np.arange(-link.min(), len(example) - link.max())
    places = link + shifts[:, None, None]  # [place, 2, pair]
    return np.asarray(places[~example.special[places].any((1, 2)) | (shifts == 0)])


@dataclass(frozen=True)
class ScoreBins:
    """Fine bins, for quantiles, and wide ones, to be shown.

    edges  [fine + 1] ascending; what lies above the last falls into the last bin
    each   fine bins in a wide one
    """

    edges: Float64
    each: int

    @classmethod
    def of(cls, measure: str) -> Self:
        """Attention: wide bins of 0.05 from 0 to 1, fine ones of 0.001. Weighted norm: one wide bin
        below 2⁻¹⁰, then one an octave up to 2⁶; a fine one is a 32nd of it."""
        if measure == "attention":
            return cls(np.linspace(0, 1, 1001), 50)
        below = np.linspace(0, 2.0 ** OCTAVES[0], 32, endpoint=False)
        above = 2.0 ** (np.arange(32 * OCTAVES[0], 32 * OCTAVES[-1] + 1) / 32)
        return cls(np.concatenate([below, above]), 32)

    def __len__(self) -> int:
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
        flat: Ints = counts.counts.reshape(-1, fine)  # [layer·head, fine]
        levels = np.full((len(flat), len(QUANTILES)), np.nan)
        for row, count in enumerate(flat):
            if count.any():
                reached = np.concatenate([[0], count.cumsum()]) / count.sum()
                border = np.append(count > 0, False) | np.append(False, count > 0)
                levels[row] = np.interp(QUANTILES, reached[border], self.edges[border])
        return levels.reshape(layers, heads, -1)  # [layer, head, quantile]


PERMUTATIONS = 200
WAYS = ("", "_reversed")  # from the frame element to the target, and back
TIE = 1e-5  # relative: what float32 rounds apart is equal, and counts against the head
GRID = ("layer", "head")
ORDINARY = "the larger of chance and what the words beside the end that looks give"


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
    every head again. p of a head is the share of permutations, the annotated one among them, whose
    largest statistic of any head is at least that head's: corrected for having looked at all heads
    (Westfall and Young 1993). With "score", one head whose weights are large wherever it looks
    hides all others; "standardised" judges each by what is usual for it. `chance` is a head's own
    mean over the permutations. The test is not in the paper, which compares heads with each other;
    that a head passes says that it looks at these words more than at others as far apart, not why.

    Inputs without frames, or none of whose links has tokens at both ends, do not count.
    """

    whole_maps: ClassVar[bool] = False

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
        self.options = self.checked(measure=measure, pairing=pairing, statistic=statistic)
        self.checked(permutations=permutations)
        self.permutations = permutations
        self.bins = ScoreBins.of(measure)
        self.total = self.sums(scope.layers, scope.heads, len(WAYS))
        self.from_others = self.sums(scope.layers, scope.heads, len(WAYS))
        self.count = self.sums()
        self.moved = self.sums(scope.layers, scope.heads, len(WAYS), permutations, replicates=0)
        self.spread = Counts.zeros(scope.layers, scope.heads, len(self.bins))
        self._links: Links | None = None

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each sentence's largest weight, as annotated and moved."""
        if layer.index == 0:
            self._links = Links.of(
                batch,
                pairing=self.options["pairing"],
                permutations=self.permutations,
                seed=self.scope.seed,
            )
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
        beside = links.largest_beside(layer, batch, measure=measure)
        self.from_others.add(beside, groups, at=(layer.index,))
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
        others = ratio_of(self.from_others, self.count)  # [replicate + 1, layer, head, way]
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
            if self.options["measure"] == "attention":  # norms are on no common scale
                assert score.draws is not None
                rivals = np.broadcast_to(drawn.mean(-1), score.draws.shape), others[..., way]
                variables |= against_rivals(
                    score.draws,
                    rivals,
                    GRID,
                    ORDINARY,
                    sizes=sizes_of(self.total, self.count)[..., 0],
                    end=end,
                )
        variables |= {
            "distribution": Variable(
                self.bins.shares(self.spread),
                (*GRID, "bin"),
                "share of sentences with such a largest weight",
                "1",
                self.source,
            ),
            "score_quantile": Variable(
                self.bins.quantiles(self.spread),
                (*GRID, "quantile"),
                "quantile over sentences of the largest weight",
                unit,
                self.source,
            ),
            "sentences": Variable(
                int(self.count.total), (), "sentences with a link", "1", self.source
            ),
        }
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
    observed, highest = draws[..., :1], draws[..., 1:].max((0, 1))
    reached = highest >= observed - TIE * np.abs(observed)  # [layer, head, permutation]
    p = (1 + reached.sum(-1)) / (1 + len(highest))
    return np.where(np.isnan(score), np.nan, p)
