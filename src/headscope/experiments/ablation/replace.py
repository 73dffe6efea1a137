"""What stands in for a head that is switched off.

A head gives every query the mixture Σ_j α_ij v_j of its value vectors. Three things may stand in:

uniform  every α_ij becomes 1/n for the n keys that the query may attend to: in an encoder 1/L for
         the L real tokens and 0 for padding (Kovaleva et al. 2019, §4.6). Values stay.
zero     the mixture becomes 0: the head adds nothing.
mean     the mixture becomes its own mean over all real queries of all examples of the data: what is
         left is what the head adds whatever it sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from headscope.errors import InputError
from headscope.experiments.ablation.variants import Variant, heads_in
from headscope.model.attention import AttentionCall, visible
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument, Intervention
from headscope.model.layer import LayerView
from headscope.model.model import Model, forward

WAYS = ("uniform", "zero", "mean")


@dataclass(frozen=True, eq=False)
class StandIn:
    """What stands in for heads.

    how    one of WAYS
    means  [layer, head, dim] the mean mixtures; only for "mean"
    """

    how: str = "uniform"
    means: torch.Tensor | None = None

    def __post_init__(self) -> None:
        """Raises InputError for a way that is not known."""
        if self.how not in WAYS:
            raise InputError(f"no replacement called {self.how!r}; there are {', '.join(WAYS)}")
        if (self.how == "mean") != (self.means is not None):
            raise InputError("the replacement 'mean' needs mean mixtures, and the others none")

    def mixture(
        self, layer: int, heads: Sequence[int] | slice, values: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """[example, head, query, dim] what these heads give instead.

        values  [example, head, key, dim]  of these heads
        mask    [example, 1, query, key]   True where a key may be attended to
        """
        if self.how == "uniform":
            return even(mask, values.dtype) @ values  # [example, head, query, dim]
        shape = (len(values), values.shape[1], mask.shape[2], values.shape[3])
        if self.means is None:
            return values.new_zeros(()).expand(shape)
        mean = self.means[layer, heads].to(values)
        return mean[None, :, None].expand(shape)  # [example, head, query, dim]

    def switching_off(self, variant: Variant) -> Intervention:
        """An intervention of the instrument that switches heads off in every layer."""

        def intervene(call: AttentionCall) -> None:
            heads = heads_in(variant, call.layer)
            if not heads:
                return
            attention = call.attention.clone()
            if self.how == "zero":
                attention[:, heads] = 0
            else:
                mask = visible(call.mask, call.attention)
                attention[:, heads] = even(mask, attention.dtype).expand_as(attention[:, heads])
            call.attention = attention
            if self.means is not None:  # even weights of one and the same vector are that vector
                values = call.values.clone()
                values[:, heads] = self.means[call.layer, heads].to(values)[None, :, None]
                call.values = values

        return intervene


def even(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """[example, 1, query, key] 1/n for the n keys that a query may attend to, else 0."""
    weights = mask.to(dtype)
    return weights / weights.sum(-1, keepdim=True).clamp_min(1)


class MeanMixtures:
    """An observer that sums the mixtures of every head over all real queries.

    sums   [layer, head, dim] float64
    count  real queries seen
    """

    def __init__(self, model: Model) -> None:
        self.model, self.count = model, 0
        self.sums: list[torch.Tensor] = []
        self._batch: Batch | None = None

    def add(self, batch: Batch) -> None:
        """Run one batch."""
        self._batch = batch
        with Instrument(self.model.network, observers=[self._look]):
            forward(self.model.network, batch.input_ids, batch.mask, batch.segment_ids)
        self.count += int(batch.lengths.sum())

    def means(self) -> torch.Tensor:
        """[layer, head, dim] their means."""
        return torch.stack(self.sums) / self.count  # [layer, head, dim]

    def _look(self, view: LayerView) -> None:
        assert self._batch is not None
        assert view.values is not None
        real = self._batch.mask[:, None, :, None]
        mixed = (view.attention @ view.values) * real  # [example, head, query, dim]
        found = mixed.sum((0, 2), dtype=torch.float64)
        if view.index == len(self.sums):
            self.sums.append(found)
        else:
            self.sums[view.index] += found
