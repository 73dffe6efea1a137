"""Write a number together with its interval; and in words what half precision costs.

Digits follow the interval: as few as show where its two ends differ, three at most. What is
below one unit of the last place gets more: see `decimals`; beyond LONGEST as `5.7e−7`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

MISSING = "–"
SMALL_SHARE = 0.1  # below, a share gets a decimal
FIGURES = 2  # of what is below one unit of the last place
LONGEST = 5  # decimals that anybody reads
NOTHING = 1e-9  # a smaller number is 0, or rounding


def percent(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """A share as `87 % [85, 89]`, a small one as `4.2 % [3.9, 4.5]`; `87 %` without an interval."""
    fewest = _fewest(100 * value, "probability")
    return _with_interval(100 * value, 100 * low, 100 * high, " %", fewest=fewest, most=2)


def number(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """A number as `3.94 [3.87, 4.01]`; without an interval `3.94`."""
    return _with_interval(value, low, high, "", fewest=fewest_digits(value), most=3)


def by_unit(value: float, low: float, high: float, unit: str) -> str:
    """A value with its interval and unit, in the unit's usual notation."""
    if unit == "probability":
        return percent(value, low, high)
    written = number(value, low, high)
    return f"{written} {unit}" if unit not in ("", "1") and written != MISSING else written


def plain(value: float, unit: str) -> str:
    """A value alone, for the end of an axis or a legend."""
    if not math.isfinite(value):
        return MISSING
    if unit == "probability":
        return f"{fixed(100 * value, decimals(0, 100 * value))} %"
    return fixed(value, decimals(fewest_digits(value), value))


def decimals(digits: int, *values: float) -> int:
    """So many decimals, or as many as show FIGURES of the largest of the values, a number and its
    ends, where all are below one unit of the last place.
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest < NOTHING or largest >= 10.0**-digits:
        return digits
    return FIGURES - 1 - math.floor(math.log10(largest))


def fewest_digits(value: float) -> int:
    """Decimals for about three significant figures: 2 below 10, 1 below 100, else 0."""
    size = abs(value) if math.isfinite(value) else 0.0
    return 2 if size < 10 else 1 if size < 100 else 0


def _with_interval(
    value: float, low: float, high: float, suffix: str, *, fewest: int, most: int
) -> str:
    if not math.isfinite(value):
        return MISSING
    return _written(value, low, high, suffix, _digits(value, low, high, fewest, most))


def _digits(value: float, low: float, high: float, fewest: int, most: int) -> int:
    """Decimals that the interval supports."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return decimals(fewest, value)
    if (more := decimals(most, value, low, high)) > most:
        fewest, most = more, more + 1
    return next(
        (d for d in range(fewest, most) if fixed(low, d) != fixed(high, d)),
        fewest if low == high else most,
    )


def _written(value: float, low: float, high: float, suffix: str, digits: int) -> str:
    there = math.isfinite(low) and math.isfinite(high)
    ends = f" [{fixed(low, digits)}, {fixed(high, digits)}]" if there else ""
    return f"{fixed(value, digits)}{suffix}{ends}"


def column_by_unit(numbers: Sequence[tuple[float, float, float]], unit: str) -> list[str]:
    """The numbers of a column of a table, all with one number of decimals: the one that most of
    their intervals support, the larger of two.

    numbers  of each: value, low, high; without an interval NaN
    """
    times, suffix, most = (100, " %", 2) if unit == "probability" else (1, "", 3)
    rows = [(times * value, times * low, times * high) for value, low, high in numbers]
    there = [row for row in rows if math.isfinite(row[0])]
    fewest = [_fewest(row[0], unit) for row in there]
    supported = Counter(
        min(_digits(*row, least, most), most) for row, least in zip(there, fewest, strict=True)
    )
    digits = max(supported, key=lambda one: (supported[one], one), default=0)
    after = "" if suffix or unit in ("", "1") else f" {unit}"
    return [
        _written(*row, suffix, digits) + after if math.isfinite(row[0]) else MISSING for row in rows
    ]


def _fewest(value: float, unit: str) -> int:
    if unit != "probability":
        return fewest_digits(value)
    return 0 if value >= 100 * SMALL_SHARE else 1


def distinct_digits(digits: int, numbers: Iterable[tuple[float, float, float]]) -> int:
    """Decimals that tell every value from the ends of its interval, `digits` or more; one number
    for all, so that values beside each other can be compared.

    numbers  of each: value, low, high; without an interval NaN
    """
    rows = [{one for one in row if math.isfinite(one)} for row in numbers]

    def all_differ(places: int) -> bool:
        return all(len({fixed(one, places) for one in row}) == len(row) for row in rows)

    return next(filter(all_differ, range(digits, LONGEST)), LONGEST)


def fixed(value: float, digits: int) -> str:
    """Fixed decimals with a true minus sign and no negative zero; beyond LONGEST, `5.7e−7`."""
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-") if digits <= LONGEST else "0"
    elif digits > LONGEST:
        head, _, power = f"{value:.{FIGURES - 1}e}".partition("e")
        text = f"{head}e{int(power)}"
    return text.replace("-", "−")


def with_ends(value: float, low: float, high: float, digits: int) -> str:
    """A number and its interval, rounded: `0.12 [0.10, 0.14]`; or the number alone."""
    if not math.isfinite(value):
        return MISSING
    digits = decimals(digits, value, low, high)
    ends = f" [{fixed(low, digits)}, {fixed(high, digits)}]" if math.isfinite(low) else ""
    return fixed(value, digits) + ends


def p_words(p: float) -> str:
    """`p = 0.03`; to the last place that the draws support."""
    if not math.isfinite(p):
        return f"p {MISSING}"
    return f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def how_many(count: int, unit: str) -> str:
    """`1 head`, `1,234 heads`."""
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def grid_size(layers: int, heads: int) -> str:
    """`12 layers × 1 head`."""
    return f"{how_many(layers, 'layer')} × {how_many(heads, 'head')}"


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def capital(text: str) -> str:
    """The text with a capital at its start."""
    return text[:1].upper() + text[1:]


# How far numbers of a run were seen to be from those in float32, on the CPU with the demo model and
# e5-small, on 160 sentences of English EWT and 48 windows of WikiText-2 (bfloat16: 1.5e-2 nats
# there, 1.8e-2 in an earlier run); words on 30 documents of EWT (10,299 words,
# `benchmarks.precision`). Another model may err more: compare a short run with `--dtype float32`.
# dtype -> at most: nats in the mean entropy of a head, and of one token's attention; the share of
# words by which those differ of which a head finds the syntactic head (20 and 103 of 10,299)
HALF = {"bfloat16": (1.8e-2, 1.1e-1, 2e-3), "float16": (1.4e-3, 1.2e-2, 1e-2)}


def precision_of(dtype: str) -> dict[str, float]:
    """The measured errors, for a manifest: entropies of a head and of a token, words whose head is
    found; {} of wide ones.
    """
    names = ("head_entropy_error_nats", "token_entropy_error_nats", "found_words_error")
    return dict(zip(names, HALF[dtype], strict=True)) if dtype in HALF else {}


def precision_in_words(dtype: str) -> str:
    """`bfloat16: a head’s mean entropy was seen to err by …`; "" for float32 and wider."""
    if dtype not in HALF:
        return ""
    head, token, words = HALF[dtype]
    return (
        f"{dtype}: a head’s mean entropy was seen to err by up to {head:g} nats, that of one token "
        f"by {token:g}; of two nearly equal weights the other may be the largest: how many words’ "
        f"syntactic head a head finds was off by up to {100 * words:g} % of them"
    )


def heaviest_first(sentences: Iterable[tuple[str, float]]) -> list[str]:
    """Sentences in order of weight, the largest first; equal ones keep their order.

    sentences  each with its weight, the size of the effect that it is about; one of NaN stands last
    returns    those that are not ""
    """
    there = [(text, weight) for text, weight in sentences if text]
    there.sort(key=lambda pair: -math.inf if math.isnan(pair[1]) else pair[1], reverse=True)
    return [text for text, _ in there]
