"""The kinds of labels of a run's heads: how each is called, counted, coloured and marked.

Grid, map and findings of a page, and figures, take the kinds from here. A head has the colour of
its most telling label; it counts under each of its labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from string import ascii_uppercase

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from headscope.claims.claim import Claim, rank
from headscope.claims.head_labels import UNLABELLED, head_labels, label_rules
from headscope.core.results import Floats, derived, shape
from headscope.draw.head_marks import note_heads
from headscope.draw.marks import LEGEND_START, legend_of
from headscope.draw.style import color, marks

FAINT, STRONG = "faint", "strong"
KIND_COLUMNS = 2  # of their legend: their titles are long
REPLACED = "$A$"  # of attention that has no effect: a letter in the colour of the token
SIZES = {"*": 6.6, "$": 5.4}  # points, of marks with little in them
_COMMANDS = dict(
    zip(map(int, (Path.MOVETO, Path.LINETO, Path.CURVE3, Path.CURVE4)), "MLQC", strict=True)
)


@dataclass(frozen=True)
class LabelKind:
    """One kind of label; see `label_kinds`.

    title   "attention sink on [CLS]"
    hue     name of a colour of the style
    marker  as matplotlib calls it, "$S$" for a letter (`letters`); '' for heads without labels
    look    STRONG for what a head knows of words, FAINT for how its maps look, else ''
    claims  the labels of the kind, one per head, the most surprising first
    units   layer · heads + head of the heads whose most telling label is of the kind
    """

    title: str
    hue: str
    marker: str
    look: str
    claims: tuple[Claim, ...]
    units: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many heads have such a label; of the heads without any, how many there are."""
        return len(self.claims) or len(self.units)


@derived
def label_kinds(tree: xr.DataTree) -> list[LabelKind]:
    """The kinds that there are, the most surprising first, those of what maps look like last; at
    the end the heads without labels, if there are any.
    """
    labelled, heads = head_labels(tree), shape(tree)[1]
    every = [claim for one in labelled.values() for claim in one.labels]
    by_title: dict[str, dict[tuple[int, int], Claim]] = {}
    for claim in sorted(every, key=lambda claim: (-claim.surprise, *rank(claim))):
        by_title.setdefault(_title(claim), {}).setdefault((claim.layer, claim.head), claim)
    mains: dict[str, list[int]] = {}
    for (layer, head), one in labelled.items():
        title = _title(one.main) if one.labels and one.main else UNLABELLED
        mains.setdefault(title, []).append(layer * heads + head)
    kinds = [
        _kind(title, tuple(claims.values()), tuple(mains.get(title, ())))
        for title, claims in by_title.items()
    ]
    kinds.sort(key=lambda kind: kind.look == FAINT)  # stable
    rest = mains.get(UNLABELLED)
    return [*kinds, *([LabelKind(UNLABELLED, "grey", "", "", (), tuple(rest))] if rest else [])]


def plot_kinds(
    axes: Axes,
    tree: xr.DataTree,
    x: Floats,
    y: Floats,
    *,
    start: float = LEGEND_START,
    texts: Sequence[str] = (),
) -> None:
    """Every head as the mark of its kind, with a legend of the kinds.

    x, y   [unit] where each head lies
    start  of the legend, in points right of the axes: 0 where no labels stand to their left
    texts  [unit] what a page shows of the head pointed at, beside its kind
    """
    there = [kind for kind in label_kinds(tree) if kind.units]
    for kind in reversed(there):
        own, mark = list(kind.units), kind.marker or "o"
        shape = letter_path(mark[1]) if mark.startswith("$") else mark
        axes.plot(
            x[own],
            y[own],
            marker=shape,
            ls="none",
            color=color(kind.hue),
            ms=SIZES.get(mark[0], 4.4),
            mew=0.4,
            mec=color("page"),
            alpha=1.0 if kind.claims else 0.6,
            zorder=3,
            label=kind.title,
        )
        words = [f"{kind.title}; {texts[unit]}" if texts else kind.title for unit in own]
        note_heads(axes, x[own], y[own], words, units=own)
    legend_of(axes, axes.lines[: -len(there) - 1 : -1], columns=KIND_COLUMNS, start=start)


def _title(claim: Claim) -> str:
    """The title of its rule; a claim about certain tokens names them."""
    return claim.name if claim.replaces else label_rules()[claim.kind].title


def _kind(title: str, claims: tuple[Claim, ...], units: tuple[int, ...]) -> LabelKind:
    rules, known, first = label_rules(), marks(), claims[0]
    rule = rules[first.kind]
    if first.replaces:
        hue, marker = known.get(first.replaces, known["sep"])[0], REPLACED
    elif first.kind in known:
        hue, marker = known[first.kind]
    else:
        hue, marker = "ink" if rule.words else "purple", f"${letters()[first.kind]}$"
    look = STRONG if rule.words else FAINT if rule.last else ""
    return LabelKind(title, hue, marker, look, claims, units)


def letters() -> dict[str, str]:
    """The letter that marks each kind of label without a mark of its own: the first of its title
    that is free. Shapes of five, six or eight corners look alike in a small cell.
    """
    known, chosen = marks(), dict[str, str]()
    for kind, rule in label_rules().items():
        if kind not in known:
            taken = {REPLACED[1], *chosen.values()}
            wanted = (*rule.title.upper(), *ascii_uppercase)
            free = (one for one in wanted if one in ascii_uppercase and one not in taken)
            chosen[kind] = next(free, ascii_uppercase[-1])
    return chosen


@cache
def letter_path(letter: str) -> Path:
    """The outline of a letter about 0, its longer side from −1 to 1, upwards.

    It is of a file that matplotlib brings, so that it is the same on every machine.
    """
    file = f"{mpl.get_data_path()}/fonts/ttf/DejaVuSans-Bold.ttf"
    path = TextPath((0, 0), letter, size=100, prop=FontProperties(fname=file))
    box = path.get_extents()
    middle, half = np.add(box.min, box.max) / 2, max(box.size) / 2
    corners = path.vertices.copy()
    corners[path.codes == Path.CLOSEPOLY] = middle  # that of a closed outline is never drawn
    return Path((corners - middle) / half, path.codes)


def letter_outline(letter: str) -> str:
    """The same as the `d` of a path in SVG, whose y points downwards."""
    parts = []
    for points, code in letter_path(letter).iter_segments(simplify=False):
        closes = code == Path.CLOSEPOLY
        parts.append("Z" if closes else f"{_COMMANDS[int(code)]}{_ends(points)}")
    return "".join(parts)


def _ends(points: Floats) -> str:
    """Coordinates in hundredths, y turned round."""
    turned = points.reshape(-1, 2) * (1, -1) + 0.0  # [point, axis]
    return " ".join(f"{value:.2f}" for value in turned.ravel())
