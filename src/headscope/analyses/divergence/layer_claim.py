"""Did what Clark et al. (2019) saw hold here: do heads of one layer attend alike?

A sentence from the numbers of `divergence`, whatever they say; and whether heads of neighbouring
layers have the same label more often than if layers were dealt out anew among the labelled heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.analyses.divergence.layers_alike import PERMUTATIONS
from headscope.core.accumulators import Estimate, generator
from headscope.core.head_labels import head_labels
from headscope.core.results import estimate, group
from headscope.core.wording import MISSING, fixed, percent

CLEAR = 0.05  # of p
FEWEST_PAIRS = 5  # ours: of labelled heads in neighbouring layers
NEEDED = ("layer_js", "layer_js_p", "nearest_layer", "nearest_chance", "nearest_p")


@dataclass(frozen=True)
class NeighbourLabels:
    """Pairs of labelled heads of neighbouring layers.

    heads     with a label
    pairs     of them in neighbouring layers
    share     of these pairs whose main label is the same
    expected  the mean over layers dealt out anew
    p         how often these give as large a share, (1 + hits) / (1 + draws)
    """

    heads: int
    pairs: int
    share: float
    expected: float
    p: float


def has_layers(tree: xr.DataTree) -> bool:
    """Whether the run can say how alike layers are: not an old one, two layers, two heads each."""
    divergence = group(tree, "divergence")
    return (
        divergence is not None
        and all(name in divergence for name in NEEDED)
        and bool(np.isfinite(divergence["layer_js_p"]))
    )


def layers_verdict(tree: xr.DataTree) -> str:
    """What held, in one to three sentences; '' where the run cannot say."""
    divergence = group(tree, "divergence")
    if divergence is None or not has_layers(tree):
        return ""
    both, p = estimate(divergence, "layer_js"), float(divergence["layer_js_p"])
    within, between = (_three(*_at(both, at)) for at in (0, 1))
    unit = str(divergence["layer_js"].attrs.get("units", "nats"))
    less = percent(1 - float(both.value[0] / both.value[1]), np.nan, np.nan)
    sides = f"{within} {unit} on average against {between} between layers"
    if p <= CLEAR:
        first = (
            "Heads of one layer are more alike than heads of different layers: they differ by "
            f"{sides} ({less} less; {p_words(p)})."
        )
    else:
        first = (
            "Heads of one layer are not clearly more alike than heads of different layers: they "
            f"differ by {sides} ({p_words(p)})."
        )
    return " ".join(part for part in (first, _nearest(divergence), _labels(tree)) if part)


def neighbour_labels(tree: xr.DataTree) -> NeighbourLabels | None:
    """Whether neighbouring layers share labels; None of fewer than FEWEST_PAIRS pairs,
    or if all have the same label.

    Seeded by the run's seed. No interval: labels come from thresholds, which are not resampled.
    """
    main = {
        place: found.labels[0].name for place, found in head_labels(tree).items() if found.labels
    }
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
    return NeighbourLabels(
        len(main), pairs, float(shares[0]), float(shares[1:].mean()),
        float((shares >= shares[0]).mean()),
    )  # fmt: skip


def p_words(p: float) -> str:
    """`p = 0.03`; to the last place that the draws allow."""
    if not np.isfinite(p):
        return f"p {MISSING}"
    return f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def _nearest(divergence: xr.Dataset) -> str:
    """Where the nearest heads are, against chance."""
    found, chance = estimate(divergence, "nearest_layer"), divergence["nearest_chance"].values
    p = divergence["nearest_p"].values
    if not np.isfinite(found.value).all():
        return ""
    words = [
        f"{percent(*_at(found, at))} (by chance {percent(float(chance[at]), np.nan, np.nan)}, "
        f"{p_words(float(p[at]))})"
        for at in (0, 1)
    ]
    return (
        f"The head most like a head is in the same layer for {words[0]}, in a neighbouring one "
        f"for {words[1]}."
    )


def _labels(tree: xr.DataTree) -> str:
    found = neighbour_labels(tree)
    if found is None:
        return ""
    share, expected = (percent(part, np.nan, np.nan) for part in (found.share, found.expected))
    return (
        f"Of the {found.pairs:,} pairs of labelled heads in neighbouring layers {share} have the "
        f"same label (by chance {expected}, {p_words(found.p)})."
    )


def _three(value: float, low: float, high: float) -> str:
    """Both sides of a comparison with the same digits."""
    ends = f" [{fixed(low, 3)}, {fixed(high, 3)}]" if np.isfinite(low) else ""
    return fixed(value, 3) + ends


def _at(parts: Estimate, at: int) -> tuple[float, float, float]:
    return float(parts.value[at]), float(parts.low[at]), float(parts.high[at])
