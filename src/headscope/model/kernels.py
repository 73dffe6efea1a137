"""Compiled loops over attention maps.

Numpy and torch cannot compute these without writing a temporary as large as the maps. They work on
float32 on the host; instrument and analyses hold the same formulas in torch for any other device
and precision.

Every loop is compiled to the operations that are written, in the order in which they are written:
equal input gives equal bits for any number of threads, on any processor, from code compiled just
now or cached. Sums over keys are written so that vector units can follow.
"""

import numpy as np
import torch
from numba import njit

from headscope.model.compiled_loops import compile_loop, threaded
from headscope.model.kernel_operations import (
    LANES,
    _add_xlog2x,
    _bits,
    _fma,
    _lane_sum,
    _members,
    _xlog2x,
)

_HALF = np.float32(0.5)


def compiled(weights: torch.Tensor) -> bool:
    """Whether the compiled loops apply: float32 on the host."""
    return weights.device.type == "cpu" and weights.dtype == torch.float32


@threaded(lambda weight, *_: len(weight))
def histogram_cells(begin, stop, weight, norm, category, bins, cells, counts):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Where pairs of tokens fall in histograms by category, weight and norm of the key.

    weight    [example, head, row, key] float32, from some queries
    norm      [2, example, head, key] int32    which bin of the norm: a fine and a coarse one
    category  [example, row, key] int32
    bins      [2, 4] int32   of a fine and a coarse one: shift, start and number of the weight's
                             bins, see `LogBins.bits`; number of the norm's
    cells     [example, head, row, key] int32 out: cell of the fine histogram
    counts    [example, cell] int64 out, added to: of the coarse histogram
    """
    zero = np.int32(0)
    for b in range(begin, stop):
        coarse = np.empty(weight.shape[3], np.int32)
        for h in range(weight.shape[1]):
            for r in range(weight.shape[2]):
                a, kind = weight[b, h, r], category[b, r]
                for k in range(2):
                    out = coarse if k else cells[b, h, r]
                    shift, start, number, norms = bins[k]
                    of_norm, last = norm[k, b, h], np.int32(number - 1)
                    for j in range(len(a)):  # in numbers of 32 bits, which vectors hold more of
                        at = np.int32((_bits(a[j]) >> shift) - start)  # type: ignore[call-arg]
                        at = min(max(at, zero), last)
                        out[j] = np.int32(kind[j] * number + at) * norms + of_norm[j]
                for j in range(len(a)):
                    counts[b, coarse[j]] += 1


@compile_loop
def count(cells, counts):  # type: ignore[no-untyped-def]
    """Adds 1 to `counts` [cell] at each of `cells`, flat; those beyond its end do not count."""
    for cell in cells:
        if cell < len(counts):
            counts[cell] += 1


@threaded(lambda maps, *_: (len(maps) + 1) // 2)
def pair_sums(begin, stop, maps, weights, length, out):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Σ over queries and keys of w·(a+b)·log2(a+b) for every pair of maps of one example.

    maps     [unit, query, key] float32; only the first `length` keys count
    weights  [query] float32  w; queries beyond these do not count
    out      [unit, unit] float64, the diagonal and what is above are written
    """
    units, rows = maps.shape[0], len(weights)
    wide = min(-(-length // LANES) * LANES, maps.shape[2])  # whole vectors, where there is room
    whole = wide - wide % LANES
    # The first row has the most pairs and the last one: each step takes one from either end (the
    # middle one twice), so that every thread gets equally many pairs.
    for p in range(begin, stop):
        bits, columns = np.empty(wide, np.float32), np.empty(wide, np.float64)
        for end in range(2):
            g = p + end * (units - 1 - 2 * p)
            for h in range(g, units):
                columns[:] = 0
                for start in range(0, rows, 32):  # so few rows that float32 is enough
                    bits[:] = np.float32(0)
                    for i in range(start, min(start + 32, rows)):
                        a, b = maps[g, i], maps[h, i]
                        _add_xlog2x(a, b, weights[i], bits, whole)  # type: ignore[call-arg]
                        for j in range(whole, wide):
                            bits[j] = _fma(weights[i], _xlog2x(a[j] + b[j]), bits[j])
                    for j in range(wide):
                        columns[j] += bits[j]
                total = 0.0
                for j in range(length):
                    total += columns[j]
                out[g, h] = total


@threaded(lambda first, *_: first.shape[0] * first.shape[1])
def alike(begin, stop, first, second, lengths, out):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """What says how alike the maps of two models are, head by head.

    first, second  [example, head, query, key] float32; maps of one head of both
    lengths        [example] int64  keys and queries from lengths on are padding
    out            [example, head, 4] float64 out: Σ ab, Σ a², Σ b², and the divergences in bits,
                   ½ Σ (a log2 a + b log2 b) - Σ m log2 m with m = (a + b) / 2; 0 for equal maps
    """
    heads = first.shape[1]
    for row in range(begin, stop):
        e = row // heads
        h = row - e * heads
        n = lengths[e]
        both = ones = twos = apart = np.float64(0)
        for i in range(n):
            a, b = first[e, h, i], second[e, h, i]
            ab = aa = bb = bits = np.float32(0)
            for j in range(n):
                x, y = a[j], b[j]
                ab += x * y
                aa += x * x
                bb += y * y
                # In the order written, equal weights give exactly 0.
                bits += (_xlog2x(x) + _xlog2x(y)) * _HALF - _xlog2x((x + y) * _HALF)  # type: ignore[call-arg]
            both += ab
            ones += aa
            twos += bb
            apart += bits
        out[e, h, 0], out[e, h, 1], out[e, h, 2], out[e, h, 3] = both, ones, twos, apart


@njit
def squared_norms(weights, query, gram, first, cross, out):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """‖Σ_h α_hj f_hj‖² = Σ_gh α_gj α_hj ⟨f_gj, f_hj⟩ of one query and some keys.

    weights     [head, query, key] float32
    gram        [head g, head h, key] float32, only g ≥ h is read
    first       [2] the keys of `weights` and of `gram` at which they begin
    cross, out  [key] float32; room, and out
    """
    size = len(out)
    out[:] = np.float32(0)
    for g in range(len(weights)):
        a = weights[g, query, first[0] : first[0] + size]
        own = gram[g, g, first[1] : first[1] + size]
        cross[:] = np.float32(0)
        for h in range(g):
            other = weights[h, query, first[0] : first[0] + size]
            inner = gram[g, h, first[1] : first[1] + size]
            for j in range(size):
                cross[j] = _fma(inner[j], other[j], cross[j])  # type: ignore[call-arg]
        for j in range(size):
            out[j] += a[j] * (own[j] * a[j] + np.float32(2) * cross[j])


@threaded(lambda attention, *_: len(attention))
def summed_norms(begin, stop, attention, gram, lengths, out):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """‖Σ_h α f_h(x_j)‖, see `squared_norms`.

    attention  [example, head, query, key] float32
    gram       [example, head, head, key] float32, ⟨f_g(x_j), f_h(x_j)⟩; only g ≥ h is read
    lengths    [example] int64; a part of a map may have fewer queries or keys
    out        [example, query, key] float32; what is of padding stays as it is
    """
    for b in range(begin, stop):
        n = min(lengths[b], attention.shape[3])
        square, cross = np.empty(n, np.float32), np.empty(n, np.float32)
        for i in range(min(lengths[b], attention.shape[2])):
            squared_norms(attention[b], i, gram[b], (0, 0), cross, square)
            for j in range(n):
                out[b, i, j] = np.sqrt(square[j] if square[j] > 0 else np.float32(0))


@threaded(lambda attention, *_: (attention.shape[1] + 3) // 4)
def nearness(begin, stop, attention, vectors, whole, out):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """How much each key brings a vector nearer to 0 in L1: Σ_d |whole_id| - |whole_id - part_ijd|.

    part_ijd = Σ_h α_ij vectors_jd. Taken apart number by number, so that no part gives exactly 0.

    attention  [head, query, key] float32
    vectors    [head, model, key]
    whole      [query, model]
    out        [query, key] float32 out, added to
    """
    heads, queries, keys = attention.shape
    size = vectors.shape[1]
    for block in range(begin, stop):  # four rows, so that each vector is read less often
        rest = np.empty(keys, np.float32)
        for d in range(size):
            for i in range(4 * block, min(4 * block + 4, queries)):
                rest[:] = whole[i, d]
                size_i = abs(whole[i, d])
                for h in range(heads):
                    a, f = attention[h, i], vectors[h, d]
                    for j in range(keys):
                        rest[j] -= a[j] * f[j]
                total = out[i]
                for j in range(keys):
                    total[j] += size_i - abs(rest[j])


@compile_loop
def inner_products(moved, values, dim, gram):  # type: ignore[no-untyped-def]
    """Σ_d moved_hd · values_hd of every row and some heads.

    moved, values  [row, head·dim] float32  of the first heads, and of all; dim divides by LANES
    gram           [row, head] float32 out: of the first heads
    """
    size = moved.shape[1]
    products = np.empty(size, np.float32)
    for r in range(len(gram)):
        a, b = moved[r], values[r]
        for d in range(size):
            products[d] = a[d] * b[d]
        for h in range(size // dim):
            gram[r, h] = _lane_sum(products, h * dim, dim)  # type: ignore[call-arg]


@threaded(lambda own, *_: len(own))
def part_norms(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    begin, stop, own, output, bias, residual, scale, out
):
    """Norms of what a token keeps and of what it takes in, with residual and LayerNorm.

    own       [token, model] float32  Σ_h α_ii f_h(x_i) + bias
    output    [token, model]          Σ_h Σ_j α_ij f_h(x_j) + bias
    bias      [model]                 of the output projection
    residual  [token, model]          x_i
    scale     [model]                 γ of the LayerNorm
    out       [5, token]              ‖others‖, ‖own‖, ‖own + x‖, ‖γ(others - mean)‖,
                                      ‖γ(own + x - mean)‖
    """
    size = own.shape[1]
    wide = -(-size // LANES) * LANES  # whole vectors; what is behind `size` stays 0
    others, mine, with_x, square = np.zeros((4, wide), np.float32)
    for i in range(begin, stop):
        a, b, x = own[i], output[i], residual[i]
        for d in range(size):
            others[d], mine[d] = b[d] - a[d], a[d] - bias[d]
            with_x[d] = mine[d] + x[d]
        for kind, part in enumerate((others, mine, with_x)):
            for d in range(size):
                square[d] = part[d] * part[d]
            out[kind, i] = np.sqrt(_lane_sum(square, 0, wide))  # type: ignore[call-arg]
        for kind, part in ((3, others), (4, with_x)):
            mean = _lane_sum(part, 0, wide) / np.float32(size)  # type: ignore[call-arg]
            for d in range(size):
                normed = scale[d] * (part[d] - mean)
                square[d] = normed * normed
            out[kind, i] = np.sqrt(_lane_sum(square, 0, wide))


@threaded(lambda sets, _: sets.shape[0] * sets.shape[1])
def overlaps(begin, stop, sets, out):  # type: ignore[no-untyped-def]
    """The overlaps |A ∩ B| / |A ∪ B| of all pairs of sets, added up.

    sets  [example, head, query, word] uint64  a bit for each member; empty sets take no part
    out   [example, head] float64              out: the sum over pairs i < j
    """
    heads, queries, words = sets.shape[1:]
    for row in range(begin, stop):
        b = row // heads
        h = row - b * heads
        size = np.zeros(queries, np.int64)
        for i in range(queries):
            for w in range(words):
                size[i] += _members(sets[b, h, i, w])  # type: ignore[call-arg]
        total = 0.0
        for i in range(queries):
            for j in range(i):
                common = 0
                for w in range(words):
                    common += _members(sets[b, h, i, w] & sets[b, h, j, w])  # type: ignore[call-arg]
                if common:
                    total += common / (size[i] + size[j] - common)
        out[b, h] = total
