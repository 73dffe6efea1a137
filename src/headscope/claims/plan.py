"""What a question says of a run, as data: its pictures, and its claims about single heads.

Plans import nothing heavy, so that they stand in the question's `__init__.py`. `draw.planned` draws
pictures of them, `page.sections` makes sections, and `claims.reading` makes claims.

A plan's words are a template (`claims.reading.Reading.words`), or a function of the `Reading`. A
part that needs heavy imports is named, `module:attribute` below the question's package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Reading = Any  # a `claims.reading.Reading`
Words = str | Callable[[Reading], str]
NOT_RUN = "Not part of this run."
Choice = Mapping[str, Any]
CHANGES, COPIES, NOTHING = "changes", "copies", "nothing"  # what a label expects of its trial
# In the place of a rule, where a label has none.
OWN = OWN_KEYS, OWN_NEXT = (
    "what the head itself attends to most",
    "what comes next, where the head itself attends to it most",
)


@dataclass(frozen=True, kw_only=True)
class PanelPlan:
    """One set of axes; left out where the run has none of its numbers.

    title   a template
    needs   the number that is drawn, "variable" or "variable.choice"
    height  as a share of the width; None: what is usual for the kind of panel
    """

    title: str
    needs: str
    height: float | None = None


@dataclass(frozen=True, kw_only=True)
class Grid(PanelPlan):
    """A cell per head; `unit` and `top` as of `draw.head_grid.draw_grid`."""

    unit: str = "1"
    top: float | None = None


@dataclass(frozen=True, kw_only=True)
class LayerMarks(PanelPlan):
    """A mark per head over its layer, and a line through the means of layers.

    series  choices of the variable, each with its name in the legend, a template
    label   of the value axis
    even    the number of uniform attention, a dashed line: then no shares, and no legend
    """

    series: Mapping[str, str]
    label: str
    even: str = ""


@dataclass(frozen=True, kw_only=True)
class LayerLines(PanelPlan):
    """A line over the layers with its band, for each choice of the last dimension of `needs`.

    label   of the value axis
    choice  of further dimensions
    order   the choices that come first; others follow as the data have them
    names   what choices are called, where it is not as the dictionary has it
    dashes  choice -> how its line is dashed, an index of `draw.style.DASHES`; lines are then named
            where they end, and not in a legend
    top     of the value axis; None: as high as the lines
    room    of that height, where the axis is to be higher than the lines and their bands
    percent whether its numbers are shares
    """

    label: str
    choice: Choice = field(default_factory=dict)
    order: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    dashes: Mapping[str, int] = field(default_factory=dict)
    top: float | None = 1.0
    room: float = 0.0
    percent: bool = True


@dataclass(frozen=True, kw_only=True)
class DrawnPanel(PanelPlan):
    """Drawn by a function (Reading, axes) that is named in `by`."""

    by: str


@dataclass(frozen=True, kw_only=True)
class PicturePlan:
    """A picture, and the section of the page that it stands in; or, without panels, a section.

    Sections of an experiment stand in the chapter that opens its page, others by themselves.

    name, title  of the figure
    panels       each a `PanelPlan`; or Reading -> these, or Reading -> panels drawn already
    caption      how to read it
    text         of the section: what to look for; without one, another section shows the picture
    id           of the section; the question's name by default
    heading      of the section; the title by default
    finding      what it shows, in a sentence; "" for nothing
    tables       names of functions (Reading -> table, or None)
    absent       what stands in place of the section where the run has nothing for it
    columns      panels side by side
    beside       other groups of the run that it needs
    wide         one column of panels, each as wide as a page, however narrow the rest is set
    sheets       Reading -> further figures, each with its path in the folder of figures
    """

    title: str
    name: str = ""
    panels: Any = ()
    caption: Words = ""
    text: str = ""
    id: str = ""
    heading: str = ""
    finding: Words = ""
    tables: tuple[str, ...] = ()
    absent: str = NOT_RUN
    columns: int = 2
    beside: tuple[str, ...] = ()
    wide: bool = False
    sheets: Words = ""


@dataclass(frozen=True, slots=True)
class LabelRule:
    """When a claim becomes a label: the lower end of its interval lies above a threshold.

    title     what labels of the kind say, in two or three words
    number    what is compared, a share of 1, in words
    least     the threshold
    source    whose threshold it is
    asks      what else must hold, in words; claims are made only where it holds
    unless    kinds of labels that say it already: a head that has one is not given this
    last      given only where no other label is, as it says least of a head
    words     whether it says what a head knows of words
    variable  the variable of its question that the claim rests on
    predicts  name of the attention rule that says which tokens such a head looks at, or a function
              of the claim that gives it; "" where no tokens are said
    expects   what is said to change with its attention there: CHANGES, the output; COPIES, how
              likely the tokens there are; NOTHING, as it only rests there
    """

    title: str
    number: str
    least: float
    source: str
    asks: str = ""
    unless: tuple[str, ...] = ()
    last: bool = False
    words: bool = False
    variable: str = ""
    predicts: str | Callable[[Any], str] = ""
    expects: str = CHANGES

    def passes(self, claim: Any) -> bool:
        """Whether a claim is a label by its number alone, whatever other labels say.

        A number without an interval is none: nobody knows how far it may be off.
        """
        return bool(claim.low > self.least)

    def predicted_by(self, claim: Any) -> str:
        """The name of the attention rule behind a claim; "" for none."""
        return self.predicts if isinstance(self.predicts, str) else self.predicts(claim)

    def in_words(self) -> str:
        """The rule in one line: `attention to [CLS] above 0.6 (Clark et al. 2019, §6)`."""
        above = f" above {self.least:g}" if self.least else ""
        asks = f"; {self.asks}" if self.asks else ""
        return f"{self.number}{above}{asks} ({self.source})"


@dataclass(frozen=True, kw_only=True)
class ClaimPlan:
    """A kind of claim about heads: `share` is compared with `usual`, and with the rule.

    share     [layer, head] a share of 1: "variable", "variable.choice", or (Reading, **choice) ->
              one, or None where the run lacks it
    usual     what is ordinary, in the same ways; the mean over heads by default
    where     (Reading, share, **choice) -> [layer, head] of which heads it can be said at all
    each      choices, or Reading -> these, each a claim: its words are fields of the templates, and
              those that are dimensions choose
    also      name -> a further number of the templates, as `share`
    name      of the claim, without numbers, a template; the title of the rule by default
    label     with numbers, a template
    sentence  without the head's name, likewise, or (Reading, layer, head, **fields) -> one
    brief, counted, about  as of `claims.claim.Claim`
    """

    kind: str
    rule: LabelRule
    share: str | Callable[..., Any]
    label: str
    sentence: str | Callable[..., str]
    usual: str | Callable[..., Any] = ""
    where: Callable[..., Any] | None = None
    each: Iterable[Choice] | Callable[[Reading], Iterable[Choice]] = ({},)
    also: Mapping[str, str | Callable[..., Any]] = field(default_factory=dict)
    name: str = ""
    brief: str = ""
    about: str = ""
    counted: bool = True
