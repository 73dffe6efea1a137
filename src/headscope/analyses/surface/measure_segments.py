"""How much do words attend to their own sentence, to the other one, and to the same word elsewhere?

Vig (2019) names heads that spread evenly over the words of the same sentence ("bag of words"), look
at the other sentence, or look for identical words. A word is here a token that the tokenizer did
not add, and special tokens divide an input into segments: the two sentences of a pair, or what else
stands between two of them. Means over the words of an example that see such a key, then over the
examples that have such words; own and other only where an input has two segments or more.

Of long inputs, read without whole maps: where all words are of one run, none is of another
sentence, and what words give to words is what is left of a row without the few other tokens; only
words of equal ids are compared. Inputs of several runs are read row by row.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from headscope.claims.head_attention import WORD_KINDS
from headscope.core.accumulators import Float64, Ints, Sums, ratio
from headscope.core.intervals import SHARE, estimate
from headscope.core.results import Variable
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.model.long_layer import LongLayerView
from headscope.model.long_mask import OPEN, LongMask
from headscope.model.row_sums import ENTROPY, WORDS
from headscope.run.analysis import AnalysisPart, Scope

VIG = "after Vig 2019; the measure is ours"
MOST_WEIGHTS = 1 << 23  # compared in one go
FEW = 8  # tokens of an input that are no words


class SegmentShares(AnalysisPart):
    """Attention of words to words of WORD_KINDS, the same if uniform, and how even it is."""

    def __init__(self, scope: Scope) -> None:
        kinds = len(WORD_KINDS)
        self.total = scope.sums(scope.layers, scope.heads, kinds)
        self.uniform, self.count = (scope.sums(scope.layers, kinds) for _ in range(2))
        self.even, self.even_count = (scope.sums(scope.layers, scope.heads) for _ in range(2))
        self._seen: torch.Tensor | LongMask | None = None
        self._number = self._uniform = np.empty(0)
        self._of: Batch | None = None
        self._places: list[Places | None] = []

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each example's means for one layer."""
        number, uniform = self._counted(layer, batch)  # [example, query, kind]
        if not number.any():
            return
        at, groups = (layer.index,), batch.groups
        if isinstance(layer, LongLayerView):
            if self._of is not batch:
                self._of, self._places = batch, long_places(batch)
            shares = to_float64(long_given(layer, batch, self._places))
        else:
            shares = to_float64(layer.row_sums(batch, WORDS))
        there = number > 0
        one = there / np.maximum(there.sum(1, keepdims=True), 1)  # [example, query, kind]
        self.total.add(np.einsum("bhqw,bqw->bhw", shares[..., :-1], one), groups, at=at)
        self.uniform.add(np.einsum("bqw,bqw->bw", uniform, one), groups, at=at)
        self.count.add(np.asarray(there.any(1) * 1.0), groups, at=at)
        own, nats = shares[..., 0], shares[..., -1]  # [example, head, query]
        used = (number[..., 0] > 1)[:, None] & (own > 0)
        within = nats / np.where(used, own, 1) + np.log(np.where(used, own, 1))
        even = within / np.log(np.maximum(number[..., 0], 2))[:, None]
        queries = used.sum(-1)  # [example, head]
        even = (np.clip(even, 0, 1) * used).sum(-1) / np.maximum(queries, 1)
        self.even.add(np.asarray(even), groups, at=at)
        self.even_count.add((queries > 0) * 1.0, groups, at=at)

    def _counted(self, layer: LayerView, batch: Batch) -> tuple[Float64, Float64]:
        """[example, query, kind] the keys of each kind that a query sees; their share of all seen.

        Once for all layers of a batch that see the same.
        """
        if isinstance(layer, LongLayerView):
            if layer.index == 0 or layer.long.mask is not self._seen:
                self._seen = layer.long.mask
                self._number, self._uniform = long_counts(layer, batch)
            return self._number, self._uniform
        real = batch.mask[:, None] & batch.mask[:, :, None]
        seen = real if layer.seen is None else real & layer.seen[:, 0]  # [example, query, key]
        known = self._seen if isinstance(self._seen, torch.Tensor) else seen.new_empty(0)
        if layer.index == 0 or not torch.equal(seen, known.to(seen.device)):
            self._seen = seen
            self._number = to_float64(batch.word_kinds(seen).sum(2))
            self._number[..., 0] *= to_float64(batch.word_runs.amax(1) > 1)[:, None]
            every = to_float64(seen.sum(2)).clip(1)
            self._uniform = self._number / every[..., None]
        return self._number, self._uniform

    def result(self) -> dict[str, Variable]:
        """word_attention[layer, head, word_kind], uniform_words[layer, word_kind], own_evenness."""
        words = "mean attention of words to words of the kind"

        def mean(total: Sums, count: Float64) -> Any:
            return estimate(ratio(total.sums, count), bounds=SHARE, sizes=count)

        return {
            "word_attention": Variable(
                mean(self.total, self.count.sums[:, :, None]),
                ("layer", "head", "word_kind"),
                words,
                "probability",
                VIG,
            ),
            "uniform_words": Variable(
                mean(self.uniform, self.count.sums),
                ("layer", "word_kind"),
                f"{words}, if it were uniform",
                "probability",
                "ours",
            ),
            "own_evenness": Variable(
                mean(self.even, self.even_count.sums),
                ("layer", "head"),
                "entropy within the own segment, of that of even attention",
                "1",
                VIG,
            ),
        }


def long_counts(layer: LongLayerView, batch: Batch) -> tuple[Float64, Float64]:
    """[example, query, kind] the keys of each kind that a query sees; their share of all seen."""
    examples, tokens = batch.input_ids.shape
    number = np.zeros((examples, tokens, len(WORD_KINDS)))
    every = np.ones((examples, tokens, 1))
    mask = layer.long.mask
    for example, n in enumerate(mask.lengths):
        if mask.kind in OPEN and int(batch.word_runs[example].amax()) <= 1:
            causal = mask.kind == "causal"
            number[example, :n, -1] = _equal_seen(batch, example, n, causal=causal)
            every[example, :n, 0] = np.arange(1, n + 1) if causal else n
            continue
        for rows, seen in layer.long.seen_blocks(example):  # [query, key]
            at = slice(rows.start, rows.stop)
            number[example, at] = to_float64(_kinds_of_block(batch, example, at, seen).sum(1))
            every[example, at, 0] = to_float64(seen.sum(-1))
    return number, number / np.maximum(every, 1)


def _equal_seen(batch: Batch, example: int, n: int, *, causal: bool) -> Ints:
    """[query] of each word the others of its id, or those before it; of an input of one run."""
    words = (batch.word_runs[example, :n] > 0).cpu().numpy()
    ids = np.where(words, batch.input_ids[example, :n].cpu().numpy(), -1)
    _, kind, count = np.unique(ids, return_inverse=True, return_counts=True)
    order = np.argsort(kind, kind="stable")
    before = np.empty(n, np.int64)
    before[order] = np.arange(n) - (np.cumsum(count) - count)[kind[order]]
    return words * (before if causal else count[kind] - 1)


Places = tuple[torch.Tensor, list[torch.Tensor]]


def long_places(batch: Batch) -> list[Places | None]:
    """The tokens of each input that are no words, and those of equal ids; None: read row by row.

    Once for all layers, because the host waits for the device.
    """
    chosen: list[Places | None] = []
    every, device = batch.word_runs.cpu().numpy(), batch.word_runs.device
    for run, n, ids in zip(every, batch.lengths, batch.input_ids.cpu().numpy(), strict=True):
        beside = np.flatnonzero(run[:n] == 0)
        if run.max() > 1 or len(beside) > FEW:
            chosen.append(None)
            continue
        equal = equal_tokens(np.where(run[:n] > 0, ids[:n], -1))
        none, *sets = (torch.from_numpy(tokens).to(device) for tokens in (beside, *equal))
        chosen.append((none, sets))
    return chosen


def long_given(layer: LongLayerView, batch: Batch, places: list[Places | None]) -> torch.Tensor:
    """[example, head, query, kind + 1] attention to WORD_KINDS; -Σ α log α over the own segment.

    places  of `long_places`
    """
    nats = layer.row_sums(batch, ENTROPY)
    out = nats.new_zeros(*nats.shape, len(WORD_KINDS) + 1)
    for example, (n, known) in enumerate(zip(layer.long.mask.lengths, places, strict=True)):
        if known is None:
            _row_by_row(layer, batch, example, out[example])
            continue
        run, (beside, equal) = batch.word_runs[example, :n], known
        queries = torch.arange(n, device=run.device)
        (shares,) = layer.long.among(example, queries[None], beside[None]).unbind(1)
        part = out[example, :, :n]
        part[..., 0] = 1 - layer.rest[example, :, :n] - shares.sum(-1)
        part[..., -1] = nats[example, :, :n] - torch.special.entr(shares).sum(-1)
        for tokens in equal:
            _add_equal(layer, example, tokens, part[..., 2])
        part *= (run > 0)[:, None]
    return out.clamp_min_(0)


def equal_tokens(ids: np.ndarray) -> Iterator[np.ndarray]:
    """[set, token] the places of equal ids ≥ 0, sets of the same size together; none of size 1."""
    order = np.argsort(ids, kind="stable")
    kinds, first, count = np.unique(ids[order], return_index=True, return_counts=True)
    for size in np.unique(count[(count > 1) & (kinds >= 0)]):
        starts = first[(count == size) & (kinds >= 0)]
        yield order[starts[:, None] + np.arange(size)]


def _add_equal(layer: LongLayerView, example: int, places: torch.Tensor, to: torch.Tensor) -> None:
    """Add what the tokens of each set [set, token] give to the others of it; to [head, query]."""
    size, heads = places.shape[1], len(to)
    sets = max(1, MOST_WEIGHTS // (heads * size * size))
    rows = max(1, MOST_WEIGHTS // (heads * size))
    for some in torch.split(places, sets):
        for queries in torch.split(some, rows, 1):
            weights = layer.long.among(example, queries, some)  # [head, set, query, key]
            itself = queries[:, :, None] == some[:, None]
            to[:, queries] += weights.masked_fill_(itself, 0).sum(-1)


def _row_by_row(layer: LongLayerView, batch: Batch, example: int, out: torch.Tensor) -> None:
    """The same whatever the runs are; out [head, query, kind + 1]."""
    run = batch.word_runs[example]
    for rows, weights in layer.long.row_blocks(example):
        at = slice(rows.start, rows.stop)
        seen = torch.ones_like(weights[0], dtype=torch.bool)
        kinds = _kinds_of_block(batch, example, at, seen, several=True).to(weights)
        out[:, at, :-1] = torch.einsum("hqk,qkw->hqw", weights, kinds)
        own = torch.special.entr(weights) * kinds[..., 0]
        out[:, at, -1] = own.sum(-1)
    out *= (run > 0)[:, None]


def _kinds_of_block(
    batch: Batch, example: int, queries: slice, seen: torch.Tensor, *, several: bool = False
) -> torch.Tensor:
    """[query, key, kind] bool: which keys seen [query, key] are words of which of WORD_KINDS.

    several  where an input has one segment, it is its own
    """
    n = seen.shape[1]
    run, ids = batch.word_runs[example, :n], batch.input_ids[example, :n]
    pair = (run > 0) & (run[queries, None] > 0) & seen
    mine = run[queries, None] == run
    place = torch.arange(n, device=ids.device)
    alike = (ids[queries, None] == ids) & (place[queries, None] != place)
    own = mine if several or int(run.amax()) > 1 else torch.zeros_like(mine)
    return torch.stack([pair & own, pair & ~mine, pair & alike], -1)
