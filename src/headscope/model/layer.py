"""One attention layer in one batch: its tensors, and the quantities that analyses read.

A `LayerView` holds the tensors that passed through the attention function. Entropies, column sums
and norms of the transformed vectors are computed once, when they are first asked for.
f_h(x_j) = (x_j W_V^h + b_V^h) W_O^h throughout (Kobayashi et al. 2020, eq. 4): the value bias is
inside, the bias of the output projection is not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from headscope.core.accumulators import Ints
from headscope.errors import ModelError
from headscope.model import kernels
from headscope.model.batch import Batch, largest
from headscope.model.families.sites import Site
from headscope.model.kernel_operations import LANES
from headscope.model.kernels import compiled
from headscope.model.lags import Lags
from headscope.model.linears import OutputProjection
from headscope.model.row_sums import COLUMNS, ENTROPY, row_sums

_ROWS = 256  # of values, looked at in one go


@dataclass(frozen=True)
class LayerInput:
    """The input of a whole layer (attention, feed-forward and all): enough to run it again."""

    model: nn.Module
    block: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass
class LayerView:
    """One attention layer in one batch. Rows and columns of padding are not meaningful.

    index       number of the layer within its stack
    stack       "encoder", "decoder" or "cross"
    attention   [example, head, query, key]  probabilities, float32 or wider; rows of real queries
                sum to 1, or to less where `sinks`
    queries     [example, head, query, dim]  as used: rotated, if the model rotates
    keys        [example, head, key, dim]    key-value heads repeated to the query heads
    values      [example, head, key, dim]    likewise
    residual    [example, query, model]      the residual stream that attention is added to
    output      [example, query, model]      what the output projection gave, bias included
    sinks       each row leaves a weight for no token at all, a learned sink (gpt-oss): see `rest`
    plain_projection    False if the projection was given something else than Σ_j α v_j
    given       the input of the whole layer; None where that is not known

    Where queries and keys are seen, attention is, unless an intervention changed it,
    softmax(cap(scaling · q·k) + position_bias) over the keys of `seen`; cap(s) = softcap ·
    tanh(s / softcap), or s where there is no softcap.

    scaling         what q·k is multiplied by
    softcap         at what size the scaled scores level off; None for no cap
    position_bias   [example or 1, head, query, key]  added to the scaled score (T5); None: nothing
    mask            [example or 1, head or 1, query, key]  0 where a key may be attended to, very
                    negative where not; None where the attention was given none
    """

    index: int
    stack: str
    attention: torch.Tensor
    queries: torch.Tensor | None
    keys: torch.Tensor | None
    values: torch.Tensor | None
    site: Site
    residual: torch.Tensor | None = None
    output: torch.Tensor | None = None
    plain_projection: bool = True
    sinks: bool = False
    scaling: float = 1.0
    softcap: float | None = None
    position_bias: torch.Tensor | None = None
    mask: torch.Tensor | None = None
    given: LayerInput | None = None
    _row_sums: dict[int, dict[str, torch.Tensor]] = field(default_factory=dict)
    _word_maps: dict[tuple[int, str, str], torch.Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Half precision is widened: sums over hundreds of tokens need more digits."""
        self.attention = widened(self.attention)
        self.values = None if self.values is None else widened(self.values)

    @property
    def projection(self) -> OutputProjection:
        """W_O by heads; raises ModelError where the family does not say where it is."""
        projection = self.site.output_projection
        if projection is None:
            raise ModelError(
                f"the output projection of {type(self.site.attention).__name__} is unknown, or no "
                "linear map (it rounds its inputs, say): norms cannot be computed for this family"
            )
        if not self.plain_projection:
            raise ModelError(
                f"{type(self.site.attention).__name__} has another module between the values and "
                f"its output projection ({type(self.site.projection).__name__}), a gate or a norm: "
                "norms cannot be computed for this family"
            )
        return projection

    def project(self, values: torch.Tensor) -> torch.Tensor:
        """Σ_h values_h W_O^h + b_O: [example, head, token, dim] -> [example, token, model]."""
        projection, module = self.projection, self.site.projection
        assert module is not None
        flat = values.transpose(1, 2).flatten(2)  # [example, token, head·dim]
        # not module(flat): its hooks report layers
        return widened(module.forward(flat.to(projection.weight.dtype)))

    @property
    def offers(self) -> frozenset[str]:
        """What an analysis may ask of this layer: a subset of `known_analyses.MODEL_NEEDS`."""
        there = {
            "attention": True,
            "values": self.values is not None,
            "projection": self.plain_projection and self.site.output_projection is not None,
            "residual": self.residual is not None,
            "queries_keys": self.queries is not None and self.keys is not None,
        }
        return frozenset(name for name, offered in there.items() if offered)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Examples, heads, queries and keys."""
        examples, heads, queries, keys = self.attention.shape
        return examples, heads, queries, keys

    @property
    def stream(self) -> torch.Tensor | None:
        """[example, token, model] what the attention's output is added to; None if unknown."""
        if self.residual is not None or self.given is None:
            return self.residual
        inputs = (*self.given.args, self.given.kwargs.get("hidden_states"))
        return next((one for one in inputs if isinstance(one, torch.Tensor)), None)

    @property
    def whole(self) -> bool:
        """Whether `attention` is there."""
        return True

    @property
    def rest(self) -> torch.Tensor:
        """[example, head, query] the weight that a row leaves for no token; about 0 by rounding."""
        return (1 - self.attention.sum(-1)).clamp_min(0)

    @property
    def seen(self) -> torch.Tensor | None:
        """[example or 1, head or 1, query, key] bool: what may be attended to; None: everything."""
        return None if self.mask is None else self.mask > torch.finfo(self.mask.dtype).min / 2

    @cached_property
    def value_norm(self) -> torch.Tensor:
        """[example, head, key] ‖f_h(x_j)‖."""
        if self.values is None:
            raise ModelError("this family's value vectors cannot be read: norms are not available")
        if "gram" in vars(self):  # already paid for
            return self.gram.diagonal(dim1=1, dim2=2).transpose(1, 2).clamp_min(0).sqrt()
        examples, heads, tokens, _ = self.values.shape
        norms = self.values.new_empty(examples * tokens, heads)
        for rows, values in self._row_blocks():
            turned = torch.bmm(values.transpose(0, 1), self.projection.factor)  # [head, row, dim]
            norms[rows] = torch.linalg.vector_norm(turned, dim=-1).T[: len(norms[rows])]
        return norms.view(examples, tokens, heads).transpose(1, 2).contiguous()

    def _row_blocks(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """Which rows, example·key, and their values [row, head, dim].

        On the host in blocks of one size, the last filled up with zeros: what is made of a block
        stays in the cache, and every new number of rows would be a product to compile and keep.
        """
        assert self.values is not None
        flat = self.values.transpose(1, 2).flatten(0, 1)
        size = _ROWS if flat.device.type == "cpu" else max(1, len(flat))
        for start in range(0, len(flat), size):
            values = flat[start : start + size]
            if missing := size - len(values):
                values = nn.functional.pad(values, (0, 0, 0, 0, 0, missing))
            yield slice(start, min(start + size, len(flat))), values

    @cached_property
    def gram(self) -> torch.Tensor:
        """[example, head g, head h, key] ⟨f_g(x_j), f_h(x_j)⟩ for h ≤ g; 0 above."""
        return self.inner_products(self.projection)

    def inner_products(self, projection: OutputProjection) -> torch.Tensor:
        """[example, head g, head h, key] as `gram`, of f_h by another projection."""
        assert self.values is not None
        examples, heads, tokens, dim = self.values.shape
        gram = self.values.new_zeros(examples * tokens, heads, heads)
        for rows, values in self._row_blocks():
            for g, product in enumerate(projection.products):
                moved = product(values[:, g])  # [row, h ≤ g · dim]
                if compiled(moved) and dim % LANES == 0:
                    flat = values.flatten(1).numpy()
                    kernels.inner_products(moved.numpy(), flat, dim, gram[rows, g].numpy())
                    continue
                inner = moved.view(-1, g + 1, dim).mul_(values[:, : g + 1]).sum(-1)
                gram[rows, g, : g + 1] = inner[: len(gram[rows])]
        by_example = gram.view(examples, tokens, heads, heads)
        return by_example.permute(0, 2, 3, 1).contiguous()  # [example, head g, head h, key]

    def measured(self, measure: str) -> torch.Tensor:
        """[example, head, query, key] of MEASURES: "attention" α, or "weighted_norm" ‖α f(x_j)‖."""
        return self.attention if measure == "attention" else self._weighted_norm

    @cached_property
    def _weighted_norm(self) -> torch.Tensor:
        return self.attention * self.value_norm[:, :, None, :]  # [example, head, query, key]

    def neighbour(self, offset: int) -> torch.Tensor:
        """[example, head, query] attention to the token `offset` positions on.

        Of the queries that have one: without the last `offset`, or the first `-offset`.
        """
        return self.attention.diagonal(offset, dim1=2, dim2=3)

    def rows(self, queries: torch.Tensor, *, measure: str = "attention") -> torch.Tensor:
        """[example, head, row, key] the measure from chosen queries [example, row] to all keys."""
        examples, heads, tokens, keys = self.attention.shape
        first = torch.arange(examples * heads, device=queries.device).view(examples, heads, 1)
        rows = first * tokens + queries[:, None]  # [example, head, row] among those of all maps
        chosen = self.measured(measure).flatten(0, 2).index_select(0, rows.flatten())
        return chosen.view(*rows.shape, keys)

    def pairs(
        self,
        example: torch.Tensor,
        query: torch.Tensor,
        key: torch.Tensor,
        *,
        measure: str = "attention",
    ) -> torch.Tensor:
        """[pair, head] the measure from chosen queries to chosen keys, each given [pair]."""
        return self.measured(measure)[example, :, query, key]

    def blocks(self, batch: Batch) -> Iterator[tuple[slice, slice, torch.Tensor]]:
        """All weights in turn: examples, queries, and [example, head, query, key] of these.

        Keys may end before the padding does. A whole map is one block.
        """
        yield slice(len(batch.lengths)), slice(self.attention.shape[2]), self.attention

    def word_rows(
        self, batch: Batch, of: Ints, *, measure: str = "attention", pieces: str = "mean"
    ) -> torch.Tensor:
        """[example, head, row, place] the measure from the words at `of` to all, see `Words`."""
        return batch.words.maps(self.measured(measure), pieces=pieces, of=of)

    def largest_words(
        self, batch: Batch, *, measure: str = "attention", pieces: str = "mean"
    ) -> tuple[Ints, Ints]:
        """To and from which other word each word's largest weight goes, see `batch.largest`."""
        return largest(self.word_maps(batch, measure=measure, pieces=pieces), batch.words)

    def word_maps(
        self, batch: Batch, *, measure: str = "attention", pieces: str = "mean"
    ) -> torch.Tensor:
        """[example, head, place, place] the measure between words, see `Words.maps`."""
        key = (id(batch), measure, pieces)
        if key not in self._word_maps:
            self._word_maps[key] = batch.words.maps(self.measured(measure), pieces=pieces)
        return self._word_maps[key]

    def entropy(self, batch: Batch, *, smoothing: float = 0.0) -> torch.Tensor:
        """[example, head, query] Shannon entropy in nats; 0 for padding queries.

        smoothing  share s of uniform attention mixed in first: of (1-s)·p + s/n over the n real
                   keys of each example, for padding queries too

        A weight for no token (`rest`) counts as one more outcome.
        """
        left = None
        if self.sinks:
            left = torch.special.entr((1 - smoothing) * self.rest) * batch.mask[:, None]
        if not smoothing:
            nats = self.row_sums(batch, ENTROPY)
            return nats if left is None else nats + left
        mask = batch.mask.to(self.attention.dtype)
        n = mask.sum(-1)[:, None, None, None]
        mixed = ((1 - smoothing) * self.attention + smoothing / n) * mask[:, None, None]
        nats = cast(torch.Tensor, torch.special.entr(mixed).sum(-1))
        return nats if left is None else nats + left

    def column_sums(self, batch: Batch) -> torch.Tensor:
        """[example, head, class, key] attention received, summed over the queries of each class.

        Class 0 are the real queries that are no separator, class 1 the separators.
        """
        return self.row_sums(batch, COLUMNS)

    def lags(self, batch: Batch, cuts: tuple[int, ...] = (), *, first: int = 0) -> Lags:
        """Attention by how far the key stands from the query, see `Lags`; and to the first keys."""
        sums = Lags.of(cuts, first, self.attention, *self.shape[:3])
        sums.add(self.attention.contiguous(), batch.lengths)
        return sums

    def summed_norm(self, batch: Batch) -> torch.Tensor:
        """[example, query, key] ‖Σ_h α_ij f_h(x_j)‖; 0 for padding queries."""
        if id(batch) not in self._summed:
            self._summed[id(batch)] = self.norm_of_sum(self.gram, batch)
        return self._summed[id(batch)]

    @cached_property
    def _summed(self) -> dict[int, torch.Tensor]:
        return {}

    def summed_norm_received(self, batch: Batch) -> torch.Tensor:
        """[example, key] `summed_norm`, summed over the queries."""
        return self.summed_norm(batch).sum(1)

    def summed_norm_own(self, batch: Batch) -> torch.Tensor:
        """[example, query] `summed_norm` of each token and itself."""
        return self.summed_norm(batch).diagonal(dim1=1, dim2=2)

    def norm_of_sum(self, gram: torch.Tensor, batch: Batch) -> torch.Tensor:
        """[example, query, key] as `summed_norm`, from the inner products of any f_h."""
        if compiled(self.attention):
            out = np.zeros((len(self.attention), *self.attention.shape[2:]), np.float32)
            maps = self.attention.contiguous().numpy()
            kernels.summed_norms(maps, gram.numpy(), batch.lengths, out)
            return torch.from_numpy(out)
        return norms_of_sum(self.attention, gram) * batch.mask[:, :, None]

    @cached_property
    def own(self) -> torch.Tensor:
        """[example, query, model] Σ_h α_ii f_h(x_i) + b_O: what a token gives to itself."""
        assert self.values is not None
        weight = self.neighbour(0)  # [example, head, query]
        return self.project(self.values * weight[..., None])

    @cached_property
    def kept(self) -> torch.Tensor:
        """[example, query, model] x_i + Σ_h α_ii f_h(x_i): the part of a token that stays with
        it."""
        assert self.residual is not None
        bias = self.projection.bias
        own = self.own if bias is None else self.own - bias.to(self.own.dtype)
        return own + self.residual.to(own.dtype)

    def row_sums(self, batch: Batch, name: str) -> torch.Tensor:
        """ENTROPY (without sinks), COLUMNS or WORDS, see `row_sums.row_sums`.

        One reading gives what is asked here and what was asked of the layers before: all but the
        first layer are read once, and for nothing else.
        """
        known = self._row_sums.setdefault(id(batch), {})
        if name not in known:
            batch.needed_of_rows.add(name)
            known |= row_sums(self.attention, batch, batch.needed_of_rows - known.keys())
        return known[name]


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """The same in float32, or as wide as it is."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def norms_of_sum(attention: torch.Tensor, gram: torch.Tensor) -> torch.Tensor:
    """[example, query, key] ‖Σ_h α_ij f_h(x_j)‖, also where queries and keys are of two texts.

    attention  [example, head, query, key]
    gram       as `LayerView.gram`
    """
    by_key = gram.permute(0, 3, 1, 2)  # [example, key, head g, head h], h ≤ g
    full = by_key + by_key.tril(-1).transpose(2, 3)
    inner = torch.einsum("bgqk,bkgh->bhqk", attention, full)
    return (inner * attention).sum(1).clamp_min(0).sqrt()  # [example, query, key]
