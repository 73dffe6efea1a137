"""Draws the strongest edges of a circuit as a graph: the input below, the logits above."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from headscope.claims.reading import Reading
from headscope.core.results import shape
from headscope.draw.marks import legend_of
from headscope.draw.style import color
from headscope.experiments.circuits.discovery.node_names import INPUT, Nodes

SHOWN = 24  # edges, the largest
LOGITS = "logits"
HUES = {"q": "blue", "k": "orange", "v": "green", "": "grey"}
WORDS = {"q": "to queries", "k": "to keys", "v": "to values", "": "to others"}
WIDEST, THINNEST = 4.0, 0.5  # points


@dataclass(frozen=True)
class Edge:
    """One edge: sender and reader as nodes, through what, and its score."""

    sender: str
    reader: str
    via: str
    score: float


def strongest_edges(run: Reading) -> list[Edge]:
    """The SHOWN edges of the largest scores, the largest first."""
    data = run.data
    scores = data["edge_score"].values
    order = np.argsort(-np.nan_to_num(np.abs(scores)).ravel(), kind="stable")[:SHOWN]
    edges = []
    for place in order:
        node, reader = divmod(int(place), scores.shape[1])
        to, _, via = str(data["reader"].values[reader]).rstrip(">").partition("<")
        edges.append(Edge(str(data["node"].values[node]), to, via, float(scores[node, reader])))
    return [edge for edge in edges if edge.score]


def draw_graph(run: Reading, axes: Axes) -> None:
    """Nodes by layer, an arrow for each edge, as wide as its score; dashed: against the answer."""
    edges = strongest_edges(run)
    places, names = _places(run, edges), _names(run)
    top = max(abs(edge.score) for edge in edges)
    for edge in reversed(edges):
        start, end = places[edge.sender], places[edge.reader]
        bent = 0.16 if end[1] - start[1] > 1 else 0.0
        arrow = FancyArrowPatch(
            start,
            end,
            arrowstyle="-",
            connectionstyle=f"arc3,rad={bent if start[0] <= end[0] else -bent}",
            shrinkA=7,
            shrinkB=7,
            lw=max(THINNEST, WIDEST * abs(edge.score) / top),
            ls="-" if edge.score > 0 else (0, (3, 2)),
            color=color(HUES[edge.via]),
            alpha=0.75,
            zorder=2,
        )
        axes.add_patch(arrow)
    for key, (x, y) in places.items():
        box = {"boxstyle": "round,pad=0.25", "fc": color("page"), "ec": color("ink"), "lw": 0.6}
        axes.text(x, y, names[key], ha="center", va="center", fontsize=6, bbox=box, zorder=4)
    rows = max(y for _, y in places.values())
    axes.set_xlim(-0.12, 1.12)
    axes.set_ylim(-0.6, rows + 0.6)
    axes.set_axis_off()
    there = [via for via in HUES if any(edge.via == via for edge in edges)]
    legend_of(
        axes,
        [
            Line2D([], [], color=color(HUES[via]), marker="s", ls="", ms=5, mew=0, label=WORDS[via])
            for via in there
        ],
        columns=4,
        start=0,  # there are no tick labels
    )


def _names(run: Reading) -> dict[str, str]:
    keys = [str(key) for key in run.data["node"].values]
    printed = Nodes(*shape(run.tree)).printed(run.names)
    return dict(zip(keys, printed, strict=True)) | {LOGITS: LOGITS}


def _places(run: Reading, edges: list[Edge]) -> dict[str, tuple[float, float]]:
    """Where each node of the edges stands: a row for each layer's heads, one for what follows."""
    order = [str(key) for key in run.data["node"].values] + [LOGITS]
    there = {key for edge in edges for key in (edge.sender, edge.reader)}
    rows: dict[str, list[str]] = {}
    for key in order:
        if key in there:
            row = key.partition(".")[0] if key not in (INPUT, LOGITS) else key
            rows.setdefault(row, []).append(key)
    return {
        key: ((at + 0.5) / len(keys), float(height))
        for height, keys in enumerate(rows.values())
        for at, key in enumerate(keys)
    }
