"""What words give to words, as in `measure_segments`, of inputs read without whole maps.

Where all words of an input are of one run, none is of another sentence, and what words give to
words is what is left of a row without the few other tokens; only words of equal ids are compared.
Inputs of several runs are read row by row.
"""

from collections.abc import Iterator

import numpy as np
import torch

from headscope.core.accumulators import Float64, Ints
from headscope.core.head_attention import WORD_KINDS
from headscope.model.batch import Batch, to_float64
from headscope.model.long_layer import LongLayerView
from headscope.model.long_mask import OPEN

MOST_WEIGHTS = 1 << 23  # compared in one go
FEW = 8  # tokens of an input that are no words


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
            number[example, at] = to_float64(_kinds(batch, example, at, seen).sum(1))
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
    """Of each input the tokens that are no words, and those of equal ids; None: read row by row.

    Once for all layers, because the host waits for the device.
    """
    found: list[Places | None] = []
    every, device = batch.word_runs.cpu().numpy(), batch.word_runs.device
    for run, n, ids in zip(every, batch.lengths, batch.input_ids.cpu().numpy(), strict=True):
        beside = np.flatnonzero(run[:n] == 0)
        if run.max() > 1 or len(beside) > FEW:
            found.append(None)
            continue
        equal = equal_tokens(np.where(run[:n] > 0, ids[:n], -1))
        none, *sets = (torch.from_numpy(tokens).to(device) for tokens in (beside, *equal))
        found.append((none, sets))
    return found


def long_given(layer: LongLayerView, batch: Batch, places: list[Places | None]) -> torch.Tensor:
    """[example, head, query, kind + 1] attention to WORD_KINDS; -Σ α log α over the own segment.

    places  of `long_places`
    """
    nats, _ = layer.scan(batch)
    out = nats.new_zeros(*nats.shape, len(WORD_KINDS) + 1)
    for example, (n, known) in enumerate(zip(layer.long.mask.lengths, places, strict=True)):
        if known is None:
            _row_by_row(layer, batch, example, out[example])
            continue
        run, (beside, equal) = batch.word_runs[example, :n], known
        queries = torch.arange(n, device=run.device)
        (given,) = layer.long.among(example, queries[None], beside[None]).unbind(1)
        part = out[example, :, :n]
        part[..., 0] = 1 - layer.rest[example, :, :n] - given.sum(-1)
        part[..., -1] = nats[example, :, :n] - torch.special.entr(given).sum(-1)
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
            given = layer.long.among(example, queries, some)  # [head, set, query, key]
            itself = queries[:, :, None] == some[:, None]
            to[:, queries] += given.masked_fill_(itself, 0).sum(-1)


def _row_by_row(layer: LongLayerView, batch: Batch, example: int, out: torch.Tensor) -> None:
    """The same whatever the runs are; out [head, query, kind + 1]."""
    run = batch.word_runs[example]
    for rows, weights in layer.long.row_blocks(example):
        at = slice(rows.start, rows.stop)
        seen = torch.ones_like(weights[0], dtype=torch.bool)
        kinds = _kinds(batch, example, at, seen, several=True).to(weights)
        out[:, at, :-1] = torch.einsum("hqk,qkw->hqw", weights, kinds)
        own = torch.special.entr(weights) * kinds[..., 0]
        out[:, at, -1] = own.sum(-1)
    out *= (run > 0)[:, None]


def _kinds(
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
