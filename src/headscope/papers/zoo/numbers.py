"""Which numbers of a run are compared across models of other depths, and with which intervals?

A run of the zoo keeps the draws of its bootstrap, so that a mean over heads and layers has an
interval of its own. Draws are [replicate + 1, …], the first the data itself; a run that kept none
has the data alone, and what is made of it has no interval.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate, Float64, estimate, estimate_by_spread, ratio
from headscope.core.labelled import DRAWS
from headscope.core.results import documents, group, pick, token_names
from headscope.papers.zoo.claims import MIDDLE

ROUNDING = 1e-9
PERCENTILES_FROM = 100  # draws; below, tail quantiles say little


class Unasked(Exception):
    """A claim that cannot be asked of a model; the text says why."""


def needed(tree: xr.DataTree, name: str) -> xr.Dataset:
    """The results of an analysis; Unasked where the run is without it."""
    dataset = group(tree, name)
    if dataset is None:
        raise Unasked(f"no {name} in its run")
    return dataset


def drawn(tree: xr.DataTree, name: str, variable: str, **choice: str) -> Float64:
    """[replicate + 1, …] a variable of an analysis; Unasked where the run has it not."""
    dataset = needed(tree, name)
    if variable not in dataset:
        raise Unasked(f"no {variable.replace('_', ' ')} in its run")
    kept = dataset.get(variable + DRAWS)
    array = dataset[variable].expand_dims("replicate") if kept is None else kept
    return np.asarray(pick(array, **choice).values, np.float64)


def ends(tree: xr.DataTree, draws: Float64) -> Estimate:
    """The value [...] of draws [replicate + 1, ...] with its interval; by spread of a few draws."""
    few = len(draws) - 1 < min(PERCENTILES_FROM, int(tree.attrs.get("replicates", 0)))
    return (estimate_by_spread if few else estimate)(draws, documents=documents(tree))


def depths(layers: int) -> Float64:
    """[layer] from 0, the first, to 1, the last."""
    return np.linspace(0, 1, layers)


def middle(layers: int) -> list[int]:
    """The layers at the depth of layers 6 to 10 of 12; Unasked where there are none."""
    low, high = MIDDLE[0] - ROUNDING, MIDDLE[1] + ROUNDING
    found = [at for at, depth in enumerate(depths(layers)) if low <= depth <= high]
    if not found:
        raise Unasked("too few layers to have middle ones")
    return found


def is_decoder(tree: xr.DataTree) -> bool:
    """Whether a token sees only itself and what stands before it."""
    return str(tree.attrs.get("stack", "")) == "decoder"


def token(tree: xr.DataTree, kind: str) -> str:
    """What the tokenizer adds as `cls` or `sep`; Unasked where it adds none."""
    name = token_names(tree)[kind]
    if not name:
        raise Unasked({"cls": "no opening token", "sep": "no separator"}[kind])
    return name


# --- one line per layer ---------------------------------------------------------------------


def attention_by_layer(tree: xr.DataTree, target: str) -> Float64:
    """[replicate + 1, layer] attention to a target of `surface`, mean over heads."""
    return np.asarray(drawn(tree, "surface", "attention", target=target).mean(-1))


def entropy_by_layer(tree: xr.DataTree, query: str) -> Float64:
    """[replicate + 1, layer] mean entropy of heads as a share of that of uniform attention."""
    nats = drawn(tree, "entropy", "entropy", query=query).mean(-1)
    return ratio(nats, drawn(tree, "entropy", "uniform")[:, None])


def share_by_layer(tree: xr.DataTree, variable: str, category: str) -> Float64:
    """[replicate + 1, layer] the share that a category has of a variable of `norms`, all heads."""
    every = np.nansum(drawn(tree, "norms", variable), axis=(2, 3))
    return ratio(drawn(tree, "norms", variable, category=category).sum(-1), every)


def lines(tree: xr.DataTree) -> dict[str, Estimate]:
    """[layer] of every number that pictures show over depth; those that a model has.

    sep, cls or first, punctuation, other   attention
    entropy, entropy_cls                    share of the uniform entropy
    weight_…, norm_… of sep, cls, punctuation, other   shares of α and of ‖αf(x)‖
    """
    found: dict[str, Float64] = {}
    has = {kind: bool(name) for kind, name in token_names(tree).items()}
    opening = "cls" if has["cls"] else "first"
    if "surface" in tree.children:
        for target in (*(["sep"] if has["sep"] else []), opening, "punctuation"):
            found[target] = attention_by_layer(tree, target)
        found["other"] = 1 - np.sum(list(found.values()), axis=0)
    if "entropy" in tree.children:
        found["entropy"] = entropy_by_layer(tree, "all")
        if has["cls"] and not is_decoder(tree):  # there the first token sees nothing but itself
            found["entropy_cls"] = entropy_by_layer(tree, "cls")
    if "norms" in tree.children:
        for category in ("sep", "cls", "punctuation", "other"):
            if has.get(category, True):
                found[f"weight_{category}"] = share_by_layer(tree, "attention", category)
                found[f"norm_{category}"] = share_by_layer(tree, "weighted_norm", category)
    return {name: ends(tree, draws) for name, draws in found.items()}
