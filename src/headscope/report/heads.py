"""What the page tells of every head: its numbers, its labels, its place on the map."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims.claim import Claim
from headscope.claims.dictionary import unit_label
from headscope.claims.head_labels import UNLABELLED, alike, head_labels, label_rules, telling_heads
from headscope.claims.head_metrics import (
    HeadMetric,
    chosen_metrics,
    control_ranges,
    first_metrics,
    head_metrics,
)
from headscope.claims.question import in_run, title_of
from headscope.claims.reading import Reading, parts_of
from headscope.core.head_names import HeadNames, names_of
from headscope.core.results import Floats, counted, shape
from headscope.core.wording import by_unit, column_by_unit, decimals, fixed, percent, plain
from headscope.draw.label_kinds import LabelKind, label_kinds, letter_outline
from headscope.draw.style import RAMP_STEPS, layer_step
from headscope.page.sections import OpeningPlan

# Outlines of the markers, about as large as a circle of radius 1.
OUTLINES = {
    "<": "M-1.1 0L.8-1V1Z", ">": "M1.1 0L-.8-1V1Z", "D": "M0-1.2L1.2 0L0 1.2L-1.2 0Z",
    "s": "M-.9-.9H.9V.9H-.9Z", "^": "M0-1.1L1 .8H-1Z", "v": "M0 1.1L1-.8H-1Z",
    "o": "M-1 0A1 1 0 1 1 1 0A1 1 0 1 1-1 0Z", "d": "M0-1.2L.7 0L0 1.2L-.7 0Z",
    "*": "M0-1.25L.35-.42L1.2-.37L.54 .2L.75 1.02L0 .56L-.75 1.02L-.54 .2L-1.2-.37L-.35-.42Z",
    "P": "M-.38-1.05H.38V-.38H1.05V.38H.38V1.05H-.38V.38H-1.05V-.38H-.38Z",
    "X": "M-.95-.5L-.5-.95L0-.45L.5-.95L.95-.5L.45 0L.95 .5L.5 .95L0 .45L-.5 .95L-.95 .5L-.45 0Z",
    "": "M-.3 0A.3 .3 0 1 1 .3 0A.3 .3 0 1 1-.3 0Z",
}  # fmt: skip
MOST = 12  # numbers of an experiment in the table
SMALL = 0.1
NAMED = 8  # heads that a row names


def data(tree: xr.DataTree) -> dict[str, object]:
    """The data of the page's scripts; NaN becomes null."""
    (layers, heads), names = shape(tree), names_of(tree)
    opens, telling = shown(tree), telling_heads(tree, count=1)
    first = (
        telling[0].layer * heads + telling[0].head if telling else 0
    )  # shown before any is chosen
    if opens is not None:
        first = int(np.nanargmax(np.abs(opens.estimate.value)))
    return {
        "layers": layers,
        "heads": heads,
        "countsFrom": names.first,
        "rampSteps": RAMP_STEPS,
        "layerSteps": [layer_step(layer, layers) for layer in range(layers)],
        "kind": kind_of(tree),
        "kinds": data_kinds(tree),
        "first": first,
        "counted": counted(tree),
        "shown": opens.key if opens else "",
        "nothing": nothing(tree),
        "verdicts": remarks(tree),
        **labels(tree),
        **({"numbers": names.numbers} if names.numbers else {}),
        "metrics": [_metric(tree, metric) for metric in head_metrics(tree)],
        "map": _places(tree),
    }


def shown(tree: xr.DataTree) -> HeadMetric | None:
    """The number that colours the grid at first: the first that is not the same of all heads, as a
    score that no head changes leaves the grid blank. None for labels, if an atlas has some.
    """
    labelled = opening_of(tree) is None and any(kind.claims for kind in kinds_of(tree))
    if labelled:
        return None
    metrics = first_metrics(head_metrics(tree))
    return next(filter(_varies, metrics), metrics[0] if metrics else None)


def _varies(metric: HeadMetric) -> bool:
    values = metric.estimate.value[np.isfinite(metric.estimate.value)]
    return bool(len(values)) and float(np.ptp(values)) > 0


def labels(tree: xr.DataTree) -> dict[str, object]:
    """The labels of all heads, for the page's scripts.

    labels   [unit] rows of label, sentence ('' where it is the same), kind, effect, n, analysis,
             and the label in short
    closest  [unit] what stands out most though it is no label (`HeadLabels`); '' for nothing
    rules    kind → the rule in words, of the kinds that there are
    """
    heads = list(head_labels(tree).values())
    kinds, rules = sorted({label.kind for one in heads for label in one.labels}), label_rules()
    return {
        "labels": [[_label(label) for label in one.labels] for one in heads],
        "closest": [one.nearly for one in heads],
        "rules": {kind: rules[kind].in_words() for kind in kinds},
    }


def telling(tree: xr.DataTree, *, count: int = 20) -> list[dict[str, Any]]:
    """The most telling heads, the list that opens the report; `_telling` says what of each."""
    return [_telling(tree, claim) for claim in telling_heads(tree, count=count)]


def nothing(tree: xr.DataTree) -> str:
    """The page's name for a head without labels."""
    opening = opening_of(tree)
    return UNLABELLED if opening is None else opening[0].nothing


def opening_of(tree: xr.DataTree) -> tuple[OpeningPlan, Reading] | None:
    """The opening of an experiment's page, of which run; None on the page of an atlas."""
    plans = ((one.part("opening"), Reading(tree, one)) for one in in_run(tree))
    return next((pair for pair in plans if pair[0] is not None), None)


def remarks(tree: xr.DataTree) -> list[list[str]]:
    """[unit] remarks of questions on each head, beside its labels."""
    layers, heads = shape(tree)
    words: list[list[str]] = [[] for _ in range(layers * heads)]
    for made in parts_of(tree, "remarks"):
        words = [[*before, *more] for before, more in zip(words, made, strict=True)]
    return words


def kinds_of(tree: xr.DataTree) -> list[LabelKind]:
    """`label_kinds`, the heads without labels by the page's word for them."""
    return [
        kind if kind.claims else replace(kind, title=nothing(tree)) for kind in label_kinds(tree)
    ]


def kind_of(tree: xr.DataTree) -> list[int]:
    """[unit] the place of its kind in `kinds_of`."""
    place = {unit: at for at, kind in enumerate(kinds_of(tree)) for unit in kind.units}
    return [place[unit] for unit in range(math.prod(shape(tree)))]


def cells(tree: xr.DataTree) -> list[list[dict[str, str]]]:
    """[layer][head] a cell of the grid: the head's id and name, its kind and its words."""
    names = names_of(tree)
    heads, kinds, remarked = shape(tree)[1], kinds_of(tree), remarks(tree)
    of, labelled = kind_of(tree), list(head_labels(tree).values())
    row = [
        {
            "id": card_id(names.unit(unit, heads)),
            "name": names.unit(unit, heads),
            **_kind(kinds[of[unit]]),
            "layer": names.layer(unit // heads),
            "text": "; ".join([*(one.label for one in labelled[unit].labels), *remarked[unit]])
            or nothing(tree),
        }
        for unit in range(len(of))
    ]
    return [row[at : at + heads] for at in range(0, len(row), heads)]


def data_kinds(tree: xr.DataTree) -> list[dict[str, Any]]:
    """The kinds of labels for template and script: title, hue, outline, look, and how many."""
    return [_kind(kind) for kind in kinds_of(tree)]


def outline(marker: str) -> str:
    """The outline of a marker or, in "$S$", of a letter, about as large as a circle of radius 1."""
    return letter_outline(marker[1]) if marker.startswith("$") else OUTLINES[marker]


def _kind(kind: LabelKind) -> dict[str, Any]:
    return {
        "title": kind.title,
        "hue": kind.hue,
        "outline": outline(kind.marker),
        "look": kind.look if kind.claims else "none",
        "count": kind.count,
    }


def columns(tree: xr.DataTree) -> list[HeadMetric]:
    """The numbers in the table of heads: those of an atlas, else those of an experiment."""
    metrics = head_metrics(tree)
    return chosen_metrics(metrics, "table") or first_metrics(metrics)[:MOST]


def intervals(metrics: Sequence[HeadMetric]) -> bool:
    """Whether any of the numbers has an interval, so that some stand in brackets."""
    return any(np.isfinite(metric.estimate.low).any() for metric in metrics)


def of_words(tree: xr.DataTree) -> bool:
    """Whether a label says what a head knows of words: its interval holds for all heads at once."""
    rules = label_rules()
    return any(rules[c.kind].words for one in head_labels(tree).values() for c in one.labels)


def rows(tree: xr.DataTree) -> list[dict[str, Any]]:
    """One row per head, in order: unit, id of its card, name, labels, cells (see `_cells`)."""
    heads, words, names = shape(tree)[1], remarks(tree), names_of(tree)
    columns_of_cells = [_cells(metric) for metric in columns(tree)]
    return [
        {
            "unit": unit,
            "id": card_id(names.unit(unit, heads)),
            "name": names.unit(unit, heads),
            "labels": [*(label.label for label in one.labels), *words[unit]],
            "cells": [cells_of[unit] for cells_of in columns_of_cells],
        }
        for unit, one in enumerate(head_labels(tree).values())
    ]


def card_id(name: str) -> str:
    """The anchor of a head's card: report.html#L8H10."""
    return name.replace("·", "")


def card_ids(tree: xr.DataTree) -> set[str]:
    """The addresses of all heads."""
    return {card_id(names_of(tree).head(*place)) for place in np.ndindex(shape(tree))}


def _label(claim: Claim) -> list[object]:
    sentence = "" if claim.sentence == claim.label else claim.sentence
    effect, n = f"{claim.effect:.2f}", claim.n
    return [claim.label, sentence, claim.kind, effect, n, claim.analysis, claim.short]


def _telling(tree: xr.DataTree, claim: Claim) -> dict[str, Any]:
    """A head: where its card is, what its labels say, and its interval in percent of the scale.

    same  which heads have the label too, in words; '' where none has
    more  that, and the further labels of the head
    """
    heads, labels = shape(tree)[1], head_labels(tree)[claim.layer, claim.head].labels
    names, unit = names_of(tree), claim.layer * heads + claim.head
    name, same = names.head(claim.layer, claim.head), _same(alike(tree, claim), names)
    further = [label.sentence for label in labels if label.label != claim.label]
    ends = [end if math.isfinite(end) else claim.value for end in (claim.low, claim.high)]
    parts = {"value": claim.value, "low": ends[0], "high": ends[1], "reference": claim.reference}
    shares = {name: round(100 * min(max(part, 0.0), 1.0), 2) for name, part in parts.items()}
    return {
        "unit": unit,
        "id": card_id(name),
        "name": name,
        "sentence": claim.sentence,
        "same": same,
        "more": [*filter(None, [same]), *further],
        "hue": kinds_of(tree)[kind_of(tree)[unit]].hue,
        "effect": f"{claim.effect:.2f}",
        "surprise": f"{claim.surprise:.1f}",
        **shares,
    }


def _same(claims: list[Claim], names: HeadNames) -> str:
    """`3 heads have this label, 51 % to 79 %: L3·H1, L5·H2, L9·H9`; '' for one head."""
    if len(claims) == 1:
        return ""
    values = [claim.value for claim in claims]
    ends = f", {percent(min(values))} to {percent(max(values))}" * claims[0].counted
    named = [names.head(claim.layer, claim.head) for claim in claims]
    rest = f" and {len(named) - NAMED} more" * (len(named) > NAMED)
    return f"{len(named)} heads have this label{ends}: {', '.join(named[:NAMED])}{rest}"


def _metric(tree: xr.DataTree, metric: HeadMetric) -> dict[str, object]:
    parts = metric.estimate
    signed = bool(np.nanmin(parts.value) < 0)
    ends = np.stack([parts.value, parts.low, parts.high])  # [end, layer, head]
    top, reach = (
        float(np.nanmax(np.abs(part) if signed else part)) for part in (parts.value, ends)
    )
    untrained = control_ranges(tree).get(metric.key)
    share = metric.unit == "probability"
    unit = "" if share else unit_label(metric.unit)
    # The text at the end of a key; small differences have three decimals or more.
    small = 0 < top < SMALL and not share
    end = fixed(top, decimals(3, top)) if small else plain(top, metric.unit)
    end = fixed(top, 0) if _counts(metric) else end
    return {
        "key": metric.key,
        "group": title_of(metric.key.partition(".")[0]),
        "label": metric.label,
        "n": metric.n,
        "signed": signed,
        "top": _rounded(top),
        "topText": f"{end} {unit}".strip(),
        "reach": _rounded(reach),
        "value": _flat(parts.value),
        "low": _flat(parts.low),
        "high": _flat(parts.high),
        "text": [_words(metric, unit) for unit in range(parts.value.size)],
        "rank": _ranks(parts.value.ravel()),  # [unit]
        **({"control": list(map(_rounded, untrained))} if untrained else {}),
    }


def _ranks(values: Floats) -> list[int]:
    """[unit] 1 for the largest, equal ones alike; 0 where there is no number."""
    there = values[np.isfinite(values)]
    return [int((there > value).sum()) + 1 if math.isfinite(value) else 0 for value in values]


def _words(metric: HeadMetric, unit: int) -> str:
    parts = metric.estimate
    value, low, high = (float(part.flat[unit]) for part in (parts.value, parts.low, parts.high))
    if _counts(metric) and math.isfinite(value):
        return fixed(value, 0)
    return by_unit(value, low, high, metric.unit)


def _counts(metric: HeadMetric) -> bool:
    """Whether all values are whole numbers without unit and interval."""
    parts = metric.estimate
    if metric.unit != "1":
        return False
    return not (np.nan_to_num(parts.value) % 1).any() and not np.isfinite(parts.low).any()


def _cells(metric: HeadMetric) -> list[dict[str, str]]:
    """[unit] the text of a number, its interval, and what to sort it by."""
    parts = metric.estimate
    value, low, high = (part.ravel().tolist() for part in (parts.value, parts.low, parts.high))
    texts = (
        [_words(metric, unit) for unit in range(len(value))]
        if _counts(metric)
        else column_by_unit(list(zip(value, low, high, strict=True)), metric.unit)
    )
    return list(map(_cell, texts, value))


def _cell(words: str, value: float) -> dict[str, str]:
    text, bracket, interval = words.partition("[")
    interval = bracket + interval.partition("]")[0] + ("]" if bracket else "")
    order = f"{value:.6g}" if math.isfinite(value) else ""
    return {"text": text.strip(), "interval": interval, "order": order}


def _places(tree: xr.DataTree) -> list[list[float]] | None:
    if not (places := parts_of(tree, "places")):
        return None
    return [[_rounded(x) or 0.0, _rounded(y) or 0.0] for x, y in places[0].tolist()]


def _flat(values: Floats) -> list[float | None]:
    """Numbers for colours and bars, which show three figures; readers get the texts."""
    return [_rounded(value, figures=3) for value in values.ravel().tolist()]


def _rounded(value: float, *, figures: int = 4) -> float | None:
    return float(f"{value:.{figures}g}") if math.isfinite(value) else None
