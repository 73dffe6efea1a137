"""What is known of a map at full resolution: the numbers that decide its class.

Every number is a ratio, so that long and short maps compare: weights as shares, and "ink", the
roots of weights as shares of the largest (what the eye sees). Marked columns are those of special
tokens and of punctuation; all others are content.
"""

import numpy as np
import numpy.typing as npt

from headscope.analyses.patterns.classes import CONTENT, PUNCTUATION, SPECIAL, Kinds
from headscope.model.compiled_loops import compile_loop, threaded

Features = npt.NDArray[np.float32]
LAGS = 4  # to either side of the diagonal
BANDS = (0.03, 0.06, 0.1, 0.17, 0.25, 0.4)  # as shares of the map's side
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)  # over rows
NAMED = (
    "plainest_own",
    "pair",
    "causal",
    "special_over_content",
    "punctuation_over_content",
    "special_weight",
    "punctuation_weight",
    "first_weight",
    "last_weight",
    "special_ink",
    "special_ink_most",
    "punctuation_ink",
    "punctuation_ink_most",
    "first_ink",
    "last_ink",
    "content_ink",
    "content_ink_most",
    "content_ink_third",
    "content_ink_spread",
    "content_weight_most",
    "content_weight_three",
    "ink",
    "ink_by_columns",
    "ink_by_lags",
    "content_by_columns",
    "content_by_lags",
    "rows_unlike",
    "row_peak",
    "row_peak_content",
    "content_focus",
    "near_peak_0",
    "near_peak_1",
    "near_peak_3",
    "line_rows",
    "line_lag",
    "line_ink",
    "line_beside",
    "line_contrast",
    "line_over_special",
    "far_ink",
    *(f"weight_lag{lag:+d}" for lag in range(-LAGS, LAGS + 1)),
    *(f"ink_lag{lag:+d}" for lag in range(-LAGS, LAGS + 1)),
    *(f"band_weight_{band:g}" for band in BANDS),
    *(f"band_ink_{band:g}" for band in BANDS),
    *(f"special_rows_{q:g}" for q in QUANTILES),
    *(f"marked_rows_{q:g}" for q in QUANTILES),
    "own_weight",
    "own_ink",
    "other_ink",
    "own_over_other",
    "own_same_lag",
    "own_far_ink",
    "other_first_ink",
    "other_second_ink",
    "own_first_ink",
    "own_second_ink",
    "smaller_segment",
)
COUNT = len(NAMED)


def features(maps: npt.NDArray[np.float32], kinds: Kinds, second: int) -> Features:
    """[map, feature] in the order of NAMED.

    maps    [map, query, key] attention of one input, without padding
    kinds   [token] CONTENT, SPECIAL or PUNCTUATION
    second  the first token of the second sentence; 0 where there is one
    """
    out = np.zeros((len(maps), COUNT), np.float32)
    rows = np.zeros((len(maps), 3, maps.shape[1]))
    # In one layout, and writable: the loop is compiled once for each kind that it is given.
    maps = np.require(maps, np.float32, ["C", "W"])
    _of_maps(maps, np.require(kinds, np.int8, ["C", "W"]), second, rows, out)
    rows = np.sort(rows[:, :2])  # [map, special | marked, query]
    places = [int(quantile * (rows.shape[-1] - 1) + 0.5) for quantile in QUANTILES]
    out[:, 70:80] = rows[..., places].reshape(len(maps), 10)  # [map, special, then marked]
    return out


# Loops that are written out below are calls of numpy that took half of the time to compile.
@compile_loop
def _sum(values):
    total = 0.0
    for value in values.flat:
        total += value
    return total


@compile_loop
def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 1e-12 else 0.0


@compile_loop
def _add_row(r, weights, ink, kinds, columns, rows, whole, peak_lag, sums):
    """Add what every query tells."""
    n = columns.shape[1]
    top, content, squares = np.float32(0), 0.0, 0.0
    for c in range(len(weights)):
        w, q = weights[c], ink[c]
        columns[0, c] += w
        columns[1, c] += q
        whole[0, c - r + n - 1] += q
        whole[1, c - r + n - 1] += 1
        sums[0] += w * w
        top = max(top, w)
        if kinds[c] == CONTENT:
            content += w
            squares += w * w
            if w > rows[2, r]:
                rows[2, r] = w
                peak_lag[r] = c - r
        else:
            rows[1, r] += w
            if kinds[c] == SPECIAL:
                rows[0, r] += w
    sums[1] += top
    if content > 1e-9:
        sums[2] += squares / content**2
        sums[3] += 1


@compile_loop
def _add_content(r, weights, ink, kinds, second, lags, apart, parts):
    """Add what a query that is not special tells of content."""
    n = apart.shape[2]
    side = 1 if r >= second else 0
    for c in range(len(weights)):
        if kinds[c] != CONTENT:
            continue
        lag = c - r + n - 1
        lags[0, lag] += weights[c]
        lags[1, lag] += ink[c]
        lags[2, lag] += 1
        if second > 0:
            there = 1 if c >= second else 0
            other = 1 if there != side else 0
            apart[0, other, abs(c - r)] += ink[c]
            apart[1, other, abs(c - r)] += 1
            parts[0, side, there] += weights[c]
            parts[1, side, there] += ink[c]
            parts[2, side, there] += 1


@compile_loop
def _unlikeness(columns, lags, whole, sums, kinds, causal, scale, out):
    """How much columns alone, or lags alone, tell of a map; how sharp its rows are."""
    n = columns.shape[1]
    by_columns, content, content_by_columns = 0.0, 0.0, 0.0
    for c in range(n):
        seen = n - c if causal else n
        by_columns += columns[1, c] ** 2 / seen
        if kinds[c] == CONTENT:
            content += columns[0, c] * scale
            content_by_columns += columns[1, c] ** 2 / seen
    by_lags, content_by_lags, content_in_lags = 0.0, 0.0, 0.0
    for k in range(2 * n - 1):
        if whole[1, k] > 0:
            by_lags += whole[0, k] ** 2 / whole[1, k]
        if lags[2, k] > 0:
            content_by_lags += lags[1, k] ** 2 / lags[2, k]
            content_in_lags += lags[0, k] * scale
    squares = _sum(columns[0]) * scale  # of ink
    by_weight = 0.0
    for weight in columns[0]:
        by_weight += weight**2
    out[21] = _sum(columns[1]) / _sum(whole[1])
    out[22] = _ratio(by_columns, squares)
    out[23] = _ratio(by_lags, squares)
    out[24] = _ratio(content_by_columns, content)
    out[25] = _ratio(content_by_lags, content_in_lags)
    out[26] = 1 - _ratio(by_weight / n, sums[0])
    out[27] = sums[1] / n
    out[29] = _ratio(sums[2], sums[3])


@compile_loop
def _line(weights, kinds, count, lags, peak, peak_lag, out):
    """How plain the plainest line along the diagonal is."""
    n = len(weights)
    kept, best, best_ink = np.int64(0), 0, -1.0
    for lag in range(-LAGS, LAGS + 1):
        ink = _ink_at(lags, lag, n)
        if ink > best_ink:
            best, best_ink = lag, ink
    for r in range(n):
        if kinds[r] == SPECIAL or peak[r] <= 0:
            continue
        away = abs(peak_lag[r])
        out[30] += away == 0
        out[31] += away <= 1
        out[32] += away <= 3
        most = 0.0
        for c in range(max(0, r + best - 1), min(n, r + best + 2)):
            if kinds[c] == CONTENT:
                most = max(most, weights[r, c])
        kept += most >= 0.6 * peak[r]
    for k in range(3):
        out[30 + k] = _ratio(out[30 + k], count)
    near_ink, near_cells, far_ink, far_cells = 0.0, 0.0, 0.0, 0.0
    for k in range(2 * n - 1):
        away = abs(k - n + 1)
        if LAGS < away <= max(8, n // 6):
            near_ink += lags[1, k]
            near_cells += lags[2, k]
        if away > max(LAGS, n // 4):
            far_ink += lags[1, k]
            far_cells += lags[2, k]
    out[33] = _ratio(kept, count)
    out[34] = best / LAGS
    out[35] = best_ink
    out[36] = max(_ink_at(lags, best - 1, n), _ink_at(lags, best + 1, n))
    out[37] = best_ink - _ratio(near_ink, near_cells)
    out[38] = best_ink - out[10]
    out[39] = _ratio(far_ink, far_cells)


@compile_loop
def _ink_at(lags, lag, n):
    """Mean ink of the content at a lag; 0 where there is none."""
    return _ratio(lags[1, lag + n - 1], lags[2, lag + n - 1]) if abs(lag) < n else 0.0


@compile_loop
def _lags_and_bands(lags, n, count, out):
    """The weight and ink at each near lag, and in bands around the diagonal."""
    for lag in range(-LAGS, LAGS + 1):
        if abs(lag) < n:
            out[44 + lag] = _ratio(lags[0, lag + n - 1], count)
            out[53 + lag] = _ink_at(lags, lag, n)
    content, before = _sum(lags[0]), -1.0
    for b in range(len(BANDS)):
        edge = max(BANDS[b] * n, b)
        weight, ink, cells = 0.0, 0.0, 0.0
        for k in range(2 * n - 1):
            away = abs(k - n + 1)
            if away <= edge:
                weight += lags[0, k]
                if away > before:
                    ink += lags[1, k]
                    cells += lags[2, k]
        out[58 + b] = _ratio(weight, content)
        out[64 + b] = _ratio(ink, cells)
        before = edge


@compile_loop
def _columns_and_rows(columns, rows, kinds, causal, out):
    """What special, punctuation and content columns hold."""
    n = len(kinds)
    weight, ink = columns[0], np.empty(n)
    for c in range(n):  # the last columns of a causal map have few rows
        few = causal and c >= n - min(3, n // 4)
        ink[c] = columns[1, c] / (min(4, n) if few else n - c if causal else n)
    total = max(_sum(weight), 1e-12)
    out[2] = causal
    out[7], out[8] = weight[0] / total, weight[n - 1] / total
    out[13], out[14] = ink[0], ink[n - 1]
    for kind, at, most in ((SPECIAL, 5, 10), (PUNCTUATION, 6, 12)):
        held, dark, count = 0.0, 0.0, 0
        for c in range(n):
            if kinds[c] == kind:
                held += weight[c]
                dark += ink[c]
                count += 1
                out[most] = max(out[most], ink[c])
        out[at] = held / total
        out[most - 1] = dark / max(count, 1)
    _content_columns(weight, ink, kinds, total, out)
    out[3], out[4] = out[10] - out[16], out[12] - out[16]


@compile_loop
def _insert(largest, value):
    for k in range(len(largest)):
        if value > largest[k]:
            largest[k], value = value, largest[k]


@compile_loop
def _content_columns(weight, ink, kinds, total, out):
    """Mean, largest, third largest and spread of their ink; the largest and three of weight."""
    dark, spread, count = 0.0, 0.0, 0
    inks, weights = np.zeros(3), np.zeros(3)  # largest first
    for c in range(len(kinds)):
        if kinds[c] == CONTENT:
            dark += ink[c]
            count += 1
            _insert(inks, ink[c])
            _insert(weights, weight[c])
    if count == 0:
        return
    mean = dark / count
    for c in range(len(kinds)):
        if kinds[c] == CONTENT:
            spread += (ink[c] - mean) ** 2
    out[15], out[16], out[17] = mean, inks[0], inks[min(2, count - 1)]
    out[18] = np.sqrt(spread / count)
    out[19] = weights[0] / total
    out[20] = (weights[0] + weights[1] + weights[2]) / total


@compile_loop
def _segments(n, second, apart, parts, out):
    """How far the content stays within the own sentence of a pair."""
    if second <= 0:
        return
    out[1] = 1
    weight = parts[0]
    out[80] = _ratio(weight[0, 0] + weight[1, 1], _sum(weight))
    own = _ratio(_sum(apart[0, 0]), _sum(apart[1, 0]))
    other = _ratio(_sum(apart[0, 1]), _sum(apart[1, 1]))
    out[81], out[82] = own, other
    out[83] = _ratio(own - other, own + other)
    gain, level, far_ink, far_cells = 0.0, 0.0, 0.0, 0.0
    for d in range(n):
        both = min(apart[1, 0, d], apart[1, 1, d])
        if both > 0:
            mine, theirs = apart[0, 0, d] / apart[1, 0, d], apart[0, 1, d] / apart[1, 1, d]
            gain += both * (mine - theirs)
            level += both * (mine + theirs)
        if d > 0.1 * n:
            far_ink += apart[0, 0, d]
            far_cells += apart[1, 0, d]
    out[84] = _ratio(gain, level)
    out[85] = _ratio(far_ink, far_cells)
    out[86] = _ratio(parts[1, 0, 1], parts[2, 0, 1])
    out[87] = _ratio(parts[1, 1, 0], parts[2, 1, 0])
    out[88] = _ratio(parts[1, 0, 0], parts[2, 0, 0])
    out[89] = _ratio(parts[1, 1, 1], parts[2, 1, 1])
    out[90] = min(second, n - second) / n
    for side in range(2):
        if parts[2, side, 1 - side] > 0:
            mine = _ratio(parts[1, side, side], parts[2, side, side])
            theirs = parts[1, side, 1 - side] / parts[2, side, 1 - side]
            out[0] = max(out[0], _ratio(mine - theirs, mine + theirs))


@threaded(lambda maps, *_: len(maps))
def _of_maps(begin, stop, maps, kinds, second, rows_of, outs):
    """All numbers of each map but those of its rows [special | marked | largest content, query]."""
    n = len(kinds)
    count = np.int64(0)  # with a type: of a literal, what is called is compiled once more
    for kind in kinds:
        count += kind != SPECIAL
    for at in range(begin, stop):
        weights, rows, out = maps[at], rows_of[at], outs[at]
        largest, upper = np.float32(1.1754944e-38), np.float32(0)
        for r in range(n):
            for c in range(n):
                largest = max(largest, weights[r, c])
            for c in range(r + 1, n):
                upper += weights[r, c]
        causal = upper < 1e-4 * n
        scale = np.float32(1) / largest
        columns = np.zeros((2, n))  # [weight | ink, key]
        lags = np.zeros((3, 2 * n - 1))  # [weight | ink | cells, lag] of content, no special query
        whole = np.zeros((2, 2 * n - 1))  # [ink | cells, lag]
        apart = np.zeros((2, 2, n))  # [ink | cells, own sentence | other, distance]
        parts = np.zeros((3, 2, 2))  # [weight | ink | cells, query's sentence, key's]
        peak_lag = np.zeros(n, np.int64)
        sums = np.zeros(4)  # squares of weights, largest of rows, focus of content, rows of it
        ink = np.empty(n, np.float32)
        for r in range(n):
            last = r + 1 if causal else n
            for c in range(last):
                ink[c] = np.sqrt(max(weights[r, c] * scale, np.float32(0)))
            _add_row(r, weights[r, :last], ink, kinds, columns, rows, whole, peak_lag, sums)
            if kinds[r] != SPECIAL:
                _add_content(r, weights[r, :last], ink, kinds, second, lags, apart, parts)
        _columns_and_rows(columns, rows, kinds, causal, out)
        _unlikeness(columns, lags, whole, sums, kinds, causal, scale, out)
        out[28] = _ratio(_sum(rows[2]), n)
        _line(weights, kinds, count, lags, rows[2], peak_lag, out)
        _lags_and_bands(lags, n, count, out)
        _segments(n, second, apart, parts, out)
