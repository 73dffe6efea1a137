"""Converts scores without heads' own attention into labelled results.

loss[replacement, order, share]    with heads replaced: nats, or distance from the whole model
change[replacement, order, share]  of the perplexity, a share; or the distance, as a share of
                                   that of two inputs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.analyses.explained.prediction import HeadRules
from headscope.claims.terms import OURS
from headscope.core.accumulators import Array, Float64, left_out, means_over
from headscope.core.intervals import POSITIVE, Estimate, estimate
from headscope.core.results import Variable, labelled
from headscope.experiments.replay.head_sets import CHOSEN, EXPLAINED, RANDOM, HeadSet, replaced_in
from headscope.experiments.replay.scores import (
    ANSWERS,
    MASKED,
    POOLED,
    TOKENS,
    VECTORS,
    OutputScore,
    apart,
)
from headscope.experiments.replay.settings import RULES

CELL = ("replacement", "order", "share")
LEAST = -1.0  # of a relative change of the perplexity
# Measure -> what its variables begin with, what is measured of two outputs, and its unit.
DISTANCES = {
    TOKENS: ("", "1 − cosine of tokens", "1"),
    POOLED: ("pooled_", "1 − cosine of the pooled vector", "1"),
    ANSWERS: ("", "KL divergence of answers", "nats"),
}
LOSSES = {"causal": "causal language-model loss", MASKED: "masked-language-model loss"}


def replay_result(
    numbers: Mapping[str, Array],
    score: OutputScore,
    units: Sequence[str],
    sets: Sequence[HeadSet],
    replacements: Sequence[str],
    *,
    shape: tuple[int, int],
    best: Float64,
    replicates: int,
    fitted: HeadRules | None = None,
) -> xr.Dataset:
    """The group `replay`.

    numbers    "score" [input, set, replacement, measure], "whole" [input, measure], and for
               vectors "kept_tokens", "kept_pooled" [input, dim], for answers "kept_answers"
    units      [input] name of its document
    best       [layer, head] by which heads are ordered, the largest first
    fitted     the rules, if their weights are fitted to the output
    """
    kept = left_out(units, replicates=replicates)  # [input, replicate + 1]
    weight = score.weights()
    orders, shares = _axes(sets)
    scores = in_cells(np.asarray(numbers["score"], np.float64), sets, orders, shares)
    beyond = _beyond_rules(scores[..., 0], replacements, kept, weight)
    if score.kind in LOSSES:
        variables = _of_losses(numbers, scores, kept, weight, score.kind)
    else:
        variables = _of_distances(numbers, scores, units, kept, score.measures)
    if beyond is not None:
        words = "loss with heads replaced, less that with their rules in place"
        variables["beyond_rules"] = Variable(beyond, CELL, words, "1", OURS)
    numbered = replaced_in(sets, shape)  # [set, layer, head]
    hidden = {
        "replaced": (numbered, ("set", "layer", "head"), "whether a head is replaced"),
        "best": (best, ("layer", "head"), "what orders the heads, the largest first"),
        "drawn": (
            _drawn(numbers, weight),
            ("set", "replacement"),
            "loss of each set of heads, each random order apart",
        ),
    }
    variables |= {
        name: Variable(value, dims, words, "1", OURS, tidy=False)
        for name, (value, dims, words) in (hidden | _fitted(fitted)).items()
    }
    coords: dict[str, Sequence[Any]] = dict(zip(CELL, (replacements, orders, shares), strict=True))
    coords["set"] = [f"{one.order} {one.draw} {one.share:.6g}" for one in sets]
    dataset = labelled(variables, coords=coords)
    for name in ("loss", "change", "pooled_loss", "pooled_change"):
        if name in dataset:
            dataset[name].attrs["n"] = len(set(units))
    return dataset.assign_attrs(
        kind=score.kind,
        score={**LOSSES, VECTORS: "output vectors", ANSWERS: "answers"}[score.kind],
        inputs=len(units),
        units=len(set(units)),
        draws=max(one.draw for one in sets),
    )


def _fitted(rules: HeadRules | None) -> dict[str, tuple[Float64, tuple[str, ...], str]]:
    if rules is None:
        return {}
    cell, fitted = ("layer", "head"), "as they are fitted to the output"
    weights = f"the weights of the rules of attention in `explained`, {fitted}"
    factors = f"by what predictions for their key tokens are multiplied, {fitted}"
    return {
        "fitted_weight": (rules.weight, (*cell, "rule_place"), weights),
        "fitted_key_factor": (rules.key_factor, (*cell, "key_place"), factors),
    }


def _axes(sets: Sequence[HeadSet]) -> tuple[list[str], list[float]]:
    there = {one.order for one in sets}
    orders = [name for name in (EXPLAINED, RANDOM, CHOSEN) if name in there]
    return orders, sorted({one.share for one in sets})


def in_cells(
    scores: Float64, sets: Sequence[HeadSet], orders: Sequence[str], shares: Sequence[float]
) -> Float64:
    """[input, replacement, order, share, measure] the mean over random orders; of all heads
    together every order says the same.

    scores  [input, set, replacement, measure]
    """
    inputs, _, replacements, measures = scores.shape
    out = np.empty((inputs, replacements, len(orders), len(shares), measures))
    for row, order in enumerate(orders):
        for column, share in enumerate(shares):
            rows = [
                at
                for at, one in enumerate(sets)
                if one.share == share and (one.order == order or share == 1)
            ]
            out[:, :, row, column] = scores[:, rows].mean(1)
    return out


def _of_losses(
    numbers: Mapping[str, Array], scores: Float64, kept: Float64, weight: Float64, kind: str
) -> dict[str, Variable]:
    flat = scores[..., 0] * weight[:, None, None, None]
    losses = means_over(kept, flat, weight)  # [replicate + 1, replacement, order, share]
    whole = means_over(kept, numbers["whole"][:, 0] * weight, weight)  # [replicate + 1]
    sizes = (kept * weight[:, None]).sum(0)
    per = np.broadcast_to(sizes[:, None, None, None], losses.shape)
    with np.errstate(over="ignore"):
        change = np.expm1(losses - whole[:, None, None, None])
    name = LOSSES[kind]
    return {
        "baseline": Variable(
            estimate(whole, sizes, bounds=POSITIVE), (), f"{name} of the whole model", "nats", OURS
        ),
        "loss": Variable(
            estimate(losses, per, bounds=POSITIVE),
            CELL,
            f"{name} with heads replaced",
            "nats",
            OURS,
        ),
        "change": Variable(
            estimate(change, per, bounds=(LEAST, np.inf)),
            CELL,
            "change of the perplexity, as a share of it",
            "probability",
            OURS,
        ),
    }


def _of_distances(
    numbers: Mapping[str, Array],
    scores: Float64,
    units: Sequence[str],
    kept: Float64,
    measures: Sequence[str],
) -> dict[str, Variable]:
    variables: dict[str, Variable] = {}
    for at, measure in enumerate(measures):
        start, what, unit = DISTANCES[measure]
        apart_of = apart(measure, numbers[f"kept_{measure}"], units)
        between = means_over(kept, apart_of)  # [replicate + 1]
        losses = means_over(kept, scores[..., at])
        alike = np.where(between > 0, between, np.nan)  # all inputs: no share can be had
        change = losses / alike[:, None, None, None]
        variables |= {
            f"{start}baseline": Variable(
                estimate(between, bounds=POSITIVE), (), f"{what} of two inputs", unit, OURS
            ),
            f"{start}loss": Variable(
                _positive(losses), CELL, f"{what} with those of the whole model", unit, OURS
            ),
            f"{start}change": Variable(
                _positive(change),
                CELL,
                "the same, as a share of that of two inputs",
                "probability",
                OURS,
            ),
        }
    return variables


def _beyond_rules(
    scores: Float64, replacements: Sequence[str], kept: Float64, weight: Float64
) -> Estimate | None:
    """[replacement, order, share] the first measure less that of rules, paired by input; None
    without rules.
    """
    if RULES not in replacements:
        return None
    more = (scores - scores[:, [list(replacements).index(RULES)]]) * weight[:, None, None, None]
    return estimate(means_over(kept, more, weight))


def _positive(draws: Float64) -> Estimate:
    return estimate(draws, bounds=POSITIVE)


def _drawn(numbers: Mapping[str, Array], weight: Float64) -> Float64:
    """[set, replacement] the mean of the first measure."""
    scores = numbers["score"][..., 0]
    return np.asarray(np.einsum("isr,i->sr", scores, weight) / weight.sum())
