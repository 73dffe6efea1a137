"""Attention of long inputs, computed without a whole map.

Blocks of whole rows are made, summed, used to mix the values, and dropped: one pass, where it is
known beforehand which sums are asked for; where none are, a fused kernel mixes the values. Each
query's log-sum-exp of its scores is kept: with it any block can be made again by itself,
α_ij = exp(s_ij - lse_i). So memory grows with the number of tokens, not with its square. Queries,
keys and biases are widened to float32; key-value heads are never repeated for the query heads that
share them. Padding stands behind the real tokens; its rows and columns are 0.
"""

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import torch

from headscope.model.lags import Lags
from headscope.model.long_fused import fused
from headscope.model.long_mask import OPEN, ROWS, LongMask, blocks
from headscope.model.long_sums import UNSEEN, Asked, MapSums

ROWS_AWAY = 512  # of one block on a device, where each block costs a start
FEWEST_ROWS = 16  # of one block of all heads
CACHED = 1 << 20  # weights
MOST_PAIRS = 1 << 16  # of a query and a key, looked at in one go
MOST_WEIGHTS = 1 << 24  # of all heads at once, in a block that is handed out


class LongAttention:
    """The attention of one layer in one batch of long inputs.

    query       [example, head, query, dim]
    key, value  [example, key-value head, key, dim]
    mask        which keys each query may attend to
    scaling     what q·k is multiplied by
    softcap, position_bias, s_aux   as of `attention.probabilities`
    asked       what `sums` will be asked for, where it is known before the values are mixed: then
                one pass does both
    """

    def __init__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: LongMask,
        *,
        scaling: float,
        softcap: float | None = None,
        position_bias: torch.Tensor | None = None,
        s_aux: torch.Tensor | None = None,
    ) -> None:
        self.query, self.key, self.value, self.mask = query, key, value, mask
        self.scaling, self.softcap = scaling, softcap
        self.position_bias, self.s_aux = position_bias, s_aux
        self.shape = torch.Size((*query.shape[:3], key.shape[2]))
        self.wide = torch.promote_types(query.dtype, torch.float32)
        self.asked: Asked | None = None
        self._log_sums: list[torch.Tensor] = []
        self._sums: list[MapSums] = []

    @property
    def device(self) -> torch.device:
        """Where the queries are."""
        return self.query.device

    def mix(self) -> torch.Tensor:
        """[example, head, query, dim] Σ_j α_ij v_j; 0 for padding."""
        examples, heads, queries, _ = self.shape
        out = self.value.new_zeros(examples, heads, queries, self.value.shape[-1])
        self._log_sums.clear()
        self._sums.clear()
        for example, n in enumerate(self.mask.lengths):
            fused = None if self.asked and self._at_home else self._fused(example, n)
            if fused is None:
                sums = self._by_rows(example, self.asked, out[example, :, :n])
                self._sums.append(sums)
                self._log_sums.append(sums.log_sums)
            else:
                out[example, :, :n] = fused[0]
                self._log_sums.append(fused[1])
        return out

    @property
    def _at_home(self) -> bool:
        """Whether the compiled loops of the host apply."""
        return self.device.type == "cpu" and self.wide == torch.float32

    def _fused(self, example: int, n: int) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The same from a kernel of torch, where one computes just this."""
        plain = self.softcap is None and self.position_bias is None and self.s_aux is None
        if not plain or self.mask.kind not in OPEN:
            return None
        parts = (t[example, :, :n] for t in (self.query, self.key, self.value))
        return fused(*parts, causal=self.mask.kind == "causal", scaling=self.scaling)

    def _by_rows(
        self, example: int, request: Asked | None, mixed: torch.Tensor | None = None
    ) -> MapSums:
        """Read whole rows in turn: the requested sums, and the mixed values where wanted.

        mixed  [head, query, dim] out
        """
        n, norms = self.mask.lengths[example], None if request is None else request.norms
        separator = (
            self.query.new_zeros(n, dtype=torch.bool)
            if request is None
            else request.separator[example]
        )
        wide = self.query.new_empty(0, dtype=self.wide)
        diagonals, heads_and_keys = request and request.diagonals, self.shape[1::2]
        lags = Lags.of(*diagonals, wide, 1, *heads_and_keys) if diagonals else None
        sums = MapSums.zeros(self.shape[1], n, wide, lags)
        most = ROWS if norms is None and self._at_home else self._at_once(n)
        groups = list(self._some_heads(most * n))
        at_once = self.shape[1] if norms is not None else groups[0][1].stop
        room = wide.new_empty(at_once * min(most, n) * n)  # the same for all blocks: it stays near
        for rows in blocks(n, most):
            places, at = self._places(rows), slice(rows.start, rows.stop)
            keys, hidden = self._sight(example, places, rows, range(n))
            to, size = slice(keys.start, keys.stop), (-1, len(rows), len(keys))
            together = room[: at_once * len(rows) * len(keys)].view(size)
            for shared, heads in groups:
                few = together if norms is None else together[heads]
                out = few[: heads.stop - heads.start]
                scores = self._scores(example, heads, places, keys, hidden, out=out)
                sink = None if self.s_aux is None else self.s_aux[heads].to(self.wide)
                sums.add(scores, heads, at, to, sink, separator[at])
                if lags is not None:
                    corner = {"head": heads.start, "query": rows.start, "key": keys.start}
                    lags.add(scores[None], np.array([n]), **corner)
                if mixed is not None:
                    values = self.value[example, shared, to].to(self.wide)
                    mixed[heads, at] = (scores @ values).to(mixed.dtype)
            if norms is not None:
                sums.received[to] += norms(example, together, to)
        return sums

    def _at_once(self, n: int) -> int:
        """Rows of all heads at once that are few enough to keep, and enough for fast products."""
        most = ROWS if self.device.type == "cpu" else ROWS_AWAY
        return min(most, max(FEWEST_ROWS, MOST_WEIGHTS // (self.shape[1] * n)))

    def _some_heads(self, weights: int) -> Iterator[tuple[int, slice]]:
        """A key-value head, and query heads that share it: as many as stay in the cache.

        weights  of each head
        """
        group = self.shape[1] // self.key.shape[1]
        most = min(group, max(1, CACHED // weights)) if self._at_home else group
        for at in range(self.key.shape[1]):
            for some in blocks(group, most):
                yield at, slice(at * group + some.start, at * group + some.stop)

    def _shared(self) -> Iterator[tuple[int, slice]]:
        """Each key-value head, and the query heads that share it."""
        group = self.shape[1] // self.key.shape[1]
        return ((at, slice(at * group, (at + 1) * group)) for at in range(self.key.shape[1]))

    def _places(self, of: range) -> torch.Tensor:
        return torch.arange(of.start, of.stop, device=self.device)

    def _sight(
        self, example: int, rows: torch.Tensor, span: range, keys: range
    ) -> tuple[range, torch.Tensor | None]:
        """Those of the keys that some row sees, and [row, last keys] which of the last it does not.

        rows  [row] which queries, all of them within `span`
        """
        if self.mask.kind == "every":
            return keys, None
        if self.mask.kind == "causal":
            keys = range(keys.start, min(keys.stop, span.stop))
            late = range(max(span.start + 1, keys.start), keys.stop)  # that some rows do not see
            return keys, self._places(late) > rows[:, None] if late else None
        first, last = (of[span.start : span.stop] for of in self.mask.reach(example))
        keys = range(max(keys.start, int(first.min())), min(keys.stop, int(last.max())))
        return keys, ~self.mask.block(example, rows[:, None], self._places(keys))

    def _scores(  # noqa: PLR0917
        self,
        example: int,
        heads: slice,
        rows: torch.Tensor,
        keys: range,
        hidden: torch.Tensor | None,
        less: torch.Tensor | None = None,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[head, row, key] the scores of heads that share a key-value head, or UNSEEN.

        hidden  see `_sight`
        less    [head, row] is subtracted out where they are written, if not a new array
        """
        shared = heads.start // (self.shape[1] // self.key.shape[1])
        query = self.query[example, heads][:, rows].to(self.wide).flatten(0, 1)  # [head·row, dim]
        key = self.key[example, shared, keys.start : keys.stop].to(self.wide)
        if out is None:
            out = query.new_empty(heads.stop - heads.start, len(rows), len(keys))
        flat = out.view(-1, len(keys))  # [head·row, key]
        if less is None or self.softcap is not None:
            torch.mm(query.mul_(self.scaling), key.T, out=flat)
        else:
            column = less.reshape(-1, 1)
            torch.addmm(column, query, key.T, beta=-1, alpha=self.scaling, out=flat)
        scores = out
        if self.softcap is not None:
            self._cap(scores)
            scores.sub_(0 if less is None else less[..., None])
        if self.position_bias is not None:
            bias = self._bias(example)
            scores += bias[heads if len(bias) > 1 else slice(1), rows, keys.start : keys.stop]
        if hidden is not None:
            scores[..., len(keys) - hidden.shape[1] :].masked_fill_(hidden, UNSEEN)
        return scores

    def _cap(self, scores: torch.Tensor) -> None:
        if self.softcap is not None:
            scores.div_(self.softcap).tanh_().mul_(self.softcap)

    def _bias(self, example: int) -> torch.Tensor:
        assert self.position_bias is not None
        return self.position_bias[min(example, len(self.position_bias) - 1)]

    @property
    def log_sums(self) -> list[torch.Tensor]:
        """[head, query] of each example: log Σ_j exp(s_ij), sinks included."""
        if not self._log_sums:
            self.mix()
        return self._log_sums

    def sums(self, example: int, request: Asked) -> MapSums:
        """Sums over whole maps, from the pass that mixed the values where it was asked for them."""
        if self._sums and request is self.asked:
            return self._sums[example]
        if request.norms is not None or request.diagonals is not None or not self._compiled:
            return self._by_rows(example, request)
        from headscope.model import long_kernels

        n, log_sums = self.mask.lengths[example], self.log_sums[example]
        separator = request.separator[example, :n]
        entropy, columns = long_kernels.sums(
            self.query[example, :, :n],
            self.key[example, :, :n],
            log_sums,
            torch.stack([~separator, separator]).to(self.wide),
            causal=self.mask.kind == "causal",
            scaling=self.scaling,
            softcap=self.softcap,
        )
        return MapSums(log_sums, entropy, columns, entropy.new_zeros(n))

    @property
    def _compiled(self) -> bool:
        """Whether the kernels for a GPU know all that is here."""
        plain = self.position_bias is None and self.mask.kind in OPEN
        there = self.device.type == "cuda" and find_spec("triton") is not None
        return there and plain and self.wide == torch.float32

    def rows(self, example: int, rows: torch.Tensor, span: range | None = None) -> torch.Tensor:
        """[head, row, key] the weights of some queries [row] to all n real keys.

        span  within which they lie; None: anywhere
        """
        n = self.mask.lengths[example]
        out = self.query.new_zeros(self.shape[1], len(rows), n, dtype=self.wide)
        if span is None:
            # On a host they are looked at: those near each other see few keys through a window.
            near = self.device.type == "cpu" and self.mask.kind not in OPEN and len(rows)
            span = range(int(rows.min()), int(rows.max()) + 1) if near else range(n)
        return self._rows(example, rows, span, out)

    def _rows(
        self, example: int, rows: torch.Tensor, span: range, out: torch.Tensor
    ) -> torch.Tensor:
        keys, hidden = self._sight(example, rows, span, range(out.shape[-1]))
        for _, heads in self._shared():
            less = self.log_sums[example][heads][:, rows]
            logs = self._scores(example, heads, rows, keys, hidden, less)
            torch.exp(logs, out=out[heads, :, keys.start : keys.stop])
        return out

    def row_blocks(self, example: int) -> Iterator[tuple[range, torch.Tensor]]:
        """All queries in turn, and [head, row, key] their weights, to the last key they see."""
        n, causal = self.mask.lengths[example], self.mask.kind == "causal"
        for rows in blocks(n, max(1, min(ROWS, MOST_WEIGHTS // (self.shape[1] * n)))):
            size = (self.shape[1], len(rows), rows.stop if causal else n)
            make = self.query.new_zeros if self.mask.kind not in OPEN else self.query.new_empty
            yield rows, self._rows(example, self._places(rows), rows, make(size, dtype=self.wide))

    def seen_blocks(self, example: int) -> Iterator[tuple[range, torch.Tensor]]:
        """All queries in turn: which, and [query, key] bool the real keys that they see."""
        n = self.mask.lengths[example]
        every = self._places(range(n))
        for rows in blocks(n, ROWS):
            yield rows, self.mask.block(example, self._places(rows)[:, None], every)

    def pairs(self, example: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        """[pair, head] the weights between chosen queries and keys; all given [pair]."""
        out = self.query.new_zeros(len(query), self.shape[1], dtype=self.wide)
        for place, n in enumerate(self.mask.lengths):
            mine = ((example == place) & (query < n) & (key < n)).nonzero()[:, 0]
            for some in torch.split(mine, MOST_PAIRS) if len(mine) else ():
                vectors = self.query[place][:, query[some]], self.key[place][:, key[some]]
                out[some] = self._pairs(place, query[some], key[some], *vectors).T
        return out

    def beside(self, offset: int) -> torch.Tensor:
        """[example, head, query] the weight of the token `offset` positions on.

        Of the queries that have one: without the last `offset`, or the first `-offset`.
        """
        examples, heads, queries, _ = self.shape
        first, last = max(-offset, 0), max(offset, 0)
        out = self.query.new_zeros(examples, heads, queries - first - last, dtype=self.wide)
        for example, n in enumerate(self.mask.lengths):
            query = self._places(range(first, max(first, n - last)))
            at, to = (slice(first + by, first + by + len(query)) for by in (0, offset))
            vectors = self.query[example, :, at], self.key[example, :, to]
            out[example, :, : len(query)] = self._pairs(example, query, query + offset, *vectors)
        return out

    def _pairs(
        self,
        example: int,
        query: torch.Tensor,
        key: torch.Tensor,
        of_query: torch.Tensor,
        of_key: torch.Tensor,
    ) -> torch.Tensor:
        """[head, pair] the weights; of_query, of_key [head or key-value head, pair, dim]."""
        shared = self.key.shape[1]
        queries = of_query.to(self.wide)
        queries = queries.view(shared, self.shape[1] // shared, *queries.shape[1:])
        keys = of_key.to(self.wide)[:, None]  # [shared, 1, pair, dim]
        scores = torch.linalg.vecdot(queries, keys).flatten(0, 1).mul_(self.scaling)  # [head, pair]
        self._cap(scores)
        if self.position_bias is not None:
            scores += self._bias(example)[:, query, key]
        scores -= self.log_sums[example][:, query]
        unseen = ~self.mask.block(example, query, key)
        weights: torch.Tensor = scores.masked_fill_(unseen, UNSEEN).exp_()
        return weights

    def among(self, example: int, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        """[head, set, query, key] the weights between sets of tokens.

        queries, keys  [set, token]
        """
        size = (self.shape[1], *queries.shape, keys.shape[1])
        out = self.query.new_empty(size, dtype=self.wide)
        seen = self.mask.block(example, queries[:, :, None], keys[:, None])
        for shared, heads in self._shared():
            query = self.query[example, heads][:, queries].to(self.wide)  # [head, set, query, dim]
            key = self.key[example, shared, keys].to(self.wide)  # [set, key, dim]
            scores = (query @ key.transpose(1, 2)).mul_(self.scaling)
            self._cap(scores)
            if self.position_bias is not None:
                bias = self._bias(example)[:, queries[:, :, None], keys[:, None]]
                scores += bias[heads] if len(bias) > 1 else bias
            scores -= self.log_sums[example][heads][:, queries][..., None]
            out[heads] = scores.masked_fill_(~seen, UNSEEN).exp_()
        return out
