"""Do the tokens that get the attention also contribute the most?

Kobayashi et al. (2020): by category of token and layer, the summed attention beside the summed norm
of what it brings in (Figure 3); attention against the value norm of the token attended to, for
every pair of tokens (Table 2); value norm and received attention by frequency rank.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.accumulators import finite_mean
from headscope.core.caption_words import INTERVALS, over, special, with_interval
from headscope.core.results import Floats, at, estimate, needed
from headscope.core.wording import percent
from headscope.draw import marks
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color
from headscope.page.sections import SectionPlan

CATEGORIES = ("cls", "first", "sep", "punctuation", "other")


def _weight_panels(tree: xr.DataTree) -> list[Panel]:
    norms = needed(tree, "norms")
    wanted = {
        "attention": "Weight α",
        "weighted_norm": "Weighted norm ‖αf(x)‖",
        "layer_weighted_norm": "All heads together ‖Σαf(x)‖",
    }
    return [
        Panel(title, partial(_draw_weight, tree, norms, variable), height=0.82)
        for variable, title in wanted.items()
        if variable in norms
    ]


def _weight_caption(tree: xr.DataTree) -> str:
    array = needed(tree, "norms")["weighted_norm"]
    return (
        "(a) Attention to each category of token, (b) the norm of what it adds, both summed over "
        "the category’s tokens, mean over inputs and heads, (c) the norm of the sum over heads: "
        "much weight on a token need not mean that it contributes. Norms are in the model’s own "
        f"unit; bands: {INTERVALS}, in (a) and (b) the mean of the heads’ limits, which is at "
        f"least as wide as the mean’s own; {over(tree, array)}. "
        "After Kobayashi et al. (2020), Figure 3."
    )


def _draw_weight(tree: xr.DataTree, norms: xr.Dataset, variable: str, axes: Axes) -> None:
    there = []
    for category in [one for one in CATEGORIES if one in norms["category"]]:
        parts = estimate(norms, variable, category=category)
        if not np.isfinite(parts.value).any():
            continue
        there.append((category, special(tree, category)))
        if parts.value.ndim > 1:  # the mean of the heads' limits bounds the interval of their mean
            parts = parts.map(finite_mean)
        marks.band_line(axes, np.arange(len(parts.value), dtype=float), parts, category)
    marks.layer_axis(axes, len(parts.value))
    if variable == "attention":
        marks.percent_axis(axes, "attention", top=1.0)
    else:
        marks.value_axis(axes, "norm")
    marks.legend(axes, there)


WEIGHT = Picture(
    "weight_against_norm",
    "Weight against norm",
    ("norms",),
    _weight_panels,
    _weight_caption,
    columns=3,
)


HISTOGRAM = "attention_value_norm_histogram"
PAIRS_SPEARMAN = "spearman_attention_value_norm"
RARE = 1e-3  # share of the pairs below which a bin is not worth the space


def _cancellation_panels(tree: xr.DataTree) -> list[Panel]:
    norms = needed(tree, "norms")
    if HISTOGRAM not in norms:
        return []
    window = _window(norms)
    there = [c for c in norms["category"].values.tolist() if norms[HISTOGRAM].sel(category=c).any()]
    draws = [(special(tree, c), partial(_draw_pairs, norms, c, window)) for c in there]
    return [Panel(f"To {to}", draw, height=1.05, key_above=True) for to, draw in draws]


def _cancellation_caption(tree: xr.DataTree) -> str:
    norms = needed(tree, "norms")
    pairs = float(norms[HISTOGRAM].sum()) if HISTOGRAM in norms else 0
    rho = norms[PAIRS_SPEARMAN].attrs.get("long_name", "")
    return (
        "Pairs of tokens over heads and layers: attention α across, value norm ‖f(x)‖ of the token "
        "attended to upwards, farther from the page’s colour where more pairs fall (square-root "
        "scale, each panel to its "
        "own maximum); the line is the median norm at each weight. A falling line and a negative "
        f"ρ mean that the norm cancels the weight. ρ: {rho or 'Spearman correlation'}; "
        f"{INTERVALS}; {pairs:,.0f} pairs, {over(tree)}. After Kobayashi et al. (2020), Table 2."
    )


def medians(counts: Floats, borders: Floats) -> Floats:
    """The median norm of each attention bin; NaN where fewer than RARE of the pairs fall.

    counts   [attention_bin, value_norm_bin]
    borders  [value_norm_bin + 1]; inside a bin, pairs are taken as evenly spread
    """
    total = counts.sum(axis=1)
    middles = np.full(len(counts), np.nan)
    for row in np.flatnonzero(total > RARE * total.sum()):
        share = np.concatenate([[0.0], counts[row].cumsum() / total[row]])
        middles[row] = np.interp(0.5, share, borders)
    return middles


def _window(norms: xr.Dataset) -> list[slice]:
    """[weight, norm] the first to the last bin with more than RARE of a category's pairs."""
    counts = norms[HISTOGRAM].transpose("category", "attention_bin", "value_norm_bin").values
    share = counts / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
    there = [np.flatnonzero(share.sum(axis).max(0) > RARE).tolist() for axis in (2, 1)]
    return [slice(bins[0], bins[-1] + 1) for bins in there]


def _draw_pairs(norms: xr.Dataset, category: str, window: list[slice], axes: Axes) -> None:
    table = norms[HISTOGRAM].sel(category=category).transpose("attention_bin", "value_norm_bin")
    counts = table.values[tuple(window)].astype(np.float64)
    weights, lengths = (
        marks.bin_edges(table[name].values.astype(np.float64))[bins.start : bins.stop + 1]
        for name, bins in zip(table.dims, window, strict=True)
    )
    marks.log_axis(axes, decades=2)
    marks.doubling_axis(axes)
    marks.cells(axes, weights, lengths, np.sqrt(counts.T / counts.max()), top=1.0)
    middles = np.sqrt(weights[1:] * weights[:-1])
    axes.plot(middles, medians(counts, lengths), color=color("vermillion"), lw=1.3)
    words = with_interval("ρ", *at(estimate(norms, PAIRS_SPEARMAN, category=category)))
    axes.text(1, 1.03, words, transform=axes.transAxes, ha="right", fontsize=6)
    axes.set(xlabel="attention α", ylabel="value norm ‖f(x)‖")


CANCELLATION = Picture(
    "cancellation",
    "Does the norm cancel the weight?",
    ("norms",),
    _cancellation_panels,
    _cancellation_caption,
    columns=4,
)


PROFILE, RANK_SPEARMAN = "frequency_profile", "spearman_frequency"
WORDS = {
    "value_norm": ("Value norm by rank", "value norm ‖f(x)‖", "cls"),
    "attention": ("Received attention by rank", "mean attention received", "sep"),
}


def _frequency_panels(tree: xr.DataTree) -> list[Panel]:
    norms = needed(tree, "norms")
    if PROFILE not in norms:
        return []
    return [
        Panel(WORDS[quantity][0], partial(_draw_profile, norms, quantity), height=0.66)
        for quantity in WORDS
        if quantity in norms["quantity"].values
    ]


def _frequency_caption(tree: xr.DataTree) -> str:
    return (
        "Tokens grouped by frequency rank (1 = most frequent, doubling bins): mean over token "
        "occurrences, heads and layers of the value norm (model’s own unit) and of the attention "
        f"received per query (share); ρ: Spearman with rank over all occurrences; bands and "
        f"brackets: {INTERVALS}; {over(tree)}. After Kobayashi et al. (2020)."
    )


def _draw_profile(norms: xr.Dataset, quantity: str, axes: Axes) -> None:
    _, label, word = WORDS[quantity]
    parts = estimate(norms, PROFILE, quantity=quantity)
    marks.band_line(axes, norms["rank_bin"].values.astype(np.float64), parts, word)
    marks.log_axis(axes)
    axes.set_xlabel("frequency rank")
    marks.value_axis(axes, label)
    words = with_interval("ρ", *at(estimate(norms, RANK_SPEARMAN, quantity=quantity)))
    axes.text(0.98, 0.05, words, transform=axes.transAxes, ha="right", fontsize=6.5)


FREQUENCY = Picture(
    "frequency", "Does frequency matter?", ("norms",), _frequency_panels, _frequency_caption
)
FIGURES = (WEIGHT, CANCELLATION, FREQUENCY)


def _weight_finding(tree: xr.DataTree) -> str:
    norms, shares = needed(tree, "norms"), []
    for variable in ("attention", "weighted_norm"):
        values = np.ma.masked_invalid(estimate(norms, variable).value)
        means = values.mean((0, 1)).filled(np.nan)  # NaN for a category that no token is of
        shares.append(means / np.nansum(means))  # [category]
    marked = np.where(norms["category"].values == "other", np.nan, shares[0])
    if not np.isfinite(marked).any():
        return ""
    most = int(np.nanargmax(marked))
    what = special(tree, str(norms["category"].values[most]))
    weight, norm = (percent(float(share[most])) for share in shares)
    return f"{what} draws {weight} of the attention and makes {norm} of the summed norms."


def _correlated(variable: str, dim: str, choice: str, words: str) -> Callable[[xr.DataTree], str]:
    def finding(tree: xr.DataTree) -> str:
        norms = needed(tree, "norms")
        values = norms[variable].values if variable in norms else np.full(1, np.nan)
        if not np.isfinite(values).any():
            return ""
        which = choice or str(norms[dim].values[np.nanargmax(np.abs(values))])
        rho = at(estimate(norms, variable, **{dim: which}))
        said = words.format(special(tree, which))
        return f"{said}: {with_interval('ρ', *rho)}." if np.isfinite(rho[0]) else ""

    return finding


SECTIONS = (
    SectionPlan(
        finding=_weight_finding,
        id="norms",
        title="Weight against norm",
        pictures=("weight_against_norm",),
        text="Attention is only a weight: what a token contributes is the weight times the vector "
        "that it multiplies. Where a category draws much attention in (a) but stays low in (b), "
        "the head looks there in order to do little.",
    ),
    SectionPlan(
        finding=_correlated(
            PAIRS_SPEARMAN,
            "category",
            "",
            "Weight against norm, strongest where attention goes to {}",
        ),
        id="cancellation",
        title="Does the norm cancel the weight?",
        pictures=("cancellation",),
        text="If heads use some tokens as a place to rest, their largest weights should fall on "
        "the shortest vectors.",
    ),
    SectionPlan(
        finding=_correlated(
            RANK_SPEARMAN, "quantity", "value_norm", "Frequency rank and value norm"
        ),
        id="frequency",
        title="Does frequency matter?",
        pictures=("frequency",),
        text="Frequent words carry little news. A model that knows this gives them short vectors, "
        "whatever attention they draw.",
    ),
)
