"""Draw attention against value norms, and both by the frequency of tokens; what held, in words.

Kobayashi et al. (2020): attention against the value norm of the token attended to, for every pair
of tokens (Table 2); value norm and received attention by frequency rank.
"""

from functools import partial

import numpy as np
from matplotlib.axes import Axes

from headscope.claims.caption_words import with_interval
from headscope.claims.reading import Reading
from headscope.core.results import Floats, at
from headscope.core.wording import percent
from headscope.draw import marks
from headscope.draw.panel import Panel
from headscope.draw.style import color

HISTOGRAM = "attention_value_norm_histogram"
PAIRS_RHO, RANK_RHO = "spearman_attention_value_norm", "spearman_frequency"
RARE = 1e-3  # share of the pairs below which a bin is not worth the space

RANKS = {  # quantity of tokens by their frequency -> title, axis, and the word that gives its look
    "value_norm": ("Value norm by rank", "value norm ‖f(x)‖", "cls"),
    "attention": ("Received attention by rank", "mean attention received", "sep"),
}


def pair_panels(run: Reading) -> list[Panel]:
    """A panel for each category of tokens that pairs end in."""
    if HISTOGRAM not in run.data:
        return []
    counts = run.data[HISTOGRAM]
    there = [one for one in run.data["category"].values.tolist() if counts.sel(category=one).any()]
    draws = [(run.special(one), partial(_draw_pairs, run, one)) for one in there]
    return [Panel(f"To {to}", draw, height=1.05, key_above=True) for to, draw in draws]


def rank_panels(run: Reading) -> list[Panel]:
    """A panel for each quantity that the run has by the frequency rank of tokens."""
    there = run.data["quantity"].values if "frequency_profile" in run.data else ()
    return [
        Panel(title, partial(_draw_ranks, run, quantity), height=0.66)
        for quantity, (title, *_) in RANKS.items()
        if quantity in there
    ]


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


def _draw_pairs(run: Reading, category: str, axes: Axes) -> None:
    """Pairs of tokens by weight and value norm, the median norm at each weight, and ρ."""
    bins = ("attention_bin", "value_norm_bin")
    every = run.data[HISTOGRAM].transpose("category", *bins)
    share = every.values / np.maximum(every.values.sum(axis=(1, 2), keepdims=True), 1)
    edges, window = [], []
    for axis, name in zip((2, 1), bins, strict=True):  # to the last with more than RARE of any
        there = np.flatnonzero(share.sum(axis).max(0) > RARE).tolist()
        window.append(slice(there[0], there[-1] + 1))
        whole = marks.bin_edges(every[name].values.astype(np.float64))
        edges.append(whole[there[0] : there[-1] + 2])
    counts = every.sel(category=category).values[tuple(window)].astype(np.float64)
    weights, lengths = edges
    marks.log_axis(axes, decades=2)
    marks.doubling_axis(axes)
    marks.cells(axes, weights, lengths, np.sqrt(counts.T / counts.max()), top=1.0)
    middles = np.sqrt(weights[1:] * weights[:-1])
    axes.plot(middles, medians(counts, lengths), color=color("vermillion"), lw=1.3)
    words = with_interval("ρ", *at(run(PAIRS_RHO, category=category)))
    axes.text(1, 1.03, words, transform=axes.transAxes, ha="right", fontsize=6)
    axes.set(xlabel="attention α", ylabel="value norm ‖f(x)‖")


def _draw_ranks(run: Reading, quantity: str, axes: Axes) -> None:
    """A quantity by the frequency rank of tokens, with its band, and ρ."""
    _, label, word = RANKS[quantity]
    ranks = run.data["rank_bin"].values.astype(np.float64)
    marks.band_line(axes, ranks, run("frequency_profile", quantity=quantity), word)
    marks.log_axis(axes)
    axes.set_xlabel("frequency rank")
    marks.value_axis(axes, label)
    words = with_interval("ρ", *at(run(RANK_RHO, quantity=quantity)))
    axes.text(0.98, 0.05, words, transform=axes.transAxes, ha="right", fontsize=6.5)


def weight_finding(run: Reading) -> str:
    """Which tokens draw most attention, and how much of the norms they make."""
    shares = []
    for variable in ("attention", "weighted_norm"):
        means = np.ma.masked_invalid(run(variable).value).mean((0, 1)).filled(np.nan)
        shares.append(means / np.nansum(means))  # [category]; NaN where no token is of one
    marked = np.where(run.data["category"].values == "other", np.nan, shares[0])
    if not np.isfinite(marked).any():
        return ""
    most = int(np.nanargmax(marked))
    what = run.special(str(run.data["category"].values[most]))
    weight, norm = (percent(float(share[most])) for share in shares)
    return f"{what} draws {weight} of the attention and makes {norm} of the summed norms."


def pairs_finding(run: Reading) -> str:
    """How far weight and norm pull against each other, where they do most."""
    if not run.has(PAIRS_RHO):
        return ""
    most = int(np.nanargmax(np.abs(run(PAIRS_RHO).value)))
    category = str(run.data["category"].values[most])
    rho = with_interval("ρ", *at(run(PAIRS_RHO), most))
    what = run.special(category)
    return f"Weight against norm, strongest where attention goes to {what}: {rho}."


def ranks_finding(run: Reading) -> str:
    """Whether rarer tokens have longer vectors."""
    if not run.has(RANK_RHO, quantity="value_norm"):
        return ""
    rho = with_interval("ρ", *at(run(RANK_RHO, quantity="value_norm")))
    return f"Frequency rank and value norm: {rho}."
