"""What does the page need to know of every head: numbers, words, place on the map?"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.derived.claim import Claim
from headscope.derived.claims import all_claims
from headscope.derived.functions import FUNCTIONS, functions
from headscope.derived.reading import Floats, HeadMetric, group, head_metrics, head_name, shape
from headscope.derived.roles import ROLES, head_roles
from headscope.derived.telling import best_claims, telling_heads
from headscope.derived.wording import by_unit, plain
from headscope.draw.divergence import role_name
from headscope.draw.style import MARKS, RAMP_STEPS, layer_step
from headscope.terms import unit_label

GLYPHS = {"<": "◀", ">": "▶", "D": "◆", "s": "■", "^": "▲", "v": "▼", "o": "●"}
GROUP_TITLES = {
    "surface": "Attention", "entropy": "Entropy", "norms": "Norms",
    "dependency": "Words whose syntactic head is found", "coreference": "Coreference",
    "frames": "Frames", "features": "To kinds of words", "pairs": "Between words",
    "neurons": "Neurons",
}  # fmt: skip
COLUMNS = [
    "surface.attention.previous",
    "surface.attention.next",
    "surface.attention.self",
    "surface.attention.cls",
    "surface.attention.first",
    "surface.attention.sep",
    "surface.attention.punctuation",
    "entropy.entropy.all",
    "entropy.entropy.cls",
    "norms.value_norm_mean",
    "norms.value_norm_cv",
    "norms.weighted_norm.other",
]


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of the table: `text` with its interval, `order` to sort by."""

    text: str
    interval: str
    order: str


@dataclass(frozen=True, slots=True)
class Row:
    """One head of the table; `language` says what it knows of language, at most two things."""

    unit: int
    name: str
    role: str
    role_name: str
    language: list[str]
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Telling:
    """One telling head, with the geometry of its interval in percent of the scale.

    more  what it knows of language, where the sentence is about something else
    """

    unit: int
    name: str
    sentence: str
    more: list[str]
    hue: str
    value: float
    low: float
    high: float
    reference: float
    effect: str


def data(tree: xr.DataTree) -> dict[str, object]:
    """Everything that the page's scripts draw from; NaN becomes null."""
    layers, heads = shape(tree)
    roles = head_roles(tree).reshape(-1).tolist()  # [unit]
    return {
        "layers": layers,
        "heads": heads,
        "rampSteps": RAMP_STEPS,
        "layerSteps": [layer_step(layer, layers) for layer in range(layers)],
        "roles": roles,
        "roleKinds": [
            {
                "role": role,
                "name": role_name(tree, role),
                "hue": MARKS[role][0],
                "glyph": GLYPHS[MARKS[role][1]],
            }
            for role in ROLES
            if role in roles
        ],
        "first": _first(tree),
        "sentences": sentences(tree),
        "language": _language(tree),
        "metrics": [_metric(metric) for metric in head_metrics(tree)],
        "map": _places(tree),
    }


def sentences(tree: xr.DataTree) -> dict[str, str]:
    """The most telling sentence of every head that has one, by unit."""
    heads = shape(tree)[1]
    return {str(c.layer * heads + c.head): c.sentence for c in best_claims(all_claims(tree))}


def telling(tree: xr.DataTree, *, count: int = 20) -> list[Telling]:
    """The list that opens the report."""
    heads = shape(tree)[1]
    known = functions(tree, most=1)
    return [
        _telling(claim, heads, known.get((claim.layer, claim.head), []))
        for claim in telling_heads(tree, count=count)
    ]


def role_counts(tree: xr.DataTree) -> tuple[list[str], int]:
    """What the heads do in phrases, most frequent first ("20 attend mainly to [SEP]"), and how
    many heads no rule fits.
    """
    count = Counter(head_roles(tree).reshape(-1).tolist())
    rest = count.pop("other", 0)
    phrases = []
    for role, number in count.most_common():
        verb = "attends" if number == 1 else "attend"
        how = "broadly" if role == "broad" else f"mainly to {role_name(tree, role, article=True)}"
        phrases.append(f"{number} {verb} {how}")
    return phrases, rest


def columns(tree: xr.DataTree) -> list[HeadMetric]:
    """The numbers that stand in the table; the first token only where there is no [CLS]."""
    metrics = {metric.key: metric for metric in head_metrics(tree)}
    chosen = [metrics[key] for key in COLUMNS if key in metrics]
    if "surface.attention.cls" in metrics:
        chosen = [metric for metric in chosen if not metric.key.endswith(".first")]
    return chosen


def rows(tree: xr.DataTree) -> list[Row]:
    """One row per head, in order."""
    layers, heads = shape(tree)
    chosen = columns(tree)
    roles = head_roles(tree).reshape(-1).tolist()  # [unit]
    known = _language(tree)
    return [
        Row(
            unit=unit,
            name=head_name(unit, heads),
            role=roles[unit],
            role_name=role_name(tree, roles[unit]),
            language=known.get(str(unit), []),
            cells=[_cell(metric, unit) for metric in chosen],
        )
        for unit in range(layers * heads)
    ]


def _first(tree: xr.DataTree) -> int:
    """The head that is shown before any is chosen: the most telling one."""
    told = telling_heads(tree, count=1)
    return told[0].layer * shape(tree)[1] + told[0].head if told else 0


def _language(tree: xr.DataTree) -> dict[str, list[str]]:
    """What heads know of language, in sentences, by unit."""
    heads = shape(tree)[1]
    return {
        str(layer * heads + head): [claim.sentence for claim in claims]
        for (layer, head), claims in functions(tree).items()
    }


def _telling(claim: Claim, heads: int, known: list[Claim]) -> Telling:
    unit = claim.layer * heads + claim.head
    ends = [end if math.isfinite(end) else claim.value for end in (claim.low, claim.high)]
    value, low, high, reference = (
        round(100 * min(max(part, 0.0), 1.0), 2) for part in (claim.value, *ends, claim.reference)
    )
    # Language has no colour of its own: all of them stand for kinds of tokens.
    hue = "ink" if claim.kind in FUNCTIONS else MARKS.get(claim.kind, ("grey", "o"))[0]
    more = [other.sentence for other in known if claim.kind not in FUNCTIONS]
    return Telling(
        unit, head_name(unit, heads), claim.sentence, more, hue, value, low, high, reference,
        f"{claim.effect:.2f}",
    )  # fmt: skip


def _metric(metric: HeadMetric) -> dict[str, object]:
    parts = metric.estimate
    top = float(np.nanmax(parts.value))
    reach = np.nanmax(np.where(np.isfinite(parts.high), parts.high, parts.value))
    unit = unit_label(metric.unit) if metric.unit != "probability" else ""
    return {
        "key": metric.key,
        "group": GROUP_TITLES.get(metric.key.partition(".")[0], metric.key.partition(".")[0]),
        "label": metric.label,
        "n": metric.n,
        "top": _rounded(top),
        "topText": f"{plain(top, metric.unit)} {unit}".strip(),
        "reach": _rounded(float(reach)),
        "value": _flat(parts.value),
        "low": _flat(parts.low),
        "high": _flat(parts.high),
        "text": [_words(metric, unit) for unit in range(parts.value.size)],
    }


def _words(metric: HeadMetric, unit: int) -> str:
    parts = metric.estimate
    value, low, high = (float(part.flat[unit]) for part in (parts.value, parts.low, parts.high))
    return by_unit(value, low, high, metric.unit)


def _cell(metric: HeadMetric, unit: int) -> Cell:
    value = float(metric.estimate.value.flat[unit])
    text, bracket, interval = _words(metric, unit).partition("[")
    interval = bracket + interval.partition("]")[0] + ("]" if bracket else "")
    return Cell(text.strip(), interval, f"{value:.6g}" if math.isfinite(value) else "")


def _places(tree: xr.DataTree) -> list[list[float]] | None:
    divergence = group(tree, "divergence")
    if divergence is None or "mds" not in divergence:
        return None
    places = divergence["mds"].transpose("unit", "axis").values
    return [[_rounded(x) or 0.0, _rounded(y) or 0.0] for x, y in places.tolist()]


def _flat(values: Floats) -> list[float | None]:
    """For colours and bars, which show no more than three figures; what is read is in words."""
    return [_rounded(value, figures=3) for value in values.ravel().tolist()]


def _rounded(value: float, *, figures: int = 4) -> float | None:
    return float(f"{value:.{figures}g}") if math.isfinite(value) else None
