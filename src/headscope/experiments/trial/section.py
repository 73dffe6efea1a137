"""What the page says of labels that were tried: sentences, a table, files."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from headscope.claims.reading import Reading
from headscope.core.results import LIMITS, estimate
from headscope.core.wording import capital, how_many, number, percent
from headscope.experiments.trial.terms import MOVES
from headscope.experiments.trial.verdicts import (
    CONFIRMED,
    NOT_CONFIRMED,
    Ends,
    TriedLabel,
    lead,
    tried_labels,
)
from headscope.page.tabulate import Cell, Column, Rows, Table

SHOWN = 60  # rows of the table; the file has all
LONGEST = (
    5.0  # ours: interval of a share of what the head changes; of a longer one nothing is known
)


def findings(run: Reading) -> list[str]:
    """Sentences on the labels that were tried."""
    said = [lead(run), _judged(run), _together(run), _transfers(run), _repaired(run)]
    if run.data.attrs.get("chosen_on_tried") == "possible":
        said.append("They were tried on texts that the labels were chosen on.")
    return [one for one in said if one]


def _judged(run: Reading) -> str:
    """By what labels were tried."""
    return f"Effects are changes of the {run.data.attrs['score']}."


def _together(run: Reading) -> str:
    """Labels that are confirmed of all their heads together, and of none alone."""
    tried = tried_labels(run.data)
    alone = {one.name for one in tried if one.alone and one.outcome == CONFIRMED}
    hidden = [
        one
        for one in tried
        if len(one.heads) > 1 and one.outcome == CONFIRMED and one.name not in alone
    ]
    if not hidden:
        return ""
    names = "; ".join(f"{one.name} ({how_many(len(one.heads), 'head')})" for one in hidden[:3])
    return f"Confirmed of all heads together and of none alone: {names}."


def _transfers(run: Reading) -> str:
    """How many confirmed labels are carried by another input with the same token."""
    tried = [one for one in tried_labels(run.data) if one.alone and one.outcome == CONFIRMED]
    seen = [one for one in tried if one.transfers is not None]
    if not seen:
        return ""
    some = sum(bool(one.transfers) for one in seen)
    return (
        f"Of {len(seen)} confirmed labels that lead to one token, the head surely carries that "
        f"token for {some or 'none'}: what it gathers in another input changes the output less "
        "where the token is the same than where it is another one."
    )


def _repaired(run: Reading) -> str:
    """What later layers make good of what confirmed labels write straight to the output."""
    if not run.data.attrs.get("direct"):
        return ""
    own = [one for one in tried_labels(run.data) if one.alone and one.outcome == CONFIRMED]
    if not own:
        return ""
    some = sum(one.repaired for one in own)
    return (
        f"Of {len(own)} confirmed labels, later layers surely make good a part of what the head "
        f"writes straight to the output for {some or 'none'}."
    )


def table(run: Reading) -> Table | None:
    """Each label of a single head that was tried, the largest effect first."""
    tried = [one for one in tried_labels(run.data) if one.outcome in (CONFIRMED, NOT_CONFIRMED)]
    if not tried:
        return None
    tried.sort(key=lambda one: (one.outcome != CONFIRMED, one.in_nats, -one.effect[0]))
    unit = "%, or nats" if any(one.in_nats for one in tried) else "%"
    names = (("Label", ""), ("Head", ""), ("Effect", unit), ("Of the head’s", "%"), ("Verdict", ""))
    columns = [Column(*name) for name in names]
    rows = [
        [
            Cell(capital(one.name)),
            Cell(_who(one, run)),
            Cell(*(_in_nats(one.effect) if one.in_nats else _shown(one.effect))),
            Cell(*_shown(one.share)),
            Cell(one.outcome, _why(one)),
        ]
        for one in tried[:SHOWN]
    ]
    caption = (
        f"Effect: {MOVES[run.data.attrs['score']]}, where the rule of the label applies; of labels "
        "that say that a token is copied, by how many nats its log-probability falls. Of the "
        "head’s: as a share of what all that the head looks at changes there; none where that is "
        "next to nothing. All labels: tables/trial_labels."
    )
    return Table("Labels tried", columns, [Rows(rows)], caption, inline=False)


def _who(one: TriedLabel, run: Reading) -> str:
    if len(one.heads) == 1:
        return run.names.head(*one.heads[0])
    return f"{len(one.heads)} heads together"


def _in_nats(ends: Ends) -> tuple[str, str]:
    text, _, interval = number(*ends).partition(" ")
    return f"{text} nats", interval


def _shown(ends: Ends) -> tuple[str, str]:
    """A share and its interval; nothing where the interval says nothing."""
    if not math.isfinite(ends[0]) or ends[2] - ends[1] > LONGEST:
        return "", ""
    text, _, interval = percent(*ends).partition(" % ")
    return text, interval


def _why(one: TriedLabel) -> str:
    if one.outcome == CONFIRMED or not math.isfinite(one.most):
        return one.why
    most = max(one.most, 0.0)
    shown = f"{number(most)} nats" if one.in_nats else percent(most)
    return f"{one.why}; at most {shown} beyond"


def tables(run: Reading) -> dict[str, pd.DataFrame]:
    """`trial_labels`: a row per label that was tried, or could not be.

    name, kind, rule, heads (as papers count), verdict, why, effect, share and loss with their
    ends, most (the largest effect beyond what it is compared with), unit of both, inputs, documents
    """
    return {"trial_labels": pd.DataFrame(list(_rows(run)))}


def _rows(run: Reading) -> Iterator[dict[str, object]]:
    data = run.data
    numbers = ("effect", "share", "loss", "direct", "direct_loss", "repaired", "transfer")
    parts = {name: estimate(data, name) for name in numbers}
    beyond = estimate(data, "beyond")
    for at, one in enumerate(tried_labels(data)):
        row: dict[str, object] = {
            "label": one.name,
            "kind": one.kind,
            "rule": str(data["rule"].values[at]),
            "heads": " ".join(run.names.head(*place) for place in one.heads),
            "verdict": one.outcome,
            "why": one.why,
            "most": one.most,
            "unit": "nats" if one.in_nats else "distance",
        }
        for name, part in parts.items():
            row |= {name + end: float(getattr(part, which)[at]) for end, which in ALL}
        for n, name in enumerate(map(str, data["against"].values)):
            row |= {
                f"beyond_{name}{end}": float(getattr(beyond, which)[at, n]) for end, which in ALL
            }
        row |= {name: int(np.nan_to_num(data[name].values[at])) for name in ("inputs", "documents")}
        yield row


ALL = (("", "value"), (LIMITS[0], "low"), (LIMITS[1], "high"))
