"""Assembles the group `circuits` from scores of attention and of weights."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims.terms import ELHAGE, GEMA, GOULD, OLSSON, OURS, WU, XIAO25, YAMAGIWA, ZHANG
from headscope.core.accumulators import Float64, left_out, means_over, ratio
from headscope.core.intervals import (
    DIFFERENCE,
    POSITIVE,
    SHARE,
    Estimate,
    estimate,
    estimate_correlation,
    estimate_independent,
    estimate_share,
    even,
    spearman_over_units,
    surely_above,
)
from headscope.core.results import Variable, labelled, tabled
from headscope.experiments.circuits.made_inputs import Repeats, WordPairs
from headscope.experiments.circuits.needles import Needles
from headscope.experiments.circuits.retrieval import ANSWERED, WINDOWS
from headscope.experiments.circuits.settings import FEWEST

PATTERNS, WAYS = ("previous_token", "duplicate_token", "induction"), ("query", "key", "value")
OF_RUNS = ("hits", "attention", "qr_score", "locos", "streaming", "step_hits")
OTHER_SCORES = ("qr_score", "locos")  # what else finds heads that retrieve
OVER = {"successor": "ordinals", "retrieval_rho": "heads"}  # of what the interval is
# name → its dimensions, what it is, its unit, its source
VARIABLES = {
    "score": ("layer head circuit", "attention on repeated tokens", "probability", OLSSON),
    "null": (
        "layer head circuit",
        "attention to the same places without a repeat, or to an earlier token at random",
        "probability",
        OURS,
    ),
    "surely_above": (
        "layer head circuit",
        "lower end of score − null, corrected for all heads and scores",
        "probability",
        OURS,
    ),
    "copying": (
        "layer head",
        "of what attended tokens raise among the input’s tokens, the share of themselves",
        "probability",
        OLSSON,
    ),
    "copied": (
        "layer head",
        "of the attention to drawn tokens, the share to those that raise themselves most among the "
        "input’s tokens",
        "probability",
        OURS,
    ),
    "copied_attention": (
        "layer head",
        "of all attention of the second half, the share to drawn tokens that raise themselves most "
        "among the input’s tokens",
        "probability",
        OURS,
    ),
    "told_again": ("", "probability of the token that comes again", "probability", OURS),
    "weight_copying": ("layer head", "copying by weights", "1", ELHAGE),
    "repeated_ids": ("sequence token", "the inputs", "1", OURS),
    "successor": (
        "layer head",
        "share of ordinals whose successor the head’s weights make the top token",
        "probability",
        GOULD,
    ),
    "recall": ("run", "share of the needle that the model tells", "1", WU),
    "depth": ("run", "share of the haystack before it", "1", WU),
    "needle_ids": ("run step", "the needles", "1", OURS),
    "retrieval": (
        "layer head",
        "share of the needle’s tokens that are attended to most as they are told",
        "probability",
        WU,
    ),
    "needle_attention": (
        "layer head",
        "attention to each of the needle’s tokens as it is told",
        "probability",
        OURS,
    ),
    "qr_score": (
        "layer head",
        "attention from the question to the needle’s sentence, above that from “N/A”",
        "probability",
        ZHANG,
    ),
    "locos": (
        "layer head",
        "written for the told token from the needle, above as many other tokens",
        "logits before the last norm’s scale",
        GEMA,
    ),
    "needle_streaming": (
        "layer head window",
        "attention from the answer to the first and the latest tokens",
        "probability",
        XIAO25,
    ),
    "retrieval_rho": ("other", "rank correlation with retrieval, over heads", "1", OURS),
    "step_recall": ("run", "share of the needle written", "1", WU),
    "retrieval_steps": (
        "layer head",
        "steps of a written answer that attend to a token of the needle most and copy it, by the "
        "needle’s tokens",
        "1",
        WU,
    ),
    "composition": ("way reader writer", "composition of two heads", "1", ELHAGE),
    "composition_above": (
        "way reader writer",
        "standard deviations by which its square lies above random rotations",
        "1",
        OURS,
    ),
    "projection_kernel": (
        "way reader writer",
        "mean cos² of the angles between what one head writes and another one reads",
        "1",
        YAMAGIWA,
    ),
    "projection_above": (
        "way reader writer",
        "standard deviations by which it lies above random subspaces",
        "1",
        OURS,
    ),
}


def circuits_result(
    patterns: Mapping[str, Float64],
    weights: Mapping[str, Float64],
    made: Repeats,
    pairs: WordPairs,
    hidden: Needles | None,
    *,
    replicates: int,
    width: int,
) -> xr.Dataset:
    """The group `circuits`.

    patterns  by name, [sequence, …]: patterns, null and right
    weights   by name, what the weights say
    width     numbers of the residual stream
    """
    names = [example.document for example in made.repeated]
    kept = left_out(names, replicates=replicates)  # [sequence, replicate + 1]
    values = _of_patterns(patterns, partial(means_over, kept), kept.sum(0), made.length)
    values |= {"weight_copying": weights["weight_copying"], "repeated_ids": made.ids}
    if "successor" in weights:
        values["successor"] = _successor(weights["successor"], pairs, replicates)
    coords: dict[str, Any] = {"circuit": list(PATTERNS)}
    if hidden is not None:
        values |= _retrieval(weights, hidden, replicates)
        windows = [f"{first}+{last}" for first, last in WINDOWS]
        coords |= {"window": windows, "other": list(OTHER_SCORES)}
    if "composition" in weights:
        parts = (name for name, (dims, *_) in VARIABLES.items() if dims.startswith("way"))
        values |= {part: weights[part].astype(np.float32) for part in parts}
        coords["way"] = list(WAYS)
    result = labelled(_variables(values), coords=coords)
    answered = int((weights.get("recall", np.zeros(0)) > ANSWERED).sum())
    wrote = int((weights.get("step_recall", np.zeros(0)) > ANSWERED).sum())
    of_needles = ("retrieval", "needle_attention", "needle_streaming", *OTHER_SCORES)
    counts = dict.fromkeys(of_needles, answered)
    counts |= {"retrieval_steps": wrote, "successor": len(pairs.words)}
    for name, variable in result.data_vars.items():
        if set(variable.dims) & {"token", "reader", "step"}:
            variable.attrs["tidy"] = 0
        else:
            variable.attrs["n"] = counts.get(str(name).partition("_ci")[0], len(names))
    return result.assign_attrs(
        length=made.length,
        opening=made.opening,
        sequences=len(names),
        answered=answered,
        **({"wrote": wrote} if "step_recall" in weights else {}),
        ordinals="; ".join(pairs.words),
        chance=1 / made.length,
        width=width,
    )


def _variables(values: Mapping[str, Any]) -> dict[str, Variable]:
    variables = tabled(values, VARIABLES)
    return {name: replace(one, over=OVER.get(name, "")) for name, one in variables.items()}


def _of_patterns(
    patterns: Mapping[str, Float64],
    draws: Callable[[Float64], Float64],
    count: Float64,
    length: int,
) -> dict[str, Any]:
    """Scores of attention; `count` [replicate + 1] sequences of `length` queries each."""
    repeated, new = draws(patterns["patterns"]), draws(patterns["null"])
    score = repeated[..., : len(PATTERNS)]
    null = np.concatenate([repeated[..., 3:4], new], -1)
    sizes = count[:, None, None]  # no surer than one question of each sequence
    gain = estimate(score - null, bounds=DIFFERENCE, sizes=sizes[..., None])
    own, raised, first, drawn = (repeated[..., at] for at in range(-4, 0))
    return {
        "score": estimate(score, bounds=SHARE, sizes=sizes[..., None]),
        "null": estimate(null, bounds=SHARE, sizes=sizes[..., None]),
        "surely_above": surely_above(gain, score[0].size),
        "copying": estimate(ratio(own, raised), bounds=SHARE, sizes=sizes),
        "copied": estimate_share(ratio(first, drawn), sizes),
        "copied_attention": estimate(first / length, bounds=SHARE, sizes=sizes),
        "told_again": estimate(draws(patterns["right"]), bounds=SHARE, sizes=count),
    }


def _successor(right: Float64, pairs: WordPairs, replicates: int) -> Estimate:
    draws = means_over(left_out(pairs.words, replicates=replicates), right)
    return estimate_independent(draws, len(pairs.words))


def _retrieval(weights: Mapping[str, Float64], hidden: Needles, replicates: int) -> dict[str, Any]:
    """Scores over the runs that the model answers; empty for fewer than FEWEST."""
    ids = np.full((len(hidden.right), max(map(len, hidden.right))), -1)
    for row, right in zip(ids, hidden.right, strict=True):
        row[: len(right)] = right
    values: dict[str, Any] = {"recall": weights["recall"], "depth": hidden.depth, "needle_ids": ids}
    answers = weights["recall"] > ANSWERED
    if answers.sum() >= FEWEST:
        draws, kept = _over_runs(weights, answers, replicates)
        sizes = ((ids[answers] >= 0).sum(1) @ kept)[:, None, None]
        streaming = draws["streaming"]
        hits, *others = (draws[name][0].ravel() for name in ("hits", *OTHER_SCORES))
        rho = [spearman_over_units(hits, other) for other in others]
        values |= {
            "retrieval": estimate_share(draws["hits"], sizes),
            "needle_attention": estimate(draws["attention"], bounds=SHARE, sizes=sizes),
            "qr_score": estimate(draws["qr_score"], bounds=DIFFERENCE, sizes=sizes),
            "locos": estimate(draws["locos"]),
            "needle_streaming": estimate(streaming, bounds=SHARE, sizes=even(streaming)),
            "retrieval_rho": estimate_correlation(np.stack(rho, -1)),
        }
    if "step_recall" not in weights:
        return values
    wrote = weights["step_recall"]
    values["step_recall"] = wrote
    if (wrote > ANSWERED).sum() >= FEWEST:
        steps = _over_runs(weights, wrote > ANSWERED, replicates)[0]["step_hits"]
        values["retrieval_steps"] = estimate(steps, bounds=POSITIVE)
    return values


def _over_runs(
    weights: Mapping[str, Float64], answered: Any, replicates: int
) -> tuple[dict[str, Float64], Float64]:
    """[replicate + 1, …] means over the answered runs; [run, replicate + 1] which of them count."""
    kept = left_out([f"{run}" for run in np.flatnonzero(answered)], replicates=replicates)
    parts = {name: weights[name][answered] for name in OF_RUNS if name in weights}
    return {name: means_over(kept, part) for name, part in parts.items()}, kept
