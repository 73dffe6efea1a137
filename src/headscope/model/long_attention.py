"""The attention of long inputs, without ever making a whole map.

A fused pass mixes the values and gives each query's log-sum-exp of its scores. With it any block of
queries and keys can be made again by itself, α_ij = exp(s_ij - lse_i), looked at, and dropped. So
memory grows with the number of tokens, not with its square. Queries, keys and biases are widened to
float32; key-value heads are never repeated for the query heads that share them. Padding stands
behind the real tokens; its rows and columns are 0.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from headscope.errors import ModelError
from headscope.model.lags import Lags

ROWS = 64  # of one block of queries: a block then stays in the cache
KEYS, KEYS_TOGETHER = 4096, 512  # and of keys, where a query's log-sum-exp is known
MOST_PAIRS = 1 << 16  # of a query and a key, looked at in one go
MOST_WEIGHTS = 1 << 24  # of all heads at once, in a block that is handed out
UNSEEN = -1e30  # a score whose exponential is 0, and that times 0 is 0
Norms = Callable[[torch.Tensor, slice], torch.Tensor]  # see `LongAttention.sums`
OPEN = ("causal", "every")  # what needs no mask: all keys up to the query's own, or all


@dataclass(frozen=True)
class LongMask:
    """Which keys a query may attend to, told for any block of them.

    function  (example, head, query, key) -> bool, over index tensors that are broadcast
    lengths   [example] real tokens
    kind      "causal" or "every", if it says no more than that; else ""
    queries   number of them, padding included
    keys      likewise
    """

    function: Callable[..., torch.Tensor]
    lengths: tuple[int, ...]
    kind: str
    queries: int
    keys: int
    device: torch.device

    @classmethod
    def of(
        cls, batch_size: int, q_length: int, kv_length: int, q_offset: int = 0, kv_offset: int = 0,
        *, mask_function: Callable[..., torch.Tensor],
        attention_mask: torch.Tensor | None = None, allow_is_causal_skip: bool | None = None,
        allow_is_bidirectional_skip: bool = False, local_size: int | None = None,
        use_vmap: bool = False, device: torch.device | str = "cpu", **_other: Any,
    ) -> "LongMask":  # fmt: skip
        """What transformers asks a mask function for, with the names that it gives."""
        if use_vmap or q_offset or kv_offset:
            what = "a mask of the model's own making" if use_vmap else "a cache of earlier tokens"
            raise ModelError(
                f"{what} cannot be read in blocks; wanted an input that is read by whole maps: "
                f"--whole-maps {max(q_length, kv_length)}"
            )
        kind = "every" if allow_is_bidirectional_skip else "causal" if allow_is_causal_skip else ""
        if local_size is not None and local_size < kv_length:
            kind = ""
        lengths = _lengths(attention_mask, batch_size, kv_length)
        return cls(mask_function, lengths, kind, q_length, kv_length, torch.device(device))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """[example, 1, query, key], as of a mask that is there."""
        return len(self.lengths), 1, self.queries, self.keys

    def block(self, example: int, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        """Which queries may attend to which keys: bool, index against index where broadcast."""
        one = torch.full((1,) * query.ndim, example, device=self.device)
        seen = self.function(one, torch.zeros_like(one), query, key)
        return seen.expand((query + key).shape)

    def __getattr__(self, name: str) -> Any:
        raise ModelError(
            f"this model asks a mask for its {name!r}, which a mask that is never made whole does "
            f"not have; wanted an input that is read by whole maps: --whole-maps {self.keys}"
        )


def _lengths(padding: torch.Tensor | None, examples: int, keys: int) -> tuple[int, ...]:
    if padding is None:
        return (keys,) * examples
    real = padding.bool()
    lengths = real.sum(-1)
    if not torch.equal(real, torch.arange(real.shape[1], device=real.device) < lengths[:, None]):
        raise ModelError("padding stands before or among the tokens; wanted it behind them")
    return tuple(lengths.tolist())


class LongAttention:
    """The attention of one layer in one batch of long inputs.

    query       [example, head, query, dim]
    key, value  [example, key-value head, key, dim]
    mask        which keys each query may attend to
    scaling     what q·k is multiplied by
    softcap, position_bias, s_aux   as of `attention.probabilities`
    """

    def __init__(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: LongMask, *,
        scaling: float, softcap: float | None = None, position_bias: torch.Tensor | None = None,
        s_aux: torch.Tensor | None = None,
    ) -> None:  # fmt: skip
        self.query, self.key, self.value, self.mask = query, key, value, mask
        self.scaling, self.softcap = scaling, softcap
        self.position_bias, self.s_aux = position_bias, s_aux
        self.shape = torch.Size((*query.shape[:3], key.shape[2]))
        self.wide = torch.promote_types(query.dtype, torch.float32)
        self._log_sums: list[torch.Tensor] = []

    @property
    def device(self) -> torch.device:
        """Where the queries are."""
        return self.query.device

    def mix(self) -> torch.Tensor:
        """[example, head, query, dim] Σ_j α_ij v_j; 0 for padding."""
        examples, heads, queries, _ = self.shape
        out = self.value.new_zeros(examples, heads, queries, self.value.shape[-1])
        self._log_sums.clear()
        for example, n in enumerate(self.mask.lengths):
            mixed, log_sums = self._fused(example, n) if self._fits else self._by_rows(example, n)
            out[example, :, :n] = mixed
            self._log_sums.append(log_sums)
        return out

    @property
    def _fits(self) -> bool:
        """Whether the host's fused kernel computes just this."""
        plain = self.softcap is None and self.position_bias is None and self.s_aux is None
        alike = self.query.shape[-1] == self.value.shape[-1] and self.device.type == "cpu"
        return plain and alike and self.mask.kind in OPEN

    def _fused(self, example: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        one = slice(example, example + 1)
        mixed, log_sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            self.query[one, :, :n], self.key[one, :, :n], self.value[one, :, :n], 0.0,
            self.mask.kind == "causal", scale=self.scaling,
        )  # fmt: skip
        if log_sums.shape[1] != self.shape[1]:
            log_sums = log_sums.transpose(1, 2)
        return mixed[0], log_sums[0].to(self.wide).contiguous()

    def _by_rows(self, example: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The same from blocks of whole rows, for whatever the fused kernel does not know."""
        mixed = self.value.new_empty(self.shape[1], n, self.value.shape[-1])
        log_sums = self.query.new_empty(self.shape[1], n, dtype=self.wide)
        for shared, heads in self._shared():
            for rows in blocks(n, ROWS):
                places = self._places(rows)
                keys, hidden = self._sight(example, places, rows, range(n))
                scores = self._scores(example, shared, places, keys, hidden)
                sums = scores.logsumexp(-1)  # [head, row]
                if self.s_aux is not None:
                    sums = torch.logaddexp(sums, self.s_aux[heads, None].to(self.wide))
                at = slice(rows.start, rows.stop)
                log_sums[heads, at] = sums
                weights = scores.sub_(sums[..., None]).exp_()
                values = self.value[example, shared, keys.start : keys.stop].to(self.wide)
                mixed[heads, at] = (weights @ values).to(mixed.dtype)
        return mixed, log_sums

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
        seen = self.mask.block(example, rows[:, None], self._places(keys))
        there = seen.any(0).nonzero()
        first, last = (int(there[0]), int(there[-1]) + 1) if len(there) else (0, 0)
        return keys[first:last], ~seen[:, first:last]

    def _scores(  # noqa: PLR0917
        self, example: int, shared: int, rows: torch.Tensor, keys: range,
        hidden: torch.Tensor | None, less: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """[head, row, key] the scores of the heads that share a key-value head, or UNSEEN.

        hidden  see `_sight`
        less    [head, row] is subtracted
        """
        group = self.shape[1] // self.key.shape[1]
        heads = slice(shared * group, (shared + 1) * group)
        query = self.query[example, heads][:, rows].to(self.wide).flatten(0, 1)  # [head·row, dim]
        key = self.key[example, shared, keys.start : keys.stop].to(self.wide)
        if less is None or self.softcap is not None:
            scores = (query @ key.T).mul_(self.scaling)  # [head·row, key]
        else:
            scores = torch.addmm(less.reshape(-1, 1), query, key.T, beta=-1, alpha=self.scaling)
        scores = scores.view(group, len(rows), len(keys))
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

    def _tiles(
        self, example: int, most: int
    ) -> Iterator[tuple[range, range, Callable[..., torch.Tensor]]]:
        """Every block of a map in turn: its queries, its keys, and what gives its `_scores`.

        most  keys of a block
        """
        n, causal = self.mask.lengths[example], self.mask.kind == "causal"
        for rows in blocks(n, ROWS):
            places = self._places(rows)
            for some in blocks(rows.stop if causal else n, most):
                keys, hidden = self._sight(example, places, rows, some)
                scores = partial(self._scores, example, rows=places, keys=keys, hidden=hidden)
                yield rows, keys, scores

    def sums(
        self, example: int, classes: torch.Tensor, norms: Norms | None = None,
        lags: Lags | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:  # fmt: skip
        """Sums over whole maps: entropies, columns, and norms of all heads together.

        classes  [class, query] 0 or 1
        norms    takes the weights of all heads in a block [head, query, key] and which keys these
                 are, gives [key]; None: that is not asked for
        lags     sums over diagonals are added to it; None: likewise
        returns  [head, query] in nats, without sinks; [head, class, key] over the queries of each
                 class; [key] what `norms` gives, over all queries
        """
        n = self.mask.lengths[example]
        entropy = self.query.new_zeros(self.shape[1], n, dtype=self.wide)
        columns = entropy.new_zeros(self.shape[1], len(classes), n)
        received = None if norms is None else entropy.new_zeros(n)
        classes = classes.to(self.wide)
        for rows, keys, scores in self._tiles(example, KEYS if norms is None else KEYS_TOGETHER):
            at, to = slice(rows.start, rows.stop), slice(keys.start, keys.stop)
            size = (self.shape[1], len(rows), len(keys))
            together = None if norms is None else entropy.new_empty(size)
            for shared, heads in self._shared():
                logs = scores(shared, less=self.log_sums[example][heads, at])  # log α
                weights = torch.exp(logs, out=None if together is None else together[heads])
                entropy[heads, at] -= torch.linalg.vecdot(weights, logs)
                columns[heads, :, to] += classes[:, at] @ weights
                if lags is not None:
                    place = {"example": example, "head": heads.start, "query": rows.start}
                    lags.add(weights[None], np.array([n]), **place, key=keys.start)
            if norms is not None and together is not None and received is not None:
                received[to] += norms(together, to)
        return entropy.clamp_min_(0), columns, received

    def rows(self, example: int, rows: torch.Tensor, span: range | None = None) -> torch.Tensor:
        """[head, row, key] the weights of some queries [row] to all n real keys.

        span  within which they lie; None: anywhere
        """
        n = self.mask.lengths[example]
        out = self.query.new_zeros(self.shape[1], len(rows), n, dtype=self.wide)
        return self._rows(example, rows, range(n) if span is None else span, out)

    def _rows(
        self, example: int, rows: torch.Tensor, span: range, out: torch.Tensor
    ) -> torch.Tensor:
        keys, hidden = self._sight(example, rows, span, range(out.shape[-1]))
        for shared, heads in self._shared():
            less = self.log_sums[example][heads][:, rows]
            logs = self._scores(example, shared, rows, keys, hidden, less)
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
                out[some] = self._pairs(place, query[some], key[some])
        return out

    def _pairs(self, example: int, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        shared = self.key.shape[1]
        asked = self.query[example][:, query].to(self.wide)
        asked = asked.view(shared, -1, *asked.shape[1:])  # [shared, group, pair, dim]
        given = self.key[example][:, key].to(self.wide)[:, None]  # [shared, 1, pair, dim]
        scores = torch.linalg.vecdot(asked, given).flatten(0, 1).mul_(self.scaling)  # [head, pair]
        self._cap(scores)
        if self.position_bias is not None:
            scores += self._bias(example)[:, query, key]
        scores -= self.log_sums[example][:, query]
        unseen = ~self.mask.block(example, query, key)
        weights: torch.Tensor = scores.masked_fill_(unseen, UNSEEN).exp_().T
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


def blocks(count: int, most: int) -> Iterator[range]:
    """Consecutive ranges of at most so many that cover 0 … count."""
    return (range(start, min(start + most, count)) for start in range(0, count, most))
