"""Which figures are there, and how are they drawn and saved?"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from headscope.analyses.coreference import figure as coreference
from headscope.analyses.dependency import figure as relations
from headscope.analyses.dependency import figure_best_heads as best_heads
from headscope.analyses.dependency import figure_sentences as example_sentences
from headscope.analyses.divergence import figure as divergence
from headscope.analyses.divergence import figure_cluster_number as cluster_number
from headscope.analyses.divergence import figure_cluster_tree as cluster_tree
from headscope.analyses.divergence import figure_clusters as clusters
from headscope.analyses.divergence import figure_layers as layers_alike
from headscope.analyses.entropy import figure as entropy_by_layer
from headscope.analyses.features import figure as features
from headscope.analyses.flow import figure as flow
from headscope.analyses.frames import figure as frames
from headscope.analyses.mixing import figure as mixing
from headscope.analyses.neurons import figure as neurons
from headscope.analyses.neurons import figure_sources as neuron_sources
from headscope.analyses.norms import figure as weight_against_norm
from headscope.analyses.norms import figure_cancellation as cancellation
from headscope.analyses.norms import figure_frequency as frequency
from headscope.analyses.pairs import figure as pairs
from headscope.analyses.patterns import figure as patterns
from headscope.analyses.surface import figure as surface_by_layer
from headscope.core.whole_file import write_whole
from headscope.draw import head_grid
from headscope.draw.panel import Picture, compose
from headscope.draw.saving import write_picture
from headscope.draw.style import DOUBLE
from headscope.experiments.ablation import figure as ablation
from headscope.experiments.alignment import figure as alignment
from headscope.experiments.comparison import figure as similarity
from headscope.experiments.comparison import figure_change as change
from headscope.experiments.importance import figure as importance
from headscope.experiments.probes import figure as probes

PICTURES: dict[str, Picture] = {
    picture.name: picture
    for picture in (
        surface_by_layer.PICTURE,
        entropy_by_layer.PICTURE,
        head_grid.PICTURE,
        weight_against_norm.PICTURE,
        cancellation.PICTURE,
        frequency.PICTURE,
        mixing.PICTURE,
        flow.PICTURE,
        neurons.PICTURE,
        neuron_sources.PICTURE,
        patterns.PICTURE,
        divergence.MAP,
        divergence.MATRIX,
        clusters.PICTURE,
        cluster_tree.PICTURE,
        cluster_number.PICTURE,
        layers_alike.PICTURE,
        best_heads.PICTURE,
        relations.PICTURE,
        example_sentences.PICTURE,
        coreference.PICTURE,
        frames.PICTURE,
        features.BY_LAYER,
        features.CLS,
        pairs.PICTURE,
        similarity.PICTURE,
        similarity.TRAINING,
        change.PICTURE,
        change.WORDS,
        ablation.PICTURE,
        ablation.LOSS,
        ablation.PRUNING,
        importance.GRADIENTS,
        importance.PICTURE,
        importance.AGAINST,
        probes.PICTURE,
        probes.HEADS,
        probes.STRUCTURAL,
        alignment.PICTURE,
    )
}
RELATIONS = "dependency"


def draw(tree: xr.DataTree, name: str, *, columns: int | None = None) -> Figure:
    """The figure called `name`, at double journal width, or at single width with `columns=1`.

    raises  KeyError for an unknown name, ValueError if the run lacks what the figure needs
    """
    if name not in PICTURES:
        raise KeyError(f"no figure called {name!r}; there are {', '.join(PICTURES)}")
    picture = PICTURES[name]
    if not picture.available(tree):
        there = ", ".join(map(str, tree.children)) or "nothing"
        raise ValueError(
            f"cannot draw {name}: found the groups {there}; wanted {', '.join(picture.needs)}, "
            "with numbers to draw; run the atlas with these analyses"
        )
    width = DOUBLE if picture.wide else None
    return compose(picture.panels(tree), columns=columns or picture.columns, width=width)


def save_figures(tree: xr.DataTree, folder: Path) -> list[Path]:
    """Writes every figure that the run allows as .svg and .png (300 dpi), each whole or not at all.

    The folder `dependency` in it gets a heat map of each relation, as .svg.

    returns  the paths written; the same tree gives the same bytes
    """
    written = []
    for picture in PICTURES.values():
        if picture.available(tree):
            figure = draw(tree, picture.name)
            for kind in ("svg", "png"):
                path = folder / f"{picture.name}.{kind}"
                written.append(write_whole(path, partial(write_picture, figure, kind)))
    for _, name, figure in relations.relation_figures(tree):
        path = folder / RELATIONS / name
        written.append(write_whole(path, partial(write_picture, figure, "svg")))
    return written
