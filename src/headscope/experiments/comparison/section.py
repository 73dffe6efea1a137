"""Sections on two models: tables, and pictures of what differs by head and by layer.

Kovaleva et al. (2019), Figure 5: the cosine of each head's maps before and after fine-tuning; §4.4:
attention to kinds of words before and after. Beside the change of each layer stands how much it
learned: its gradients, and how far its weights moved.
"""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.claims.caption_words import INTERVALS, with_interval
from headscope.claims.dictionary import unit_label
from headscope.claims.head_metrics import chosen_keys
from headscope.claims.question import questions
from headscope.claims.reading import Reading
from headscope.core.display import printable
from headscope.core.head_names import HeadNames
from headscope.core.intervals import Estimate
from headscope.core.results import Floats, at, estimate, shape
from headscope.core.wording import capital, fixed, plain
from headscope.draw import marks
from headscope.draw.head_grid import grid_panel, grid_room, signed_panel, signed_top
from headscope.draw.panel import Panel
from headscope.draw.style import color, marker
from headscope.experiments.ablation.section import scores_table
from headscope.experiments.comparison import findings
from headscope.experiments.comparison.findings import (
    base_name,
    control_words,
    map_change,
    points,
    tuned_name,
)
from headscope.page.sections import OpeningPlan
from headscope.page.tabulate import Cell, Column, Rows, Table, measured, rows_table, share

LISTED = 10  # examples
HEADROOM, WORDS_HEADROOM = 1.12, 1.1  # of an axis
MEASURES = (
    ("gradient_norm", "Gradients", "norm of a layer’s gradient"),
    ("relative_change", "Weights", "moved, of their norm"),
)
OWN_SCALE = ("punctuation", "cls", "sep")  # they draw far more than words


def numbers_table(run: Reading) -> Table | None:
    """Every number that questions compare: means of both models, and how many heads changed."""
    change = findings.changes(run)
    groups = [
        Rows(_rows(change.sel(quantity=keys)), title)
        for title, keys in compared_numbers(change["quantity"].values.tolist()).items()
    ]
    columns = [
        Column("Number"),
        Column("Before"),
        Column("After"),
        Column("Difference", term="model_difference"),
        Column("Rose", "heads", "sure"),
        Column("Fell", "heads", "sure"),
    ]
    caption = (
        f"Means over all {np.prod(shape(run.tree))} heads: attention and classes in per "
        "cent, their differences in percentage points; and how many heads rose or fell "
        f"significantly (intervals widened for all heads of a row, not for rows). {INTERVALS}, "
        f"paired; {run.over()}. All numbers of all heads: tables/change."
    )
    return Table("Both models", columns, groups, caption) if groups else None


def compared_numbers(keys: list[str]) -> dict[str, list[str]]:
    """The keys of numbers that tables of two models show, by the title of their question."""
    compared = {one.name: one.compared for one in questions() if one.compared}
    unwanted = [f"{one.name}.{start}" for one in questions() for start in one.withheld]
    if "surface.attention.cls" in keys:  # it is the first token
        unwanted.append("surface.attention.first")
    wanted = [key for key in keys if not key.startswith(tuple(unwanted))]
    every = {
        title: [key for key in wanted if key.partition(".")[0] == name]
        for name, title in compared.items()
    }
    return {title: some for title, some in every.items() if some}


def change_cells(
    label: str, unit: str, before: Estimate, after: Estimate, difference: Estimate
) -> list[Cell]:
    """A number of two models: its name, both, and the difference; of shares in points."""
    is_share = unit == "probability"
    name = label if is_share or not unit_label(unit) else f"{label} ({unit_label(unit)})"
    write = share if is_share else measured
    text, _, interval = points(difference).partition(" ")
    return [
        Cell(capital(name)),
        write(*at(before)),
        write(*at(after)),
        Cell(text, interval) if is_share else measured(*at(difference)),
    ]


def examples_table(run: Reading) -> Table | None:
    """The inputs whose maps changed most."""
    if "rank" not in run.data.sizes:
        return None
    few = run.data.isel(rank=slice(LISTED))
    parts = (few[f"example_{name}"].values.tolist() for name in ("text", "tokens", "change"))
    rows = [
        [printable(text), int(tokens), measured(float(change))]
        for text, tokens, change in zip(*parts, strict=True)
    ]
    caption = (
        "1 − cosine, mean over all heads, of the inputs with the largest; of at least 8 tokens. "
        "The first are opened under Heads at work, both models side by side."
    )
    columns = "Input", "Tokens", "1 − cosine"
    return rows_table("Inputs and their change", columns, rows, caption)


def _rows(change: xr.Dataset) -> list[list[Cell]]:
    rows = []
    for key in change["quantity"].values.tolist():
        row = change.sel(quantity=key)
        before, after, difference = (
            estimate(change, f"model_{side}", quantity=key)
            for side in ("before", "after", "difference")
        )
        if not np.isfinite(difference.value):
            continue
        unit, label = str(row["unit"].values), printable(row["label"].values)
        rows.append(
            [
                *change_cells(label, unit, before, after, difference),
                Cell(str(int(row["rose"]))),
                Cell(str(int(row["fell"]))),
            ]
        )
    return rows


def _heading(run: Reading) -> list[tuple[str, bool]]:
    names = (tuned_name(run), True), (base_name(run), True)
    return [("What ", False), names[0], (" does otherwise than ", False), names[1]]


def _lede(run: Reading) -> str:
    base, tuned = base_name(run), tuned_name(run)
    which = f"Before: {base}; after: {tuned}. Other chapters are of {tuned} alone."
    return f"{control_words(run.tree)} {which}".strip()


OPENING = OpeningPlan(
    id="comparison",
    chapter="What changed",
    heading=_heading,
    lede=_lede,
    findings=findings.opening_findings,
    tables=(scores_table,),
    atlas=True,
)


# --- maps -----------------------------------------------------------------------------------


def panels(run: Reading) -> list[Panel]:
    """Heads by the change of their maps, and layers."""
    similarity = run.data
    by_layer, js = partial(_by_layer, run, heads=True), estimate(similarity, "js")
    titles = {"cosine": "Change of maps, 1 − cosine", "cosine_padded": "1 − cosine of padded maps"}
    here = {
        title: map_change(similarity, name) for name, title in titles.items() if name in similarity
    }
    cosines = [
        grid_panel(title, parts.value, run.names, parts=parts) for title, parts in here.items()
    ]
    return [
        cosines[0],
        grid_panel("Divergence (nats)", js.value, run.names, unit="nats", parts=js),
        Panel("Layer by layer", by_layer, **grid_room(js.value)),
        *cosines[1:],
    ]


def caption(run: Reading) -> str:
    """How to read the change of maps."""
    more = (
        " (d) The same of maps padded to one length, with the rows of padding, as in the authors’ "
        "notebook."
        if "cosine_padded" in run.data
        else ""
    )
    return (
        f"What differs between the maps of {findings.base_name(run)} and "
        f"{findings.tuned_name(run)} on the same inputs. (a) 1 − the cosine of the flattened maps "
        "and (b) their Jensen–Shannon divergence, mean over queries; each cell is one head, from 0 "
        "(page: no change) to the value at the end of each key. (c) 1 − cosine, heads as marks, "
        f"their mean as a line.{more} Whiskers and band are {INTERVALS}; {run.over()}. "
        f"{findings.depth_finding(run)} After Kovaleva et al. (2019), Figure 5."
    )


def training_panels(run: Reading) -> list[Panel]:
    """Layers by their change, and by how much they learned."""
    similarity = run.data
    learned = [
        Panel(title, partial(_measure, run, name, label), height=0.8)
        for name, title, label in MEASURES
        if name in similarity
    ]
    first = Panel("Attention", partial(_by_layer, run, heads=False), height=0.8)
    return [first, *learned] if learned else []


def training_caption(run: Reading) -> str:
    """How to read what training did."""
    return (
        "(a) How much attention changed in each layer, 1 − cosine of the maps, mean over heads; "
        f"band, {INTERVALS}. (b, c) What the training did to the layer: the norm of its gradient, "
        "mean over steps, and how far its weights moved, ‖θ′ − θ‖ of ‖θ‖. ρ: Spearman’s rank "
        f"correlation with (a) over layers, of at least 10 with its interval over them; p: layers "
        f"dealt out anew. {run.over()}. "
        f"{findings.training_finding(run)} A layer is also given what the layers below it "
        "changed, which none of these numbers takes out."
    )


def _top(*lines: Estimate) -> float:
    return max(float(np.nanmax(np.fmax(one.high, one.value), initial=0)) for one in lines)


def _layer_line(axes: Axes, layers: Estimate, word: str, names: HeadNames) -> None:
    marks.band_line(axes, np.arange(len(layers.value), dtype=np.float64), layers, word)
    marks.layer_axis(axes, len(layers.value), names)


def _by_layer(run: Reading, axes: Axes, *, heads: bool) -> None:
    layers = highest = map_change(run.data, "layer_cosine")
    if heads:
        highest = map_change(run.data, "cosine")
        marks.head_scatter(axes, highest, "other")
    _layer_line(axes, layers, "all", run.names)
    marks.value_axis(axes, "1 − cosine", top=HEADROOM * _top(highest) or 1.0)


def _measure(run: Reading, name: str, label: str, axes: Axes) -> None:
    values: Floats = run.data[name].values
    axes.plot(values, "-", marker=marker("strongest"), color=color("vermillion"), ms=3.6, mew=0)
    marks.layer_axis(axes, len(values), run.names)
    top = HEADROOM**2 * float(values.max()) or 1.0
    if name == "relative_change":
        marks.percent_axis(axes, label, top=top)
        if top < 0.1:
            axes.yaxis.set_major_formatter(lambda share, _: f"{fixed(100 * share, 1)} %")
    else:
        marks.value_axis(axes, label, top=top)
    rho, low, high = at(run(f"{name}_correlation"))
    p = float(run.data[f"{name}_p"].values)
    chance = f", {findings.chance_text(p)}" if np.isfinite(p) else ""
    axes.annotate(
        with_interval("ρ", rho, low, high) + chance,
        (0, 1),
        (2, -1),
        xycoords="axes fraction",
        textcoords="offset points",
        va="top",
        fontsize=6,
        color=color("muted"),
    )


# --- numbers of heads -----------------------------------------------------------------------


def change_panels(run: Reading) -> list[Panel]:
    """A grid for each number that is shown."""
    change = findings.changes(run)
    known = set(change["quantity"].values.tolist())
    return [_grid_panel(change, key, run.names) for key in chosen_keys(known, "change")]


def change_caption(run: Reading) -> str:
    """How to read the grids."""
    return (
        f"How numbers of heads change from {findings.base_name(run)} to "
        f"{findings.tuned_name(run)}: each cell is one head; blue rises, vermillion falls, up to "
        "the value at the end of each key; shares of attention and of maps differ by percentage "
        "points. A head is coloured only if its change is sure: outside its interval, widened for "
        "looking at all heads of the grid (Bonferroni); over documents, the same "
        f"for both models; {run.over()}. {findings.sure_finding(run)}"
    )


def words_panels(run: Reading) -> list[Panel]:
    """Layers by the attention that each kind of token receives, before and after."""
    change = findings.changes(run)
    lines = {
        kind: {
            side: estimate(change, f"layer_{side}", quantity=f"features.attention.{kind}")
            for side in ("before", "after")
        }
        for kind in findings.kinds_there(change)
    }
    made = []
    for kind, both in lines.items():
        alike = [k for k in lines if (k in OWN_SCALE) == (kind in OWN_SCALE)]
        top = WORDS_HEADROOM * max(_top(*lines[k].values()) for k in alike)
        points = findings.points(findings.kind_change(change, kind))
        drawn = partial(_before_and_after, both, points, run.names, top=top)
        made.append(Panel(f"To {findings.kind_name(run, kind)}", drawn, height=0.8))
    return made


def words_caption(run: Reading) -> str:
    """How to read the attention to kinds of tokens."""
    return (
        "The attention that a token of each kind receives from all tokens of the input, mean over "
        "them, the largest of its kind, mean over the inputs that contain the kind and over the "
        f"heads of each layer: {findings.base_name(run)} before, {findings.tuned_name(run)} "
        f"after. Bands are {INTERVALS}; numbers are differences in percentage points, mean over "
        "all heads, paired over documents; punctuation and special tokens on a scale of their own; "
        f"{run.over()}. {findings.words_finding(run)} After Kovaleva et al. (2019), §4.4."
    )


def _grid_panel(change: xr.Dataset, key: str, names: HeadNames) -> Panel:
    row = change.sel(quantity=key).transpose("layer", "head")
    sure = np.nan_to_num(row["sure"].values) != 0
    values = np.where(sure, row["difference"].values, 0.0)
    unit, title = str(row["unit"].values), str(row["label"].values)
    if unit_label(unit) and unit != "probability":
        title = f"{title} ({unit_label(unit)})"
    short = title.replace("attention to ", "to ").replace(", all tokens", "")
    top = signed_top(values)
    if not values.any():
        text, high = "", "none significant"
    elif unit == "probability":
        text = fixed(100 * top, 1 if top < 0.1 else 0)
        high = f"+{text} points"
    else:
        text = plain(top, unit)
        high = f"+{text}"
    parts = estimate(row, "difference")
    look: dict[str, Any] = {
        "top": top,
        "text": text,
        "high_text": high,
        "parts": parts,
        "unit": unit,
    }
    return signed_panel(capital(short), values, names, **look)


def _before_and_after(
    both: dict[str, Estimate], points: str, names: HeadNames, axes: Axes, *, top: float
) -> None:
    for side, parts in both.items():
        _layer_line(axes, parts, side, names)
    marks.percent_axis(axes, "attention", top=top or 1.0)
    axes.annotate(
        points,
        (1, 1),
        (0, 4),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=6,
        color=color("muted"),
    )
    marks.legend(axes, [(side, side) for side in both])
