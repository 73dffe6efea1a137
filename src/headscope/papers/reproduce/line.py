"""What is a line of a paper's battery: what is claimed, what was published, what is ours?"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import xarray as xr

from headscope.run.finished_run import Run

# How a published value is known.
MARKS = {
    "text": "in the paper’s text or tables",
    "code": "in what the authors released with their code",
    "read": "read off a figure, or the image of a table",
}
_NUMBER = r"−?\d+(?:,\d{3})*(?:\.\d+)?"
_BOUND = re.compile(rf"([<>≤≥])\s*({_NUMBER})")
_RANGE = re.compile(rf"({_NUMBER})–({_NUMBER})")


class NotRun(Exception):
    """A line, or a run, that cannot be; the text says what it needs."""


@dataclass(frozen=True)
class Published:
    """A value as it was printed: `94.3`, `−0.34`, `32–61`, `> 50`.

    text       in the unit of the line; a number stands for all that round to it
    mark       one of MARKS
    tolerance  how far a reading off a figure may be wrong, in the same unit
    where      where it stands, if not where the line is from
    """

    text: str
    mark: str = "text"
    tolerance: float = 0.0
    where: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for what is no value, or an unknown mark."""
        if self.mark not in MARKS:
            raise ValueError(f"mark {self.mark!r}; wanted one of {', '.join(MARKS)}")
        _ = self.limits

    @property
    def limits(self) -> tuple[float, float]:
        """Between which values the truth lies, by what was printed."""
        if bound := _BOUND.fullmatch(self.text):
            value = _number(bound[2])
            ends = (value, math.inf) if bound[1] in ">≥" else (-math.inf, value)
            return ends[0] - self.tolerance, ends[1] + self.tolerance
        both = _RANGE.fullmatch(self.text)
        first, last = (both[1], both[2]) if both else (self.text, self.text)
        slack = self.tolerance + _rounding(first)
        return _number(first) - slack, _number(last) + slack

    @property
    def value(self) -> float:
        """The number itself; NaN for a range or a bound."""
        plain = re.fullmatch(_NUMBER, self.text)
        return _number(self.text) if plain else math.nan


@dataclass(frozen=True)
class Answer:
    """What our runs say to a line.

    value, low, high  in the unit of the line, but shares where that is "%"; NaN: there is none
    n                 over how many of what: "60 documents"
    holds             whether the direction does; None where the line states none
    shown             numbers that show it, heads by name
    elsewhere         which other data these are, if not of the paper's kind: then no number is held
                      against the published one
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: str = ""
    holds: bool | None = None
    shown: str = ""
    elsewhere: str = ""


class Results:
    """The runs that a line may read, by name of the part.

    own     whether the model is the paper's own
    absent  for the parts that have no run, why
    others  for keys of data that are not of the paper's kind, what they are instead
    """

    def __init__(
        self,
        runs: Mapping[str, Run],
        *,
        own: bool,
        absent: Mapping[str, str],
        others: Mapping[str, str] | None = None,
    ) -> None:
        self.runs, self.own, self.absent = dict(runs), own, dict(absent)
        self.others = dict(others or {})

    def __contains__(self, part: object) -> bool:
        """Whether the part was run."""
        return part in self.runs

    def run(self, part: str) -> Run:
        """A run; raises NotRun with the reason."""
        if part not in self.runs:
            raise NotRun(self.absent.get(part, f"needs {part}"))
        return self.runs[part]

    def group(self, part: str, name: str) -> xr.Dataset:
        """A group of a run's results; raises NotRun."""
        run = self.run(part)
        if name not in run:
            raise NotRun(f"needs {name}, which cannot be had of this model or these data")
        return run[name]


@dataclass(frozen=True)
class Line:
    """One claim.

    key        unique in the paper
    place      where it stands there: "Table 1", "§3.2"
    claim      what is claimed, a sentence
    parts      runs without which it cannot be told
    measure    our answer; raises NotRun
    published  values; none where the claim has no number
    unit       "%", "nats", …
    direction  what `Answer.holds` asks; "" where the line states none
    """

    key: str
    place: str
    claim: str
    parts: tuple[str, ...]
    measure: Callable[[Results], Answer]
    published: tuple[Published, ...] = ()
    unit: str = ""
    direction: str = ""


@dataclass(frozen=True)
class Shown:
    """A picture of the house, of a part's run.

    counterpart  the task that it is about, or what it is in the paper: "Figure 2"
    """

    part: str
    picture: str
    counterpart: str = ""


@dataclass(frozen=True)
class Section:
    """A section of a paper: one sentence, its lines, its figures."""

    id: str
    title: str
    text: str
    lines: tuple[Line, ...]
    pictures: tuple[Shown, ...] = ()


@dataclass(frozen=True)
class Paper:
    """A paper's battery.

    source  its citation in terms.SOURCES
    model   what the paper looked at
    names   other names of that model
    doubt   what is not known about it
    """

    name: str
    title: str
    source: str
    model: str
    names: tuple[str, ...]
    sections: tuple[Section, ...]
    doubt: str = ""

    @property
    def lines(self) -> list[Line]:
        """All lines in order."""
        return [line for section in self.sections for line in section.lines]

    @property
    def parts(self) -> list[str]:
        """All runs that lines or pictures ask for, in order."""
        asked = [part for line in self.lines for part in line.parts]
        asked += [shown.part for section in self.sections for shown in section.pictures]
        return list(dict.fromkeys(asked))


@dataclass(frozen=True)
class Judged:
    """A line with our answer and its status.

    status  one of verdict.STATUSES
    reason  of what was not run, or failed
    agrees  the published values that lie within
    """

    line: Line
    section: str
    answer: Answer | None
    status: str
    reason: str = ""
    agrees: tuple[Published, ...] = field(default=())


def _number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def _rounding(text: str) -> float:
    """Half a unit of the last digit; whole numbers of five digits and more are counts."""
    _, point, decimals = text.partition(".")
    if not point and len(text.replace(",", "")) >= COUNT_DIGITS:
        return 0.0
    return 0.5 * 10.0 ** -len(decimals)


COUNT_DIGITS = 5
