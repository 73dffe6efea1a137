"""Numbers over the depth of a model, from 0, the first layer, to 1, the last.

So models of 3 and of 30 layers compare. The middle layers are those at the depth of layers 6 to 10
of BERT-base, of which Clark et al. (2019) speak.
"""

from __future__ import annotations

import numpy as np

from headscope.core.accumulators import Estimate, Float64, ratio
from headscope.core.results import token_names
from headscope.papers.quantities import (
    ENTROPY,
    NORMS,
    SURFACE,
    Unmeasured,
    attention,
    entropies,
    interval,
    norms,
    uniform_entropy,
)
from headscope.run.finished_run import Run

MIDDLE = (5 / 11, 9 / 11)  # Clark et al. 2019, §3.2: layers 6 to 10 of 12
ROUNDING = 1e-9


def depths(layers: int) -> Float64:
    """[layer] from 0, the first, to 1, the last."""
    return np.linspace(0, 1, layers)


def middle(layers: int) -> list[int]:
    """The middle layers, from 0; raises Unmeasured where there are none."""
    low, high = MIDDLE[0] - ROUNDING, MIDDLE[1] + ROUNDING
    inside = [at for at, depth in enumerate(depths(layers)) if low <= depth <= high]
    if not inside:
        raise Unmeasured("too few layers to have middle ones")
    return inside


def is_decoder(run: Run) -> bool:
    """Whether a token sees only itself and what stands before it."""
    return str(run.tree.attrs.get("stack", "")) == "decoder"


def added_token(run: Run, kind: str) -> str:
    """The token that the tokenizer adds as `cls` or `sep`; raises Unmeasured where it adds none."""
    name = token_names(run.tree)[kind]
    if not name:
        raise Unmeasured({"cls": "no opening token", "sep": "no separator"}[kind])
    return name


def attention_by_layer(run: Run, target: str) -> Float64:
    """[replicate + 1, layer] attention to a target, mean over heads."""
    return np.asarray(attention(run, target).mean(-1))


def entropy_by_layer(run: Run, query: str) -> Float64:
    """[replicate + 1, layer] mean entropy of heads as a share of that of uniform attention."""
    return ratio(entropies(run, query).mean(-1), uniform_entropy(run)[:, None])


def share_by_layer(run: Run, variable: str, category: str) -> Float64:
    """[replicate + 1, layer] the share of a category in a variable of `norms`, all heads."""
    every = np.nansum(norms(run, variable), axis=(2, 3))
    return ratio(norms(run, variable, category=category).sum(-1), every)


def depth_curves(run: Run) -> dict[str, Estimate]:
    """[layer] of every number that figures show over depth, of those that a model has.

    sep, cls or first, punctuation, other   attention
    entropy, entropy_cls                    share of the uniform entropy
    weight_…, norm_… of sep, cls, punctuation, other   shares of α and of ‖αf(x)‖
    """
    curves: dict[str, Float64] = {}
    has = {kind: bool(name) for kind, name in token_names(run.tree).items()}
    opening = "cls" if has["cls"] else "first"
    if SURFACE in run:
        for target in (*(["sep"] if has["sep"] else []), opening, "punctuation"):
            curves[target] = attention_by_layer(run, target)
        curves["other"] = 1 - np.sum(list(curves.values()), axis=0)
    if ENTROPY in run:
        curves[ENTROPY] = entropy_by_layer(run, "all")
        if has["cls"] and not is_decoder(run):  # there the first token sees nothing but itself
            curves["entropy_cls"] = entropy_by_layer(run, "cls")
    if NORMS in run:
        for category in ("sep", "cls", "punctuation", "other"):
            if has.get(category, True):
                curves[f"weight_{category}"] = share_by_layer(run, "attention", category)
                curves[f"norm_{category}"] = share_by_layer(run, "weighted_norm", category)
    return {name: interval(draws, run) for name, draws in curves.items()}
