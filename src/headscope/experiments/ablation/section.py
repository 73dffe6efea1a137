"""Report sections on heads that are switched off or removed."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.head_names import renamed
from headscope.core.results import (
    at,
    estimate,
    group,
    head_name,
    layer_name,
    model_name,
    printable,
    title_name,
)
from headscope.core.wording import capital
from headscope.experiments.ablation import terms
from headscope.experiments.ablation.findings import most_frequent, most_moved, moves, task_findings
from headscope.experiments.ablation.terms import in_percent, metric_name, points_text, score_unit
from headscope.page.sections import FINDINGS, OpeningPlan, SectionPlan, of_group
from headscope.page.tabulate import Cell, Column, Rows, Table, measured, points, share
from headscope.page.tabulate import probability as p_cell

LISTED = 12  # heads, groups and examples in a table; all are in the folder `tables`
BEGUN = {"new head": "with an untrained head", "random": "with random weights", "checkpoint": ""}


def heading(tree: xr.DataTree) -> list[tuple[str, bool]]:
    """The heading of a run about a task, and which part of it is the model's name."""
    before, after = "Which heads of ", " matter?"
    if (ablation := group(tree, "ablation")) is not None:
        after = f" does {terms.task_name(ablation)} need?"
    elif (pruning := group(tree, "pruning")) is not None:
        before, after = "How many heads of ", f" can {terms.task_name(pruning)} do without?"
    return [(before, False), (model_name(tree), True), (after, False)]


def scores_table(tree: xr.DataTree, manifest: Mapping[str, Any]) -> Table | None:
    """Scores of the checkpoint before and after training, and of the most frequent answer."""
    history, ablation = manifest.get("history"), group(tree, "ablation")
    if not isinstance(history, Mapping):
        return None
    rows = []
    if ablation is not None and (frequent := most_frequent(ablation)) is not None:
        rows.append([Cell(f"always “{frequent[0]}”"), Cell(frequent[1].removesuffix(" %"))])
    base, begun = title_name(printable(history["base"])), BEGUN.get(str(history["start"]), "")
    kind = xr.Dataset(attrs={"metric": history["metric"]})
    for words, when in ((f"{base} {begun}".strip(), "before"), ("after training", "after")):
        number = [history[when][key] for key in ("value", "ci_low", "ci_high")]
        write = share if in_percent(kind) else measured
        rows.append([Cell(words), write(*(math.nan if x is None else float(x) for x in number))])
    settings = ", ".join(f"{printable(k)} {printable(v)}" for k, v in history["settings"].items())
    caption = (
        f"Scores on {int(history['scored']):,} dev examples when the checkpoint was made "
        f"(`finetuned.json`): {int(history['learned']):,} examples to learn from, {settings}. "
        "Columns of Kovaleva et al. (2019), Table 1; that of random weights is a training of its "
        "own (finetune --from-scratch)."
    ).replace("`", "")
    columns = [Column("Model"), Column(capital(metric_name(kind)), "%" if in_percent(kind) else "")]
    return Table("Scores before and after training", columns, [Rows(rows)], caption)


def heads_table(ablation: xr.Dataset) -> Table:
    """The heads with the largest effect on the loss."""
    heads, most = ablation.sizes["head"], _largest(ablation["loss_difference"])
    rows = [_row(ablation, head_name(unit, heads), "", unit) for unit in most]
    caption = (
        f"The {len(rows)} heads whose absence changes the loss most. {_effects_caption(ablation)} "
        "All heads: table of heads, and tables/ablation_effects."
    )
    return Table("Heads", _columns(ablation), [Rows(rows)], caption)


def layers_table(ablation: xr.Dataset) -> Table:
    """Every layer."""
    layers = range(ablation.sizes["layer"])
    rows = [_row(ablation, f"layer {layer_name(layer)}", "layer_", layer) for layer in layers]
    caption = f"Each layer without all its heads. {_effects_caption(ablation)}"
    return Table("Layers", _columns(ablation), [Rows(rows)], caption)


def groups_table(ablation: xr.Dataset) -> Table | None:
    """The groups of heads switched off together, those with most interaction first."""
    if "group_interaction" not in ablation:
        return None
    beyond = ablation["group_interaction"]
    rows = [
        [
            *_row(ablation, renamed(printable(beyond["group"].values[place])), "group_", place)[:3],
            Cell(points_text(ablation, float(beyond[place]), signed=True).removesuffix(" points")),
        ]
        for place in _largest(beyond)
    ]
    last = Column("Beyond its heads", score_unit(ablation), "group_interaction")
    caption = (
        "Heads off together; the last column is the change less the sum of what each head changes "
        "alone. Below 0 they stand in for each other."
    )
    return Table("Groups of heads", [*_columns(ablation)[:3], last], [Rows(rows)], caption)


def answers_table(ablation: xr.Dataset) -> Table | None:
    """The examples whose answers most heads change."""
    places = most_moved(ablation)[:LISTED]
    if not places:
        return None
    classes, size = terms.class_names(ablation), moves(ablation)
    texts = ablation["text" if "text" in ablation.coords else "example"].values

    def told(number: float) -> Cell:
        return Cell(printable(classes[int(number)])) if classes else measured(number)

    rows = [
        [
            Cell(printable(texts[place])),
            told(ablation["label"].values[place]),
            told(ablation["baseline_prediction"].values[place]),
            Cell(str(int(size[place]))) if classes else measured(float(size[place])),
            Cell(_who(ablation, place)),
        ]
        for place in places
    ]
    columns = [
        Column("Example"),
        Column("Right"),
        Column("Whole model"),
        Column("Heads change it" if classes else "Mean move"),
        Column("Most by"),
    ]
    which = "hang on most heads" if classes else "a head moves farthest, mean over heads"
    caption = (
        f"The answers that {which}. The first open under Heads at work; all changes: "
        "tables/ablation_flips."
    )
    return Table("Answers that change", columns, [Rows(rows)], caption)


def orders_table(pruning: xr.Dataset) -> Table:
    """How many heads each order can remove, and the cost on held-out examples."""
    random = terms.by_chance(pruning)
    rows = []
    for place in (*np.flatnonzero(~random), *np.flatnonzero(random)):
        row = pruning.isel(order=place)
        rows.append(
            [
                Cell(capital(terms.order_name(str(row["order"].values)))),
                Cell(str(int(row["can_go"]))),
                Cell(str(int(row["can_go_half"]))),
                _change(pruning, *at(estimate(row, "held_out"))),
            ]
        )
    allowed = points_text(pruning, float(pruning.attrs["allowance"]))
    columns = [
        Column("Order"),
        Column("Can go", "heads", "can_go"),
        Column("By one half", "heads"),
        Column("Cost on the other", score_unit(pruning)),
    ]
    caption = (
        f"The most heads of {int(pruning.attrs['heads'])} that are gone at a point of the curve "
        f"where {metric_name(pruning)} is at most {allowed} lower. To choose a point by the "
        "examples that it is scored on flatters it: so it is also chosen by one half of them and "
        "scored on the other. 95 % intervals, paired over examples."
    )
    return Table("Heads that can go", columns, [Rows(rows)], caption)


OPENING = OpeningPlan(
    heading=heading, findings=task_findings, tables=(scores_table,), nothing="cannot tell"
)
ABLATION_SECTIONS = (
    SectionPlan(
        id="heads-off",
        title="Which heads does the task need?",
        chapter=FINDINGS,
        text="A head is switched off in place, all others stay. If the score falls the head was of "
        "use; if it rises the head was in the way. Marks stand where that is more than chance.",
        pictures=("ablation",),
        tables=tuple(of_group("ablation", t) for t in (heads_table, layers_table, groups_table)),
    ),
    SectionPlan(
        id="losses-off",
        title="What does the loss say?",
        chapter=FINDINGS,
        text="A score moves only where an answer flips. The loss moves with the certainty of every "
        "answer, so it tells small effects from none.",
        pictures=("ablation_loss",),
    ),
    SectionPlan(
        id="answers",
        title="Which answers hang on single heads?",
        chapter=FINDINGS,
        text="Where an answer changes with many heads off it stood on the edge; where with one "
        "alone, that head may have seen what it turns on.",
        tables=(of_group("ablation", answers_table),),
    ),
)
PRUNING_SECTIONS = (
    SectionPlan(
        id="pruning",
        title="How many heads can go?",
        chapter=FINDINGS,
        text="Heads are removed one after another. A curve that stays up says that the task does "
        "not need what is gone; an order is worth something as far as it lies above random ones.",
        pictures=("pruning",),
        tables=(of_group("pruning", orders_table),),
    ),
)


def _largest(values: xr.DataArray) -> list[int]:
    size = np.abs(np.nan_to_num(values.values.ravel()))
    return [int(place) for place in np.argsort(-size, kind="stable")[:LISTED]]


def _columns(ablation: xr.Dataset) -> list[Column]:
    loss = "nats" if str(ablation["loss_difference"].attrs.get("units")) == "nats" else ""
    flips = [Column("Lost", term="lost"), Column("Gained", term="gained")]
    return [
        Column("Without"),
        Column(capital(metric_name(ablation)), score_unit(ablation)),
        Column("q", term="q"),
        *(flips if "lost" in ablation else []),
        Column("Loss", loss, "loss_difference"),
        Column("q", term="q"),
    ]


def _row(ablation: xr.Dataset, name: str, start: str, place: int) -> list[Cell]:
    def one(name: str) -> tuple[float, float, float]:
        return at(estimate(ablation, f"{start}{name}").map(np.ravel), place)

    flips = [Cell(str(int(one(n)[0]))) for n in ("lost", "gained") if f"{start}{n}" in ablation]
    return [
        Cell(name),
        _change(ablation, *one("difference")),
        p_cell(one("q")[0]),
        *flips,
        _signed(*one("loss_difference")),
        p_cell(one("loss_q")[0]),
    ]


def _change(result: xr.Dataset, value: float, low: float, high: float) -> Cell:
    return (points if in_percent(result) else _signed)(value, low, high)


def _signed(value: float, low: float, high: float) -> Cell:
    cell = measured(value, low, high)
    return Cell(f"+{cell.text}", cell.small) if value > 0 else cell


def _effects_caption(ablation: xr.Dataset) -> str:
    unit = "in percentage points" if in_percent(ablation) else "on its own scale"
    return (
        f"Change of {metric_name(ablation)} on {terms.task_name(ablation)}, {unit}, and of the "
        "loss; 95 % intervals, paired over examples; q: p corrected by Benjamini and Hochberg. A "
        "loss that rises is a model that is worse."
    )


def _who(ablation: xr.Dataset, place: int, *, most: int = 3) -> str:
    """The heads without which an answer changes most; for classes, those that flip it first."""
    after = ablation["prediction"].isel(example=place).transpose("layer", "head").values
    apart = np.abs(after - ablation["baseline_prediction"].values[place]).ravel()  # [unit]
    if ablation.attrs["classes"]:  # of those that flip it, the ones that matter most to the loss
        size = np.abs(ablation["loss_difference"].transpose("layer", "head").values.ravel())
        apart = (apart > 0) * (1 + size)
    order = [int(unit) for unit in np.argsort(-apart, kind="stable") if apart[unit] > 0]
    named = ", ".join(head_name(unit, after.shape[1]) for unit in order[:most])
    return f"{named}, …" if len(order) > most else named
