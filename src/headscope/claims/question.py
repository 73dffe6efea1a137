"""A question about every head, announced by one object: the plug-in point.

Our analyses and a stranger's are announced in the same way: a `Question`, named as an entry point
of the group `headscope.analyses` (docs/your-own-analysis.md shows one).

Each part is given as it is, or as `module:attribute` below `package`. The second way imports
nothing until the part is used, so that a report needs no torch and a list of names nothing at all.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from headscope.claims.plan import LabelRule, PicturePlan
from headscope.claims.terms import Term
from headscope.core.plug_ins import OURS, announced
from headscope.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

GROUP = "headscope.analyses"
Made = TypeVar("Made")
LAST = 1000.0  # the place of a question that names none
_FIGURE_PARTS = ("name", "title", "panels", "caption")


@dataclass(frozen=True)
class Option:
    """An option of a question's measure.

    one_of       the values that are allowed; none: `check_value` decides
    check_value  (name, value) -> raises ValueError or InputError for one that is not allowed
    deep         whether only the measure itself can tell
    files        whether it names a file or a folder, whose content decides the numbers
    """

    default: Any
    one_of: Collection[Any] = ()
    check_value: Callable[[str, Any], object] | None = None
    deep: bool = False
    files: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raises ValueError, or InputError, for a value that is not allowed."""
        if self.one_of and value not in self.one_of:
            raise ValueError(f"{name} is {value!r}; wanted one of {', '.join(self.one_of)}")
        if self.check_value is not None:
            self.check_value(name, value)


def some(name: str, value: float) -> None:
    """Check an option that counts something: raises ValueError for less than one."""
    if value < 1:
        raise ValueError(f"{name} is {value!r}; wanted 1 or more")


def some_or_all(name: str, value: object) -> None:
    """Check an option that counts something, or is "all": raises ValueError for anything else."""
    counts = isinstance(value, int) and not isinstance(value, bool) and value > 0
    if value != "all" and not counts:
        raise ValueError(f"{name} is {value!r}; wanted a whole number, 1 or more, or 'all'")


def some_left(name: str, share: float) -> None:
    """Check a share that is mixed in: raises ValueError unless it is below one."""
    if not 0 <= share < 1:
        raise ValueError(f"{name} is {share!r}; wanted 0 ≤ {name} < 1")


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question, and all that results, report, tables and head cards need of it.

    name      the group of its results, and the word on the command line
    package   where names of parts start; `__name__` of the module that announces
    title     heading of its numbers in menus and on a head's card; the name by default
    place     its order among all questions, on every page and in every list
    measure   its class, an `Analysis`; None where a command of its own makes the results
    summary, source, needs, options  what the class else says of itself, for who does not import it;
              where `needs` is None, the class says it
    figures   pictures, with or without their sections (`claims.plan.PicturePlan`), in their order
    section   further sections of the report's page: one or several `page.sections.SectionPlan`
    terms     word of the data -> `Term`, for glossary, menus and figures
    labels    variable, or (variable, choice) -> words on axes and in menus; `{choice}` is filled in
    marks     word of the data -> (name of a colour of the style, marker of matplotlib); what has
              none gets a spare one
    claims    what can be said of single heads: `claims.plan.ClaimPlan`s, or `Reading` -> claims
    rules     of such a function: kind of a claim -> the `LabelRule` by which it becomes a label
    predicts  the rules behind its labels, which predict where heads look: `AttentionRule`s of
              `claims.attention_rule`, or (scope of a run) -> these
    remarks   Reading -> [unit] words on each head beside its labels
    places    Reading -> [unit, axis] where heads lie on the map of heads, or None
    tables    Reading -> further tables by file name, beside the tidy one of its group; a table
              with a note is one in the layout of a paper
    trials    what its labels' trials came to: Reading -> (layer, head, kind, name) of a label ->
              the verdict, its sign, and its words in a sentence
    lead      a sentence on all heads for the first words of a page; "" where nothing tells
    findings  sentences with numbers for the head of a page: templates, or Reading -> one or several
    pages     (Reading, folder) -> pages written beside the report: their file names and titles
    card      what it adds to the card of a head, a `claims.card_part.CardPart`
    looks     (Reading, stored inputs) -> [unit] in which input each head is opened, at which token
    metrics   (Reading, variable) -> numbers per head, or None where they are the usual ones: the
              variable, if it is [layer, head, …]
    shown     which numbers per head stand where, "variable.choice", or "a|b" for the first of two
              that the run has: in the "table" of heads, the "overview" of all heads, the picture
              of a head's "card", the grids of a "change" between two models, or "first" on the page
              of an experiment (starts of names, "*" for all)
    opening   of an experiment: how its page opens (`page.sections.OpeningPlan`)
    compared  heading of its numbers where two models are compared; "" where they are not
    shares    its variables that other questions read, each shared by one question alone
    withheld  starts of the names of numbers that do not stand there
    controlled  whether a run's control computes it too, though it makes no claims of heads
    common    whether nearly every trained model has heads with its labels, so that their want tells
              of a model without training
    slow      whether a comparison of two models leaves it out unless it is named
    """

    name: str
    package: str = ""
    title: str = ""
    place: float = LAST
    measure: Any = None
    summary: str = ""
    source: str = ""
    needs: frozenset[str] | None = None
    options: Mapping[str, Option] = field(default_factory=dict)
    figures: Any = ()
    section: Any = ()
    terms: Any = None
    labels: Any = None
    marks: Any = None
    claims: Any = None
    rules: Any = None
    predicts: Any = None
    trials: Any = None
    remarks: Any = None
    places: Any = None
    tables: Any = None
    lead: Any = None
    findings: Any = None
    pages: Any = None
    card: Any = None
    looks: Any = None
    metrics: Any = None
    shown: Any = None
    opening: Any = None
    compared: str = ""
    shares: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    controlled: bool = False
    common: bool = False
    slow: bool = False

    @property
    def ours(self) -> bool:
        """Whether headscope brings it."""
        return self.package.startswith(f"{OURS}.")

    def part(self, kind: str, otherwise: Any = None) -> Any:
        """A part, imported if it is named; `otherwise` where the question has none.

        raises  InputError for a name that leads nowhere
        """
        value = getattr(self, kind)
        if not isinstance(value, str):
            return otherwise if value is None else value
        return self.named_part(value, kind)

    def named_part(self, name: str, kind: str = "a part") -> Any:
        """What `module:attribute` below its package names.

        raises  InputError for a name that leads nowhere
        """
        module, _, attribute = name.partition(":")
        place = f"{self.package}.{module}" if self.package else module
        try:
            return getattr(import_module(place), attribute)
        except (ModuleNotFoundError, AttributeError) as error:
            raise InputError(
                f"question {self.name!r} names {kind} {name!r}, and {place} has no {attribute!r} "
                f"({error}); name it as module:attribute below its package"
            ) from error

    def place_of(self, kind: str) -> str:
        """The module that holds a part; nothing is imported."""
        value = getattr(self, kind)
        if not isinstance(value, str):
            return str(getattr(value, "__module__", ""))
        module = value.partition(":")[0]
        return f"{self.package}.{module}" if self.package else module


def rules_of(question: Question) -> dict[str, LabelRule]:
    """Kind of a claim of a question -> the rule by which it becomes a label."""
    claims = question.part("claims", ())
    planned = {} if callable(claims) else {plan.kind: plan.rule for plan in claims}
    return planned | dict(question.part("rules", {}))


def check_question(question: Question) -> None:
    """Raises InputError if what it announces is impossible; its measure is checked when used."""
    who = f"question {question.name!r}"
    if not question.name.isidentifier():
        raise InputError(f"{who}: a name is made of letters, digits and _")
    for figure in question.part("figures", ()):
        if not isinstance(figure, PicturePlan):
            raise InputError(f"{who}: its figure is {figure!r:.60}; wanted a PicturePlan")
        wanted = _FIGURE_PARTS if figure.panels != () else ("id", "title", "tables")
        if missing := [part for part in wanted if not getattr(figure, part)]:
            raise InputError(f"{who}: its figure {figure.name!r} has no {' and no '.join(missing)}")
    terms, rules = question.part("terms", {}), rules_of(question)
    for word, term in terms.items():
        if not isinstance(term, Term):
            raise InputError(f"{who}: its term {word!r} is {term!r:.60}; wanted a Term")
    for kind, rule in rules.items():
        if not isinstance(rule, LabelRule):
            raise InputError(f"{who}: its rule {kind!r} is {rule!r:.60}; wanted a LabelRule")
        if rule.variable and rule.variable not in terms:
            raise InputError(
                f"{who}: its claim {kind!r} rests on a variable {rule.variable!r}, which it does "
                f"not have ({', '.join(terms) or 'it explains no variable in its terms'})"
            )
    claims = question.part("claims", ())
    for plan in () if callable(claims) else claims:
        variable = plan.share.partition(".")[0] if isinstance(plan.share, str) else ""
        if variable and variable not in terms:
            raise InputError(
                f"{who}: the share {plan.share!r} of its claim {plan.kind!r} is no variable of its "
                f"own ({', '.join(terms) or 'it explains no variable in its terms'})"
            )
    if question.part("claims") and not rules:
        raise InputError(f"{who}: it makes claims but has no rule for labels")


def made_or_left_out(question: Question, part: str, make: Callable[[], Made], none: Made) -> Made:
    """What `make` makes of a part; `none`, with a warning, where another package's part fails."""
    try:
        return make()
    except Exception as error:  # whatever a stranger's code does, the rest goes on
        if question.ours:
            raise
        name = type(error).__name__
        why = f"{error}" if isinstance(error, InputError) else f"{name}: {error}"
        warnings.warn(f"{part} of the plug-in {question.name!r} is left out: {why}", stacklevel=2)
        return none


_REGISTERED: dict[str, Question] = {}  # in this process, by hand
_REFUSED_MEASURES: dict[str, str] = {}  # name of a question -> why its measure cannot be used


def register(question: Question) -> Question:
    """Makes a question known here; raises InputError if it is impossible or its name is taken."""
    check_question(question)
    known = _announced()[0].get(question.name) or _REGISTERED.get(question.name)
    if known is not None and known != question:
        one, other = (each.package or "this process" for each in (known, question))
        raise InputError(
            f"two questions are called {question.name!r}: one of {one} and one of {other}; "
            "rename one"
        )
    _REGISTERED[question.name] = question
    return question


def questions() -> list[Question]:
    """All known questions, by their place."""
    known = {**_announced()[0], **_REGISTERED}
    return sorted(known.values(), key=lambda question: (question.place, question.name))


def refused() -> list[str]:
    """Why each question, or its measure, that cannot be used was left out, one sentence each."""
    return [*_announced()[1], *_REFUSED_MEASURES.values()]


def refuse_measure(name: str, why: str) -> None:
    """Notes that the measure of a question is impossible, and warns of it; `why` is a sentence."""
    _REFUSED_MEASURES[name] = why
    warnings.warn(why, stacklevel=3)


def named(name: str) -> Question | None:
    """The question of that name; None if there is none."""
    return next((question for question in questions() if question.name == name), None)


def title_of(name: str) -> str:
    """The heading of a group of numbers: its question's title, else its name."""
    question = named(name)
    return question.title or name if question else name


def in_run(tree: xr.DataTree) -> list[Question]:
    """The questions that a run has results of, by their place."""
    return [question for question in questions() if question.name in tree.children]


def parts(kind: str, among: Iterable[Question] | None = None) -> list[Any]:
    """One part of all questions that have it, by their place."""
    chosen = questions() if among is None else among
    return [part for question in chosen if (part := question.part(kind)) is not None]


@cache
def _announced() -> tuple[dict[str, Question], list[str]]:
    known, left_out = announced(GROUP, "question", _checked)
    others = [one for one in known.values() if not one.ours]
    taken = {} if not others else {w: t for q in known.values() if q.ours for w, t in _terms(q)}
    for question in others:
        clash = [w for w, term in _terms(question) if taken.setdefault(w, term) != term]
        if clash:
            del known[question.name]
            left_out.append(
                f"the plug-in {question.name!r} is left out: its term {clash[0]!r} has another "
                "meaning already; rename it in its results and its terms"
            )
            warnings.warn(left_out[-1], stacklevel=2)
    return known, left_out


def _terms(question: Question) -> Iterable[tuple[str, Term]]:
    terms: Mapping[str, Term] = question.part("terms", {})
    return terms.items()


def _checked(announced: object, ours: bool) -> Question:
    question = _as_question(announced)
    if not ours:
        check_question(question)
    return question


def _as_question(announced: object) -> Question:
    name = getattr(announced, "name", None)
    if isinstance(announced, type) and isinstance(name, str):
        return Question(name=name, measure=announced)
    if not isinstance(announced, Question):
        raise InputError(f"found {announced!r:.80}; wanted a Question, or an Analysis class")
    return announced
