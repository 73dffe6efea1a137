"""The sets of heads that are ablated together, and what replaces their output.

A variant of a model is a set of heads (layer, head), counted from 0, that are off in it. A head
gives every query the mixture Σ_j α_ij v_j of its value vectors. Three things may stand in:

uniform  every α_ij becomes 1/n for the n keys that the query may attend to: in an encoder 1/L for
         the L real tokens and 0 for padding (Kovaleva et al. 2019, §4.6). Values stay.
zero     the mixture becomes 0: the head adds nothing.
mean     the mixture becomes its own mean over all real queries of all examples of the data: what is
         left is what the head adds whatever it sees.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from transformers import PreTrainedModel

from headscope.core.head_names import HeadNames
from headscope.errors import InputError
from headscope.model.attention import AttentionCall, visible
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument, Intervention
from headscope.model.language_model import last_logits
from headscope.model.layer import LayerView
from headscope.model.model import evaluating, forward

Head = tuple[int, int]
Variant = frozenset[Head]
WAYS = ("uniform", "zero", "mean")


def single_heads(layers: int, heads: int) -> list[Variant]:
    """[layer * heads + head] each head by itself."""
    return [frozenset({(layer, head)}) for layer in range(layers) for head in range(heads)]


def whole_layers(layers: int, heads: int) -> list[Variant]:
    """[layer] all heads of a layer."""
    return [frozenset((layer, head) for head in range(heads)) for layer in range(layers)]


def pairs(heads: Sequence[Head]) -> list[Variant]:
    """Every pair of these heads."""
    return [frozenset(two) for two in combinations(heads, 2)]


def lowest_layer(variant: Variant) -> int:
    """The lowest layer that a variant changes."""
    return min(layer for layer, _ in variant)


def heads_in(variant: Variant, layer: int) -> list[int]:
    """The heads that are off in a layer, in order."""
    return sorted(head for at, head in variant if at == layer)


def check(variants: Iterable[Variant], names: HeadNames, *, layers: int, heads: int) -> None:
    """Raises InputError for a head that the model does not have."""
    for variant in variants:
        for layer, head in variant:
            if not (0 <= layer < layers and 0 <= head < heads):
                raise InputError(
                    f"no head {names.head(layer, head)}: the model has {layers} layers of {heads} "
                    f"heads, counted {names.counted}"
                )


@dataclass(frozen=True, eq=False)
class StandIn:
    """The replacement for the output of heads that are off.

    how    one of WAYS
    means  [layer, head, dim] the mean mixtures; only for "mean"
    """

    how: str = "uniform"
    means: torch.Tensor | None = None

    def __post_init__(self) -> None:
        """Raises InputError for an unknown replacement."""
        if self.how not in WAYS:
            raise InputError(f"no replacement called {self.how!r}; there are {', '.join(WAYS)}")
        if (self.how == "mean") != (self.means is not None):
            raise InputError(
                "the replacement 'mean' needs mean mixtures, and other replacements take none"
            )

    def mixture(
        self, layer: int, heads: Sequence[int] | slice, values: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """[example, head, query, dim] the replaced output of these heads.

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


def mean_mixtures(network: PreTrainedModel, shown: Iterable[Batch]) -> torch.Tensor:
    """[layer, head, dim] each head's mean output over all real queries, for `StandIn("mean", …)`.

    returns  float64
    """
    sums: dict[int, torch.Tensor] = {}
    count = 0
    with evaluating(network):
        for batch in shown:
            real = batch.mask[:, None, :, None]

            def look(view: LayerView, real: torch.Tensor = real) -> None:
                assert view.values is not None
                mixed = (view.attention @ view.values) * real  # [example, head, query, dim]
                total = mixed.sum((0, 2), dtype=torch.float64)
                sums[view.index] = sums[view.index] + total if view.index in sums else total

            with Instrument(network, observers=[look]), last_logits(network):
                forward(network, *batch.inputs)
            count += int(batch.lengths.sum())
    return torch.stack([sums[layer] for layer in sorted(sums)]) / count  # [layer, head, dim]
