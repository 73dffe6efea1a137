"""The kinds of main labels of a run's heads: how each is called, counted, coloured and marked.

Figures, the grid, the map and the findings of a page all take the kinds from here, so that a head
counts once everywhere, by its strongest label.
"""

from dataclasses import dataclass

import xarray as xr

from headscope.core.claim import Claim, rank
from headscope.core.head_labels import UNLABELLED, head_labels, label_rules
from headscope.core.results import derived, shape
from headscope.draw.style import MARKS

FAINT, STRONG = "faint", "strong"
SPARE = ("*", "P", "X", "p", "h", "d", "8")  # markers of kinds without a mark of their own


@dataclass(frozen=True)
class LabelKind:
    """Heads whose strongest label is of one kind; see `label_kinds`.

    title   "attention sink on [CLS]"
    hue     name of a colour of the style
    marker  as matplotlib calls it; '' for heads without labels
    look    STRONG for what a head knows of words, FAINT for how its maps look, else ''
    claims  the strongest label of each of its heads, the largest effect first
    units   layer · heads + head of each, in the order of the claims
    """

    title: str
    hue: str
    marker: str
    look: str
    claims: tuple[Claim, ...]
    units: tuple[int, ...]


@derived
def label_kinds(tree: xr.DataTree) -> list[LabelKind]:
    """The kinds that there are: what heads know of words first, what their maps look like last,
    larger effects before; at the end the heads without labels, if there are any.
    """
    heads, labelled = shape(tree)[1], head_labels(tree)
    main = sorted((one.labels[0] for one in labelled.values() if one.labels), key=rank)
    by_title: dict[str, list[Claim]] = {}
    for claim in main:
        by_title.setdefault(_title(claim), []).append(claim)
    kinds = [_kind(title, claims, heads) for title, claims in by_title.items()]
    kinds.sort(key=lambda kind: (kind.look == FAINT, kind.look != STRONG))  # stable: then by effect
    rest = tuple(
        layer * heads + head for (layer, head), one in labelled.items() if not one.labels
    )
    return [*kinds, *([LabelKind(UNLABELLED, "grey", "", "", (), rest)] if rest else [])]


def _title(claim: Claim) -> str:
    """The title of its rule; a claim about certain tokens names them."""
    return claim.name if claim.replaces else label_rules()[claim.kind].title


def _kind(title: str, claims: list[Claim], heads: int) -> LabelKind:
    rules, first = label_rules(), claims[0]
    rule, spare = rules[first.kind], [kind for kind in rules if kind not in MARKS]
    if first.replaces:
        hue, marker = MARKS.get(first.replaces, MARKS["sep"])[0], "H"
    elif first.kind in MARKS:
        hue, marker = MARKS[first.kind]
    else:
        hue, marker = "ink" if rule.words else "purple", SPARE[spare.index(first.kind) % len(SPARE)]
    look = STRONG if rule.words else FAINT if rule.last else ""
    units = tuple(claim.layer * heads + claim.head for claim in claims)
    return LabelKind(title, hue, marker, look, tuple(claims), units)
