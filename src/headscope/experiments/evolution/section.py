"""What a reader knows of heads over training after ten seconds, and the tables behind it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from headscope.claims.reading import Reading
from headscope.core.results import LIMITS
from headscope.core.wording import by_unit, capital, how_many
from headscope.experiments.evolution.spells import Spell, is_behind, lasting_spells, spells
from headscope.page.sections import OpeningPlan, heading_of
from headscope.page.tabulate import Cell, Table, rows_table

MOST_KINDS, MOST_HEADS, MOST_ROWS = 5, 3, 60


def findings(run: Reading) -> list[str]:
    """How many labels are born and stay; the birth of each; which go again; the control."""
    lasting = lasting_spells(run.data)
    return [
        _count_finding(run, lasting),
        *_births(run, lasting),
        _gone_finding(run, lasting),
        _control_finding(run),
    ]


def _steps(run: Reading) -> str:
    steps = run.data["step"].values.tolist()
    if len(steps) == 1:
        return f"at step {steps[0]:,} alone, where nothing can be born"
    return f"at {len(steps)} steps, from {steps[0]:,} to {steps[-1]:,}"


def _count_finding(run: Reading, lasting: list[Spell]) -> str:
    layers, heads = run.data.sizes["layer"], run.data.sizes["head"]
    every = {(one.layer, one.head) for one in lasting}
    if not every:
        return f"No head of {layers} × {heads} has a label that lasts, {_steps(run)}."
    last = {(one.layer, one.head) for one in lasting if one.gone_by is None}
    return (
        f"{len(every)} of {layers * heads} heads have a label that lasts, {_steps(run)}; "
        f"{len(last)} have one at the end."
    )


def _births(run: Reading, lasting: list[Spell]) -> Iterator[str]:
    """The first birth of each label: in which heads, what the largest comes to, how many follow."""
    of_label = dict[str, dict[tuple[int, int], Spell]]()
    for one in lasting:
        of_label.setdefault(one.label, {}).setdefault((one.layer, one.head), one)
    born = [
        [one for one in some.values() if one.born_after is not None] for some in of_label.values()
    ]
    born.sort(key=lambda some: not some or _measure_of(run, some[0].kind) is None)
    for some in list(filter(None, born))[:MOST_KINDS]:
        first = [one for one in some if one.born_by == some[0].born_by]
        first.sort(key=lambda one: -_number(run, one)[0])
        names = [run.names.head(one.layer, one.head) for one in first[:MOST_HEADS]]
        rest = len(first) - MOST_HEADS
        where = ", ".join([names[0] + _height(run, first[0]), *names[1:]])
        where += f" and {rest} more" * (rest > 0)
        later = len(some) - len(first)
        more = f"; later in {how_many(later, 'more head')}" * (later > 0)
        yield f"{capital(some[0].label)} is born {some[0].born}, in {where}{more}."


def _height(run: Reading, spell: Spell) -> str:
    """` (90 % [89, 90] at step 2,000)`: what it comes to; "" where its number is not followed."""
    at, numbers = _measure_of(run, spell.kind), _number(run, spell)
    if at is None:
        return ""
    unit = str(run.data["unit"].values[at])
    return f" ({by_unit(*numbers, unit)} at step {spell.last:,})"


def _number(run: Reading, spell: Spell) -> tuple[float, float, float]:
    """The number behind a label at the last step that has it, with its ends; else 0."""
    at = _measure_of(run, spell.kind)
    if at is None:
        return 0.0, 0.0, 0.0
    when = int(np.flatnonzero(run.data["step"].values == spell.last)[0])
    value, low, high = (
        float(run.data["value" + end].values[when, at, spell.layer, spell.head])
        for end in ("", *LIMITS)
    )
    return value, low, high


def _measure_of(run: Reading, kind: str) -> int | None:
    """The place of the number behind a label among those that are followed."""
    keys = map(str, run.data["measure"].values)
    return next((at for at, key in enumerate(keys) if is_behind(key, kind)), None)


def _gone_finding(run: Reading, lasting: list[Spell]) -> str:
    gone = [one for one in lasting if one.gone_by is not None]
    if not gone:
        return ""
    named = [
        f"{one.label} of {run.names.head(one.layer, one.head)} {one.gone}"
        for one in gone[:MOST_HEADS]
    ]
    rest = len(gone) - MOST_HEADS
    return f"Labels go again: {'; '.join(named)}{f'; and {rest} more' * (rest > 0)}."


def _control_finding(run: Reading) -> str:
    if not np.isfinite(run.data["control_most"].values).any():
        return "There is no control: heads without training may do the same."
    steps, own = run.data["step"].values, run.data["own_control"].values > 0
    if own.all():
        return ""
    last, several = int(steps[own][-1]), int(own.sum()) > 1
    return (
        f"Untrained networks were read at step{'s' * several} "
        f"{', '.join(f'{int(one):,}' for one in steps[own])}; labels of other steps are held "
        f"against those of step {last:,}."
    )


def table(run: Reading) -> Table | None:
    """Each lasting spell of a label: when it is born, and when it goes."""
    rows = [
        [
            Cell(run.names.head(one.layer, one.head)),
            Cell(one.label),
            Cell(_pair(one.born_after, one.born_by)),
            Cell(_pair(one.last, one.gone_by) if one.gone_by is not None else "stays"),
        ]
        for one in lasting_spells(run.data)[:MOST_ROWS]
    ]
    flickers = len(spells(run.data)) - len(lasting_spells(run.data))
    more = len(lasting_spells(run.data)) - MOST_ROWS
    caption = (
        "Steps between which a head gets a label, and loses it. By the rules of the atlas: the "
        "number lies surely above its threshold, and above every head of the control. "
        + f"The first {MOST_ROWS}; {more} more in tables/label_spells. " * (more > 0)
        + f"Left out: {flickers} that were there at a single step (tables/label_spells)."
        * bool(flickers)
    )
    return rows_table("Births of labels", ("head", "label", "born", "gone"), rows, caption)


def _pair(first: int | None, second: int) -> str:
    return f"by {second:,}" if first is None else f"{first:,} – {second:,}"


def tables(run: Reading) -> dict[str, pd.DataFrame]:
    """`label_spells`: a row per stretch of steps in which a head has a label.

    label, kind, layer, head (from 0), name (as papers count), born_after, born_by, last, gone_by,
    steps (measured ones with the label), lasts
    """
    numbers = run.data["layer"].values.tolist()
    rows = [
        {
            "name": run.names.head(one.layer, one.head),
            "layer": numbers[one.layer],
            "head": one.head,
            "label": one.label,
            "kind": one.kind,
            "born_after": one.born_after,
            "born_by": one.born_by,
            "last": one.last,
            "gone_by": one.gone_by,
            "steps": one.count,
            "lasts": one.lasts,
        }
        for one in spells(run.data)
    ]
    whole = dict.fromkeys(("born_after", "born_by", "last", "gone_by"), "Int64")
    return {"label_spells": pd.DataFrame(rows).astype(whole) if rows else pd.DataFrame()}


OPENING = OpeningPlan(
    findings=lambda run: [said for said in findings(run) if said],
    heading=heading_of("What do the heads of ", " do over training?"),
    id="evolution",
    nothing="unlabelled",
)
