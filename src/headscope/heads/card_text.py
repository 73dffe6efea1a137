"""The card of a head as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np
import xarray as xr

from headscope.core.head_labels import UNLABELLED, head_labels
from headscope.core.question import title_of
from headscope.core.results import head_name, model_name, printable, shape
from headscope.core.wording import MISSING, by_unit, number, percent
from headscope.heads.head_card import CLASS_NAMES, FROM, HeadCard, RankedNumber

LONGEST = 34  # characters of a number's name
STRIP = 17


def card_text(tree: xr.DataTree, card: HeadCard) -> str:
    """The card as lines; names from data hold no control characters."""
    n = card.n
    lines = [f"{card.name} of {model_name(tree)}: n = {n} document{'' if n == 1 else 's'}", ""]
    lines += _labels(card)
    for title, rows in (
        ("Best relations, above the best fixed offset", _relations(card)),
        ("Classes of its maps", _classes(card)),
        ("Nearest heads, Jensen–Shannon divergence in nats", _nearest(tree, card)),
        (f"Typical maps, {FROM.get(card.source, '')}", _maps(card)),
    ):
        found = list(rows)
        if found:
            lines += ["", title, *(f"  {row}" for row in found)]
    return "\n".join([*lines, *_numbers(card)])


def _labels(card: HeadCard) -> list[str]:
    found = card.labels
    lines = [f"{at}. {label.label}" for at, label in enumerate(found.labels, start=1)]
    lines = lines or [UNLABELLED]
    if found.closest:
        lines.append(f"   what stands out most, though no label: {found.closest.sentence}")
    return lines


def _relations(card: HeadCard) -> Iterator[str]:
    for one in card.relations:
        words = f"{one.words}, {percent(*one.ends)}"
        rank = f"{one.rank} of {one.of} heads"
        yield f"{words}, baseline {percent(one.baseline, np.nan, np.nan)}; {rank}"


def _classes(card: HeadCard) -> Iterator[str]:
    for name, ends in sorted(card.classes.items(), key=lambda item: -np.nan_to_num(item[1][0])):
        if np.isfinite(ends[0]):
            yield f"{CLASS_NAMES.get(name, printable(name)):<21}{percent(*ends)}"


def _nearest(tree: xr.DataTree, card: HeadCard) -> Iterator[str]:
    heads, found = shape(tree)[1], head_labels(tree)
    for other in card.nearest:
        name = head_name(other.layer * heads + other.head, heads)
        labels = found[other.layer, other.head].labels
        says = labels[0].short if labels else UNLABELLED
        yield f"{name:<8}{number(other.js, other.low, other.high):<22}{says}"
    if card.cluster:
        yield f"cluster {card.cluster.number + 1}: {card.cluster.name}"


def _maps(card: HeadCard) -> Iterator[str]:
    for at, one in enumerate(card.maps, start=1):
        yield f"{at}. {' '.join(map(_token, one.tokens))}"
        if one.kind:
            sure = percent(one.score, np.nan, np.nan)
            yield f"   {CLASS_NAMES.get(one.kind, printable(one.kind))}, {sure} sure"
        rests = [f"{_token(token)} {percent(share, np.nan, np.nan)}" for token, share in one.rests]
        if rests:
            yield f"   of all attention: {', '.join(rests)}"
        for query, key, weight in one.links():
            from_to = f"{_token(one.tokens[query])} → {_token(one.tokens[key])}"
            yield f"   {from_to}  {percent(weight, np.nan, np.nan)}"


def _token(token: str) -> str:
    return printable(token) or "␣"


def _numbers(card: HeadCard) -> list[str]:
    """One line per number: name, value with interval, rank, and where the head stands."""
    if not card.numbers:
        return []
    values = {id(row): by_unit(*row.ends, row.metric.unit) for row in card.numbers}
    wide = max(len("value"), *map(len, values.values()))
    of = max(row.of for row in card.numbers)
    lines = [
        "",
        f"Numbers: value with its 95 % interval, rank among {of} heads (1 = largest), share of the",
        "other heads below it, and its place (●) from smallest to largest (|: the median head)",
    ]
    for analysis, rows in groupby(card.numbers, key=lambda number: number.analysis):
        title = _cut(printable(title_of(analysis)))
        lines.append(f"\n{title:<{LONGEST + 2}} {'value':<{wide}} rank below")
        for row in rows:
            rank = str(row.rank) if row.rank else MISSING
            below = f"{row.percentile:.0f} %" if np.isfinite(row.percentile) else MISSING
            name, value = _cut(_name(row)), values[id(row)]
            line = f"  {name:<{LONGEST}} {value:<{wide}} {rank:>4} {below:>5}  {_strip(row)}"
            lines.append(line.rstrip())
    return lines


def _name(row: RankedNumber) -> str:
    return printable(row.metric.label).removeprefix("attention ")


def _cut(text: str) -> str:
    """The text, without its middle where it is too long: ends tell names apart."""
    if len(text) <= LONGEST:
        return text
    half = (LONGEST - 1) // 2
    return f"{text[:half]}…{text[half + 1 - LONGEST :]}"


def _strip(row: RankedNumber) -> str:
    """Where the head stands from the smallest to the largest of all heads; `|`: their median."""
    values = row.metric.estimate.value
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if not row.rank or high <= low:
        return ""
    marks = ["·"] * STRIP
    for value, mark in ((float(np.nanmedian(values)), "|"), (row.ends[0], "●")):
        marks[round((value - low) / (high - low) * (STRIP - 1))] = mark
    return "".join(marks)
