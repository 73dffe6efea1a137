"""How much does each head attend to the previous token, to the same token, to the one after it?

On inputs [BOS r_1 … r_n r_1 … r_n], for queries i of the second half (Olsson et al. 2022):

    previous token   α(i, i−1), of every query whose previous token was drawn
    duplicate token  α(i, i−n), to the same token in the first half
    induction        α(i, i−n+1), to what came after it

and how much of what a head writes for the tokens that it attends to speaks for these same tokens
(`copying`). All are sums over pairs of places, so no more of a map is read than these.
"""

import numpy as np
import torch

from headscope.core.accumulators import Float64
from headscope.experiments.circuits.made_inputs import Repeats
from headscope.experiments.circuits.weight_maps import ROUNDING
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView

SUMS = ("own", "raised", "first", "given")  # of copying: two ratios of sums


class PatternScores:
    """Looks at the layers of one batch of repeated inputs, or of inputs without a repeat.

    found       [layer] of [example, head, quantity]: PATTERNS, what the previous token is held
                against, and SUMS where `unembedding` is given
    unembedding  [token, model] see `WeightMaps`; None: copying is left out
    """

    def __init__(self, made: Repeats, unembedding: torch.Tensor | None = None) -> None:
        self.made, self.unembedding = made, unembedding
        self.found: list[Float64] = []

    def look(self, view: LayerView, batch: Batch) -> None:
        """Take a layer."""
        places = self._places(view)
        if self.unembedding is not None:
            places += self._copying(view, batch)
        self.found.append(to_float64(torch.stack(places, -1)))  # [example, head, quantity]

    @property
    def whole(self) -> Float64:
        """[example, layer, head, quantity] of all layers that were seen."""
        return np.stack(self.found, 1)

    def _places(self, view: LayerView) -> list[torch.Tensor]:
        first, n = self.made.opening, self.made.length
        end = first + 2 * n  # behind it there may be padding
        previous = view.neighbour(-1)[..., first : end - 1]  # [example, head, query]
        same = view.neighbour(-n)[..., first : first + n]  # [example, head, query of second half]
        after = view.neighbour(1 - n)[..., first + 1 : first + 1 + n]
        # What is left without first, own and previous token goes to one earlier token at random.
        queries = torch.arange(first + 2, end, device=previous.device)
        rest = 1 - view.rest[..., first + 2 : end] if view.sinks else 1.0
        rest = rest - view.neighbour(0)[..., first + 2 : end] - previous[..., 1:]
        if first:
            rest = rest - _to_first(view, queries)
        other = rest.clamp_min(0) / (queries - 1 - first)  # [example, head, query]
        return [previous.mean(-1), same.mean(-1), after.mean(-1), other.mean(-1)]

    def _copying(self, view: LayerView, batch: Batch) -> list[torch.Tensor]:
        """Of what sources raise among the input's tokens, how much is themselves, and all of it;
        how much attention goes to those that raise themselves most, and to all.
        """
        assert self.unembedding is not None
        assert view.values is not None
        first, n = self.made.opening, self.made.length
        ids = batch.input_ids[:, first : first + n]
        speaks = self.unembedding[ids.cpu()].to(ids.device)  # [example, token, model]
        weight = view.projection.weight.to(speaks)  # [head, dim, model]
        to_token = torch.einsum("hdm,etm->ehdt", weight, speaks)
        values = view.values[:, :, first : first + 2 * n].to(speaks)
        raised = values @ to_token  # [example, head, key, token]
        size = values.norm(dim=-1, keepdim=True) * torch.linalg.matrix_norm(weight)[:, None, None]
        raised = raised.masked_fill(raised <= ROUNDING * size * speaks.norm(dim=-1).amax(), 0)
        halves = raised[:, :, :n], raised[:, :, n:]
        own = torch.cat([half.diagonal(dim1=2, dim2=3) for half in halves], -1)  # [e, h, key]
        most = (own > 0) & (own >= raised.amax(-1))
        queries = first + n + torch.arange(n, device=own.device)
        rows = view.rows(queries.expand(len(own), n))[..., first : first + 2 * n]
        given = rows.sum(2).to(own)  # [example, head, key]
        parts = own, raised.sum(-1), most, torch.ones_like(own)
        return [(given * part).sum(-1) for part in parts]


def _to_first(view: LayerView, queries: torch.Tensor) -> torch.Tensor:
    """[example, head, query] attention of some queries to the first token."""
    examples = view.shape[0]
    example = torch.arange(examples, device=queries.device).repeat_interleave(len(queries))
    query = queries.repeat(examples)
    given = view.pairs(example, query, torch.zeros_like(query))  # [pair, head]
    return given.view(examples, len(queries), -1).transpose(1, 2)
