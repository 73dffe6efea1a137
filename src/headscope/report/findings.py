"""Say in a few sentences what a run found: they open its page, and the first page of a site."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import xarray as xr

from headscope.claims.claim import Claim
from headscope.claims.headline import NEARLY_NOTHING, looks_untrained, unclaimed_words
from headscope.claims.question import Question
from headscope.claims.reading import Reading
from headscope.core.head_names import HeadNames, names_of
from headscope.core.results import shape
from headscope.draw.label_kinds import FAINT, STRONG, LabelKind
from headscope.page.sections import SectionPlan
from headscope.report import heads

MOST, FEWEST = 6, 5  # sentences on kinds of labels; with fewer sentences maps are described, too
AT_ONCE = 2  # heads of a kind that say different things
SHORT = 130  # characters of what is said of them


@dataclass(frozen=True)
class Finding:
    """One sentence: what it is about, and what is said; the mark of its kind of label, if any."""

    lead: str
    text: str
    hue: str = ""
    outline: str = ""


def findings(tree: xr.DataTree, general: Iterable[str]) -> list[Finding]:
    """The findings of an atlas: its kinds of labels, then general sentences.

    general  what sections say to open the page; see `opening_words`
    returns  none where nothing can be claimed, or where the model looks untrained
    """
    if unclaimed_words(tree) or looks_untrained(tree):
        return []
    names = names_of(tree)
    kinds = [kind for kind in heads.kinds_of(tree) if kind.claims]
    few = NEARLY_NOTHING * math.prod(shape(tree))
    kinds.sort(key=lambda kind: (kind.look != STRONG, kind.count <= few))  # stable
    shown = [kind for kind in kinds if kind.look != FAINT][:MOST]
    further = [Finding("", words) for words in general if words]
    room = max(FEWEST - len(shown) - len(further), 0)
    shown += [kind for kind in kinds if kind.look == FAINT][:room]
    return [*(_of_kind(kind, names) for kind in shown), *further]


def _of_kind(kind: LabelKind, names: HeadNames) -> Finding:
    many, title = kind.count, f"{kind.title[:1].upper()}{kind.title[1:]}"
    lead = f"{title}, {many} heads" if many > 1 else ""
    said = kind.claims[: AT_ONCE if kind.look == STRONG else 1]
    first, *more = (_said(claim, names) for claim in said)
    text = "; ".join([first, *(one for one in more if len(first) + len(one) < SHORT)])
    return Finding(lead, f"{text}.", kind.hue, heads.outline(kind.marker))


def _said(claim: Claim, names: HeadNames) -> str:
    name = names.head(claim.layer, claim.head)
    return f"{name}{':' if claim.sentence == claim.label else ''} {claim.sentence}"


def opening_words(tree: xr.DataTree, plans: Iterable[tuple[Question, SectionPlan]]) -> list[str]:
    """What sections of a run say to open its page (`SectionPlan.opens`), in their order."""
    there = ((Reading(tree, one), plan) for one, plan in plans if plan.opens)
    return [run.said(plan.finding) for run, plan in there if in_tree(tree, run.question, plan)]


def in_tree(tree: xr.DataTree, question: Question, plan: SectionPlan) -> bool:
    """Whether a run has a group that a section is about."""
    return any(name in tree.children for name in plan.groups or (question.name,))
