"""Which pairs of tokens does a frame link, and where else in the sentence could they stand?

A link is moved as a whole: its pairs keep their distances, and so does each to the others. What a
head gives a link wherever it stands comes from the distances alone, not from the words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from headscope.core.accumulators import Float64, generator
from headscope.corpus.document import Example
from headscope.model.batch import Batch, to_float64

PAIRING = ("product", "zip")
Ints = npt.NDArray[np.int64]


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
    def of(cls, batch: Batch, *, pairing: str, permutations: int, seed: int) -> Links:
        """The links of all examples, with draws that depend on seed, document and example only."""
        rows, first, placed = list[int](), list[int](), list[Ints]()
        start, pairs, ends = list[int](), [np.empty((3, 0), np.int64)], 0
        for row, example in enumerate(batch.examples):
            links = links_of(example, pairing=pairing)
            if not links:
                continue
            rows.append(row)
            first.append(len(placed))
            draw = generator(seed, "frames", example.document, example.id)
            for link in links:
                places = places_of(link, example)  # [place, 2, pair]
                drawn = draw.integers(len(places), size=permutations)
                annotated = int((places == link).all((1, 2)).argmax())
                placed.append(len(start) + np.concatenate([[annotated], drawn]))
                start += range(ends, ends + len(places) * link.shape[1], link.shape[1])
                ends += len(places) * link.shape[1]
                flat = places.transpose(1, 0, 2).reshape(2, -1)  # [2, place·pair]
                pairs.append(np.concatenate([np.full((1, flat.shape[1]), row), flat]))
        shape = (len(placed), permutations + 1)
        return cls(
            np.array(rows, np.int64), np.array(first, np.int64),
            np.array(placed, np.int64).reshape(shape), np.array(start, np.int64),
            np.concatenate(pairs, 1),
        )  # fmt: skip

    def largest(self, maps: torch.Tensor, *, reversed_: bool) -> Float64:
        """[linked, draw, head] the largest weight of each example's links.

        maps       [example, head, query, key]
        reversed_  from the target to the frame element, instead of to the target
        """
        example, element, target = torch.from_numpy(self.pairs).to(maps.device)
        query, key = (target, element) if reversed_ else (element, target)
        weights = to_float64(maps[example, :, query, key])  # [pair, head]
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
    found = []
    for frame in example.frames:
        target = _tokens(example.word_index, frame.first, frame.last)
        core = sorted((e.first, e.last) for e in frame.elements if e.core)
        elements = [_tokens(example.word_index, *span) for span in core]
        if pairing == "zip":
            elements = [np.concatenate(elements)] if elements else []
        found += [_pairs(element, target, example, pairing) for element in elements]
    return [link for link in found if link.size]


def _pairs(element: Ints, target: Ints, example: Example, pairing: str) -> Ints:
    if pairing == "product":
        grid = np.meshgrid(element, target, indexing="ij")
        return np.stack(grid).reshape(2, -1)  # [2, pair]
    short = min(len(element), len(target))
    pairs = np.stack([element[:short], target[:short]])  # [2, pair]
    ids = example.input_ids
    first: Ints = (ids == ids[pairs][..., None]).argmax(-1)  # [2, pair]
    return first


def places_of(link: Ints, example: Example) -> Ints:
    """[place, 2, pair] the link wherever it fits among the tokens that are not special."""
    shifts = np.arange(-link.min(), len(example) - link.max())
    places = link + shifts[:, None, None]  # [place, 2, pair]
    fits = ~example.special[places].any((1, 2)) | (shifts == 0)
    fitting: Ints = places[fits]  # [place, 2, pair]
    return fitting


def _tokens(word_index: Ints, first: int, last: int) -> Ints:
    return np.flatnonzero((word_index >= first) & (word_index <= last))
