"""All that is known of one head, its card: labels, ranked numbers, and what questions add to it.

For programs and for a terminal; `figure` draws it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims.card_part import CardPart, HeadMaps, TypicalMap, named_ends
from headscope.claims.head_labels import UNLABELLED, HeadLabels, head_labels
from headscope.claims.head_metrics import HeadMetric, control_ranges, head_metrics
from headscope.claims.question import questions, title_of
from headscope.claims.reading import Reading
from headscope.core.display import printable
from headscope.core.head_names import names_of
from headscope.core.results import at, derived_once, documents, model_name, shape
from headscope.core.wording import MISSING, by_unit, grid_size, how_many, percent
from headscope.errors import InputError

DIGITS = 9  # of a number in JSON, in all
LONGEST = 40  # characters of a number's name in text
STRIP = 17


@dataclass(frozen=True, slots=True)
class RankedNumber:
    """One number of a head, and where it stands among all heads.

    ends        value, and the ends of its interval
    rank        1 = the largest of `of` heads; 0 where the head has no such number
    percentile  share of the other heads below it, equal ones by half, in percent; NaN likewise
    control     least and largest such number of the heads of the control; None without any
    """

    metric: HeadMetric
    ends: tuple[float, float, float]
    rank: int
    of: int
    percentile: float
    control: tuple[float, float] | None = None

    @property
    def analysis(self) -> str:
        """The group that holds it."""
        return self.metric.key.partition(".")[0]


@dataclass(frozen=True)
class HeadCard:
    """One head, 0-based.

    lines   what questions add to it, by heading
    data    the same for programs, by name
    first   ends of the keys of numbers that come first in its picture
    source, words   where its maps come from, and how they were chosen (`HeadMaps`)
    """

    layer: int
    head: int
    name: str
    labels: HeadLabels
    numbers: list[RankedNumber]
    lines: dict[str, list[str]]
    data: dict[str, Any]
    first: list[str]
    maps: list[TypicalMap]
    source: str
    words: str
    n: int


@derived_once()
def head_card(tree: xr.DataTree, layer: int, head: int) -> HeadCard:
    """Everything a run says of one head; missing parts are empty; InputError for no such head."""
    names = names_of(tree)
    layers, heads = shape(tree)
    if not (0 <= layer < layers and 0 <= head < heads):
        raise InputError(
            f"found no head {names.head(layer, head)}; wanted one of "
            f"{grid_size(layers, heads)}: {names.head(0, 0)} to "
            f"{names.head(layers - 1, heads - 1)}, counted {names.counted}"
        )
    maps, added = head_maps(tree), card_parts(tree)
    untrained = control_ranges(tree)
    return HeadCard(
        layer=layer,
        head=head,
        name=names.head(layer, head),
        labels=head_labels(tree)[layer, head],
        numbers=[
            replace(number_of(metric, layer, head), control=untrained.get(metric.key))
            for metric in head_metrics(tree)
        ],
        lines={part.title: list(part.lines(run, layer, head)) for part, run in added},
        data={
            name: value
            for part, run in added
            for name, value in part.data(run, layer, head).items()
        },
        first=[end for part, run in added for end in part.numbers(run, layer, head)],
        maps=maps.of(layer, head),
        source=maps.source,
        words=maps.words,
        n=documents(tree),
    )


def card_parts(tree: xr.DataTree) -> list[tuple[CardPart, Reading]]:
    """What questions add to a card, in its order, each with its reading of the run."""
    every = ((one.part("card"), Reading(tree, one)) for one in questions() if one.card is not None)
    return sorted(every, key=lambda pair: pair[0].place)


def head_maps(tree: xr.DataTree) -> HeadMaps:
    """The typical maps of heads, from the first question that has any."""
    choices = (part.maps(run) for part, run in card_parts(tree) if part.maps is not None)
    return next((maps for maps in choices if maps.source), HeadMaps("", "", lambda layer, head: []))


def number_of(metric: HeadMetric, layer: int, head: int) -> RankedNumber:
    """One number of one head, ranked."""
    values = metric.estimate.value
    own, all_of = float(values[layer, head]), values[np.isfinite(values)]
    ends = at(metric.estimate, layer, head)
    if not math.isfinite(own):
        return RankedNumber(metric, ends, 0, len(all_of), math.nan)
    below, same = float((all_of < own).sum()), float((all_of == own).sum()) - 1
    others = len(all_of) - 1
    percentile = 100 * (below + same / 2) / others if others else math.nan
    return RankedNumber(metric, ends, int((all_of > own).sum()) + 1, len(all_of), percentile)


@derived_once()
def card_json(tree: xr.DataTree, card: HeadCard) -> dict[str, Any]:
    """Everything of the card, ready for `json.dumps(…, allow_nan=False)`: NaN becomes null."""
    closest = card.labels.closest
    content: dict[str, Any] = _plain(
        {
            "model": str(tree.attrs.get("model", "")),
            "revision": str(tree.attrs.get("revision", "")),
            "layer": names_of(tree).number(card.layer),
            "head": card.head,
            "name": card.name,
            "labels": [label.row for label in card.labels.labels],
            "closest": closest and closest.row,
            "numbers": [_number(number) for number in card.numbers],
            **card.data,
            "maps_from": card.source,
            "maps": [_map(one) for one in card.maps],
            "documents": card.n,
        }
    )
    return content


def _number(number: RankedNumber) -> dict[str, Any]:
    metric = number.metric
    return {
        "key": metric.key,
        "analysis": number.analysis,
        "label": metric.label,
        "unit": metric.unit,
        **named_ends(number.ends),
        "rank": number.rank or None,
        "of": number.of,
        "percentile": number.percentile,
        "n": metric.n,
        **({"control": list(number.control)} if number.control else {}),
    }


def _map(one: TypicalMap) -> dict[str, Any]:
    return {
        "tokens": list(one.tokens),
        "special": one.special.tolist(),
        "weights": one.weights.tolist(),
        "class": one.kind or None,
        "score": one.score,
        "away": one.away,
        "rests": dict(one.rests),
        "links": [dict(zip(("query", "key", "weight"), link, strict=True)) for link in one.links()],
    }


def _plain(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _plain(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_plain(value) for value in content]
    if isinstance(content, float):
        return float(f"{content:.{DIGITS}g}") if math.isfinite(content) else None
    return content


@derived_once()
def card_text(tree: xr.DataTree, card: HeadCard) -> str:
    """The card as lines; names from data hold no control characters."""
    n, name = card.n, names_of(tree).both(card.layer, card.head)
    lines = [f"{name} of {model_name(tree)}: n = {how_many(n, 'document')}", ""]
    labels = [f"{place}. {one.label}" for place, one in enumerate(card.labels.labels, start=1)]
    lines += labels or [UNLABELLED]
    if nearly := card.labels.nearly:
        lines.append(f"   what stands out most, though no label: {nearly}")
    for title, rows in {**card.lines, f"Typical maps, {card.words}": list(_maps(card))}.items():
        if rows:
            lines += ["", title, *(f"  {row}" for row in rows)]
    return "\n".join([*lines, *_numbers(card)])


def _maps(card: HeadCard) -> Iterator[str]:
    for place, one in enumerate(card.maps, start=1):
        yield f"{place}. {' '.join(map(_token, one.pieces))}"
        if one.kind:
            sure = percent(one.score)
            yield f"   {one.title}, {sure} sure"
        rests = [f"{_token(token)} {percent(share)}" for token, share in one.rests]
        if rests:
            yield f"   of all attention: {', '.join(rests)}"
        for query, key, weight in one.links():
            from_to = f"{_token(one.pieces[query])} → {_token(one.pieces[key])}"
            yield f"   {from_to}  {percent(weight)}"


def _token(token: str) -> str:
    return printable(token) or "␣"


def _numbers(card: HeadCard) -> list[str]:
    if not card.numbers:
        return []
    values = {id(row): by_unit(*row.ends, row.metric.unit) for row in card.numbers}
    wide = max(len("value"), *map(len, values.values()))
    of = max(row.of for row in card.numbers)
    interval = " with its 95 % interval" * any(math.isfinite(row.ends[1]) for row in card.numbers)
    lines = [
        "",
        f"Numbers: value{interval}, rank among {of} heads (1 = largest), share of the",
        "other heads below it, and its place (●) from smallest to largest (|: the median head)",
    ]
    if any(row.control for row in card.numbers):
        lines[-1] += ";"
        lines.append("at the end: from the smallest to the largest of heads without training")
    for analysis, rows in groupby(card.numbers, key=lambda number: number.analysis):
        title = _cut(printable(title_of(analysis)))
        lines.append(f"\n{title:<{LONGEST + 2}} {'value':<{wide}} rank below")
        for row in rows:
            rank = str(row.rank) if row.rank else MISSING
            below = f"{row.percentile:.0f} %" if np.isfinite(row.percentile) else MISSING
            name = _cut(printable(row.metric.label).removeprefix("attention "))
            value = values[id(row)]
            place = f"{_strip(row)}{_untrained(row)}"
            line = f"  {name:<{LONGEST}} {value:<{wide}} {rank:>4} {below:>5}  {place}"
            lines.append(line.rstrip())
    return lines


def _untrained(row: RankedNumber) -> str:
    ends = [by_unit(end, math.nan, math.nan, row.metric.unit) for end in row.control or ()]
    return "  " + " to ".join(ends) if ends else ""


def _cut(text: str) -> str:
    """The text, without its middle where it is too long: ends tell names apart."""
    if len(text) <= LONGEST:
        return text
    half = (LONGEST - 1) // 2
    return f"{text[:half]}…{text[half + 1 - LONGEST :]}"


def _strip(row: RankedNumber) -> str:
    values = row.metric.estimate.value
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if not row.rank or high <= low:
        return ""
    marks = ["·"] * STRIP
    for value, mark in ((float(np.nanmedian(values)), "|"), (row.ends[0], "●")):
        marks[round((value - low) / (high - low) * (STRIP - 1))] = mark
    return "".join(marks)
