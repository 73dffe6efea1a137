"""Compiled loops over blocks of whole rows of attention, for inputs without whole maps.

As in `kernels`, equal input gives equal bits for any number of threads: work is divided into parts
that depend on sizes alone, and their sums are added in order.
"""

import numpy as np
import numpy.typing as npt
from numba import njit

from headscope.model.compiled_loops import threaded
from headscope.model.kernel_operations import _bits, _float, _fma
from headscope.model.kernels import squared_norms

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

WIDE = 512  # running sums of a row, side by side
PARTS = 4  # of the rows of a block, which threads share


def _exp2_polynomial(degree: int) -> tuple[np.float32, ...]:
    """2^t on [-½, ½]: coefficients, highest power first; the relative error is below 1e-7."""
    t = np.cos(np.pi * (np.arange(4000) + 0.5) / 4000) / 2
    fit = np.polynomial.Chebyshev.fit(t, 2.0**t, degree, domain=[-0.5, 0.5], w=2.0**-t)
    return tuple(np.float32(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef[::-1])


_P6, _P5, _P4, _P3, _P2, _P1, _P0 = _exp2_polynomial(6)
_OCTAVES = np.float32(1 / np.log(2))  # of a nat
_LEAST = np.float32(-87)  # nats: what is below is no normal float
_ZERO, _LOWEST = np.float32(0), np.float32(-3e38)
_ROUNDING = np.float32(1.5 * 2**23)  # added to a small number, it leaves its nearest integer
_ROUNDING_BITS = np.int32(_ROUNDING.view(np.int32) - 127)


@njit(inline="always")
def _exp(x):  # type: ignore[no-untyped-def]
    """e^x for _LEAST ≤ x ≤ 0: 2^whole · 2^part."""
    octaves = x * _OCTAVES
    rounded = octaves + _ROUNDING
    t = octaves - (rounded - _ROUNDING)
    p = _P6
    for coefficient in (_P5, _P4, _P3, _P2, _P1, _P0):
        p = _fma(p, t, coefficient)  # type: ignore[call-arg]
    exponent = np.int32(_bits(rounded) - _ROUNDING_BITS)  # type: ignore[call-arg]
    return p * _float(np.int32(exponent << np.int32(23)))


@njit
def _largest(row, lanes):  # type: ignore[no-untyped-def]
    lanes[:] = _LOWEST
    for start in range(0, len(row), WIDE):
        some = row[start : start + WIDE]
        for j in range(len(some)):
            lanes[j] = some[j] if some[j] > lanes[j] else lanes[j]
    largest = lanes[0]
    for j in range(WIDE):
        largest = max(largest, lanes[j])
    return largest


@njit
def _sum(lanes):  # type: ignore[no-untyped-def]
    half = WIDE
    while half > 1:
        half //= 2
        for j in range(half):
            lanes[j] += lanes[j + half]
    return np.float64(lanes[0])


@njit
def _exponentials(row, top, sums, products):  # type: ignore[no-untyped-def]
    """Makes s into p = e^(s - top); returns Σ p and Σ p (s - top)."""
    sums[:] = _ZERO
    products[:] = _ZERO
    for start in range(0, len(row), WIDE):
        some = row[start : start + WIDE]
        for j in range(len(some)):
            x = some[j] - top
            x = x if x > _LEAST else _LEAST
            p = _exp(x) if x > _LEAST else _ZERO
            some[j] = p
            sums[j] += p
            products[j] = _fma(p, x, products[j])  # type: ignore[call-arg]
    return _sum(sums), _sum(products)


def weigh(  # noqa: PLR0917
    scores: Floats,
    sink: Floats,
    separator: Ints,
    log_sums: Floats,
    entropy: Floats,
    columns: Floats,
) -> None:
    """Make scores into weights, and add up what a block of whole rows says of them.

    scores     [head, row, key] float32, very low for what is hidden; becomes the weights
    sink       [head] float32   the score of no key at all; very low: there is none
    separator  [row] int64      0 or 1: which column sum a row belongs to
    log_sums   [head, row] float32 out: log Σ e^score, sink included
    entropy    [head, row] float32 out: -Σ α log α over the keys, nats
    columns    [head, 2, key] float32 out: sum over the rows of each class
    """
    parts = np.zeros((len(scores), PARTS, 2, scores.shape[2]), np.float32)
    _weigh_parts(scores, sink, separator, log_sums, entropy, parts)
    columns[:] = _ZERO
    for part in range(PARTS):
        columns += parts[:, part]


@threaded(lambda scores, *_: len(scores) * PARTS)
def _weigh_parts(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    begin, stop, scores, sink, separator, log_sums, entropy, parts
):
    rows, keys = scores.shape[1:]
    each = (rows + PARTS - 1) // PARTS
    for piece in range(begin, stop):
        h = piece // PARTS
        p = piece - h * PARTS
        sums, products = np.empty(WIDE, np.float32), np.empty(WIDE, np.float32)
        for r in range(p * each, min(p * each + each, rows)):
            row = scores[h, r]
            top = max(_largest(row, sums), sink[h])
            of_keys, products_of_keys = _exponentials(row, top, sums, products)
            total = of_keys + np.exp(np.float64(sink[h] - top))
            log_total = np.log(total)
            log_sums[h, r] = top + log_total
            entropy[h, r] = (log_total * of_keys - products_of_keys) / total
            share, column = np.float32(1 / total), parts[h, p, separator[r]]
            for j in range(keys):
                row[j] *= share
                column[j] += row[j]


@threaded(lambda weights, *_: (weights.shape[2] + WIDE - 1) // WIDE)
def add_summed_norms(begin, stop, weights, gram, first, received):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """‖Σ_h α f_h(x_j)‖, see `kernels.squared_norms`, summed over the rows of a block.

    weights   [head, row, key] float32
    gram      [head g, head h, key] float32, ⟨f_g(x_j), f_h(x_j)⟩; only g ≥ h is read
    first     the key of `gram` at which `weights` and `received` begin
    received  [key] float32 out, added to
    """
    rows = weights.shape[1]
    for block in range(begin, stop):
        start = block * WIDE
        part = received[start : start + WIDE]
        square, cross = np.empty(len(part), np.float32), np.empty(len(part), np.float32)
        total = np.zeros(len(part), np.float32)
        for r in range(rows):
            squared_norms(weights, r, gram, (start, first + start), cross, square)
            for j in range(len(total)):
                total[j] += np.sqrt(square[j] if square[j] > _ZERO else _ZERO)
        for j in range(len(total)):
            part[j] += total[j]
