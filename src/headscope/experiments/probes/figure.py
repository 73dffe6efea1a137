"""Draws the accuracy of each probe, the heads that it relies on, and scores by layer.

Clark et al. (2019), Table 3, as a picture; the learning curve is ours. The structural probe is that
of Hewitt and Manning (2019).
"""

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from headscope.claims.dictionary import name as plain_name
from headscope.claims.reading import Reading
from headscope.core.results import at
from headscope.core.wording import capital, fixed
from headscope.draw.head_grid import signed_panel, signed_top
from headscope.draw.marks import LineEnd, end_labels, layer_bands, legend, percent_axis
from headscope.draw.panel import Panel
from headscope.draw.rows import HEADER, beside, column_start, row_axes, row_point, rows_height
from headscope.draw.style import DASHES, color
from headscope.experiments.probes import findings
from headscope.page.sections import OpeningPlan, heading_of
from headscope.page.tabulate import Cell, Column, Table, measured, points, rows_table, share

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


def panels(run: Reading) -> list[Panel]:
    """The scores of all probes, and by sentences."""
    names = [plain_name(name) for name in findings.probe_names(run)]
    if not names:
        return []
    height, left = rows_height(len(names) + 1), column_start(names, AT)
    shown = [Panel("Heads found by each probe", partial(_rows, run), height=height, left=left)]
    if "curve" in run.data:
        shown.append(Panel("By sentences trained on", partial(_curve, run), height=0.8))
    return shown


def caption(run: Reading) -> str:
    """How to read the scores."""
    curve = ""
    if "curve" in run.data:
        curve = " (b) UAS after training on fewer sentences, from one seed; bands are intervals."
    return (
        f"{'(a) ' if curve else ''}UAS: the share of words whose syntactic head a probe finds; "
        "UUAS: the share of arcs, whichever end is the head, in the best undirected tree; both "
        f"without punctuation; whiskers are {findings.INTERVALS}; "
        f"{findings.sentences_text(run)}.{curve} After Clark et al. (2019), Table 3."
    )


def _rows(run: Reading, axes: Axes) -> None:
    names = findings.probe_names(run)
    beside(axes, HEADER, "probe", AT, faint=True, fontsize=6)
    for row, name in enumerate(names):
        beside(axes, row, plain_name(name), AT)
        row_point(axes, row, run("uuas", probe=name), "offset")
        row_point(axes, row, run("uas", probe=name), "best_head")
        beside(axes, row, findings.share(run, "uas", name).partition(" %")[0], 22.0)
    beside(axes, HEADER, "UAS", 22.0, faint=True, fontsize=6)
    row_axes(axes, len(names), "share found")
    axes.set_xlim(0, 1)
    start = column_start(map(plain_name, names), AT)
    legend(axes, [("best_head", "UAS"), ("offset", "UUAS")], line=False, start=start)


def _curve(run: Reading, axes: Axes) -> None:
    sizes = run.data["size"].values.astype(float)
    ends, most = [], 0.0
    for dash, name in zip(DASHES, findings.probe_names(run), strict=False):
        (hue, mark), parts = LINES[name], run("curve", probe=name)
        shade, there = color(hue), np.isfinite(parts.value)
        if not there.any():  # a rule learns nothing
            last, mark = float(run("uas", probe=name).value), "_"
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


def head_panels(run: Reading) -> list[Panel]:
    """Heads by their influence, in both directions."""
    if "head_influence" not in run.data:
        return []
    every = run("head_influence").value  # [layer, head, direction]
    top, height = signed_top(every), 0.3 + 0.8 * every.shape[0] / every.shape[1]
    look = partial(signed_panel, top=top, text=fixed(top, 2), height=height)
    return [
        look(TITLES[way], run(f"head_influence.{way}").value, run.names)
        for way in run.data["direction"].values.tolist()
    ]


def layer_panels(run: Reading) -> list[Panel]:
    """Layers by the scores of the structural probe."""
    if findings.best_layer(run) is None:
        return []
    shown = {
        "Arcs and roots found": (SHARES, "share"),
        "Order of distances and depths": (RANKS, "ρ"),
    }
    return [
        Panel(title, partial(_layer_lines, run, lines, label), height=0.72)
        for title, (lines, label) in shown.items()
    ]


def _layer_lines(run: Reading, lines: dict[str, tuple[str, str]], label: str, axes: Axes) -> None:
    shown = [(run(variable), *look) for variable, look in lines.items()]
    if label == "ρ":  # which may be below 0
        least = min(0.0, *(float(np.nanmin(parts.value)) - 0.05 for parts, *_ in shown))
        layer_bands(axes, shown, label, run.names, bottom=least)
        axes.yaxis.set_major_formatter("{x:.1f}")
    else:
        layer_bands(axes, shown, label, run.names)


LISTED = 12  # heads and relations in a table; all are in the folder `tables`
LEAST_WORDS = 25  # of a relation that is shown


def scores_table(run: Reading) -> Table | None:
    """The scores of each probe."""
    words = {
        "uas": "UAS",
        "uas_with_punctuation": "with punctuation",
        "uuas": "UUAS",
        "uas_of_tree": "UAS of the tree",
    }
    shown = [name for name in words if name in run.data]
    rows = [
        [capital(plain_name(n)), *(share(*at(run(x, probe=n))) for x in shown)]
        for n in findings.probe_names(run)
    ]
    columns = ["Probe", *(Column(words[x], "%", x) for x in shown)]
    caption = f"{findings.INTERVALS}; {findings.sentences_text(run)}."
    return rows_table("Scores of the probes", columns, rows, caption)


def differences_table(run: Reading) -> Table | None:
    """Differences between the scores of probes."""
    names = findings.probe_names(run)
    rows = []
    for later, name in enumerate(names[1:], start=1):
        cells = [
            points(*at(run("difference", probe=name, probe_other=other))) for other in names[:later]
        ]
        empty = [""] * (len(names) - 1 - later)
        rows.append([capital(plain_name(name)), *cells, *empty])
    columns = ["UAS less that of", *(Column(plain_name(n), "points") for n in names[:-1])]
    caption = "Differences of UAS between probes, paired over test sentences."
    return rows_table("Differences between probes", columns, rows, caption)


def relations_table(run: Reading) -> Table | None:
    """The share of words of each relation whose head is found."""
    probes = run.data
    names = findings.probe_names(run)
    rows = [
        [
            Cell(str(one["relation"].values), code=True),
            f"{int(one['count']):,}",
            *(share(float(one["relation_uas"].sel(probe=name))) for name in names),
        ]
        for one in (probes.isel(relation=at) for at in range(probes.sizes.get("relation", 0)))
        if int(one["count"]) >= LEAST_WORDS
    ]
    columns = ["Relation", "Words", *(Column(plain_name(n), "%") for n in names)]
    caption = (
        f"Share of words whose head is found, the most frequent relations first, of at least "
        f"{LEAST_WORDS} words; all, with intervals: tables/probes."
    )
    return rows_table("Probes by relation", columns, rows[:LISTED], caption)


def heads_table(run: Reading) -> Table | None:
    """The heads with most influence."""
    labelled = "head_label" in run.data
    rows = [
        [
            f"{row['name']} {findings.ARROWS[str(row['direction'])]}",
            *(measured(float(row[x])) for x in ("influence", "weight", "spread")),
            *([row["label"] or "–"] if labelled else []),
        ]
        for row in findings.influential(run, LISTED)
    ]
    columns = [
        "Head",
        Column("Influence", term="head_influence"),
        Column("Weight", term="head_weight"),
        "Spread",
        *(["In the atlas"] if labelled else []),
    ]
    caption = (
        "Heads that move the scores of the probe on attention most: weight times spread; d→h: "
        "attention from the word to the candidate, h→d: back. All: tables/probe_heads."
    )
    return rows_table("Heads that the probe leans on", columns, rows, caption)


def layers_table(run: Reading) -> Table | None:
    """The scores of the structural probe by layer."""
    if findings.best_layer(run) is None:
        return None
    kinds = {"uuas": share, "root": share, "distance": measured, "depth": measured}
    rows = [
        [
            f"layer {run.names.layer(layer)}",
            *(cell(*at(run(f"structural_{x}"), layer)) for x, cell in kinds.items()),
        ]
        for layer in np.flatnonzero(np.isfinite(run("structural_uuas").value)).tolist()
    ]
    columns = [
        "Output of",
        Column("UUAS", "%", "uuas"),
        Column("Root", "%"),
        Column("Distances", "ρ"),
        Column("Depths", "ρ"),
    ]
    caption = f"The structural probe; {findings.sentences_text(run)}."
    return rows_table("Structural probe by layer", columns, rows, caption)


OPENING = OpeningPlan(heading=heading_of("How much syntax probes find in the attention of "))
