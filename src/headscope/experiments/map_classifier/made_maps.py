"""Synthetic maps for pretraining, so that few labelled ones are needed.

Columns, lines and squares of many kinds, added as scores to noise and turned into attention by a
softmax, as a head would. They are for the first lessons only: no score counts them, and no label of
a real map comes from them.
"""

from collections.abc import Callable

import numpy as np

from headscope.analyses.patterns.classes import NAMES
from headscope.core.accumulators import Float64, Ints

Rng = np.random.Generator
SIZES = (14, 129)  # tokens, from and below
CAUSAL = 0.2  # share of maps in which no token sees a later one


def made_map(name: str, rng: Rng) -> Float64:
    """[query, key] a synthetic map of the class `name`: rows add up to 1."""
    n = int(rng.integers(*SIZES))
    noise = rng.normal(size=(n, n)) * rng.uniform(0.3, 2.2)
    faint = rng.normal(size=(1, n)) * rng.uniform(0, 1)
    causal = rng.random() < CAUSAL
    scores = _OF_CLASS[name](noise + faint, rng, causal)
    if causal:
        scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    attention: Float64 = weights / weights.sum(1, keepdims=True)
    return attention


def _vertical(scores: Float64, rng: Rng, causal: bool) -> Float64:
    n = len(scores)
    made = scores + _columns(n, rng.uniform(2.5, 5) + np.log(n) / 2, rng, causal)
    return made + _line(n, rng.uniform(0.2, 0.8), rng, causal) * (rng.random() < 0.3)


def _diagonal(scores: Float64, rng: Rng, causal: bool) -> Float64:
    n = len(scores)
    made = scores + _line(n, rng.uniform(3, 6) + 0.4 * np.log(n), rng, causal)
    return made + _columns(n, rng.uniform(0, 1.2), rng, causal) * (rng.random() < 0.3)


def _both(scores: Float64, rng: Rng, causal: bool) -> Float64:
    n, strength = len(scores), rng.uniform(3, 5) + 0.4 * np.log(len(scores))
    line = _line(n, strength, rng, causal)
    return scores + np.maximum(line, _columns(n, strength + rng.uniform(-1.2, 1), rng, causal))


def _block(scores: Float64, rng: Rng, causal: bool) -> Float64:
    """Two to five squares, filled evenly or fading away from the diagonal."""
    n = len(scores)
    part = _parts(n, int(rng.integers(2, 6)), rng)
    same = (part[:, None] == part) * rng.uniform(2, 4.5)
    if rng.random() < 0.5:
        same *= rng.uniform(0.55, 1, part.max() + 1)[part][:, None]
    if rng.random() < 0.4:
        same *= np.exp(-_away(n, 0) / (rng.uniform(0.3, 1) * n))
    made = 0.6 * scores + same
    if rng.random() < 0.6:
        made = made + _columns(n, rng.uniform(1.5, 4.5), rng, causal)
    made = made + _line(n, rng.uniform(1, 3), rng, causal) * (rng.random() < 0.4)
    return np.asarray(made)


def _heterogeneous(scores: Float64, rng: Rng, causal: bool) -> Float64:
    """Pieces of columns, spots, an even grey, a wide haze, or rectangles anywhere."""
    n = len(scores)
    kind = rng.choice(["pieces", "spots", "grey", "haze", "rectangles"])
    noise = rng.normal(size=(n, n))
    if kind == "spots":
        return noise * rng.uniform(1.5, 4)
    if kind == "grey":
        return noise * rng.uniform(0.05, 0.5)
    if kind == "haze":
        width = rng.uniform(0.2, 0.4) * n
        haze: Float64 = rng.uniform(1, 2.5) * np.exp(-0.5 * (_away(n, 0) / width) ** 2)
        return scores + haze
    made = scores.copy()
    for _ in range(int(rng.integers(2, 12))):
        row, column = rng.integers(0, n, 2)
        height = max(2, int(n * rng.uniform(0.1, 0.35)))
        width = 1 if kind == "pieces" else int(rng.integers(1, max(2, n // 4)))
        made[row : row + height, column : column + width] += rng.uniform(2, 4)
    return made


_OF_CLASS: dict[str, Callable[[Float64, Rng, bool], Float64]] = dict(
    zip(NAMES, (_vertical, _diagonal, _both, _block, _heterogeneous), strict=True)
)


def _columns(n: int, strength: float, rng: Rng, causal: bool) -> Float64:
    """[query, key] a few columns, often the first, and the last if it is seen at all."""
    count = int(rng.integers(1, 4) if rng.random() < 0.8 else rng.integers(4, 9))
    keys = rng.choice(n, size=min(count, n), replace=False)
    if rng.random() < 0.6:
        keys[0] = 0
    if len(keys) > 1 and rng.random() < 0.5 and not causal:
        keys[1] = n - 1
    made = np.zeros((n, n))
    for key in keys.tolist():
        uneven = rng.normal(size=n) * rng.uniform(0.1, 0.8)
        made[:, key] = strength + rng.normal() / 2 + uneven
    return made


def _line(n: int, strength: float, rng: Rng, causal: bool) -> Float64:
    """[query, key] a line or band along the diagonal, smooth, lumpy or a staircase."""
    offset = int(rng.choice([-3, -2, -1, -1, 0, 0, 1, 1, 2]))
    away = _away(n, -abs(offset) if causal else offset)
    width = rng.uniform(0.3, 2) if rng.random() < 0.6 else rng.uniform(0.01, 0.09) * n + 0.3
    if n > 30 and rng.random() < 0.35:
        part = _parts(n, int(rng.integers(8, max(9, n // 3))), rng)
        stairs = (part[:, None] == part) * 1.0
        if rng.random() < 0.5:
            stairs = np.maximum(stairs, 0.6 * np.exp(-0.5 * (away / (width + 1)) ** 2))
        return np.asarray(strength * stairs * rng.uniform(0.6, 1, (n, 1)))
    lumps = rng.uniform(0.5, 1.5, n // 6 + 2)
    widths = width * np.interp(np.arange(n), np.linspace(0, n, len(lumps)), lumps)[:, None]
    if rng.random() < 0.7:
        return np.asarray(strength * np.exp(-0.5 * (away / widths) ** 2))
    return np.asarray(strength * np.maximum(0, 1 - away / (2 * width + 0.6)))


def _parts(n: int, count: int, rng: Rng) -> Ints:
    """[token] index of its part, of about `count` parts."""
    edge = max(1, n // 12)
    inner = np.arange(edge, n - edge)
    cuts = rng.choice(inner, size=min(count - 1, len(inner) // 2), replace=False)
    part: Ints = np.searchsorted(np.sort(cuts), np.arange(n), side="right")
    return part


def _away(n: int, offset: int) -> Float64:
    """[query, key] distance of a key from the query's position, shifted by `offset`."""
    places = np.arange(n, dtype=np.float64)
    away: Float64 = np.abs(places - places[:, None] - offset)
    return away
