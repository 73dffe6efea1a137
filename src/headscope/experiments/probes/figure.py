"""Draws the accuracy of each probe, the heads that it relies on, and scores by layer.

Clark et al. (2019), Table 3, as a picture; the learning curve is ours. The structural probe is that
of Hewitt and Manning (2019).
"""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from headscope.claims.dictionary import name as plain_name
from headscope.core.results import at, estimate, layer_name, needed
from headscope.core.wording import capital, fixed
from headscope.draw.head_grid import signed_grid, signed_top
from headscope.draw.marks import LineEnd, end_labels, layer_bands, legend, percent_axis
from headscope.draw.panel import Panel, Picture
from headscope.draw.rows import HEADER, beside, column_start, row_axes, row_point, rows_height
from headscope.draw.style import DASHES, color
from headscope.experiments.probes import findings
from headscope.page.sections import FINDINGS, OpeningPlan, SectionPlan, heading_of, of_group
from headscope.page.tabulate import Cell, Column, Rows, Table, measured, points, share

AT = -5.0  # points left of the axes, where a row's name ends
LINES = {
    "right_branching": ("grey", "o"),
    "attention": ("sky", "s"),
    "attention_words": ("blue", "D"),
    "distances_words": ("orange", "^"),
    "random_words": ("purple", "v"),
}
TITLES = {"dependent_to_head": "Word to its head", "head_to_dependent": "Head to its word"}
SHARES = {"structural_uuas": ("strongest", "UUAS"), "structural_root": ("mean", "root")}
RANKS = {
    "structural_distance": ("strongest", "distances"),
    "structural_depth": ("mean", "depths"),
}


def _panels(tree: xr.DataTree) -> list[Panel]:
    probes = needed(tree, "probes")
    names = [plain_name(name) for name in findings.probe_names(probes)]
    if not names:
        return []
    height, left = rows_height(len(names) + 1), column_start(names, AT)
    shown = [Panel("Heads found by each probe", partial(_rows, probes), height=height, left=left)]
    if "curve" in probes:
        shown.append(Panel("By sentences trained on", partial(_curve, probes), height=0.8))
    return shown


def _caption(tree: xr.DataTree) -> str:
    probes, curve = needed(tree, "probes"), ""
    if "curve" in probes:
        curve = " (b) UAS after training on fewer sentences, from one seed; bands are intervals."
    return (
        f"{'(a) ' if curve else ''}UAS: the share of words whose syntactic head a probe finds; "
        "UUAS: the share of arcs, whichever end is the head, in the best undirected tree; both "
        f"without punctuation; whiskers are {findings.INTERVALS}; "
        f"{findings.sentences_text(probes)}.{curve} After Clark et al. (2019), Table 3."
    )


def _rows(probes: xr.Dataset, axes: Axes) -> None:
    names = findings.probe_names(probes)
    beside(axes, HEADER, "probe", AT, faint=True, fontsize=6)
    for row, name in enumerate(names):
        beside(axes, row, plain_name(name), AT)
        row_point(axes, row, estimate(probes, "uuas", probe=name), "offset")
        row_point(axes, row, estimate(probes, "uas", probe=name), "best_head")
        beside(axes, row, findings.share(probes, "uas", name).partition(" %")[0], 22.0)
    beside(axes, HEADER, "UAS", 22.0, faint=True, fontsize=6)
    row_axes(axes, len(names), "share found")
    axes.set_xlim(0, 1)
    start = column_start(map(plain_name, names), AT)
    legend(axes, [("best_head", "UAS"), ("offset", "UUAS")], line=False, start=start)


def _curve(probes: xr.Dataset, axes: Axes) -> None:
    sizes = probes["size"].values.astype(float)
    ends, most = [], 0.0
    for dash, name in zip(DASHES, findings.probe_names(probes), strict=False):
        (hue, mark), parts = LINES[name], estimate(probes, "curve", probe=name)
        shade, there = color(hue), np.isfinite(parts.value)
        if not there.any():  # a rule learns nothing
            last, mark = float(estimate(probes, "uas", probe=name).value), "_"
            axes.axhline(last, color=shade, lw=1.0, ls=dash)
        else:
            x, value = sizes[there], parts.value[there]
            axes.fill_between(x, parts.low[there], parts.high[there], color=shade, alpha=0.18, lw=0)
            axes.plot(x, value, ls=dash, color=shade, marker=mark, ms=3.2, mew=0)
            last = float(value[-1])
        ends.append(LineEnd(last, plain_name(name), hue, mark))
        most = max(most, last, float(np.nan_to_num(parts.high).max()))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sizes.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}")
    axes.set_xlabel("sentences trained on")
    top = min(1.0, 1.1 * most)
    percent_axis(axes, "UAS", top=top)
    end_labels(axes, ends, top=top)


def _head_panels(tree: xr.DataTree) -> list[Panel]:
    probes = needed(tree, "probes")
    if "head_influence" not in probes:
        return []
    values = probes["head_influence"].transpose("direction", "layer", "head").values
    top = signed_top(values)
    text, height = fixed(top, 2), 0.3 + 0.8 * values.shape[1] / values.shape[2]
    look: dict[str, Any] = {"top": top, "low_text": f"−{text}", "high_text": text}
    return [
        Panel(TITLES[str(way)], partial(signed_grid, values=one, **look), height=height)
        for way, one in zip(probes["direction"].values, values, strict=True)
    ]


def _head_caption(tree: xr.DataTree) -> str:
    probes = needed(tree, "probes")
    return (
        "How far each head moves the scores of the probe on attention alone: its weight times the "
        "spread of its attention between the candidates of a word. Blue: what it attends to is "
        "taken for the head; vermillion: it speaks against it. (a) Attention from a word to the "
        f"candidate, (b) from the candidate to the word; {findings.sentences_text(probes)}. Heads "
        "that attend alike share their weight, so a pale head may still know syntax."
    )


def _layer_panels(tree: xr.DataTree) -> list[Panel]:
    probes = needed(tree, "probes")
    if findings.best_layer(probes) is None:
        return []
    shown = {
        "Arcs and roots found": (SHARES, "share"),
        "Order of distances and depths": (RANKS, "ρ"),
    }
    return [
        Panel(title, partial(_layer_lines, probes, lines, label), height=0.72)
        for title, (lines, label) in shown.items()
    ]


def _layer_caption(tree: xr.DataTree) -> str:
    probes = needed(tree, "probes")
    return (
        "The structural probe on the output of each layer. (a) UUAS: the share of arcs, whichever "
        "end is the head, in the minimum spanning tree of the predicted distances, without "
        "punctuation; root: the share of sentences whose least deep word is the root. (b) "
        "Spearman’s ρ of predicted and true distances, and depths, as means over lengths from 5 to "
        f"50 words; bands are {findings.INTERVALS}; {findings.sentences_text(probes)}. After "
        "Hewitt and Manning (2019)."
    )


def _layer_lines(
    probes: xr.Dataset, lines: dict[str, tuple[str, str]], label: str, axes: Axes
) -> None:
    shown = [(estimate(probes, variable), *look) for variable, look in lines.items()]
    if label == "ρ":  # which may be below 0
        least = min(0.0, *(float(np.nanmin(parts.value)) - 0.05 for parts, *_ in shown))
        layer_bands(axes, shown, label, bottom=least)
        axes.yaxis.set_major_formatter("{x:.1f}")
    else:
        layer_bands(axes, shown, label)


GROUPS = ("probes",)
FIGURES = (
    Picture("probes", "What probes find", GROUPS, _panels, _caption),
    Picture("probe_heads", "Heads that the probe leans on", GROUPS, _head_panels, _head_caption),
    Picture("structural", "Trees in hidden states", GROUPS, _layer_panels, _layer_caption),
)


LISTED = 12  # heads and relations in a table; all are in the folder `tables`
LEAST_WORDS = 25  # of a relation that is shown


def _scores(probes: xr.Dataset) -> Table | None:
    names = findings.probe_names(probes)
    if not names:
        return None
    words = {
        "uas": "UAS",
        "uas_with_punctuation": "with punctuation",
        "uuas": "UUAS",
        "uas_of_tree": "UAS of the tree",
    }
    shown = [name for name in words if name in probes]
    rows = [
        [Cell(capital(plain_name(n))), *(share(*at(estimate(probes, x, probe=n))) for x in shown)]
        for n in names
    ]
    columns = [Column("Probe"), *(Column(words[x], "%", x) for x in shown)]
    caption = f"95 % intervals over test sentences; {findings.sentences_text(probes)}."
    return Table("Scores of the probes", columns, [Rows(rows)], caption)


def _differences(probes: xr.Dataset) -> Table | None:
    names = findings.probe_names(probes)
    if len(names) < 2:
        return None
    rows = []
    for later, name in enumerate(names[1:], start=1):
        cells = [
            points(*at(estimate(probes, "difference", probe=name, probe_other=other)))
            for other in names[:later]
        ]
        empty = [Cell("")] * (len(names) - 1 - later)
        rows.append([Cell(capital(plain_name(name))), *cells, *empty])
    columns = [Column("UAS less that of"), *(Column(plain_name(n), "points") for n in names[:-1])]
    caption = "Differences of UAS between probes, paired over test sentences."
    return Table("Differences between probes", columns, [Rows(rows)], caption)


def _relations(probes: xr.Dataset) -> Table | None:
    names = findings.probe_names(probes)
    rows = [
        [
            Cell(str(one["relation"].values), code=True),
            Cell(f"{int(one['count']):,}"),
            *(share(float(one["relation_uas"].sel(probe=name))) for name in names),
        ]
        for one in (probes.isel(relation=at) for at in range(probes.sizes.get("relation", 0)))
        if int(one["count"]) >= LEAST_WORDS
    ]
    if not rows:
        return None
    columns = [Column("Relation"), Column("Words"), *(Column(plain_name(n), "%") for n in names)]
    caption = (
        f"Share of words whose head is found, the most frequent relations first, of at least "
        f"{LEAST_WORDS} words; all, with intervals: tables/probes."
    )
    return Table("Probes by relation", columns, [Rows(rows[:LISTED])], caption)


def _heads(tree: xr.DataTree) -> Table | None:
    table = findings.head_influence_table(tree).head(LISTED)
    if table.empty:
        return None
    labelled = "head_label" in tree.children["probes"]
    rows = [
        [
            Cell(f"{row['name']} {findings.ARROWS[str(row['direction'])]}"),
            *(measured(float(row[x])) for x in ("influence", "weight", "spread")),
            *([Cell(str(row["label"]) or "–")] if labelled else []),
        ]
        for row in table.to_dict("records")
    ]
    columns = [
        Column("Head"),
        Column("Influence", term="head_influence"),
        Column("Weight", term="head_weight"),
        Column("Spread"),
        *([Column("In the atlas")] if labelled else []),
    ]
    caption = (
        "Heads that move the scores of the probe on attention most: weight times spread; d→h: "
        "attention from the word to the candidate, h→d: back. All: tables/probe_heads."
    )
    return Table("Heads that the probe leans on", columns, [Rows(rows)], caption)


def _layers(probes: xr.Dataset) -> Table | None:
    if findings.best_layer(probes) is None:
        return None
    kinds = {"uuas": share, "root": share, "distance": measured, "depth": measured}
    rows = [
        [
            Cell(f"layer {layer_name(layer)}"),
            *(cell(*at(estimate(probes, f"structural_{x}"), layer)) for x, cell in kinds.items()),
        ]
        for layer in np.flatnonzero(np.isfinite(probes["structural_uuas"].values)).tolist()
    ]
    columns = [
        Column("Output of"),
        Column("UUAS", "%", "uuas"),
        Column("Root", "%"),
        Column("Distances", "ρ"),
        Column("Depths", "ρ"),
    ]
    caption = f"The structural probe; {findings.sentences_text(probes)}."
    return Table("Structural probe by layer", columns, [Rows(rows)], caption)


OPENING = OpeningPlan(
    heading=heading_of("How much syntax probes find in the attention of "),
    findings=findings.probe_findings,
)
SECTIONS = (
    SectionPlan(
        id="part-probes",
        title="Is the tree in the attention?",
        chapter=FINDINGS,
        text="A probe that may only weigh the heads finds as much syntax as their attention shows. "
        "What it gains over the rule and over words with distances is the model’s own; what a "
        "random model gives is the probe’s.",
        pictures=("probes",),
        tables=tuple(of_group("probes", make) for make in (_scores, _differences, _relations)),
    ),
    SectionPlan(
        id="part-probe_heads",
        title="Which heads does the probe lean on?",
        chapter=FINDINGS,
        text="Few strong cells mean that syntax sits in few heads; heads that do the same share "
        "it.",
        pictures=("probe_heads",),
        tables=(_heads,),
    ),
    SectionPlan(
        id="part-structural",
        title="Is the tree in the hidden states?",
        chapter=FINDINGS,
        text="The reference: a linear map of hidden states, which see more than attention shows.",
        pictures=("structural",),
        tables=(of_group("probes", _layers),),
    ),
)
