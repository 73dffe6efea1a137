"""Which pairs of tokens a frame links, where else they could stand, and how scores are spread.

A link is moved as a whole: its pairs keep their distances, and so does each to the others. What a
head gives a link wherever it stands comes from the distances alone, not from the words. Scores are
counted in bins, so that their spread over sentences is known without keeping a single one.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from headscope.core.accumulators import Counts, Float64, Ints, generator, ratio
from headscope.corpus.document import Example
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView

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
    """

    rows: Ints
    first: Ints
    placed: Ints
    start: Ints
    pairs: Ints

    @classmethod
    def of(cls, batch: Batch, *, pairing: str, permutations: int, seed: int) -> Self:
        """The links of all examples, with draws that depend on seed, document and example only."""
        rows, placed, sizes = list[int](), list[Ints](), list[int]()
        pairs = [np.empty((3, 0), np.int64)]
        for row, example in enumerate(batch.examples):
            draw = generator(seed, "frames", example.document, example.id)
            for link in links_of(example, pairing=pairing):
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
            np.cumsum([0, *sizes])[:-1], np.concatenate(pairs, 1),
        )  # fmt: skip

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


def places_of(link: Ints, example: Example) -> Ints:
    """[place, 2, pair] the link wherever it fits among the tokens that are not special."""
    shifts = np.arange(-link.min(), len(example) - link.max())
    places = link + shifts[:, None, None]  # [place, 2, pair]
    return np.asarray(places[~example.special[places].any((1, 2)) | (shifts == 0)])


@dataclass(frozen=True)
class ScoreBins:
    """Fine bins, for quantiles, and wide ones made of so many fine ones each, to be shown.

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
