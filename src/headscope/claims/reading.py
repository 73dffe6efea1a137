"""Read a run as one question does: its numbers, its words, and what it claims of heads."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import xarray as xr

from headscope.claims.caption_words import INTERVALS, over, special
from headscope.claims.claim import LEAST_EFFECT, Claim, effects
from headscope.claims.plan import Choice, ClaimPlan, LabelRule
from headscope.claims.question import Question, in_run, made_or_left_out
from headscope.core.accumulators import Bools, finite_mean
from headscope.core.head_names import HeadNames, names_of
from headscope.core.intervals import Estimate
from headscope.core.results import COMPANIONS, Floats, at, documents, estimate, needed, surely
from headscope.core.wording import number, percent, plain
from headscope.errors import InputError

Place = tuple[int, int]
Wanted = Collection[Claim] | Literal["all"] | None
WITHHELD = "withheld"  # attribute of a group of which nothing is claimed: the reason
NOTHING_SAID = "Nothing is claimed of its heads."
_NAMED = re.compile(r"\w+:\w+")


class Reading:
    """A run as one question reads it: its numbers, names and words. All its parts take one.

    among  the claims that are wanted, whatever their numbers; None: all that stand out; "all":
           those of all heads
    """

    def __init__(self, tree: xr.DataTree, question: Question, among: Wanted = None) -> None:
        self.tree, self.question, self.among = tree, question, among

    @property
    def there(self) -> bool:
        """Whether the run has results of the question."""
        return self.question.name in self.tree.children

    @cached_property
    def data(self) -> xr.Dataset:
        """The question's own group, which the run must have."""
        return needed(self.tree, self.question.name)

    @cached_property
    def names(self) -> HeadNames:
        """The names of the run's heads and layers."""
        return names_of(self.tree)

    def __call__(self, key: str, **choice: Any) -> Estimate:
        """A number with its interval: "variable", or "variable.choice" of its last dimension.

        choice  of further dimensions; what is no dimension of the variable is left aside
        """
        variable, _, last = key.partition(".")
        if variable not in self.data:
            there = ", ".join(n for n in map(str, self.data) if not n.endswith(COMPANIONS))
            raise InputError(f"found the number {key!r}; wanted one of {there}")
        dims = self.data[variable].dims
        chosen = {dim: value for dim, value in choice.items() if dim in dims}
        if last:
            chosen[str(dims[-1])] = self.data[dims[-1]].dtype.type(last)
            choices = self.data[dims[-1]].values.astype(str)
            if not self.question.ours and last not in choices:
                there = ", ".join(f"{variable}.{one}" for one in choices[:12])
                raise InputError(f"found {key!r}; wanted one of {there}")
        return estimate(self.data, variable, **chosen)

    def mean(self, key: str, **choice: Any) -> float:
        """The mean of a number over all cells; NaN where there is none."""
        return float(finite_mean(self(key, **choice).value.ravel()))

    def has(self, key: str, **choice: Any) -> bool:
        """Whether the run has the number in any cell."""
        try:
            return bool(np.isfinite(self(key, **choice).value).any())
        except InputError:
            return False

    def over(self, variable: str = "") -> str:
        """On how much data the run rests, or a variable of it: `n = 26 documents, 4,658 tokens`."""
        return over(self.tree, self.data[variable] if variable else None)

    def documents(self, variable: str) -> int:
        """The documents behind a variable."""
        return documents(self.tree, self.data.get(variable))

    def special(self, kind: str) -> str:
        """What the tokens of a category are called."""
        return special(self.tree, kind)

    def part(self, value: Any) -> Any:
        """What `module:attribute` below the question's package names; anything else as it is."""
        named = isinstance(value, str) and _NAMED.fullmatch(value)
        return self.question.named_part(value) if named else value

    def words(self, words: Any, place: Place | None = None, **fields: Any) -> Any:
        """What a template says, see `text`; or what a function of the reading returns."""
        words = self.part(words)
        return self.text(words, place, **fields) if isinstance(words, str) else words(self)

    def said(self, words: Any) -> Any:
        """What `words` say of the whole run; "" and a warning where a plug-in's part fails."""
        what = f"the text {words[:60]!r}" if isinstance(words, str) else "a text or table"
        return made_or_left_out(self.question, what, lambda: self.words(words), "")

    def text(self, template: str, place: Place | None = None, **fields: Any) -> str:
        """A template with its fields filled in, at a head or of all.

        `{entropy.all:%}` is the number `entropy.all` as a share, at the head with its interval,
        else as the mean of all heads; a number of the whole run has its interval, too. Without a
        format it is written as a number, with a unit or a format such as `.2f` it stands alone.
        `{over:entropy}` says on how much data a variable rests, `{over}` the run, `{intervals}` of
        what intervals are, `{cls}` what the token is called; other names are attributes of the
        question's results.
        """
        return _Words(self, place, fields).format(template)

    def wanted(self, sure: Bools, kind: str, name: str) -> Bools:
        """[layer, head] of which heads a claim is made: where it is sure, or of those wanted."""
        if self.among is None:
            return sure
        if self.among == "all":
            return np.ones_like(sure)
        wanted = np.zeros_like(sure)
        for one in self.among:
            if (one.kind, one.name) == (kind, name):
                wanted[one.layer, one.head] = True
        return wanted

    def claims(
        self,
        share: Estimate,
        usual: Floats | float,
        rule: LabelRule,
        say: Callable[[int, int], tuple[str, str]],
        *,
        kind: str,
        name: str,
        n: int,
        about: str = "",
        **more: Any,
    ) -> list[Claim]:
        """One claim per head whose share is clearly above the usual one, or passes its rule.

        share  [layer, head]; no claim is made where it is NaN
        usual  of all heads, or [layer, head] of each
        say    layer, head -> its label, with numbers, and its sentence, without the head's name
        about  as of `Claim`
        more   further fields of `Claim`
        """
        effect, usual = effects(share, usual), np.broadcast_to(usual, share.value.shape)
        sure = (effect > LEAST_EFFECT) | (surely(share) > rule.least)
        there = np.argwhere(self.wanted(sure, kind, name) & np.isfinite(effect)).tolist()
        return [
            Claim(
                layer,
                head,
                kind,
                float(effect[layer, head]),
                name,
                *say(layer, head),
                *at(share, layer, head),
                float(usual[layer, head]),
                n,
                self.question.name,
                about,
                **more,
            )
            for layer, head in there
        ]


class _Words(string.Formatter):
    """Fills in a template, field by field."""

    def __init__(self, run: Reading, place: Place | None, fields: Mapping[str, Any]) -> None:
        self.run, self.place, self.fields = run, place, fields

    def get_field(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The value of a field, and its name."""
        if name in self.fields:
            return self.fields[name], name
        if name in ("cls", "sep"):
            return self.run.special(name), name
        if name in ("over", "intervals"):
            return {"over": self.run, "intervals": INTERVALS}[name], name
        if name in self.run.data.attrs and name not in self.run.data:
            return self.run.data.attrs[name], name
        return self.run(name, **self.fields), name

    def format_field(self, value: Any, spec: str) -> str:
        """A field in words."""
        if isinstance(value, Reading):
            return value.over(spec)
        if not isinstance(value, Estimate):
            return str(format(value, spec))
        if self.place or not value.value.ndim:
            parts: tuple[float, ...] = at(value, *(self.place or ())[: value.value.ndim])
        else:
            parts = (float(finite_mean(value.value.ravel())),)
        if spec in ("", "%"):
            return (percent if spec else number)(*parts)
        return plain(parts[0], spec) if spec.isalpha() else format(parts[0], spec)


def parts_of(tree: xr.DataTree, kind: str, *more: Any) -> list[Any]:
    """What the questions of a run make of it, by their parts of one kind, in their order.

    more  what such a part takes beside the `Reading`; a part that makes None is left out
    """
    made = [
        made_or_left_out(one, f"the part {kind!r}", partial(part, Reading(tree, one), *more), None)
        for one in in_run(tree)
        if (part := one.part(kind)) is not None
    ]
    return [one for one in made if one is not None]


def run_findings(tree: xr.DataTree) -> list[str]:
    """The sentences on what a run found, of all its questions, by their place.

    Of a group with WITHHELD, the reason alone: it comes first, and nothing else is claimed.
    """
    reasons = {one.name: tree[one.name].attrs.get(WITHHELD) for one in in_run(tree)}
    sentences = [str(why) for why in reasons.values() if why]
    for question in in_run(tree):
        if reasons[question.name]:
            continue
        for words in question.part("findings", ()):
            said = Reading(tree, question).said(words)
            sentences += [said] if isinstance(said, str) else said
    return [one for one in dict.fromkeys(sentences) if one]


def claims_of(question: Question, tree: xr.DataTree, among: Wanted = None) -> list[Claim]:
    """What a question claims of the heads of a run, by its plans or by a function of its own."""
    claims = question.part("claims", ())
    if question.name not in tree.children:
        return []
    run = Reading(tree, question, among)
    if callable(claims):
        return made_or_left_out(question, "what it claims", lambda: list(claims(run)), [])
    made = list[Claim]()
    for plan in claims:
        of_plan = partial(_planned, run, plan)
        made += made_or_left_out(question, f"the claim {plan.kind!r}", of_plan, list[Claim]())
    return made


def _planned(run: Reading, plan: ClaimPlan) -> list[Claim]:
    choices = plan.each(run) if callable(plan.each) else plan.each
    return [claim for choice in choices for claim in _claims(run, plan, choice)]


def _claims(run: Reading, plan: ClaimPlan, choice: Choice) -> list[Claim]:
    def number_of(value: Any) -> Any:
        if not isinstance(value, str):
            return value(run, **choice)
        return run(value, **choice) if value.partition(".")[0] in run.data else None

    share = number_of(plan.share)
    if share is None or not np.isfinite(share.value).any():
        return []
    usual = number_of(plan.usual) if plan.usual else finite_mean(share.value.ravel())
    if usual is None:  # a run of an older version
        return []
    usual = usual.value if isinstance(usual, Estimate) else usual
    alone = np.full_like(share.value, np.nan)
    ordinary = Estimate(np.broadcast_to(usual, alone.shape), alone, alone)
    fields = {**choice, "share": share, "usual": ordinary}
    fields |= {name: number_of(value) for name, value in plan.also.items()}

    def say(layer: int, head: int) -> tuple[str, str]:
        place, words = (layer, head), plan.sentence
        sentence = words if isinstance(words, str) else words(run, layer, head, **fields)
        return run.words(plan.label, place, **fields), run.words(sentence, place, **fields)

    there = share
    if plan.where is not None:
        said = plan.where(run, share, **choice)
        there = share.map(lambda part: np.where(said, part, np.nan))
    variable = plan.share if isinstance(plan.share, str) else plan.rule.variable
    return run.claims(
        there,
        usual,
        plan.rule,
        say,
        kind=plan.kind,
        name=(plan.name or plan.rule.title).format(**choice),
        n=run.documents(variable.partition(".")[0] or run.question.name),
        about=plan.about.format(**choice),
        brief=plan.brief.format(**choice),
        counted=plan.counted,
    )
