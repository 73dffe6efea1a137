"""Sections on the heads of two models that have the same role: sentences, table and picture."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from headscope.claims.reading import Reading
from headscope.claims.verdict import Outcome, Verdict, above, not_asked
from headscope.core.accumulators import Bools
from headscope.core.display import printable
from headscope.core.head_names import HeadNames
from headscope.core.results import (
    LIMITS,
    at,
    estimate,
    json_number,
    largest_first,
    model_name,
    shape,
)
from headscope.core.wording import fixed, p_words, percent
from headscope.draw.depth_pairs import depth_pair_handles, draw_depth_pairs
from headscope.draw.head_grid import signed_panel, signed_top
from headscope.draw.marks import legend_of
from headscope.draw.panel import Panel
from headscope.experiments.comparison import SAME_ROLES
from headscope.experiments.comparison.same_roles import IN_CIRCUITS, NO_UNTRAINED, aligned_verdict
from headscope.page.sections import OpeningPlan
from headscope.page.tabulate import Cell, Column, Table, measured, rows_table, share

TABLE_ROWS = 30
SAME = {
    Outcome.HOLDS: "same role",
    Outcome.FAILS: "none as near",
    Outcome.CANNOT_TELL: str(Outcome.CANNOT_TELL),
    Outcome.NOT_ASKED: str(Outcome.NOT_ASKED),
}


def verdicts(run: Reading) -> dict[tuple[int, int], Verdict]:
    """Whether each head that has a fingerprint and its nearest one have the same role."""
    margin, distance = run("margin"), run("distance")
    return {
        place: above(*at(margin, *place))
        if np.isfinite(margin.value[place])
        else not_asked(NO_UNTRAINED)
        for place in largest_first(-distance.value)
    }


def findings(run: Reading) -> list[str]:
    """How many heads have a role in the other model, how circuits align, and what is missing."""
    return [*_heads_finding(run), *_circuits_findings(run), *_rules_finding(run)]


def summary(tree: xr.DataTree) -> dict[str, Any]:
    """For --json: how many heads by verdict, and how the circuits align; NaN is null."""
    run = Reading(tree, SAME_ROLES)
    outcomes = Counter(str(one.outcome) for one in verdicts(run).values())
    data, aligned = run.data, {}
    if "circuit_shared" in data:
        for among in data["among"].values.tolist():
            row = data.sel(among=among)
            aligned[among] = {
                name: json_number(float(row[f"circuit_{name}"]))
                for name in ("heads", "common", "shared", "random", "p")
            } | {"verdict": str(aligned_verdict(data, among).outcome)}
    return {"heads": dict(outcomes), "circuits": aligned}


def _models(run: Reading) -> tuple[str, str]:
    return model_name(run.tree), printable(run.data.attrs["other_model"])


def _heads_finding(run: Reading) -> list[str]:
    one, other = _models(run)
    every = list(verdicts(run).values())
    counts = {outcome: sum(v.outcome is outcome for v in every) for outcome in Outcome}
    if counts[Outcome.NOT_ASKED]:
        return [f"Whether heads have the same role was not asked; it needs {NO_UNTRAINED}."]
    same, none, unsure = (
        counts[one] for one in (Outcome.HOLDS, Outcome.FAILS, Outcome.CANNOT_TELL)
    )
    have = "has" if same == 1 else "have"
    return [
        f"{same} of {len(every)} heads of {one} surely {have} the role of a head of {other}: both "
        "are less than half as far apart as from any head without training, and have a tenth more "
        f"in common. The nearest head of {none} surely is not as near by these rules; of {unsure} "
        "these runs cannot tell."
    ]


def _circuits_findings(run: Reading) -> list[str]:
    data = run.data
    if "circuit_shared" not in data:
        return []
    one, other = _models(run)
    verdict = aligned_verdict(data, "all")
    row = data.sel(among="all")
    together, random = (
        at(estimate(data, f"circuit_{n}", among="all")) for n in ("shared", "random")
    )
    beside = {
        Outcome.HOLDS: "more than random sets of as many heads",
        Outcome.FAILS: "no more than random sets of as many heads",
    }.get(verdict.outcome, "which these circuits cannot tell from random sets of as many heads")
    heads, common = int(row["circuit_heads"]), int(row["circuit_common"])
    return [
        f"Of {heads} heads in the circuit of {one} ({data.attrs['prompts']}) {common} have their "
        f"nearest head in that of {other}, {percent(*together)}: {beside}, which share "
        f"{percent(*random)} ({p_words(float(row['circuit_p']))})."
    ]


def _rules_finding(run: Reading) -> list[str]:
    if not (alone := int(run.data.attrs["rules_of_one"])):
        return []
    return [
        f"{alone} rules were tried for one model alone. What they explain counts as not explained: "
        "give both models the same annotated texts."
    ]


def _heading(run: Reading) -> list[tuple[str, bool]]:
    one, other = _models(run)
    return [("Heads of ", False), (one, True), (" and of ", False), (other, True)]


def _lede(run: Reading) -> str:
    by = [
        *[f"what {run.data.attrs['rules']} rules explain of it"] * bool(run.data.attrs["rules"]),
        *["its scores on made inputs"] * bool(run.data.attrs["scores"]),
    ]
    return f"Each head is known by {' and '.join(by)}, whatever its depth."


OPENING = OpeningPlan(
    id="same-roles", chapter="Same roles", heading=_heading, lede=_lede, findings=findings
)


def _other_name(run: Reading, layer: int, head: int, rank: int = 0) -> str:
    numbers = tuple(map(int, str(run.data.attrs["other_numbers"]).split()))
    place = (run.data[name].values[layer, head, rank] for name in ("other_layer", "other_head"))
    layer, head = map(int, place)
    return HeadNames(numbers, run.names.first).head(layer, head)


def _rule(run: Reading, layer: int, head: int) -> str:
    """The rule or score that a head has most in common with its nearest one."""
    named = json.loads(run.data.attrs["names"])[int(run.data["common_rule"].values[layer, head])]
    return str(named).replace("_", " ")


def table(run: Reading) -> Table | None:
    """The heads that surely have the same role, the surest first; then the other ones."""
    by_head, circuits = verdicts(run), IN_CIRCUITS[0] in run.data
    order = sorted(by_head, key=lambda place: -np.nan_to_num(run("margin").low[place], nan=-np.inf))
    rows = [
        [
            run.names.head(*place),
            _other_name(run, *place),
            measured(*at(run("distance"), *place), digits=2),
            measured(at(run("untrained"), *place)[0], digits=2),
            share(*at(run("common"), *place)),
            Cell(SAME[by_head[place].outcome]),
            _counted(float(run.data["alike"].values[place])),
            _rule(run, *place),
            *([_in_circuits(run, *place)] if circuits else []),
        ]
        for place in order[:TABLE_ROWS]
    ]
    columns: list[str | Column] = [
        "Head",
        "Nearest",
        Column("Distance", "", "distance"),
        Column("Untrained", "", "untrained"),
        Column("In common", "%", "common"),
        "Verdict",
        Column("Alike", "heads", "alike"),
        "Most in common",
        *["Circuit"] * circuits,
    ]
    one, other = _models(run)
    caption = (
        f"Heads of {one} and the nearest of {other}, the surest first. Distance: 0 if both do the "
        "same by these rules and scores, 1 if other things. Untrained: distance to the nearest of "
        f"{run.data.attrs['untrained_heads']} heads without training. In common: what the same "
        "rules explain of both. In brackets the least and the most that the 95 % intervals of all "
        f"shares allow. Alike: how many heads of {other} surely have the role. "
        f"{'Circuit: which of both is in that of its model. ' * circuits}All heads: "
        "tables/nearest_heads."
    )
    return rows_table("Nearest heads", columns, rows, caption)


def _in_circuits(run: Reading, layer: int, head: int) -> str:
    """Which of a head and its nearest one are in the circuit of their model."""
    one, other = (bool(run.data[name].values[layer, head]) for name in IN_CIRCUITS)
    return "both" if one and other else "head" * one or "nearest" * other


def _counted(value: float) -> str:
    return str(int(value)) if np.isfinite(value) else str(Outcome.NOT_ASKED)


def tables(run: Reading) -> dict[str, pd.DataFrame]:
    """`nearest_heads`: one row per head and rank of its nearest heads; layers and heads from 0.

    Distances have their ends for the nearest head alone.
    """
    rows, data = [], run.data
    for (layer, head), verdict in verdicts(run).items():
        cell = data.isel(layer=layer, head=head)
        numbers = [
            *[f"{n}{end}" for n in ("common", "margin") for end in ("", *LIMITS)],
            *[f"distance{end}" for end in LIMITS],
            *("untrained", "other_untrained", "alike", "mutual"),
            *(name for name in IN_CIRCUITS if name in data),
        ]
        for rank in np.flatnonzero(np.isfinite(cell["rank_distance"].values)).tolist():
            first = rank == 0
            rows.append(
                {
                    "layer": run.names.number(layer),
                    "head": head,
                    "name": run.names.head(layer, head),
                    "rank": rank,
                    "other_layer": int(cell["other_layer"].values[rank]),
                    "other_head": int(cell["other_head"].values[rank]),
                    "other_name": _other_name(run, layer, head, rank),
                    "distance": float(cell["rank_distance"].values[rank]),
                    **{name: float(cell[name]) if first else np.nan for name in numbers},
                    "verdict": SAME[verdict.outcome] if first else "",
                    "common_rule": _rule(run, layer, head) if first else "",
                }
            )
    return {"nearest_heads": pd.DataFrame(rows)} if rows else {}


def panels(run: Reading) -> list[Panel]:
    """By how much each head has one role with its nearest; and both heads by depth."""
    margin = run("margin")
    drawn = [Panel("Depth of both heads", partial(_draw_pairs, run), height=0.85, key_above=True)]
    if np.isfinite(margin.value).any():
        top = signed_top(margin.value)
        look: dict[str, Any] = {
            "top": top,
            "text": fixed(top, 2),
            "parts": margin,
            "signs": 1.0 * _same(run),
        }
        drawn.insert(0, signed_panel("Margin of one role", margin.value, run.names, **look))
    return drawn


def _same(run: Reading) -> Bools:
    """[layer, head] which heads surely have the role of the nearest one."""
    return np.asarray(np.nan_to_num(run("margin").low) > 0)


def _draw_pairs(run: Reading, axes: Axes) -> None:
    data, layers = run.data, (shape(run.tree)[0], int(run.data.attrs["other_layers"]))
    there = np.isfinite(data["distance"].values)
    places = np.stack([np.argwhere(there)[:, 0], data["other_layer"].values[..., 0][there]], -1)
    draw_depth_pairs(axes, places, layers, _same(run)[there], _models(run))
    legend_of(axes, depth_pair_handles("surely the same role", "nearest, not shown to be"))


def caption(run: Reading) -> str:
    """How to read the picture."""
    one, other = _models(run)
    known = np.isfinite(run("margin").value).any()
    first = (
        f"(a) Each cell is a head of {one}: by how much it and its nearest head of {other} are "
        "nearer, or have more in common, than one role takes; of both the smaller. Blue: one role, "
        "+: surely; orange: none. (b) "
    )
    return (
        f"{first if known else ''}The depth of each head of {one} against that of its nearest head "
        f"of {other} (0 first layer, 1 last); the area of a circle is the number of heads. Depth "
        "is no part of the distance."
    )
