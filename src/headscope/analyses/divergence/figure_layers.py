"""Do the heads of one layer attend alike, more than heads of different layers?

The mean divergence of two heads by how many layers lie between them, and where the nearest head is.
In words: what held, whatever the numbers say; and whether heads of neighbouring layers have the
same label more often than if layers were permuted among the labelled heads.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from headscope.analyses.divergence.against_control import CLEAR, layers_of_control
from headscope.analyses.divergence.head_clusters import PERMUTATIONS
from headscope.claims.caption_words import first_sentence
from headscope.claims.head_labels import head_labels
from headscope.claims.reading import Reading
from headscope.core.accumulators import generator
from headscope.core.results import at, estimate
from headscope.core.wording import p_words, percent, with_ends
from headscope.draw.marks import band_line, faint_grid, legend
from headscope.draw.panel import Panel
from headscope.draw.style import color

FEWEST_PAIRS = 5  # ours: of labelled heads in neighbouring layers
LAYER_VARIABLES = {"layer_js", "layer_js_p", "nearest_layer", "nearest_chance", "nearest_p"}
ROWS = ("same layer", "neighbouring layer", "farther layer")


def panels(run: Reading) -> list[Panel]:
    """Divergence by the distance of layers, and where the nearest head is."""
    if not has_layers(run):
        return []
    return [
        Panel("Farther layers, less alike?", partial(_draw_gaps, run.data), height=0.7),
        Panel("Where the most alike head is", partial(_draw_nearest, run.data), height=0.7),
    ]


def caption(run: Reading) -> str:
    """How to read them, and what held."""
    return (
        "(a) Mean divergence of two heads by the distance of their layers, 0 in the same layer; "
        "dashed, what it is over all pairs, whatever their layers. (b) Share of heads whose most "
        "alike head is in the same, a neighbouring or a farther layer, and what chance gives. "
        "Bands and whiskers are 95 % intervals over heads; p: layers dealt out anew among the "
        f"heads, {PERMUTATIONS} times. {layers_verdict(run)} {run.over()}. Clark et al. (2019), "
        "§6, saw heads of a layer near each other on the map of BERT."
    )


def _draw_gaps(divergence: xr.Dataset, axes: Axes) -> None:
    gaps = estimate(divergence, "js_by_layer_gap")
    js = divergence["js"].values
    mean = float(js[np.triu_indices(len(js), 1)].mean())
    axes.axhline(mean, color=color("muted"), lw=0.8, ls=(0, (4, 2)))
    band_line(axes, np.arange(len(gaps.value), dtype=np.float64), gaps, "all")
    axes.set(
        ylim=0,
        xticks=range(0, len(gaps.value), 1 if len(gaps.value) <= 12 else 4),
        xlabel="layers apart",
        ylabel=f"divergence ({divergence['js'].attrs.get('units', 'nats')})",
    )
    faint_grid(axes)


def _draw_nearest(divergence: xr.Dataset, axes: Axes) -> None:
    shares = estimate(divergence, "nearest_layer")
    chance = divergence["nearest_chance"].values
    rows = np.arange(len(ROWS))
    axes.hlines(rows, shares.low, shares.high, color=color("all"), lw=2.2, alpha=0.35)
    axes.plot(shares.value, rows, "o", color=color("all"), ms=5, mew=0, zorder=4)
    axes.plot(chance, rows, "D", color=color("chance"), ms=4, mew=0, zorder=3)
    axes.set_yticks(rows, ROWS)
    axes.set_ylim(len(ROWS) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.05 * float(np.nanmax([shares.value, shares.high, chance])))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set_xlabel("of all heads")
    legend(axes, [("all", "found"), ("chance", "by chance")], line=False, start=0.0)


def has_layers(run: Reading) -> bool:
    """Whether the run can say how alike layers are: not an old one, two layers, two heads each."""
    return set(run.data) >= LAYER_VARIABLES and bool(np.isfinite(run.data["layer_js_p"]))


def finding(run: Reading) -> str:
    """The first sentence of the verdict, without its numbers."""
    return first_sentence(layers_verdict(run))


def layers_verdict(run: Reading) -> str:
    """What held, in one to three sentences; '' where the run cannot say."""
    if not has_layers(run):
        return ""
    divergence = run.data
    both, p = run("layer_js"), float(divergence["layer_js_p"])
    within, between = (with_ends(*at(both, pairs), 3) for pairs in (0, 1))
    unit = str(divergence["layer_js"].attrs.get("units", "nats"))
    less, clear = percent(1 - float(both.value[0] / both.value[1])), p <= CLEAR
    untrained = layers_of_control(run.tree) if clear else np.nan
    if np.isfinite(untrained):
        return (
            f"Heads of one layer differ by {within} {unit} on average against {between} between "
            f"layers ({less} less), but heads of a network without training do too "
            f"({percent(untrained)} less): this tells nothing of what was learned."
        )
    first = (
        f"Heads of one layer are {'' if clear else 'not clearly '}more alike than heads of "
        f"different layers: they differ by {within} {unit} on average against {between} between "
        f"layers ({f'{less} less; ' if clear else ''}{p_words(p)})."
    )
    return " ".join(filter(None, (first, _nearest_words(divergence), _label_words(run.tree))))


def _nearest_words(divergence: xr.Dataset) -> str:
    shares, chance = estimate(divergence, "nearest_layer"), divergence["nearest_chance"].values
    p = divergence["nearest_p"].values
    if not np.isfinite(shares.value).all():
        return ""
    same, near = (
        f"{percent(*at(shares, i))} (by chance {percent(float(chance[i]))}, {p_words(float(p[i]))})"
        for i in (0, 1)
    )
    return (
        f"The head most like a head is in the same layer for {same}, in a neighbouring one for "
        f"{near}."
    )


def _label_words(tree: xr.DataTree) -> str:
    same = neighbour_labels(tree)
    if same is None:
        return ""
    return (
        f"Of the {same.pairs:,} pairs of labelled heads in neighbouring layers "
        f"{percent(same.share)} have the same label (by chance {percent(same.expected)}, "
        f"{p_words(same.p)})."
    )


@dataclass(frozen=True)
class NeighbourLabels:
    """Pairs of labelled heads of neighbouring layers.

    heads     with a label
    pairs     of them in neighbouring layers
    share     of these pairs whose main label is the same
    expected  the mean over permuted layers
    p         how often these give as large a share, (1 + hits) / (1 + draws)
    """

    heads: int
    pairs: int
    share: float
    expected: float
    p: float


def neighbour_labels(tree: xr.DataTree) -> NeighbourLabels | None:
    """Whether neighbouring layers share labels; None of fewer than FEWEST_PAIRS pairs,
    or if all have the same label.

    Seeded by the run's seed. No interval: labels come from thresholds, which have none.
    """
    main = {place: one.labels[0].name for place, one in head_labels(tree).items() if one.labels}
    layer = np.array([place[0] for place in main], np.int64)
    names = np.array(list(main.values()))
    same = names[:, None] == names  # [head, head]
    random = generator(int(tree.attrs.get("seed", 0)), "clusters", "labels")
    draws = [layer, *(random.permutation(layer) for _ in range(PERMUTATIONS))]
    beside = [np.abs(one[:, None] - one) == 1 for one in draws]  # [draw][head, head]
    pairs = int(beside[0].sum()) // 2
    if pairs < FEWEST_PAIRS or same.all():
        return None
    shares = np.array([same[near].mean() for near in beside])  # [draw]
    own, others = float(shares[0]), float(shares[1:].mean())
    return NeighbourLabels(len(main), pairs, own, others, float((shares >= shares[0]).mean()))
