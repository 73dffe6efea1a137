"""Which queries of a long input are read, and which keys its layers let them see."""

from __future__ import annotations

import torch

from headscope.analyses.explained.prediction import RuleMaps
from headscope.core.accumulators import Ints
from headscope.corpus.document import Example
from headscope.corpus.input_sample import drawn_queries
from headscope.model.attention import visible
from headscope.model.layer import LayerView
from headscope.run.analysis import LEADING


def queries_of(example: Example, *, seed: int) -> Ints:
    """[query] the places whose rows are read: all of LEADING tokens, and fewer of a longer input.

    They are drawn (`drawn_queries`), as many weights as an input of LEADING tokens has.
    """
    size = len(example)
    return drawn_queries(example, max(LEADING**2 // max(size, LEADING), 1), seed=seed)[0]


class LayersOfInput:
    """What the layers of a network see of one input, and its rules there.

    seen  the different views [query, key], of the queries that are read
    view  layer -> the number of its view
    """

    def __init__(self) -> None:
        self.seen: list[torch.Tensor] = []
        self.view: dict[int, int] = {}
        self._made: dict[int, RuleMaps] = {}

    def look(self, layer: LayerView, row: int, maps: RuleMaps) -> RuleMaps:
        """The rules in one layer.

        row   of the input in its batch
        maps  the rules where every key is seen, or every one before the query
        """
        every = visible(layer.mask, layer.attention)
        size = maps.visible.shape[-1]
        own = every[row if len(every) > 1 else 0, 0, :size, :size].cpu()[maps.queries]
        at = next((n for n, one in enumerate(self.seen) if torch.equal(one, own)), len(self.seen))
        if at == len(self.seen):
            self.seen.append(own)
        self.view[layer.index] = at
        return self.maps(layer.index, maps)

    def maps(self, layer: int, maps: RuleMaps) -> RuleMaps:
        """The rules in a layer that was looked at."""
        view = self.view[layer]
        if view not in self._made:
            self._made[view] = maps.within(self.seen[view])
        return self._made[view]

    def alike(self) -> list[tuple[int, ...]]:
        """The layers of each view."""
        views = range(len(self.seen))
        return [tuple(at for at, own in self.view.items() if own == one) for one in views]

    def forget(self) -> None:
        """Keep the views alone."""
        self._made.clear()
