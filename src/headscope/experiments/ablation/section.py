"""What a report says of heads that are switched off or removed: opening, sections, tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.results import (
    estimate,
    group,
    head_name,
    model_name,
    printable,
    title_name,
)
from headscope.core.wording import capital
from headscope.experiments.ablation.findings import (
    most_frequent,
    order_name,
    question,
    task_findings,
)
from headscope.experiments.ablation.task_wording import (
    chosen_orders,
    in_percent,
    metric_name,
    most_moved,
    moves,
    points_text,
    task_name,
)
from headscope.page.sections import FINDINGS, OpeningPlan, SectionPlan, of_group
from headscope.page.tabulate import Cell, Column, Rows, Table, measured, points, share
from headscope.page.tabulate import probability as p_cell

LISTED = 12  # heads, groups and examples in a table; all are in the folder `tables`
BEGUN = {"new head": "with an untrained head", "random": "with random weights", "checkpoint": ""}


def heading(tree: xr.DataTree) -> list[tuple[str, bool]]:
    """What a run about a task asks, and which of these words are the name of its model."""
    before, after = question(tree)
    return [(before, False), (model_name(tree), True), (after, False)]


def scores_table(tree: xr.DataTree, manifest: Mapping[str, Any]) -> Table | None:
    """Scores of the checkpoint before and after training, and of the most frequent answer."""
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


# --- heads switched off ---------------------------------------------------------------------


def heads_table(ablation: xr.Dataset) -> Table:
    """The heads that change the loss most."""
    size = np.abs(ablation["loss_difference"].values.ravel())
    order = np.argsort(-np.nan_to_num(size), kind="stable")[:LISTED].tolist()
    heads = ablation.sizes["head"]
    rows = [[Cell(head_name(at, heads)), *_numbers(ablation, "", at)] for at in order]
    caption = (
        f"The {len(rows)} heads whose absence changes the loss most. {_effects_caption(ablation)} "
        "All heads: table of heads, and tables/ablation_effects."
    )
    return Table("Heads", _columns(ablation, "Without"), [Rows(rows)], caption)


def layers_table(ablation: xr.Dataset) -> Table:
    """Every layer."""
    count = ablation.sizes["layer"]
    rows = [[Cell(f"layer {at + 1}"), *_numbers(ablation, "layer_", at)] for at in range(count)]
    caption = f"Each layer without all its heads. {_effects_caption(ablation)}"
    return Table("Layers", _columns(ablation, "Without"), [Rows(rows)], caption)


def groups_table(ablation: xr.Dataset) -> Table | None:
    """The groups of heads that were off together, those that go beyond their heads first."""
    if "group_interaction" not in ablation:
        return None
    beyond = ablation["group_interaction"].values
    order = np.argsort(-np.abs(np.nan_to_num(beyond)), kind="stable")[:LISTED].tolist()
    rows = [
        [
            Cell(printable(ablation["group"].values[at])),
            *_numbers(ablation, "group_", at)[:2],
            Cell(points_text(ablation, float(beyond[at]), signed=True).removesuffix(" points")),
        ]
        for at in order
    ]
    columns = [
        *_columns(ablation, "Without")[:3],
        Column("Beyond its heads", _unit(ablation), "group_interaction"),
    ]
    caption = (
        "Heads off together; the last column is the change less the sum of what each head changes "
        "alone. Below 0 they stand in for each other."
    )
    return Table("Groups of heads", columns, [Rows(rows)], caption)


def answers_table(ablation: xr.Dataset) -> Table | None:
    """The examples whose answers change with most heads off."""
    places = most_moved(ablation)[:LISTED]
    if not places:
        return None
    classes = [name for name in str(ablation.attrs["classes"]).split("\n") if name]
    size = moves(ablation)

    def told(number: float) -> Cell:
        return Cell(printable(classes[int(number)])) if classes else measured(number)

    rows = [
        [
            Cell(_text(ablation, at)), told(ablation["label"].values[at]),
            told(ablation["baseline_prediction"].values[at]),
            Cell(str(int(size[at]))) if classes else measured(float(size[at])),
            Cell(_who(ablation, at)),
        ]
        for at in places
    ]  # fmt: skip
    what = "heads change it" if classes else "mean move"
    columns = [
        Column("Example"), Column("Right"), Column("Whole model"), Column(capital(what)),
        Column("Most by"),
    ]  # fmt: skip
    caption = (
        "The answers that hang on most heads"
        if classes
        else "The answers that a head moves farthest, mean over heads"
    )
    return Table(
        "Answers that change", columns, [Rows(rows)],
        f"{caption}. The first open under Heads at work; all changes: tables/ablation_flips.",
    )  # fmt: skip


# --- heads removed --------------------------------------------------------------------------


def orders_table(pruning: xr.Dataset) -> Table:
    """How many heads can go in each order, and what that costs elsewhere."""
    names = [str(name) for name in pruning["order"].values]
    chosen = chosen_orders(pruning)
    rows = []
    for name in (*chosen, *(name for name in names if name not in chosen)):
        held = estimate(pruning, "held_out", order=name)
        row = pruning.sel(order=name)
        rows.append([
            Cell(capital(order_name(name))), Cell(str(int(row["can_go"]))),
            Cell(str(int(row["can_go_half"]))), _change(pruning, held),
        ])  # fmt: skip
    allowed = points_text(pruning, float(pruning.attrs["allowance"]))
    columns = [
        Column("Order"), Column("Can go", "heads", "can_go"), Column("By one half", "heads"),
        Column("Cost on the other", _unit(pruning)),
    ]  # fmt: skip
    caption = (
        f"The most heads of {int(pruning.attrs['heads'])} that are gone at a point of the curve "
        f"where {metric_name(pruning)} is at most {allowed} lower. To choose a point by the "
        "examples that it is scored on flatters it: so it is also chosen by one half of them and "
        "scored on the other. 95 % intervals, paired bootstrap over examples."
    )
    return Table("Heads that can go", columns, [Rows(rows)], caption)


OPENING = OpeningPlan(
    heading=heading, findings=task_findings,
    tables=(scores_table,), nothing="indifferent",
)  # fmt: skip
ABLATION_SECTIONS = (
    SectionPlan(
        id="heads-off",
        title="Which heads does the task need?",
        text=(
            "A head is switched off in place, all others stay. If the score falls the head was of "
            "use; if it rises the head was in the way; of so few examples either may be chance."
        ),
        pictures=("ablation",),
        tables=tuple(
            of_group("ablation", one) for one in (heads_table, layers_table, groups_table)
        ),
        chapter=FINDINGS,
    ),
    SectionPlan(
        id="losses-off",
        title="What does the loss say?",
        text=(
            "A score moves only where an answer flips. The loss moves with the certainty of every "
            "answer, so it tells small effects from none."
        ),
        pictures=("ablation_loss",),
        chapter=FINDINGS,
    ),
    SectionPlan(
        id="answers",
        title="Which answers hang on single heads?",
        text=(
            "Where an answer changes with many heads off it stood on the edge; where with one "
            "alone, that head may have seen what it turns on."
        ),
        tables=(of_group("ablation", answers_table),),
        chapter=FINDINGS,
    ),
)
PRUNING_SECTIONS = (
    SectionPlan(
        id="pruning",
        title="How many heads can go?",
        text=(
            "Heads are removed one after another. A curve that stays up says that the task does "
            "not need what is gone; an order is worth something as far as it lies above random "
            "ones."
        ),
        pictures=("pruning",),
        tables=(of_group("pruning", orders_table),),
        chapter=FINDINGS,
    ),
)


# --- details --------------------------------------------------------------------------------


def _columns(ablation: xr.Dataset, name: str) -> list[Column]:
    metric = capital(metric_name(ablation))
    loss = "nats" if str(ablation["loss_difference"].attrs.get("units")) == "nats" else ""
    flips = [] if "lost" not in ablation else [Column("Lost", term="lost"),
                                               Column("Gained", term="gained")]  # fmt: skip
    return [
        Column(name), Column(metric, _unit(ablation)), Column("q", term="q"), *flips,
        Column("Loss", loss, "loss_difference"), Column("q", term="q"),
    ]  # fmt: skip


def _numbers(ablation: xr.Dataset, start: str, at: int) -> list[Cell]:
    """Changes of score and loss of one variant, with what says how sure they are."""

    def one(name: str) -> float:
        return float(ablation[f"{start}{name}"].values.ravel()[at])

    def ends(name: str) -> Estimate:
        parts = estimate(ablation, f"{start}{name}")
        return Estimate(*(p.ravel()[at] for p in (parts.value, parts.low, parts.high)))

    flips = [Cell(str(int(one(n)))) for n in ("lost", "gained") if f"{start}{n}" in ablation]
    loss = ends("loss_difference")
    return [
        _change(ablation, ends("difference")), p_cell(one("q")), *flips,
        _signed(float(loss.value), float(loss.low), float(loss.high)), p_cell(one("loss_q")),
    ]  # fmt: skip


def _change(result: xr.Dataset, apart: Estimate) -> Cell:
    value, low, high = (float(part) for part in (apart.value, apart.low, apart.high))
    return points(value, low, high) if in_percent(result) else _signed(value, low, high)


def _signed(value: float, low: float, high: float) -> Cell:
    cell = measured(value, low, high)
    return Cell(f"+{cell.text}", cell.small) if value > 0 else cell


def _unit(result: xr.Dataset) -> str:
    return "points" if in_percent(result) else ""


def _effects_caption(ablation: xr.Dataset) -> str:
    unit = "in percentage points" if in_percent(ablation) else "on its own scale"
    return (
        f"Change of {metric_name(ablation)} on {task_name(ablation)}, {unit}, and of the loss; "
        "95 % intervals, paired over examples (bootstrap; of the loss normal); q: p corrected by "
        "Benjamini and Hochberg. A loss that rises is a model that is worse."
    )


def _text(ablation: xr.Dataset, at: int) -> str:
    name = "text" if "text" in ablation.coords else "example"
    return printable(ablation[name].values[at])


def _who(ablation: xr.Dataset, at: int, *, most: int = 3) -> str:
    """The heads without which an answer moves farthest; of classes, those that flip it first."""
    after = ablation["prediction"].isel(example=at).transpose("layer", "head").values
    apart = np.abs(after - ablation["baseline_prediction"].values[at]).ravel()  # [unit]
    if ablation.attrs["classes"]:  # of those that flip it, the ones that matter most to the loss
        size = np.abs(ablation["loss_difference"].transpose("layer", "head").values.ravel())
        apart = (apart > 0) * (1 + size)
    order = [int(unit) for unit in np.argsort(-apart, kind="stable") if apart[unit] > 0]
    named = ", ".join(head_name(unit, after.shape[1]) for unit in order[:most])
    return f"{named}, …" if len(order) > most else named


def _number(value: object) -> float:
    return float("nan") if value is None else float(str(value))
