"""Which sections of pictures does a report have, and what does each say before its picture?"""

from __future__ import annotations

import string
from dataclasses import dataclass

import xarray as xr

from headscope.draw.panel import Panel, Picture
from headscope.draw.style import DOUBLE
from headscope.page.svg import Styles, inline_panel
from headscope.report.figures import PICTURES

# name of the picture → (id, title, what to look for)
INTRODUCTIONS = {
    "surface_by_layer": (
        "surface",
        "Where each layer looks",
        "The plainest thing that a head can do is to look at a neighbour or to rest on a special "
        "token. A few heads with high marks do one thing only; a high line means that the whole "
        "layer does it.",
    ),
    "entropy_by_layer": (
        "entropy",
        "How widely each layer looks",
        "Entropy tells a head that averages over the whole input from one that picks single "
        "tokens. Marks near the dashed line are close to uniform attention.",
    ),
    "weight_against_norm": (
        "norms",
        "Weight against norm",
        "Attention is only a weight: what a token contributes is the weight times the vector that "
        "it multiplies. Where a category draws much attention in (a) but stays low in (b), the "
        "head looks there in order to do little.",
    ),
    "cancellation": (
        "cancellation",
        "Does the norm cancel the weight?",
        "If heads use some tokens as a place to rest, their largest weights should fall on the "
        "shortest vectors.",
    ),
    "frequency": (
        "frequency",
        "Does frequency matter?",
        "Frequent words carry little news. A model that knows this gives them short vectors, "
        "whatever attention they draw.",
    ),
    "mixing": (
        "mixing",
        "How much tokens are mixed",
        "Attention weights alone make it look as if nearly everything came from other tokens. "
        "Counting the residual connection and layer normalisation shows how much of each token "
        "stays itself.",
    ),
    "flow": (
        "flow",
        "Where representations come from",
        "Layer by layer tokens take from each other, so that a vector high up need not say much "
        "about its own word. Following every path back to the input tells what is left of it; "
        "attention alone makes the resting places look like sources, the norms of what is passed "
        "on do not.",
    ),
    "neurons": (
        "neurons",
        "How many neurons make a score",
        "A score is a sum over the neurons of query and key. Looking at single heads, Vig (2019) "
        "found that heads for [SEP] use few neurons, the same at every position, and next-word "
        "heads many, others at each. If that holds for all heads, the former stand high and left "
        "in (c), and the latter low and right.",
    ),
    "neuron_sources": (
        "neuron-sources",
        "Where first-layer scores come from",
        "Before any layer has mixed them, a token’s vector is the sum of its word, its position "
        "and its segment. A head that finds the next word must read positions; one that keeps to "
        "a segment may read segments, or positions too.",
    ),
    "patterns": (
        "patterns",
        "Classes of maps",
        "A map with a few columns says where a head rests, one along the diagonal that it looks "
        "nearby, blocks that it keeps to a segment. What is left, heterogeneous maps, is the most "
        "that can depend on what the words are (Kovaleva et al. 2019).",
    ),
    "clusters": (
        "clusters",
        "Heads that attend alike",
        "Which heads do the same thing, whatever it is? Clusters are made from attention alone, "
        "and named afterwards by what their heads do; a cluster that no label fits is mixed.",
    ),
    "cluster_number": (
        "cluster-number",
        "How sure are the clusters?",
        "Clusters can be made of anything. These are worth their names as far as heads are nearer "
        "to their own cluster than to the next, more so than in a cloud without clusters, and as "
        "far as other documents give the same.",
    ),
    "layers_alike": (
        "layers-alike",
        "Are the heads of a layer alike?",
        "On the map of BERT, Clark et al. (2019) saw heads of a layer near each other. If that "
        "holds, divergence is least within a layer and grows with the distance of layers.",
    ),
}
PANEL_WIDTH = {1: 3.7, 2: 3.5, 3: 2.9, 4: 2.2}  # inches; so the page shows 7.5 pt as about 11 px


@dataclass(frozen=True, slots=True)
class Drawn:
    """One panel: `title`, and its markup, which is ours throughout."""

    title: str
    markup: str


@dataclass(frozen=True, slots=True)
class Figure:
    """The panels of a picture, the sentence below them, and how many stand side by side.

    page  whether every panel is as wide as the page
    """

    panels: list[Drawn]
    caption: str
    wide: int
    page: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """One section; without a figure it says that it is not part of the run."""

    id: str
    title: str
    text: str
    figure: Figure | None


def sections(tree: xr.DataTree, styles: Styles) -> list[Section]:
    """The picture sections in reading order; `styles` collects the classes that they use."""
    return [
        Section(place, title, text, figure(tree, PICTURES[name], styles, place=place))
        for name, (place, title, text) in INTRODUCTIONS.items()
    ]


def figure(tree: xr.DataTree, picture: Picture, styles: Styles, *, place: str) -> Figure | None:
    """A picture as markup; None where the run lacks what it needs. `place` starts its ids."""
    if not picture.available(tree):
        return None
    panels = picture.panels(tree)
    beside = min(len(panels), picture.columns, 4)
    width = DOUBLE if picture.wide else PANEL_WIDTH[beside]
    drawn = [
        Drawn(
            _title(panel, at, len(panels)),
            inline_panel(panel, styles, prefix=f"{place}{at}-", width=width),
        )
        for at, panel in enumerate(panels)
    ]
    return Figure(drawn, picture.caption(tree), beside, picture.wide)


def _title(panel: Panel, at: int, count: int) -> str:
    letter = f"({string.ascii_lowercase[at]}) " if 1 < count <= len(string.ascii_lowercase) else ""
    return f"{letter}{panel.title}".strip()
