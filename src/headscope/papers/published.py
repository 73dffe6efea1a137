"""A value as a paper printed it, and whether a number of ours is that value."""

import math
import re
from dataclasses import dataclass

from headscope.claims.verdict import Verdict, above, between, opposite
from headscope.papers.quantities import Measured

# How a published value is known.
MARKS = {
    "text": "in the paper’s text or tables",
    "code": "in what the authors released with their code",
    "read": "read off a figure, or the image of a table",
}
QUOTED = "quoted"  # words that no number is compared with
POINTS_OFF, SHARE_OFF, TENTH = 1.0, 0.05, 0.1  # ours: what counts as the published value
COUNT_DIGITS = 5  # whole numbers of at least this number of digits are exact counts
_NUMBER = r"−?\d+(?:,\d{3})*(?:\.\d+)?"
_BOUND = re.compile(rf"([<>≤≥])\s*({_NUMBER})")
_RANGE = re.compile(rf"({_NUMBER})–({_NUMBER})")


@dataclass(frozen=True)
class Published:
    """A value as it was printed: `94.3`, `−0.34`, `32–61`, `> 50`.

    text       in the unit of the claim; a number stands for all that round to it
    mark       one of MARKS, or QUOTED for words that are only shown
    tolerance  how far a reading off a figure may be wrong, in the same unit
    where      where it stands, if not where the claim is from
    """

    text: str
    mark: str = "text"
    tolerance: float = 0.0
    where: str = ""

    def __post_init__(self) -> None:
        if self.mark == QUOTED:
            return
        if self.mark not in MARKS:
            raise ValueError(f"mark {self.mark!r}; wanted one of {', '.join(MARKS)}")
        _ = self.limits

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest value that the printed text allows."""
        if bound := _BOUND.fullmatch(self.text):
            value = _number(bound[2])
            ends = (value, math.inf) if bound[1] in ">≥" else (-math.inf, value)
            return ends[0] - self.tolerance, ends[1] + self.tolerance
        both = _RANGE.fullmatch(self.text)
        first, last = (both[1], both[2]) if both else (self.text, self.text)
        slack = self.tolerance + _rounding(first)
        return _number(first) - slack, _number(last) + slack

    def verdict(self, measured: Measured, unit: str) -> Verdict:
        """Whether a number is the published one; see the module."""
        first, last = self.limits
        value, low, high = (scale_of(unit) * end for end in (measured.value, *measured.ends))
        if math.isinf(first):
            return opposite(above(value, low, high, last))  # a number on the bound meets it
        if math.isinf(last):
            return above(value, low, high, first)
        grain = 1e-9 * max(1.0, abs(first), abs(last))  # of binary fractions, at the boundary
        off = grain if measured.exact else self.margin(unit)
        return between(value, low, high, first - off, last + off)

    def margin(self, unit: str) -> float:
        """How far off a number may be, in its unit, and count as the published one: a point where
        it is a change, five points of a share, and else a tenth of it, or 0.05.
        """
        if unit in ("%", "points", "share"):
            return {"%": 100 * SHARE_OFF, "points": POINTS_OFF, "share": SHARE_OFF}[unit]
        return max(SHARE_OFF, TENTH * max(map(abs, self.limits)))

    @property
    def value(self) -> float:
        """The number; NaN for a range, a bound or words."""
        plain = re.fullmatch(_NUMBER, self.text)
        return _number(self.text) if plain else math.nan


def _number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def _rounding(text: str) -> float:
    """Half a unit of the last digit; 0 for counts."""
    _, point, decimals = text.partition(".")
    if not point and len(text.replace(",", "")) >= COUNT_DIGITS:
        return 0.0
    return 0.5 * 10.0 ** -len(decimals)


def scale_of(unit: str) -> float:
    """What a share is multiplied by to be in the unit of its claim."""
    return 100.0 if unit in ("%", "points") else 1.0
