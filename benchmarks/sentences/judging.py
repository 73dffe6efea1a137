"""Is a printed number the true one, as far as its digits say? And is its interval one of it?"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from .totals import Quantity

NUMBER = r"[−+-]?\d[\d,]*(?:\.\d+)?(?:e−\d+)?"
ROUNDING = 1e-5  # of float32 sums, relative to the number; and of the unit that is printed
WIDEST, NARROWEST = 12.0, 0.5  # half an interval, in standard errors of a plain jackknife


@dataclass(frozen=True)
class Printed:
    """A number as it stands in a sentence, with its interval where it has one."""

    value: str
    low: str = ""
    high: str = ""

    @property
    def unit(self) -> float:
        """One of the last digit."""
        digits, _, power = self.value.replace("−", "-").partition("e")
        return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


def number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def faults(printed: Printed, true: Quantity | float, *, percent: bool, share: bool) -> list[str]:
    """What is wrong with a number; [] if nothing is.

    percent  printed times 100
    share    it cannot leave 0 to 1
    """
    times = 100.0 if percent else 1.0
    value = times * float(true.value if isinstance(true, Quantity) else true)
    said, wrong = number(printed.value), list[str]()
    slack = printed.unit * (0.5 + 1e-3) + ROUNDING * abs(value)
    if not math.isfinite(value):
        return [f"says {printed.value}, and nothing is there"]
    if abs(said - value) > slack:
        wrong.append(f"says {printed.value}, is {value:.6g}")
    if not printed.low:
        return wrong
    low, high = number(printed.low), number(printed.high)
    if not low - printed.unit <= said <= high + printed.unit:
        wrong.append(f"{printed.value} lies outside of [{printed.low}, {printed.high}]")
    if share and (low < 0 or high > times):
        wrong.append(f"[{printed.low}, {printed.high}] leaves what is possible")
    if isinstance(true, Quantity):
        error = times * float(true.error)
        rounded = 1.01 * printed.unit
        most = times if share else math.inf
        if too_far(low, high, value, error, most=most, rounded=rounded):
            wrong.append(f"[{printed.low}, {printed.high}]: a jackknife's error is {error:.3g}")
    return wrong


def too_far(
    low: float, high: float, value: float, error: float, *, most: float, rounded: float
) -> bool:
    """Whether an interval is far longer, or far shorter, than a jackknife's error lets it be.

    Longer on the scale on which intervals of numbers with bounds are made: a logit, or a logarithm;
    not of a share that is hardly ever, or nearly always: there it says how little was seen.
    """
    if not math.isfinite(error) or at_an_end(value, most):
        return False
    if high - low + 2 * rounded < NARROWEST * error:
        return True
    low, high = min(low + rounded, value), max(high - rounded, value)

    def scale(one: float) -> float:
        return math.log(one) - (math.log(most - one) if math.isfinite(most) else 0)

    inside = [one for one in (low, high) if 0 < one < most]
    if value <= 0 or value >= most:
        return False
    step = error / value / ((most - value) / most if math.isfinite(most) else 1)
    return any(abs(scale(one) - scale(value)) > WIDEST * step + 0.05 for one in inside) and (
        max(high - value, value - low) > WIDEST * error
    )


def at_an_end(value: float, most: float) -> bool:
    """Whether a share is so near to 0 or 1 that its interval says how little was seen."""
    return math.isfinite(most) and min(value, most - value) < 0.02 * most


def groups(name: str, *, percent: bool) -> str:
    """A pattern of a number with or without its interval, under a name."""
    sign = " ?%" if percent else ""
    n = NUMBER
    return rf"(?P<{name}>{n}){sign}(?: ?\[(?P<{name}_low>{n}), ?(?P<{name}_high>{n})\])?"


FIELD = re.compile(r"\{(?P<name>\w+)(?P<kind>[%#=]?)\}")


def compiled(template: str) -> re.Pattern[str]:
    """A template as a pattern: `{a%}` a percentage, `{a#}` a number, `{a=}` a count, `{a}` words.

    All else is a regular expression.
    """

    def one(match: re.Match[str]) -> str:
        name, kind = match["name"], match["kind"]
        if kind == "=":
            return rf"(?P<{name}>\d[\d,]*|no|one)"
        return groups(name, percent=kind == "%") if kind else rf"(?P<{name}>.+?)"

    return re.compile(FIELD.sub(one, template))
