"""Sums over the maps of long inputs on a GPU: two Triton kernels that never store a weight.

To be imported only where tensors are on such a device: there torch brings Triton along.

One program sums what a tile of queries gives, another what a tile of keys receives; each makes its
own weights, α_ij = exp(s_ij - lse_i). Both in one would halve the products of queries and keys, but
several programs would then add to one column, in an order that changes from run to run, and with it
the last bits. Products of float32 are taken as they are ("ieee"): tf32 keeps 10 bits, which makes a
score of 30 wrong by 0.03, and the log-sum-exps would be those of other scores. Sums are float32.
"""

import torch
import triton
import triton.language as tl

TILE = 1 << 14  # bytes of queries or keys held at a time: a few fit beside each other on any GPU


def sums(
    query: torch.Tensor,
    key: torch.Tensor,
    log_sums: torch.Tensor,
    classes: torch.Tensor,
    *,
    causal: bool,
    scaling: float,
    softcap: float | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Entropies and columns of one input, as `LongAttention.sums` gives them.

    query     [head, query, dim]  float16, bfloat16 or float32, by any strides
    key       [key-value head, key, dim]  likewise, as many keys as queries; never repeated
    log_sums  [head, query] float32
    classes   [class, query] 0 or 1
    causal    a query sees the keys up to its own; else all
    returns   [head, query] in nats, [head, class, key]; float32
    """
    heads, n, dim = query.shape
    log_sums, classes = log_sums.contiguous(), classes.float().contiguous()
    entropy = log_sums.new_empty(heads, n)
    columns = log_sums.new_empty(heads, len(classes), n)
    wide = max(16, triton.next_power_of_2(dim))  # what products of tiles want at least
    bytes_each = query.element_size()
    size = min(128 // bytes_each, max(16, TILE // (wide * bytes_each)))  # float32 fills registers
    arguments = (
        query,
        key,
        log_sums,
        *query.stride(),
        *key.stride(),
        heads // len(key),
        n,
        dim,
        float(scaling),
        1.0 if softcap is None else float(softcap),
    )
    how = {"CAPPED": softcap is not None, "CAUSAL": causal, "WIDE": wide, "SIZE": size}
    grid = triton.cdiv(n, size), heads
    _entropies[grid](entropy, *arguments, **how, num_stages=2)
    several = triton.next_power_of_2(len(classes))
    _columns[grid](columns, classes, len(classes), *arguments, **how, CLASSES=several, num_stages=2)
    return entropy, columns


@triton.jit  # type: ignore[untyped-decorator]
def _tile(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    start, at, step, along, n, dim, WIDE: tl.constexpr
):
    """[place, dim] vectors of one head at some places; 0 beyond the last."""
    of = tl.arange(0, WIDE)
    there = (at[:, None] < n) & (of[None, :] < dim)
    return tl.load(start + at[:, None] * step + of[None, :] * along, mask=there, other=0.0)


@triton.jit  # type: ignore[untyped-decorator]
def _log_weights(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    query, key, log_sum, rows, keys, n, scaling, cap, CAPPED: tl.constexpr, CAUSAL: tl.constexpr
):
    """[query, key] log α; -1e30, whose exponential is 0 and that times 0 is 0, where not seen."""
    scores = tl.dot(query, tl.trans(key), input_precision="ieee") * scaling
    if CAPPED:
        small = tl.exp(-2 * tl.abs(scores) / cap)
        level = cap * (1 - small) / (1 + small)  # cap · tanh(|score| / cap)
        scores = tl.where(scores < 0, -level, level)
    seen = (rows[:, None] < n) & (keys[None, :] < n)
    if CAUSAL:
        seen = seen & (keys[None, :] <= rows[:, None])
    return tl.where(seen, scores - log_sum[:, None], -1e30)


@triton.jit  # type: ignore[untyped-decorator]
def _entropies(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    entropy,
    query,
    key,
    log_sums,
    query_head,
    query_step,
    query_along,
    key_head,
    key_step,
    key_along,
    group,
    n,
    dim,
    scaling,
    cap,
    CAPPED: tl.constexpr,
    CAUSAL: tl.constexpr,
    WIDE: tl.constexpr,
    SIZE: tl.constexpr,
):
    """-Σ_j α log α of a tile of queries of one head."""
    first, head = tl.program_id(0) * SIZE, tl.program_id(1).to(tl.int64)
    rows = (first + tl.arange(0, SIZE)).to(tl.int64)
    mine = _tile(query + head * query_head, rows, query_step, query_along, n, dim, WIDE)
    log_sum = tl.load(log_sums + head * n + rows, mask=rows < n, other=0.0)
    of = key + head // group * key_head
    nats = tl.zeros((SIZE,), tl.float32)
    last = tl.minimum(n, first + SIZE) if CAUSAL else n
    for start in range(0, last, SIZE):
        keys = (start + tl.arange(0, SIZE)).to(tl.int64)
        other = _tile(of, keys, key_step, key_along, n, dim, WIDE)
        logs = _log_weights(mine, other, log_sum, rows, keys, n, scaling, cap, CAPPED, CAUSAL)
        nats -= tl.sum(tl.exp(logs) * logs, 1)
    tl.store(entropy + head * n + rows, tl.maximum(nats, 0.0), mask=rows < n)


@triton.jit  # type: ignore[untyped-decorator]
def _columns(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    columns,
    classes,
    count,
    query,
    key,
    log_sums,
    query_head,
    query_step,
    query_along,
    key_head,
    key_step,
    key_along,
    group,
    n,
    dim,
    scaling,
    cap,
    CAPPED: tl.constexpr,
    CAUSAL: tl.constexpr,
    WIDE: tl.constexpr,
    SIZE: tl.constexpr,
    CLASSES: tl.constexpr,
):
    """Σ_i α of a tile of keys of one head, over the queries of each class."""
    first, head = tl.program_id(0) * SIZE, tl.program_id(1).to(tl.int64)
    keys = (first + tl.arange(0, SIZE)).to(tl.int64)
    start = key + head // group * key_head
    mine = _tile(start, keys, key_step, key_along, n, dim, WIDE)
    of = query + head * query_head
    each = tl.arange(0, CLASSES)
    received = tl.zeros((CLASSES, SIZE), tl.float32)
    for begin in range(first if CAUSAL else 0, n, SIZE):
        rows = (begin + tl.arange(0, SIZE)).to(tl.int64)
        other = _tile(of, rows, query_step, query_along, n, dim, WIDE)
        log_sum = tl.load(log_sums + head * n + rows, mask=rows < n, other=0.0)
        logs = _log_weights(other, mine, log_sum, rows, keys, n, scaling, cap, CAPPED, CAUSAL)
        weights = tl.exp(logs)
        for one in tl.static_range(CLASSES):
            in_it = tl.load(classes + one * n + rows, mask=(rows < n) & (one < count), other=0.0)
            column = tl.sum(weights * in_it[:, None], 0)
            received += tl.where(each[:, None] == one, column[None, :], 0.0)
    to = columns + (head * count + each[:, None]) * n + keys[None, :]
    tl.store(to, received, mask=(each[:, None] < count) & (keys[None, :] < n))
