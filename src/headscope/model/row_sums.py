"""What each row of attention adds up to: its entropy, what keys get, what words give to words.

One reading of the maps gives all that is asked. On the host it is a compiled loop; of a row it
takes the logarithms once, for the entropy of all keys and for that of the own segment.
"""

from collections.abc import Collection

import numpy as np
import torch

from headscope.model.batch import Batch
from headscope.model.compiled_loops import threaded
from headscope.model.kernel_operations import LANES, LN2, _lane_sum, _xlog2x
from headscope.model.kernels import compiled

ENTROPY, COLUMNS, WORDS = "entropy", "columns", "words"


def row_sums(
    attention: torch.Tensor, batch: Batch, wanted: Collection[str]
) -> dict[str, torch.Tensor]:
    """Those that are wanted, of maps [example, head, query, key].

    ENTROPY  [example, head, query]       nats; 0 for padding
    COLUMNS  [example, head, class, key]  sums over the queries of `Batch.query_classes`
    WORDS    [example, head, query, 4]    what a word gives to words of its run, of others, of its
                                          id elsewhere; the nats of the first, -Σ α log α. 0 for
                                          what is no word
    """
    return (_compiled if compiled(attention) else _by_torch)(attention, batch, wanted)


def _compiled(
    attention: torch.Tensor, batch: Batch, wanted: Collection[str]
) -> dict[str, torch.Tensor]:
    examples, heads, queries, keys = attention.shape
    shapes = {ENTROPY: (queries,), COLUMNS: (2, keys), WORDS: (queries, 4)}
    room = {
        name: np.zeros((examples if name in wanted else 0, heads, *shape), np.float32)
        for name, shape in shapes.items()
    }
    words = (batch.word_runs, batch.word_ids) if WORDS in wanted else (batch.is_sep,) * 2
    tokens = (batch.is_sep, *words)
    maps = attention.contiguous().numpy()
    add_rows(maps, batch.lengths, *(part.int().numpy() for part in tokens), *room.values())
    sums = {name: torch.from_numpy(room[name]) for name in wanted}
    if ENTROPY in wanted:  # rounding leaves weights a little above 1
        sums[ENTROPY].clamp_min_(0).mul_(LN2)
    if WORDS in wanted:
        sums[WORDS][..., 3].mul_(LN2)
    return sums


def _by_torch(
    attention: torch.Tensor, batch: Batch, wanted: Collection[str]
) -> dict[str, torch.Tensor]:
    sums = {}
    if COLUMNS in wanted:
        sums[COLUMNS] = batch.query_classes.to(attention)[:, None] @ attention
        if len(wanted) == 1:
            return sums
    nats = torch.special.entr(attention)
    if ENTROPY in wanted:
        sums[ENTROPY] = nats.sum(-1).clamp_min(0) * batch.mask[:, None]
    if WORDS in wanted:
        kinds = batch.word_kinds().to(attention)  # [example, query, key, kind]
        shares = torch.einsum("bhqk,bqkw->bhqw", attention, kinds)
        own = torch.einsum("bhqk,bqk->bhq", nats, kinds[..., 0])
        sums[WORDS] = torch.cat([shares, own[..., None]], -1)
    return sums


@threaded(lambda attention, *_: attention.shape[0] * attention.shape[1])
def add_rows(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    begin, stop, attention, lengths, query_class, run, token, entropy, columns, words
):
    """The sums of every map, in one reading. Those of no examples are not wanted.

    attention    [example, head, query, key] float32
    lengths      [example] int64           keys and queries from lengths on are padding
    query_class  [example, query] int32    0 or 1: which column sum a query belongs to
    run, token   [example, token] int32    its run of words, 0 for what is no word; its id, or -1
    entropy      [example, head, query]    float32 out, bits; of padding it stays as it is
    columns      [example, head, 2, key]   float32 out, added to: sum over the queries of each class
    words        [example, head, query, 4] float32 out, bits; of what is no word it stays as it is
    """
    heads = attention.shape[1]
    for row in range(begin, stop):
        b = row // heads
        h = row - b * heads
        n = lengths[b]
        size = -(-n // LANES) * LANES  # whole vectors
        bits, mine, others, alike = np.zeros((4, size), np.float32)
        for i in range(n):
            a = attention[b, h, i]
            if len(columns):
                total = columns[b, h, query_class[b, i]]
                for j in range(n):
                    total[j] += a[j]
            of_word = len(words) > 0 and run[b, i] > 0
            if not (len(entropy) or of_word):
                continue
            for j in range(n):
                bits[j] = _xlog2x(a[j])  # type: ignore[call-arg]
            if len(entropy):
                entropy[b, h, i] = -_lane_sum(bits, 0, size)  # type: ignore[call-arg]
            if of_word:
                for j in range(n):
                    own = np.float32(run[b, j] == run[b, i])
                    bits[j] *= own
                    mine[j] = a[j] * own
                    others[j] = a[j] * np.float32(run[b, j] > 0)
                    alike[j] = a[j] * np.float32(token[b, j] == token[b, i])
                total = words[b, h, i]
                total[0] = _lane_sum(mine, 0, size)  # type: ignore[call-arg]
                total[1] = _lane_sum(others, 0, size) - total[0]
                total[2] = _lane_sum(alike, 0, size) - a[i]
                total[3] = -_lane_sum(bits, 0, size)
