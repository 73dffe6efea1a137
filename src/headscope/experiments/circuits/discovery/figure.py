"""Draws the scores of nodes, and how faithful circuits of the first nodes are."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from headscope.claims.reading import Reading
from headscope.core.results import at, estimate, shape
from headscope.core.wording import percent
from headscope.draw.head_grid import signed_panel, signed_top
from headscope.draw.marks import faint_grid, layer_axis, legend_of, share_tick
from headscope.draw.panel import Panel
from headscope.draw.style import DASHES, color
from headscope.experiments.circuits.discovery.figure_graph import SHOWN, draw_graph
from headscope.experiments.circuits.discovery.node_names import Nodes
from headscope.experiments.circuits.discovery.section import told_apart

LOOKS = {"counterfactual": ("blue", "o"), "mean": ("orange", "s"), "zero": ("grey", "^")}


def panels(run: Reading) -> list[Panel]:
    """Heads by their score, feed-forward layers likewise, and the curves of faithfulness."""
    if not told_apart(run):
        return []
    nodes = Nodes(*shape(run.tree))
    places = nodes.places_of_heads()
    scores, members = run("score"), run.data["member"].values
    of_heads = scores.map(lambda part: part[places])
    top = signed_top(of_heads.value)
    return [
        signed_panel(
            "Heads",
            of_heads.value,
            run.names,
            top=top,
            text=percent(top),
            signs=members[places],
            parts=of_heads,
        ),
        Panel("Feed-forward layers", partial(_feed_forward, run, nodes), height=0.86),
        Panel("Faithfulness", partial(_curves, run), height=0.86, legend=2),
    ]


def caption(run: Reading) -> str:
    """How to read the figure."""
    attrs = run.data.attrs
    return (
        "(a), (b) The share of the logit difference between prompts "
        f"({attrs['prompts']}) and corrupted ones that each node moves, by integrated gradients, "
        f"over {attrs['n']} items; +, filled: in the circuit. (c) What the network still tells "
        "with all but the first nodes replaced, by what they give in the corrupted prompt, their "
        f"mean, or nothing; bands: 95 % intervals over {attrs['tried']} items that did not choose; "
        f"diamond: the circuit; crosses: {run.data.sizes['draw']} random sets with as many heads "
        f"and feed-forward layers.{_edges_caption(run)}"
    )


def _edges_caption(run: Reading) -> str:
    there = "edge_cpr" in run.data
    return " Dotted: the first edges that stay, of all edges." * there


def edge_panels(run: Reading) -> list[Panel]:
    """The strongest edges as a graph."""
    if not told_apart(run) or "edge_score" not in run.data:
        return []
    return [Panel("The strongest edges", partial(draw_graph, run), height=0.55, legend=4)]


def edge_caption(run: Reading) -> str:
    """How to read the graph."""
    return (
        f"The {SHOWN} edges that move most of the logit difference between prompts "
        f"({run.data.attrs['prompts']}) and corrupted ones, by integrated gradients over "
        f"{run.data.attrs['n']} items, from the input below to the logits above; each as wide as "
        "its share, dashed where it moves the difference against the answer."
    )


def _feed_forward(run: Reading, nodes: Nodes, axes: Axes) -> None:
    data, layers = run.data, range(nodes.layers)
    parts = run("score")
    for layer in layers:
        place = nodes.feed_forward(layer)
        value, low, high = at(parts, place)
        inside = data["member"].values[place] == 1
        axes.vlines(layer, low, high, color=color("blue"), lw=0.9)
        face = color("blue" if inside else "page")
        axes.plot(layer, value, "o", ms=4, mew=0.8, mec=color("blue"), mfc=face, zorder=3)
    axes.axhline(0, color=color("ink"), lw=0.6)
    layer_axis(axes, nodes.layers, run.names)
    axes.yaxis.set_major_formatter(FuncFormatter(share_tick))
    axes.set_ylabel("of the logit difference")
    faint_grid(axes)


def _curves(run: Reading, axes: Axes) -> None:
    data = run.data
    nodes, shares = data.sizes["node"], data["share"].values.astype(float)
    there = np.floor(shares * nodes) >= 1
    for kind, (hue, mark) in LOOKS.items():
        parts = estimate(data, "faithfulness", replacement=kind, order="score")
        value, low, high = (end[there] for end in (parts.value, parts.low, parts.high))
        axes.fill_between(shares[there], low, high, color=color(hue), alpha=0.15, lw=0)
        axes.plot(shares[there], value, color=color(hue), marker=mark, ms=3.4, mew=0, lw=1.3)
    if "edge_faithfulness" in data:
        of_edges = estimate(data, "edge_faithfulness", order="score").value
        axes.plot(shares, of_edges, color=color("blue"), lw=1.1, ls=":")
    axes.axhline(1, color=color("ink"), lw=0.6, ls=DASHES[1])
    axes.axhline(0, color=color("ink"), lw=0.6)
    own = float(data.attrs["size"]) / nodes
    draws = data["random_faithfulness"].values
    axes.plot([own] * len(draws), draws, "x", color=color("grey"), ms=3, mew=0.7, zorder=2)
    value, low, high = at(run("circuit_faithfulness"), 0)
    axes.vlines(own, low, high, color=color("ink"), lw=0.9, zorder=4)
    axes.plot(own, value, "D", color=color("ink"), ms=4.5, mew=0, zorder=5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    axes.yaxis.set_major_formatter(FuncFormatter(share_tick))
    axes.set_xlabel("nodes that stay")
    axes.set_ylabel("faithfulness")
    faint_grid(axes)
    handles = [
        Line2D([], [], color=color(hue), marker=mark, ms=4, mew=0, label=kind)
        for kind, (hue, mark) in LOOKS.items()
    ]
    diamond = Line2D([], [], color=color("ink"), marker="D", ls="", ms=4, label="the circuit")
    legend_of(axes, [*handles, diamond], columns=2)
