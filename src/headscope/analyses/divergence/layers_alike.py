"""Do the heads of one layer attend alike, more than heads of different layers?

Clark et al. (2019), section 6, saw that heads of a layer are often near each other on the map.
Here: the mean divergence of two heads by how many layers lie between them, and how often the
nearest head is of the same layer; both against layer numbers dealt out anew among the heads. In
words: what held, whatever the numbers say; and whether heads of neighbouring layers have the same
label more often than if layers were dealt out anew among the labelled heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.analyses.divergence.clustering import Ints
from headscope.core.accumulators import Float64, generator, ratio
from headscope.core.head_labels import head_labels
from headscope.core.results import at, estimate, group
from headscope.core.wording import MISSING, fixed, percent

WHERE = ("same_layer", "neighbouring_layer", "farther_layer")
PERMUTATIONS = 999
TIE = 1e-12  # of the value: rounding is no difference


@dataclass(frozen=True)
class Permuted:
    """What dealing out the layer numbers anew gives.

    divergence_p  how often the heads of a layer are as near to each other, on average
    nearest_p     [where] how often as many nearest heads are of such a layer
    """

    divergence_p: float
    nearest_p: Float64


def by_gap(pairs: Float64, layer: Ints) -> Float64:
    """The mean divergence of two heads by the distance of their layers.

    pairs    [replicate, pair] as `np.triu_indices(units, 1)` orders them
    layer    [unit]
    returns  [replicate, gap] from 0, the same layer, to the largest; NaN where there is no pair
    """
    one, other = np.triu_indices(len(layer), 1)
    gap = np.abs(layer[one] - layer[other])
    chosen = (gap[:, None] == np.arange(layer.max() + 1)).astype(np.float64)  # [pair, gap]
    return ratio(pairs @ chosen, chosen.sum(0))


def within_and_between(pairs: Float64, layer: Ints) -> Float64:
    """[replicate, 2] mean divergence of pairs of the same layer, and of all other pairs."""
    one, other = np.triu_indices(len(layer), 1)
    same = layer[one] == layer[other]
    chosen = np.stack([same, ~same], -1).astype(np.float64)  # [pair, 2]
    return ratio(pairs @ chosen, chosen.sum(0))


def nearest_unit(divergence: Float64) -> Ints:
    """[unit] the head nearest to each, not itself; divergence [unit, unit]."""
    apart = divergence.copy()
    np.fill_diagonal(apart, np.inf)
    return np.asarray(apart.argmin(1), np.int64)


def nearest_shares(near: Ints, layer: Ints) -> Float64:
    """[where] share of heads whose nearest is of the same, a neighbouring, a farther layer."""
    return _shares(np.abs(layer[near] - layer))


def chance_shares(layer: Ints) -> Float64:
    """[where] the same if every other head were as likely to be the nearest."""
    gap = np.abs(layer[:, None] - layer)
    return _shares(gap[~np.eye(len(layer), dtype=bool)])


def permuted_layers(
    divergence: Float64, layer: Ints, *, seed: int, permutations: int = PERMUTATIONS
) -> Permuted:
    """Both statistics against layer numbers dealt out anew; one-sided, (1 + hits) / (1 + draws).

    divergence  [unit, unit] symmetric, zero diagonal
    returns     NaN where there are no two heads of a layer, or no two layers
    """
    random = generator(seed, "clusters", "layers")
    near = nearest_unit(divergence)
    draws = [layer, *(random.permutation(layer) for _ in range(permutations))]
    within = np.array([_within(divergence, one) for one in draws])
    shares = np.array([nearest_shares(near, one) for one in draws])  # [draw, where]
    if not within[0] or len(np.unique(layer)) < 2:
        return Permuted(np.nan, np.full(len(WHERE), np.nan))
    nearer = within <= within[0] * (1 + TIE)
    return Permuted(float(nearer.mean()), (shares >= shares[0] - TIE).mean(0))


def _within(divergence: Float64, layer: Ints) -> float:
    """Sum over the pairs of the same layer; their number is the same however layers are dealt."""
    member = (layer[:, None] == np.unique(layer)).astype(np.float64)  # [unit, layer]
    return float(((divergence @ member) * member).sum() / 2)


def _shares(gap: npt.NDArray[np.int64]) -> Float64:
    kinds = np.minimum(gap, 2).ravel()
    return np.bincount(kinds, minlength=3) / len(kinds)


CLEAR = 0.05  # of p
FEWEST_PAIRS = 5  # ours: of labelled heads in neighbouring layers
LAYER_VARIABLES = ("layer_js", "layer_js_p", "nearest_layer", "nearest_chance", "nearest_p")


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
        and all(name in divergence for name in LAYER_VARIABLES)
        and bool(np.isfinite(divergence["layer_js_p"]))
    )


def layers_verdict(tree: xr.DataTree) -> str:
    """What held, in one to three sentences; '' where the run cannot say."""
    divergence = group(tree, "divergence")
    if divergence is None or not has_layers(tree):
        return ""
    both, p = estimate(divergence, "layer_js"), float(divergence["layer_js_p"])
    within, between = (_three(*at(both, pairs)) for pairs in (0, 1))
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
    return " ".join(
        part for part in (first, _nearest_words(divergence), _label_words(tree)) if part
    )


def neighbour_labels(tree: xr.DataTree) -> NeighbourLabels | None:
    """Whether neighbouring layers share labels; None of fewer than FEWEST_PAIRS pairs,
    or if all have the same label.

    Seeded by the run's seed. No interval: labels come from thresholds, which are not resampled.
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
    return NeighbourLabels(
        len(main), pairs, float(shares[0]), float(shares[1:].mean()),
        float((shares >= shares[0]).mean()),
    )  # fmt: skip


def p_words(p: float) -> str:
    """`p = 0.03`; to the last place that the draws allow."""
    if not np.isfinite(p):
        return f"p {MISSING}"
    return f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def _nearest_words(divergence: xr.Dataset) -> str:
    """Where the nearest heads are, against chance."""
    shares, chance = estimate(divergence, "nearest_layer"), divergence["nearest_chance"].values
    p = divergence["nearest_p"].values
    if not np.isfinite(shares.value).all():
        return ""
    words = [
        f"{percent(*at(shares, i))} (by chance {percent(float(chance[i]), np.nan, np.nan)}, "
        f"{p_words(float(p[i]))})"
        for i in (0, 1)
    ]
    return (
        f"The head most like a head is in the same layer for {words[0]}, in a neighbouring one "
        f"for {words[1]}."
    )


def _label_words(tree: xr.DataTree) -> str:
    same = neighbour_labels(tree)
    if same is None:
        return ""
    share, expected = (percent(part, np.nan, np.nan) for part in (same.share, same.expected))
    return (
        f"Of the {same.pairs:,} pairs of labelled heads in neighbouring layers {share} have the "
        f"same label (by chance {expected}, {p_words(same.p)})."
    )


def _three(value: float, low: float, high: float) -> str:
    """Both sides of a comparison with the same digits."""
    ends = f" [{fixed(low, 3)}, {fixed(high, 3)}]" if np.isfinite(low) else ""
    return fixed(value, 3) + ends
