"""Attributes the right answer to heads by integrated gradients of their attention.

AttAttr (Hao et al. 2021): Attr = A ⊙ ∫₀¹ ∂F(s A)/∂A ds for the maps A of one layer, all its heads
scaled together and the other layers free; F is the probability of the right class, as in the
authors' code for pruning. The attributions of a layer's edges sum up to F(A) − F(0).

A layer's mixtures are linear in its maps. So only they are scaled, ready-made, in as many copies as
there are steps, which run from that layer up (`ablation.shared_prefix`); and the gradients of the
copies are summed before they meet the values: the maps are looked at once.

The integral is by Gauss and Legendre's rule, captum's default, which needs far fewer steps than the
authors' sums; captum itself would hook a module that gives maps, which transformers has not, and
run the layers below again for every step.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from headscope.experiments.importance.task_loss import Objective
from headscope.model.attention import AttentionCall, visible
from headscope.model.batch import Batch, to_float64
from headscope.model.shared_prefix import SharedPrefix, WholePass
from headscope.model.variants import StandIn
from headscope.run.shard_files import State


def steps_of(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """[step] scales in (0, 1), and their weights, which sum to 1: float64."""
    at, weights = np.polynomial.legendre.leggauss(count)
    return torch.from_numpy((at + 1) / 2), torch.from_numpy(weights / 2)


class Grown(SharedPrefix):
    """Runs a network with the maps of one layer scaled from 0 to their full value.

    raises  ModelError as `SharedPrefix`
    """

    def __init__(self, network: Any) -> None:
        super().__init__(network, StandIn("zero"))
        self.maps: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []

    def whole(self, batch: Batch) -> WholePass:
        """As in `SharedPrefix`; also keeps every layer's maps, values and mask."""
        self.maps.clear()
        return super().whole(batch)

    def before(self, call: AttentionCall) -> None:
        """As in `SharedPrefix`."""
        if isinstance(self._pass, WholePass):
            mask = visible(call.mask, call.attention)
            self.maps.append((call.attention, call.values, mask))
        super().before(call)


def attributions(
    grown: Grown, batch: Batch, places: Sequence[int], *, objective: Objective, steps: int
) -> State:
    """The attribution of each example's right answer to attention edges, by head.

    places   [example] which examples the batch holds
    steps    of the integral
    returns  attribution[example, layer, head] the largest of an edge; attribution_sum[example,
             layer, head] of all edges; change[example, layer] F(A) − F(0)
    """
    network = grown.network
    with objective.asking(network, places):
        kept = grown.whole(batch)
        whole = objective.answers(kept.logits, places)
    size, layers = len(places), len(kept.outputs)
    heads = kept.mixtures[0].shape[2]
    totals = {name: np.zeros((size, layers, heads)) for name in ("attribution", "attribution_sum")}
    change = np.zeros((size, layers))
    scales, weights = (torch.cat([t.new_zeros(1), t]) for t in steps_of(steps))
    for layer, (maps, values, seen) in enumerate(grown.maps):
        mixed = kept.mixtures[layer]
        grow = scales.to(mixed)[:, None, None, None, None]
        with torch.enable_grad():
            ready = (grow * mixed).flatten(0, 1).requires_grad_()  # [copy*example, query, …]
            copied = list(places) * len(scales)
            with objective.asking(network, copied):
                logits = grown.given(batch, kept, layer, ready)
            answers = objective.answers(logits, copied).view(-1, size)  # [copy, example]
            (slope,) = torch.autograd.grad((answers * weights.to(answers)[:, None]).sum(), [ready])
        mean = slope.view(-1, *mixed.shape).sum(0).transpose(1, 2)  # [example, head, query, dim]
        worth = maps * (mean @ values.transpose(2, 3))  # [example, head, query, key]
        real = batch.mask[:, None, :, None] & batch.mask[:, None, None]
        edges = (seen & real).expand_as(worth)
        totals["attribution"][:, layer] = to_float64(
            worth.masked_fill(~edges, -torch.inf).amax((2, 3))
        )
        totals["attribution_sum"][:, layer] = to_float64((worth * edges).sum((2, 3)))
        change[:, layer] = to_float64(whole - answers[0])
    return {**totals, "change": change}
