"""Turns sums over made inputs, and what the weights say, into the group `circuits`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.accumulators import Float64, left_out, ratio
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
    stretch,
)
from headscope.core.results import Variable, labelled
from headscope.core.terms import ELHAGE, GEMA, GOULD, OLSSON, OURS, WU, XIAO25, ZHANG
from headscope.experiments.circuits.made_inputs import FEWEST, Ordinals, Repeats
from headscope.experiments.circuits.retrieval import ANSWERED, WINDOWS, Needles

PATTERNS, WAYS = ("previous_token", "duplicate_token", "induction"), ("query", "key", "value")
OVER, OF_HEADS = ("layer", "head", "circuit"), ("layer", "head")
OF_RUNS = ("hits", "attention", "qr_score", "locos", "streaming", "step_hits")
OTHER_SCORES = ("qr_score", "locos")  # what else finds heads that retrieve


def circuits_result(
    patterns: Mapping[str, Float64],
    weights: Mapping[str, Float64],
    made: Repeats,
    asked: Ordinals,
    hidden: Needles | None,
    *,
    replicates: int,
    width: int,
) -> xr.Dataset:
    """The group `circuits`.

    patterns  by name, [sequence, …]: repeated_patterns, fresh_patterns, and repeated_right
    weights   by name, what the weights say
    width     numbers of the residual stream
    """
    names = [example.document for example in made.repeated]
    kept = left_out(names, replicates=replicates)  # [sequence, replicate + 1]

    def draws(values: Float64) -> Float64:
        """[replicate + 1, …] the mean over sequences."""
        total = np.tensordot(kept.T, values, 1)  # [replicate + 1, …]
        return np.asarray(total / kept.sum(0).reshape(-1, *[1] * (values.ndim - 1)))

    variables = _of_patterns(patterns, draws, kept.sum(0), made.length)
    variables |= {
        "weight_copying": Variable(
            weights["weight_copying"], OF_HEADS, "copying by weights", "1", ELHAGE
        ),
        "repeated_ids": Variable(made.ids, ("sequence", "token"), "the inputs", "1", OURS),
    }
    if "successor" in weights:
        variables["successor"] = _successor(weights["successor"], asked, replicates)
    coords: dict[str, Any] = {"circuit": list(PATTERNS)}
    if hidden is not None:
        variables |= _retrieval(weights, hidden, replicates)
        windows = [f"{first}+{last}" for first, last in WINDOWS]
        coords |= {"window": windows, "other": list(OTHER_SCORES)}
    if "composition" in weights:
        variables |= _composition(weights)
        coords["way"] = list(WAYS)
    found = labelled(variables, coords=coords)
    answered = int((weights.get("recall", np.zeros(0)) > ANSWERED).sum())
    wrote = int((weights.get("step_recall", np.zeros(0)) > ANSWERED).sum())
    of_needles = ("retrieval", "needle_attention", "needle_streaming", *OTHER_SCORES)
    counts = dict.fromkeys(of_needles, answered)
    counts |= {"retrieval_steps": wrote, "successor": len(asked.words)}
    for name in found.data_vars:
        if set(found[name].dims) & {"token", "reader", "step"}:
            found[name].attrs["tidy"] = 0
        else:
            found[name].attrs["n"] = counts.get(str(name).partition("_ci")[0], len(names))
    return found.assign_attrs(
        length=made.length,
        opening=made.opening,
        sequences=len(names),
        answered=answered,
        **({"wrote": wrote} if "step_recall" in weights else {}),
        ordinals="; ".join(asked.words),
        chance=1 / made.length,
        width=width,
    )


def _of_patterns(
    patterns: Mapping[str, Float64],
    draws: Callable[[Float64], Float64],
    count: Float64,
    length: int,
) -> dict[str, Variable]:
    """What attention tells; `count` [replicate + 1] of sequences, `length` queries of each."""
    repeated, fresh = draws(patterns["repeated_patterns"]), draws(patterns["fresh_patterns"])
    score = repeated[..., : len(PATTERNS)]
    null = np.concatenate([repeated[..., 3:4], fresh[..., 1:3]], -1)
    asked_of = count[:, None, None]  # no surer than one question of each sequence
    gain = estimate(score - null, bounds=DIFFERENCE, sizes=asked_of[..., None])
    own, raised, first, given = (repeated[..., at] for at in range(-4, 0))
    return {
        "score": Variable(
            estimate(score, bounds=SHARE, sizes=asked_of[..., None]),
            OVER,
            "attention on repeated tokens",
            "probability",
            OLSSON,
        ),
        "null": Variable(
            estimate(null, bounds=SHARE, sizes=asked_of[..., None]),
            OVER,
            "attention to the same places without a repeat, or to an earlier token at random",
            "probability",
            OURS,
        ),
        "surely_above": Variable(
            surely_above(gain, score[0].size),
            OVER,
            "lower end of score − null, corrected for all heads and scores",
            "probability",
            OURS,
        ),
        "copying": Variable(
            estimate(ratio(own, raised), bounds=SHARE, sizes=asked_of),
            OF_HEADS,
            "of what attended tokens raise among the input’s tokens, the share of themselves",
            "probability",
            OLSSON,
        ),
        "copied": Variable(
            estimate_share(ratio(first, given), asked_of),
            OF_HEADS,
            "of the attention to drawn tokens, the share to those that raise themselves most among "
            "the input’s tokens",
            "probability",
            OURS,
        ),
        "copied_attention": Variable(
            estimate(first / length, bounds=SHARE, sizes=asked_of),
            OF_HEADS,
            "of all attention of the second half, the share to drawn tokens that raise themselves "
            "most among the input’s tokens",
            "probability",
            OURS,
        ),
        "told_again": Variable(
            estimate(draws(patterns["repeated_right"]), bounds=SHARE, sizes=count),
            (),
            "probability of the token that comes again",
            "probability",
            OURS,
        ),
    }


def surely_above(gain: Estimate, tests: int) -> Float64:
    """Lower ends of intervals that hold for so many at once (Bonferroni); NaN without one."""
    return np.asarray(gain.value - stretch(tests) * (gain.value - gain.low))


def _successor(right: Float64, asked: Ordinals, replicates: int) -> Variable:
    kept = left_out(asked.words, replicates=replicates)
    draws = np.tensordot(kept.T, right, 1) / kept.sum(0)[:, None, None]
    return Variable(
        estimate_independent(draws, len(asked.words)),
        OF_HEADS,
        "share of ordinals whose successor the head’s weights make the top token",
        "probability",
        GOULD,
        "ordinals",
    )


def _retrieval(
    weights: Mapping[str, Float64], hidden: Needles, replicates: int
) -> dict[str, Variable]:
    """Of the runs that the model answers; nothing of fewer than FEWEST."""
    ids = np.full((len(hidden.right), max(map(len, hidden.right))), -1)
    for row, right in zip(ids, hidden.right, strict=True):
        row[: len(right)] = right
    variables = {
        "recall": Variable(
            weights["recall"], ("run",), "share of the needle that the model tells", "1", WU
        ),
        "depth": Variable(hidden.depth, ("run",), "share of the haystack before it", "1", WU),
        "needle_ids": Variable(ids, ("run", "step"), "the needles", "1", OURS),
    }
    told = weights["recall"] > ANSWERED
    if told.sum() >= FEWEST:
        draws, kept = _over_runs(weights, told, replicates)
        asked = ((ids[told] >= 0).sum(1) @ kept)[:, None, None]
        streaming = draws["streaming"]
        found = {
            "retrieval": Variable(
                estimate_share(draws["hits"], asked),
                OF_HEADS,
                "share of the needle’s tokens that are attended to most as they are told",
                "probability",
                WU,
            ),
            "needle_attention": Variable(
                estimate(draws["attention"], bounds=SHARE, sizes=asked),
                OF_HEADS,
                "attention to each of the needle’s tokens as it is told",
                "probability",
                OURS,
            ),
            "qr_score": Variable(
                estimate(draws["qr_score"], bounds=DIFFERENCE, sizes=asked),
                OF_HEADS,
                "attention from the question to the needle’s sentence, above that from “N/A”",
                "probability",
                ZHANG,
            ),
            "locos": Variable(
                estimate(draws["locos"]),
                OF_HEADS,
                "written for the told token from the needle, above as many other tokens",
                "logits before the last norm’s scale",
                GEMA,
            ),
            "needle_streaming": Variable(
                estimate(streaming, bounds=SHARE, sizes=even(streaming)),
                (*OF_HEADS, "window"),
                "attention from the answer to the first and the latest tokens",
                "probability",
                XIAO25,
            ),
        }
        hits, *others = (draws[name][0].ravel() for name in ("hits", *OTHER_SCORES))
        rho = [spearman_over_units(hits, other) for other in others]
        variables |= found | {
            "retrieval_rho": Variable(
                estimate_correlation(np.stack(rho, -1)),
                ("other",),
                "rank correlation with retrieval, over heads",
                "1",
                OURS,
                "heads",
            )
        }
    if "step_recall" not in weights:
        return variables
    wrote = weights["step_recall"]
    variables["step_recall"] = Variable(wrote, ("run",), "share of the needle written", "1", WU)
    if (wrote > ANSWERED).sum() >= FEWEST:
        steps = _over_runs(weights, wrote > ANSWERED, replicates)[0]["step_hits"]
        variables["retrieval_steps"] = Variable(
            estimate(steps, bounds=POSITIVE),
            OF_HEADS,
            "steps of a written answer that attend to "
            "a token of the needle most and copy it, by the needle’s tokens",
            "1",
            WU,
        )
    return variables


def _over_runs(
    weights: Mapping[str, Float64], told: Any, replicates: int
) -> tuple[dict[str, Float64], Float64]:
    """[replicate + 1, …] means over the runs told; [run, replicate + 1] which of them count."""
    kept = left_out([f"{run}" for run in np.flatnonzero(told)], replicates=replicates)
    count = kept.sum(0)
    parts = {name: weights[name][told] for name in OF_RUNS if name in weights}
    return {
        name: np.tensordot(kept.T, part, 1) / count.reshape(-1, *[1] * (part.ndim - 1))
        for name, part in parts.items()
    }, kept


def _composition(weights: Mapping[str, Float64]) -> dict[str, Variable]:
    over = ("way", "reader", "writer")
    return {
        "composition": Variable(
            weights["composition"].astype(np.float32), over, "composition of two heads", "1", ELHAGE
        ),
        "composition_above": Variable(
            weights["composition_above"].astype(np.float32),
            over,
            "standard deviations by which its square lies above random rotations",
            "1",
            OURS,
        ),
    }
