"""One attention layer of inputs too long for whole maps; as `LayerView`, from blocks."""

import weakref
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch

from headscope.core.accumulators import Array, Ints
from headscope.model import kernels_of_rows
from headscope.model.attention import for_each_head, refused_whole
from headscope.model.batch import Batch
from headscope.model.kernels import compiled
from headscope.model.lags import Diagonals, Lags
from headscope.model.layer import LayerView, norms_of_sum, widened
from headscope.model.long_attention import LongAttention
from headscope.model.long_mask import blocks
from headscope.model.long_sums import Asked
from headscope.model.row_sums import COLUMNS, ENTROPY

WORDS = 64  # of one block of rows between words


class LongLayerView(LayerView):
    """A `LayerView` whose `attention` is nowhere whole; asked for, it raises ModelError.

    What it stands for is read as sums over whole maps (`entropy`, `column_sums`,
    `summed_norm_received`), as rows (`rows`, `blocks`, `word_rows`, `largest_words`) or as chosen
    pairs (`neighbour`, `pairs`). `leading` is the view of the first tokens, whole.

    together  norms of all heads together will be asked for: then the blocks of all heads are read
              at once
    diagonals sums over diagonals will be asked for, see `lags`
    """

    long: LongAttention
    together = False
    diagonals: Diagonals | None = None

    def __post_init__(self) -> None:
        """What is read is widened as it is read."""

    @property
    def attention(self) -> torch.Tensor:
        """Not there: no whole map of these inputs is made."""
        raise refused_whole(self.long.shape[3])

    @attention.setter
    def attention(self, maps: Any) -> None:
        self.long = maps

    @property
    def values(self) -> torch.Tensor | None:
        """[example, head, key, dim] repeated for the query heads that share them, at every call."""
        shared = self._shared_values
        return None if shared is None else for_each_head(widened(shared), self.long.query)

    @values.setter
    def values(self, values: torch.Tensor | None) -> None:
        self._shared_values = values

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """As of `LayerView`."""
        examples, heads, queries, keys = self.long.shape
        return examples, heads, queries, keys

    @property
    def whole(self) -> bool:
        """As of `LayerView`."""
        return False

    @property
    def rest(self) -> torch.Tensor:
        """As of `LayerView`."""
        rest = self._zeros(*self.shape[:3])
        if self.long.s_aux is not None:
            score = self.long.s_aux[:, None].to(rest)  # [head, 1]
            for example, sums in enumerate(self.long.log_sums):
                rest[example, :, : sums.shape[1]] = (score - sums).exp()
        return rest

    def _zeros(self, *shape: int) -> torch.Tensor:
        return self.long.query.new_zeros(shape, dtype=self.long.wide)

    def neighbour(self, offset: int) -> torch.Tensor:
        """As of `LayerView`."""
        if offset in self._neighbours:
            return self._neighbours[offset]
        self._neighbours[offset] = self.long.beside(offset)
        return self._neighbours[offset]

    @cached_property
    def _neighbours(self) -> dict[int, torch.Tensor]:
        return {}

    def rows(self, queries: torch.Tensor, *, measure: str = "attention") -> torch.Tensor:
        """As of `LayerView`."""
        examples, heads, _, keys = self.shape
        out = self._zeros(examples, heads, queries.shape[1], keys)
        for example, rows in enumerate(queries):
            n = self.long.mask.lengths[example]
            weights = self._rows(example, rows.clamp(max=n - 1), measure)
            out[example, ..., :n] = weights * (rows < n)[:, None]  # no index: the host would wait
        return out

    def _rows(self, example: int, queries: torch.Tensor, measure: str) -> torch.Tensor:
        weights = self.long.rows(example, queries)  # [head, row, key]
        if measure == "attention":
            return weights
        return weights * self.value_norm[example, :, None, : weights.shape[-1]]

    def pairs(
        self,
        example: torch.Tensor,
        query: torch.Tensor,
        key: torch.Tensor,
        *,
        measure: str = "attention",
    ) -> torch.Tensor:
        """As of `LayerView`."""
        weights = self.long.pairs(example, query, key)
        return weights if measure == "attention" else weights * self.value_norm[example, :, key]

    def blocks(self, batch: Batch) -> Iterator[tuple[slice, slice, torch.Tensor]]:
        """As of `LayerView`."""
        for example in range(len(batch.lengths)):
            for rows, weights in self.long.row_blocks(example):
                yield slice(example, example + 1), slice(rows.start, rows.stop), weights[None]

    def entropy(self, batch: Batch, *, smoothing: float = 0.0) -> torch.Tensor:
        """As of `LayerView`."""
        nats = self._zeros(*self.shape[:3])
        if not smoothing:
            nats += self.row_sums(batch, ENTROPY)
        else:
            for examples, queries, weights in self.blocks(batch):
                (n,) = batch.lengths[examples].tolist()
                even = smoothing / weights.new_full((1,), n)
                mixed = torch.special.entr((1 - smoothing) * weights + even).sum(-1)
                beyond = n - weights.shape[-1]  # keys that no row sees
                nats[examples, :, queries] = mixed + beyond * torch.special.entr(even)
        if self.sinks:
            nats += torch.special.entr((1 - smoothing) * self.rest) * batch.mask[:, None]
        return nats

    def row_sums(self, batch: Batch, name: str) -> torch.Tensor:
        """As of `LayerView`, ENTROPY or COLUMNS: one reading of all blocks gives both.

        And `summed_norm_received` where `together` says so.
        """
        if id(batch) not in self._row_sums:
            examples, heads, queries, keys = self.shape
            entropy = self._zeros(examples, heads, queries)
            columns = self._zeros(examples, heads, 2, keys)
            received = self._zeros(examples, keys)
            request = self.long.asked
            if (
                request is None
                or request.separator is not batch.is_sep
                or (self.together and not request.norms)
                or self.diagonals not in (None, request.diagonals)
            ):
                request = self._asked(batch)
            lags = []
            for example, n in enumerate(self.long.mask.lengths):
                sums = self.long.sums(example, request)
                lags += [] if sums.lags is None else [sums.lags]
                entropy[example, :, :n], columns[example, ..., :n] = sums.entropy, sums.columns
                received[example, :n] = sums.received
            self._row_sums[id(batch)] = {ENTROPY: entropy, COLUMNS: columns}
            self._lags = Lags.together(lags) if lags else None
            if self.together:
                self._summed[id(batch)] = received
        return self._row_sums[id(batch)][name]

    _lags: Lags | None = None

    def lags(self, batch: Batch, cuts: tuple[int, ...] = (), *, first: int = 0) -> Lags:
        """As of `LayerView`."""
        if self.diagonals != (cuts, first):
            self.diagonals = cuts, first
            self._row_sums.clear()
        self.row_sums(batch, ENTROPY)
        assert self._lags is not None
        return self._lags

    def ask(self, batch: Batch, *, together: bool, diagonals: Diagonals | None = None) -> None:
        """Say before the values are mixed what will be asked of rows: one pass then does both.

        together   `summed_norm_received` too
        diagonals  `lags` too
        """
        self.together, self.diagonals = together, diagonals
        self.long.asked = self._asked(batch)

    def _asked(self, batch: Batch) -> Asked:
        itself = weakref.proxy(self)  # else a circle would keep each layer beyond its time
        norms = partial(LongLayerView._norms, itself) if self.together else None
        return Asked(batch.is_sep, norms, self.diagonals)

    def _norms(self, example: int, weights: torch.Tensor, keys: slice) -> torch.Tensor:
        """[key] ‖Σ_h α f_h‖ summed over the queries of a block; weights [head, query, key]."""
        gram = self.gram[example]
        if not compiled(weights):
            return norms_of_sum(weights[None], gram[None, ..., keys]).sum((0, 1))
        norms = np.zeros(weights.shape[2], np.float32)
        kernels_of_rows.add_summed_norms(weights.numpy(), gram.numpy(), keys.start, norms)
        return torch.from_numpy(norms)

    def summed_norm_received(self, batch: Batch) -> torch.Tensor:
        """As of `LayerView`."""
        if id(batch) not in self._summed:
            self.together = True
            self._row_sums.clear()
            self.row_sums(batch, ENTROPY)
        return self._summed[id(batch)]

    def summed_norm_own(self, batch: Batch) -> torch.Tensor:
        """As of `LayerView`."""
        own = self.neighbour(0)  # [example, head, query]
        by_query = own.transpose(1, 2).unsqueeze(2)  # [example, query, 1, head]: a map of one row
        lower = self.gram.permute(0, 3, 1, 2)  # [example, query, head g, head h], h ≤ g
        full = lower + lower.tril(-1).transpose(2, 3)
        square = (by_query @ full @ by_query.transpose(2, 3))[..., 0, 0]
        return square.clamp_min(0).sqrt() * batch.mask

    def word_rows(
        self, batch: Batch, of: Ints, *, measure: str = "attention", pieces: str = "mean"
    ) -> torch.Tensor:
        """As of `LayerView`."""
        out = torch.zeros(*self.shape[:2], of.shape[1], batch.words.most, dtype=self.long.wide)
        for example, every in enumerate(of):
            rows = every[every >= 0]
            for some in blocks(len(rows), WORDS):
                at = slice(some.start, some.stop)
                weights = self._between(batch, example, rows[at], measure, pieces)
                out[example, :, at, : weights.shape[-1]] = torch.from_numpy(weights)
        return out

    def _between(
        self, batch: Batch, example: int, places: Ints, measure: str, pieces: str
    ) -> Array:
        """[head, row, place] the measure from some words of an example to all, see `Words.maps`."""
        count = batch.words.pieces[example, : batch.words.count[example]]  # tokens of each place
        first = np.cumsum(count) - count
        tokens = [np.arange(first[place], first[place] + count[place]) for place in places]
        queries = torch.from_numpy(np.concatenate(tokens)).to(self.long.query.device)
        weights = self._rows(example, queries, measure).cpu().numpy()  # [head, token, key]
        by_token = np.add.reduceat(weights, first, -1)  # [head, token, place]
        start = np.cumsum(count[places]) - count[places]
        if pieces == "first":
            return by_token[:, start]
        mean: Array = np.add.reduceat(by_token, start, 1) / count[places][:, None]
        if pieces == "mean":
            return mean
        most: Array = np.maximum.reduceat(by_token, start, 1)
        total = most.sum(-1, keepdims=True)
        scaled: Array = most * (mean.sum(-1, keepdims=True) / np.where(total > 0, total, 1))
        return scaled

    def largest_words(
        self, batch: Batch, *, measure: str = "attention", pieces: str = "mean"
    ) -> tuple[Ints, Ints]:
        """As of `LayerView`."""
        words = batch.words
        shape = (*self.shape[:2], words.most)
        to, origin = np.full(shape, -1, np.int64), np.full(shape, -1, np.int64)
        for example in range(shape[0]):
            real = np.flatnonzero(words.real[example])
            top = np.zeros(shape[1:])
            for some in blocks(len(real), WORDS):
                at = real[some.start : some.stop]
                weights = self._between(batch, example, at, measure, pieces)
                weights[..., ~words.real[example, : weights.shape[-1]]] = 0
                weights[:, np.arange(len(at)), at] = 0  # the word itself
                best = weights.argmax(-1)  # [head, row]
                positive = np.take_along_axis(weights, best[..., None], -1)[..., 0] > 0
                to[example, :, at] = np.where(positive, best, -1).T
                highest = weights.max(1)  # [head, place]
                higher = highest > top[:, : weights.shape[-1]]
                origin[example, :, : weights.shape[-1]][higher] = at[weights.argmax(1)[higher]]
                top[:, : weights.shape[-1]] = np.maximum(top[:, : weights.shape[-1]], highest)
        return to, origin

    def leading(self, tokens: int) -> LayerView:
        """The first tokens of each input, with whole maps; exact where the future is hidden."""
        if self.long.mask.kind == "every" or self.stack != "decoder":
            raise refused_whole(self.long.shape[3])
        examples, heads, _, _ = self.shape
        n = min(tokens, self.shape[3])
        maps, mask = self._zeros(examples, heads, n, n), self._zeros(examples, 1, n, n)
        places = torch.arange(n, device=maps.device)
        for example, length in enumerate(self.long.mask.lengths):
            first = places[:length]
            weights = self.long.rows(example, first, range(len(first)))
            maps[example, :, : len(first), : weights.shape[-1]] = weights[..., :n]
            hidden = ~self.long.mask.block(example, places[:, None], places) | (places >= length)
            mask[example, 0].masked_fill_(hidden, torch.finfo(mask.dtype).min)
        bias = None if self.position_bias is None else self.position_bias[..., :n, :n]
        residual, output = (None if t is None else t[:, :n] for t in (self.residual, self.output))
        queries, keys, values = (
            None if t is None else for_each_head(t[:, :, :n], maps)
            for t in (self.queries, self.keys, self._shared_values)
        )
        return LayerView(
            self.index,
            self.stack,
            maps,
            queries,
            keys,
            values,
            self.site,
            residual=residual,
            output=output,
            plain_projection=self.plain_projection,
            sinks=self.sinks,
            scaling=self.scaling,
            softcap=self.softcap,
            position_bias=bias,
            mask=mask,
        )
