"""What do heads do, in a few sentences? The findings that open the page of a run."""

import math
from dataclasses import dataclass

import xarray as xr

from headscope.core.claim import Claim
from headscope.core.head_labels import NEARLY_NOTHING, looks_untrained, unclaimed_words
from headscope.core.results import head_name, shape
from headscope.draw.label_kinds import FAINT, STRONG, LabelKind
from headscope.page.sections import Section
from headscope.report import heads

MOST, FEWEST = 6, 5  # sentences on kinds of labels; sentences below which maps are told of, too
AT_ONCE = 2  # heads of a kind that say different things
SHORT = 130  # characters of what is said of them


@dataclass(frozen=True)
class Finding:
    """One sentence: what it is about, and what is said; the mark of its kind of label, if any."""

    lead: str
    text: str
    hue: str = ""
    outline: str = ""


def findings(tree: xr.DataTree, sections: list[Section]) -> list[Finding]:
    """The findings of an atlas: its kinds of labels, then what sections say to open the page.

    returns  none where nothing can be claimed, or where the model looks untrained
    """
    if unclaimed_words(tree) or looks_untrained(tree):
        return []
    per_layer = shape(tree)[1]
    kinds = [kind for kind in heads.kinds_of(tree) if kind.claims]
    few = NEARLY_NOTHING * math.prod(shape(tree))
    kinds.sort(key=lambda kind: (kind.look != STRONG, kind.count <= few))  # stable
    told = [kind for kind in kinds if kind.look != FAINT][:MOST]
    general = [Finding("", one.finding) for one in sections if one.opens and one.finding]
    room = max(FEWEST - len(told) - len(general), 0)
    told += [kind for kind in kinds if kind.look == FAINT][:room]
    return [*(_of_kind(kind, per_layer) for kind in told), *general]


def _of_kind(kind: LabelKind, per_layer: int) -> Finding:
    many, title = kind.count, f"{kind.title[:1].upper()}{kind.title[1:]}"
    lead = f"{title}, {many} heads" if many > 1 else ""
    said = kind.claims[: AT_ONCE if kind.look == STRONG else 1]
    first, *more = (_said(claim, per_layer) for claim in said)
    text = "; ".join([first, *(one for one in more if len(first) + len(one) < SHORT)])
    return Finding(lead, f"{text}.", kind.hue, heads.OUTLINES[kind.marker])


def _said(claim: Claim, per_layer: int) -> str:
    name = head_name(claim.layer * per_layer + claim.head, per_layer)
    return f"{name}{':' if claim.sentence == claim.label else ''} {claim.sentence}"
