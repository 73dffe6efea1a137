"""Which queries of a long input are read, which keys its layers let them see, and what stands in
for the first token where a window hides it.
"""

from __future__ import annotations

import torch

from headscope.analyses.explained.prediction import RuleMaps, gathered
from headscope.core.accumulators import Ints
from headscope.corpus.document import Example
from headscope.corpus.input_sample import drawn_queries
from headscope.model.attention import visible
from headscope.model.layer import LayerView
from headscope.run.analysis import LEADING

STANDS = 16  # ours: times its even share that a token gets which stands in for the first one


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

    def counted(
        self, layer: int, attention: torch.Tensor, norms: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Attention [head, query, key] of a layer, and what is gathered, if norms [head, key] are
        known. What stands in for the first token counts as that one.
        """
        if norms is None:
            return attention, None
        instead = stand_ins(attention, norms, self.seen[self.view[layer]])
        own = gathered(attention, norms)
        return on_first(attention, instead), on_first(own, instead)

    def alike(self) -> list[tuple[int, ...]]:
        """The layers of each view."""
        views = range(len(self.seen))
        return [tuple(at for at, own in self.view.items() if own == one) for one in views]

    def forget(self) -> None:
        """Keep the views alone."""
        self._made.clear()


def stand_ins(
    attention: torch.Tensor, norms: torch.Tensor, seen: torch.Tensor
) -> torch.Tensor | None:
    """[query, key] which tokens stand in for the first one, for queries that do not see it.

    Heads that rest on the first token rest on such a token where a window hides that one. It gets
    STANDS times its even share, mean over heads, and little is taken from it: like that of the
    first token, its value is less than half as long as the mean. None: nothing stands in.

    attention  [head, query, key]
    norms      [head, key] ‖f(x_k)‖
    seen       [query, key] whether a query may attend to a key
    """
    hidden = ~seen[:, :1]
    if not hidden.any():
        return None
    length = norms.mean(0)
    little = length < length.mean() / 2  # [key]
    even = (seen / seen.sum(-1, keepdim=True) * hidden).sum(0)
    received = (attention.mean(0) * hidden).sum(0)
    keys = little & little[0] & (received > STANDS * even)
    return hidden & keys if keys.any() else None


def on_first(rows: torch.Tensor, instead: torch.Tensor | None) -> torch.Tensor:
    """The rows [head, query, key], with what stands in for the first token counted as that one."""
    if instead is None:
        return rows
    moved = torch.where(instead, 0, rows)
    moved[..., 0] += (rows * instead).sum(-1)
    return moved
