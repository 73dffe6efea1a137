"""The part of a report on heads and a task: findings, figures and tables of several experiments.

For runs of `ablate`, `importance` and `prune` this part is the report; whatever else an atlas has
is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import xarray as xr

from headscope.core.results import group, printable, title_name
from headscope.draw.panel import Picture
from headscope.experiments.ablation import figure as ablation
from headscope.experiments.ablation.findings import (
    answers_finding,
    can_go_finding,
    extremes_finding,
    groups_finding,
    half_finding,
    layers_finding,
    loss_finding,
    most_frequent,
    verdict_finding,
    whole_finding,
)
from headscope.experiments.ablation.section import (
    answers_table,
    groups_table,
    heads_table,
    layers_table,
    orders_table,
)
from headscope.experiments.ablation.task_wording import metric_name, task_name
from headscope.experiments.importance import figure as importance
from headscope.experiments.importance.findings import importance_findings
from headscope.experiments.importance.section import against_table, importance_table
from headscope.page.sections import Figure, figure
from headscope.page.svg import Styles
from headscope.page.tabulate import Cell, Column, Rows, Table, capital, measured, share

BEGUN = {"new head": "with an untrained head", "random": "with random weights", "checkpoint": ""}


@dataclass(frozen=True)
class SectionPart:
    """One part of the section: a question, what to look for, figures and tables."""

    id: str
    title: str
    text: str
    figures: list[Figure]
    tables: list[Table]


@dataclass(frozen=True)
class TaskSection:
    """The section on a task.

    before, after  the question of the run, around the name of its model
    findings       sentences with numbers
    scores         of the checkpoint before and after it was taught; None where nobody knows
    """

    before: str
    after: str
    findings: list[str]
    scores: Table | None
    parts: list[SectionPart]


@dataclass(frozen=True)
class _WantedPart:
    """A part as it is looked for: the group it needs, its pictures and its tables."""

    id: str
    group: str
    title: str
    text: str
    pictures: tuple[Picture, ...]
    tables: tuple[Callable[[xr.Dataset], Table | None], ...] = ()


def task_section(
    tree: xr.DataTree, manifest: Mapping[str, Any], styles: Styles
) -> TaskSection | None:
    """The section; None for a run that is not about a task."""
    parts = [_part(tree, asked, styles) for asked in ASKED if asked.group in tree.children]
    if not parts:
        return None
    before, after = question(tree)
    return TaskSection(before, after, task_findings(tree), scores_table(tree, manifest), parts)


def task_findings(tree: xr.DataTree) -> list[str]:
    """All sentences that the run allows."""
    ablation, pruning = group(tree, "ablation"), group(tree, "pruning")
    found = []
    if ablation is not None:
        found += [
            whole_finding(ablation), verdict_finding(ablation), loss_finding(ablation),
            extremes_finding(ablation), layers_finding(ablation), answers_finding(ablation),
            groups_finding(ablation),
        ]  # fmt: skip
    found += importance_findings(tree)
    if pruning is not None:
        found += [can_go_finding(pruning), half_finding(pruning)]
    return [sentence for sentence in found if sentence]


def question(tree: xr.DataTree) -> tuple[str, str]:
    """What a run about a task asks, before and after the name of its model."""
    if (ablation := group(tree, "ablation")) is not None:
        return "Which heads of ", f" does {task_name(ablation)} need?"
    if (pruning := group(tree, "pruning")) is not None:
        return "How many heads of ", f" can {task_name(pruning)} do without?"
    return "Which heads of ", " matter?"


def scores_table(tree: xr.DataTree, manifest: Mapping[str, Any]) -> Table | None:
    """The checkpoint before and after it was taught, and what needs no model."""
    history, found = manifest.get("history"), group(tree, "ablation")
    rows = []
    frequent = None if found is None else most_frequent(found)
    if frequent is not None:
        rows.append([Cell(f"always “{frequent[0]}”"), Cell(frequent[1].removesuffix(" %"))])
    if not isinstance(history, Mapping):
        return None
    base, begun = title_name(printable(history["base"])), BEGUN.get(str(history["start"]), "")
    as_share = str(history["metric"]) in ("accuracy", "f1")
    for words, when in ((f"{base} {begun}".strip(), "before"), ("after training", "after")):
        value, low, high = (_number(history[when][k]) for k in ("value", "ci_low", "ci_high"))
        rows.append([Cell(words), (share if as_share else measured)(value, low, high)])
    settings = ", ".join(f"{printable(k)} {printable(v)}" for k, v in history["settings"].items())
    caption = (
        f"Scores on {int(history['scored']):,} dev examples when the checkpoint was made "
        f"(`finetuned.json`): {int(history['learned']):,} examples to learn from, {settings}. "
        "Columns of Kovaleva et al. (2019), Table 1; that of random weights is a training of its "
        "own (finetune --from-scratch)."
    ).replace("`", "")
    metric = capital(metric_name(xr.Dataset(attrs={"metric": history["metric"]})))
    columns = [Column("Model"), Column(metric, "%" if as_share else "")]
    return Table("Scores before and after training", columns, [Rows(rows)], caption)


ASKED = (
    _WantedPart(
        "heads-off", "ablation", "Which heads does the task need?",
        "A head is switched off in place, all others stay. If the score falls the head was of use; "
        "if it rises the head was in the way; of so few examples either may be chance.",
        (ablation.PICTURE,), (heads_table, layers_table, groups_table),
    ),
    _WantedPart(
        "losses-off", "ablation", "What does the loss say?",
        "A score moves only where an answer flips. The loss moves with the certainty of every "
        "answer, so it tells small effects from none.", (ablation.LOSS,),
    ),
    _WantedPart(
        "answers", "ablation", "Which answers hang on single heads?",
        "Where an answer changes with many heads off it stood on the edge; where with one alone, "
        "that head may have seen what it turns on.", (), (answers_table,),
    ),
    _WantedPart(
        "gradients", "gradients", "Where do gradients go?",
        "Attention that is changed a little changes the loss by its gradient. Where much attention "
        "rests on a token and the gradient is small, it matters little that it does: the token is "
        "a place to rest (Clark et al. 2019).", (importance.GRADIENTS,),
    ),
    _WantedPart(
        "importance", "importance", "Which heads does the loss depend on?",
        "All of these are read off gradients, at the price of a few passes. They say what a small "
        "change would do, which need not be what switching off does.",
        (importance.PICTURE,), (importance_table,),
    ),
    _WantedPart(
        "against", "importance", "Is that what happens when heads are switched off?",
        "If an importance is worth its name, heads to the right lie high.",
        (importance.AGAINST,), (against_table,),
    ),
    _WantedPart(
        "pruning", "pruning", "How many heads can go?",
        "Heads are removed one after another. A curve that stays up says that the task does not "
        "need what is gone; an order is worth something as far as it lies above random ones.",
        (ablation.PRUNING,), (orders_table,),
    ),
)  # fmt: skip

TASK_GROUPS = {asked.group for asked in ASKED}


def _part(tree: xr.DataTree, asked: _WantedPart, styles: Styles) -> SectionPart:
    found = group(tree, asked.group)
    assert found is not None
    drawn = [figure(tree, one, styles, place=f"task-{one.name}-") for one in asked.pictures]
    tables = [table for make in asked.tables if (table := make(found)) is not None]
    figures = [one for one in drawn if one is not None]
    return SectionPart(asked.id, asked.title, asked.text, figures, tables)


def _number(value: object) -> float:
    return float("nan") if value is None else float(str(value))
