"""Report sections on heads that are switched off or removed."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims.reading import Reading
from headscope.core.display import printable, title_name
from headscope.core.head_names import renamed
from headscope.core.results import at, estimate, group, model_name
from headscope.core.wording import capital
from headscope.experiments.ablation import terms
from headscope.experiments.ablation.findings import most_frequent, most_moved, moves
from headscope.experiments.ablation.terms import in_percent, metric_name, points_text, score_unit
from headscope.page.sections import OpeningPlan
from headscope.page.tabulate import Cell, Column, Table, measured, points, rows_table, share
from headscope.page.tabulate import probability as p_cell

LISTED = 12  # heads, groups and examples in a table; all are in the folder `tables`
BEGUN = {"new head": "with an untrained head", "random": "with random weights", "checkpoint": ""}


def heading(run: Reading) -> list[tuple[str, bool]]:
    """The heading of a run about a task, and which part of it is the model's name."""
    before, after = "Which heads of ", " matter?"
    if (ablation := group(run.tree, "ablation")) is not None:
        after = f" does the task {terms.task_name(ablation)} need?"
    elif (pruning := group(run.tree, "pruning")) is not None:
        before, after = (
            "How many heads of ",
            f" can the task {terms.task_name(pruning)} do without?",
        )
    return [(before, False), (model_name(run.tree), True), (after, False)]


def scores_table(run: Reading, manifest: Mapping[str, Any]) -> Table | None:
    """Scores of the checkpoint before and after training, and of the most frequent answer."""
    history, ablation = manifest.get("history"), group(run.tree, "ablation")
    if not isinstance(history, Mapping):
        return None
    rows: list[list[object]] = []
    if ablation is not None and (frequent := most_frequent(ablation)) is not None:
        rows.append([f"always “{frequent[0]}”", frequent[1].removesuffix(" %")])
    base, begun = title_name(printable(history["base"])), BEGUN.get(str(history["start"]), "")
    kind = xr.Dataset(attrs={"metric": history["metric"]})
    for words, when in ((f"{base} {begun}".strip(), "before"), ("after training", "after")):
        number = [history[when][key] for key in ("value", "ci_low", "ci_high")]
        write = share if in_percent(kind) else measured
        rows.append([words, write(*(math.nan if x is None else float(x) for x in number))])
    settings = ", ".join(f"{printable(k)} {printable(v)}" for k, v in history["settings"].items())
    caption = (
        f"Scores on {int(history['scored']):,} dev examples when the checkpoint was made "
        f"(`finetuned.json`): {int(history['learned']):,} examples to learn from, {settings}. "
        "Columns of Kovaleva et al. (2019), Table 1; that of random weights is a training of its "
        "own (finetune --from-scratch)."
    ).replace("`", "")
    columns = ["Model", Column(capital(metric_name(kind)), "%" if in_percent(kind) else "")]
    return rows_table("Scores before and after training", columns, rows, caption)


def heads_table(run: Reading) -> Table | None:
    """The heads with the largest effect on the loss."""
    ablation = run.data
    heads, most = ablation.sizes["head"], _largest(ablation["loss_difference"])
    rows = [_row(ablation, run.names.unit(unit, heads), "", unit) for unit in most]
    caption = (
        f"The {len(rows)} heads whose absence changes the loss most. {_effects_caption(ablation)} "
        "All heads: table of heads, and tables/ablation_effects."
    )
    return rows_table("Heads", _columns(ablation), rows, caption)


def layers_table(run: Reading) -> Table | None:
    """Every layer."""
    ablation = run.data
    layers = range(ablation.sizes["layer"])
    rows = [_row(ablation, f"layer {run.names.layer(layer)}", "layer_", layer) for layer in layers]
    caption = f"Each layer without all its heads. {_effects_caption(ablation)}"
    return rows_table("Layers", _columns(ablation), rows, caption)


def groups_table(run: Reading) -> Table | None:
    """The groups of heads switched off together, those with most interaction first."""
    ablation = run.data
    if "group_interaction" not in ablation:
        return None
    beyond = ablation["group_interaction"]
    rows = [
        [
            *_row(ablation, renamed(printable(beyond["group"].values[place])), "group_", place)[:3],
            points_text(ablation, float(beyond[place]), signed=True).removesuffix(" points"),
        ]
        for place in _largest(beyond)
    ]
    last = Column("Beyond its heads", score_unit(ablation), "group_interaction")
    caption = (
        "Heads off together; the last column is the change less the sum of what each head changes "
        "alone. Below 0 they stand in for each other."
    )
    return rows_table("Groups of heads", [*_columns(ablation)[:3], last], rows, caption)


def answers_table(run: Reading) -> Table | None:
    """The examples whose answers most heads change."""
    ablation = run.data
    classes, size = terms.class_names(ablation), moves(ablation)
    texts = ablation["text" if "text" in ablation.coords else "example"].values

    def answer(number: float) -> Cell | str:
        return printable(classes[int(number)]) if classes else measured(number)

    rows = [
        [
            printable(texts[place]),
            answer(ablation["label"].values[place]),
            answer(ablation["baseline_prediction"].values[place]),
            int(size[place]) if classes else measured(float(size[place])),
            _who(run, place),
        ]
        for place in most_moved(ablation)[:LISTED]
    ]
    change = "Heads change it" if classes else "Mean move"
    columns = ["Example", "Right", "Whole model", change, "Most by"]
    which = "hang on most heads" if classes else "a head moves farthest, mean over heads"
    caption = (
        f"The answers that {which}. The first open under Heads at work; all changes: "
        "tables/ablation_flips."
    )
    return rows_table("Answers that change", columns, rows, caption)


def orders_table(run: Reading) -> Table | None:
    """How many heads each order can remove, and the cost on held-out examples."""
    pruning = run.data
    rows = [
        [
            capital(terms.order_name(str(row["order"].values))),
            int(row["can_go"]),
            int(row["can_go_half"]),
            _change(pruning, *at(estimate(row, "held_out"))),
        ]
        for place in np.argsort(terms.by_chance(pruning), kind="stable")
        for row in (pruning.isel(order=place),)
    ]
    allowed = points_text(pruning, float(pruning.attrs["allowance"]))
    columns = [
        "Order",
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
    return rows_table("Heads that can go", columns, rows, caption)


OPENING = OpeningPlan(heading=heading, tables=(scores_table,), nothing="cannot tell")


def _largest(values: xr.DataArray) -> list[int]:
    size = np.abs(np.nan_to_num(values.values.ravel()))
    return [int(place) for place in np.argsort(-size, kind="stable")[:LISTED]]


def _columns(ablation: xr.Dataset) -> list[object]:
    loss = "nats" if str(ablation["loss_difference"].attrs.get("units")) == "nats" else ""
    flips = [Column("Lost", term="lost"), Column("Gained", term="gained")]
    return [
        "Without",
        Column(capital(metric_name(ablation)), score_unit(ablation)),
        Column("q", term="q"),
        *(flips if "lost" in ablation else []),
        Column("Loss", loss, "loss_difference"),
        Column("q", term="q"),
    ]


def _row(ablation: xr.Dataset, name: str, start: str, place: int) -> list[object]:
    def one(name: str) -> tuple[float, float, float]:
        return at(estimate(ablation, f"{start}{name}").map(np.ravel), place)

    flips = [int(one(n)[0]) for n in ("lost", "gained") if f"{start}{n}" in ablation]
    return [
        name,
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


def _who(run: Reading, place: int, *, most: int = 3) -> str:
    """The heads without which an answer changes most; for classes, those that flip it first."""
    ablation = run.data
    after = ablation["prediction"].isel(example=place).transpose("layer", "head").values
    apart = np.abs(after - ablation["baseline_prediction"].values[place]).ravel()  # [unit]
    if ablation.attrs["classes"]:  # of those that flip it, the ones that matter most to the loss
        size = np.abs(ablation["loss_difference"].transpose("layer", "head").values.ravel())
        apart = (apart > 0) * (1 + size)
    order = [int(unit) for unit in np.argsort(-apart, kind="stable") if apart[unit] > 0]
    named = ", ".join(run.names.unit(unit, after.shape[1]) for unit in order[:most])
    return f"{named}, …" if len(order) > most else named
