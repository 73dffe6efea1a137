"""Write a number together with its interval.

Digits follow the interval: as few as show where its two ends differ, three at most. What is
below one unit of the last place gets more: see `decimals`.
"""

import math

MISSING = "–"
SMALL_SHARE = 0.1  # below, a share gets a decimal
FIGURES = 2  # of what is below one unit of the last place
NOTHING = 1e-9  # a smaller number is 0, or rounding


def percent(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """A share as `87 % [85, 89]`, a small one as `4.2 % [3.9, 4.5]`; `87 %` without an interval."""
    fewest = 0 if value >= SMALL_SHARE else 1
    return _with_interval(100 * value, 100 * low, 100 * high, " %", fewest=fewest, most=2)


def number(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """A number as `3.94 [3.87, 4.01]`; without an interval `3.94`."""
    return _with_interval(value, low, high, "", fewest=fewest_digits(value), most=3)


def by_unit(value: float, low: float, high: float, unit: str) -> str:
    """A value with its interval and unit, in the way its unit is usually written."""
    if unit == "probability":
        return percent(value, low, high)
    written = number(value, low, high)
    return f"{written} {unit}" if unit not in ("", "1") and written != MISSING else written


def plain(value: float, unit: str) -> str:
    """A value alone, for an axis end or a legend."""
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
    """Decimals that give a number about three figures: 2 below 10, 1 below 100, else 0."""
    size = abs(value) if math.isfinite(value) else 0.0
    return 2 if size < 10 else 1 if size < 100 else 0


def _with_interval(
    value: float, low: float, high: float, suffix: str, *, fewest: int, most: int
) -> str:
    if not math.isfinite(value):
        return MISSING
    if not (math.isfinite(low) and math.isfinite(high)):
        return fixed(value, decimals(fewest, value)) + suffix
    if (more := decimals(most, value, low, high)) > most:
        fewest, most = more, more + 1
    digits = next(
        (d for d in range(fewest, most) if fixed(low, d) != fixed(high, d)),
        fewest if low == high else most,
    )
    ends = f"[{fixed(low, digits)}, {fixed(high, digits)}]"
    return f"{fixed(value, digits)}{suffix} {ends}"


def fixed(value: float, digits: int) -> str:
    """Fixed decimals with a true minus sign and no negative zero."""
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def with_ends(value: float, low: float, high: float, digits: int) -> str:
    """A number and its interval, all with so many `decimals`: `0.12 [0.10, 0.14]`; or it alone."""
    if not math.isfinite(value):
        return MISSING
    digits = decimals(digits, value, low, high)
    ends = f" [{fixed(low, digits)}, {fixed(high, digits)}]" if math.isfinite(low) else ""
    return fixed(value, digits) + ends


def p_words(p: float) -> str:
    """`p = 0.03`; to the last place that the draws allow."""
    if not math.isfinite(p):
        return f"p {MISSING}"
    return f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def capital(text: str) -> str:
    """The text with a capital at its start."""
    return text[:1].upper() + text[1:]
