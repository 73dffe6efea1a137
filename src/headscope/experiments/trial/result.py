"""Converts what moved attention changes into labelled results.

effect[hypothesis]            change where the rule applies
beyond[hypothesis, against]   that less the change that it is compared with, paired by input
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from headscope.claims.plan import CHANGES, COPIES, NOTHING
from headscope.claims.terms import OURS
from headscope.core.accumulators import Array, Float64, left_out, means_over, ratio
from headscope.core.intervals import FEWEST, Estimate, estimate
from headscope.core.results import Variable, labelled
from headscope.experiments.trial.donors import OTHER_TOKEN, SAME_TOKEN
from headscope.experiments.trial.hypotheses import Hypothesis
from headscope.experiments.trial.queries import COMPARED
from headscope.experiments.trial.settings import LEAST
from headscope.experiments.trial.terms import (
    COPIED,
    DISTANCE,
    LOSS,
    MEASURES,
    OF_MASKED,
    VECTORS,
)

OTHER_HEADS, WHOLE = "other_heads", "whole"
AGAINST = (*COMPARED, OTHER_HEADS)
HALF = 0.5  # ours: of what the same weight would take from other tokens, at most so much by a rest
ONE, EACH = ("hypothesis",), ("hypothesis", "against")


WORDS = {
    "effect": "change of the output where its rule applies",
    "share": "the same, as a share of what all that the head looks at changes there",
    "beyond": "change where its rule applies, less that of what it is compared with",
    "loss": "rise of the loss of {tokens} where its rule applies",
    "direct": "change by what the head writes straight to the output",
    "direct_loss": "rise of that loss by the same",
    "repaired": "change by the same, less that of the output",
    "transfer": "change by what the head gathers in another input, where its rule leads to another "
    "token, less that where it leads to the same one",
}
UNITS = {"share": "probability", "loss": "nats", "direct_loss": "nats"}


def trial_result(
    hypotheses: Sequence[Hypothesis],
    why: Sequence[str],
    numbers: Mapping[str, Array],
    units: Sequence[str],
    columns: Sequence[str],
    *,
    replicates: int,
    direct: bool,
    score: str,
) -> xr.Dataset:
    """The group `trial`.

    score    what says that a label matters, of SCORES

    numbers  "hypothesis", "input" [n]; "change" [n, column, side, measure], "direct"
             [n, side, measure], "scale" [n]; {} where nothing was tried
    units    [input] name of its document
    columns  names of the moves, without that where the rule applies
    """
    tokens = "masked tokens" if score == OF_MASKED else "the next token"
    none, zero = _exactly(np.nan), dict.fromkeys(("inputs", "documents"), _exactly(0))
    made = [
        _of_one(one, number, numbers, units, columns, replicates=replicates, score=score)
        if not reason
        else dict.fromkeys(WORDS, none) | {"beyond": _stacked([none] * len(AGAINST)), **zero}
        for number, (one, reason) in enumerate(zip(hypotheses, why, strict=True))
    ]
    variables = {
        name: Variable(
            _stacked([one[name] for one in made]),
            EACH if name == "beyond" else ONE,
            text.format(tokens=tokens),
            UNITS.get(name, "1"),
            OURS,
        )
        for name, text in WORDS.items()
    }
    for name in ("inputs", "documents"):
        value = np.array([float(one[name].value) for one in made])
        variables[name] = Variable(
            value, ONE, f"{name} on which it was tried", "1", OURS, tidy=False
        )
    coords = {"hypothesis": range(len(hypotheses)), "against": list(AGAINST)}
    dataset = labelled(variables, coords=coords)
    texts = {
        "name": [one.name for one in hypotheses],
        "kind": [one.kind for one in hypotheses],
        "rule": [one.rule for one in hypotheses],
        "why": list(why),
        "heads": [" ".join(f"{layer},{head}" for layer, head in one.heads) for one in hypotheses],
        "expects": [one.expects for one in hypotheses],
        "measure": [_measure(one, score) for one in hypotheses],
    }
    dataset = dataset.assign_coords(
        {name: ("hypothesis", np.array(values, object)) for name, values in texts.items()}
    )
    return dataset.assign_attrs(direct=int(direct), score=score)


def _measure(one: Hypothesis, score: str) -> str:
    """Which of MEASURES says what a label changes: that a rest gives nothing is said by vectors,
    whatever the score.
    """
    if one.expects == COPIES:
        return COPIED
    return LOSS if score != VECTORS and one.expects == CHANGES else DISTANCE


Parts = dict[str, Estimate]


def _of_one(
    one: Hypothesis,
    number: int,
    numbers: Mapping[str, Array],
    units: Sequence[str],
    columns: Sequence[str],
    *,
    replicates: int,
    score: str,
) -> Parts:
    rows = np.flatnonzero(numbers["hypothesis"] == number)
    inputs = numbers["input"][rows]
    kept = left_out([units[at] for at in inputs], replicates=replicates)
    name = _measure(one, score)
    measure = MEASURES.index(name)
    scale = float(numbers["scale"][rows].mean()) if name == DISTANCE else 1.0
    change = numbers["change"][rows]  # [row, column, side, measure]
    own, other = (
        {name: change[:, at, side, measure] / scale for at, name in enumerate(columns)}
        for side in (0, 1)
    )
    most = HALF if one.expects == NOTHING else 1.0
    both = numbers["direct"][rows]  # [row, side, measure]
    straight = both[:, :, measure] / scale
    return {
        "effect": _mean(kept, straight[:, 0]),
        "share": _ratio(kept, own[WHOLE], other[WHOLE]),
        "beyond": _stacked([_mean(kept, own[name] - most * other[name]) for name in AGAINST]),
        "transfer": _mean(kept, other[OTHER_TOKEN] - other[SAME_TOKEN], least=0.0),
        "loss": _mean(kept, both[:, 0, MEASURES.index(LOSS)]),
        "direct": _mean(kept, straight[:, 1]),
        "direct_loss": _mean(kept, both[:, 1, MEASURES.index(LOSS)]),
        "repaired": _mean(kept, straight[:, 1] - straight[:, 0]),
        "inputs": _exactly(len(rows)),
        "documents": _exactly(len({units[at] for at in inputs})),
    }


def _mean(kept: Float64, values: Float64, *, least: float = 0.5) -> Estimate:
    """The mean over the inputs that have a value; NaN where fewer than LEAST have one, or a smaller
    share of them than `least`.
    """
    weight = np.isfinite(values).astype(np.float64)
    if weight.sum() < max(LEAST, least * len(values)):
        return _exactly(np.nan)
    draws = means_over(kept, np.where(weight > 0, values, 0.0), weight)
    return _estimated(draws, (kept * weight[:, None]).sum(0))


def _estimated(draws: Float64, sizes: Float64) -> Estimate:
    """With an interval; where few of many documents differ from the rest at all, as of a head that
    writes nothing, it reaches to the farthest of them.
    """
    one = estimate(draws[:, None], sizes[:, None]).map(np.squeeze)
    if np.isnan(one.low) and len(draws) > FEWEST:
        far = np.ptp(draws) * (len(draws) - 1)
        return Estimate(one.value, one.value - far, one.value + far)
    return one


def _ratio(kept: Float64, part: Float64, whole: Float64) -> Estimate:
    """Sum of the one over that of the other, of inputs that have both."""
    there = np.isfinite(part) & np.isfinite(whole)
    sums = [kept.T @ np.where(there, side, 0.0) for side in (part, whole)]
    return _estimated(ratio(*sums, absent=0.0), (kept * there[:, None]).sum(0))


def _stacked(some: Sequence[Estimate]) -> Estimate:
    return Estimate(
        *(np.array([getattr(one, end) for one in some]) for end in ("value", "low", "high"))
    )


def _exactly(value: float) -> Estimate:
    return Estimate(*(np.array(float(value)) for _ in range(3)))
