"""Tests whether the change of a layer goes with its depth, or with how much the layer learned.

Kovaleva et al. (2019, §4.3) saw the last two layers change most, on all tasks but QQP.
`headscope finetune` writes beside a checkpoint, for every layer, the mean norm of its gradients and
how far its weights have moved. Here both stand beside the change of attention.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import permutation_test, rankdata

from headscope.core.accumulators import Float64, estimate, generator
from headscope.core.labelled import Variable
from headscope.errors import ModelError
from headscope.run.manifest import TRAINING_RECORD

LAST = 2
_DEPTH_SOURCE = "Kovaleva et al. 2019, §4.3; the statistic is ours"
_MEASURES = {
    "gradient_norm": "norm of a layer's gradients, mean over the steps of the training",
    "relative_change": "how far a layer's weights moved, of their own norm",
    "learning_rate": "largest learning rate of a layer",
}
_SOURCE = "ours"
DRAWS = 9999  # permutations; of seven layers or fewer all are tried


# --- depth ------------------------------------------------------------------------------------


def by_depth(change: Float64, *, documents: int) -> dict[str, Variable]:
    """What says whether change grows with depth; nothing for fewer than three layers.

    change  [replicate + 1, layer] 1 - cosine, mean over heads
    returns last_change, other_change   mean over the last two layers, and over those before
            last_minus_other            their difference
            last_are_first              share of resamples in which no layer before changes as much
                                        as either of the last two
            depth_correlation           Spearman's, of 1 - cosine with the number of the layer
    """
    layers = change.shape[1]
    if layers <= LAST:
        return {}
    last, other = change[:, -LAST:], change[:, :-LAST]
    draws = {
        "last_change": (last.mean(1), f"1 - cosine, mean over the last {LAST} layers"),
        "other_change": (other.mean(1), "1 - cosine, mean over the layers before"),
        "last_minus_other": (last.mean(1) - other.mean(1), "how much more the last layers change"),
        "depth_correlation": (
            rank_correlation(change, np.arange(layers, dtype=np.float64)),
            "rank correlation of 1 - cosine with depth",
        ),
    }
    found = {
        name: Variable(estimate(drawn, documents=documents), (), words, "1", _DEPTH_SOURCE)
        for name, (drawn, words) in draws.items()
    }
    first = (last.min(1) > other.max(1))[1:] if documents > 1 and len(change) > 1 else np.array([])
    share = float(first.mean()) if len(first) else float("nan")
    words = "share of resamples in which the last layers change most"
    return found | {"last_are_first": Variable(share, (), words, "probability", _DEPTH_SOURCE)}


# --- training ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    """What is known of how a checkpoint was trained.

    gradient_norm, relative_change, learning_rate  [layer] NaN where it is not known
    """

    gradient_norm: Float64
    relative_change: Float64
    learning_rate: Float64


def read_training(checkpoint: str | Path, *, layers: int) -> Training | None:
    """What `headscope finetune` wrote beside a checkpoint; None where there is no record.

    raises  ModelError if the record is damaged, or of a network with other layers
    """
    file = Path(checkpoint) / TRAINING_RECORD
    if not file.is_file():
        return None
    try:
        record = json.loads(file.read_text("utf-8"))
        rows = [row for row in record["layers"] if row["layer"] is not None]
        numbers = {int(row["layer"]): row for row in rows}
        found = [_column(numbers, name) for name in ("gradient_norm", "relative_change", "rate")]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(
            f"{file} is no record of a training ({type(error).__name__}: {str(error)[:80]}); "
            "make the checkpoint again with headscope finetune, or delete the file"
        ) from error
    if sorted(numbers) == [0] and layers > 1:  # one layer, used again and again (ALBERT)
        return None
    if sorted(numbers) != list(range(layers)):
        raise ModelError(
            f"{file} tells of {len(numbers)} layers, and the checkpoint has {layers}; wanted the "
            "record of this checkpoint: delete the file if it is of another"
        )
    return Training(*found)


def beside_training(change: Float64, training: Training, *, documents: int) -> dict[str, Variable]:
    """The numbers of the training, and how they go with the change of attention over layers.

    change   [replicate + 1, layer] 1 - cosine, mean over heads
    returns  gradient_norm, relative_change, learning_rate [layer]; and of the first two
             NAME_correlation        Spearman's, with 1 - cosine; the interval is over documents
             NAME_p                  how often layers in random order go together as closely
             NAME_depth_correlation  with the layer's number
    """
    depth = np.arange(change.shape[1], dtype=np.float64)
    found: dict[str, Variable] = {}
    for name, words in _MEASURES.items():
        values: Float64 = getattr(training, name)
        if not np.isfinite(values).all():
            continue
        found[name] = Variable(values, ("layer",), words, "1", _SOURCE)
        if name == "learning_rate":
            continue
        together = estimate(rank_correlation(change, values), documents=documents)
        numbers: dict[str, Any] = {
            "correlation": (together, "rank correlation with 1 - cosine over layers"),
            "p": (chance_of(change[0], values), "p of that correlation, layers dealt out anew"),
            "depth_correlation": (
                float(rank_correlation(values, depth)), "rank correlation with depth"
            ),
        }  # fmt: skip
        found |= {
            f"{name}_{key}": Variable(value, (), f"{words}: {told}", "1", _SOURCE)
            for key, (value, told) in numbers.items()
        }
    return found


def _column(rows: dict[int, dict[str, Any]], name: str) -> Float64:
    """[layer] one number of each row; NaN where it is missing."""
    values = [rows[layer].get(name) for layer in sorted(rows)]
    return np.array([np.nan if value is None else float(value) for value in values])


# --- rank correlation -------------------------------------------------------------------------


def rank_correlation(first: Float64, second: Float64) -> Float64:
    """[...] Spearman's correlation over the last axis, broadcast; NaN where one is constant."""
    x, y = (_centred_ranks(part) for part in (first, second))
    products = (x * y).sum(-1)
    size = np.sqrt((x * x).sum(-1) * (y * y).sum(-1))
    out = np.full(np.shape(products), np.nan)
    np.divide(products, size, out=out, where=size > 0)
    return out


def chance_of(first: Float64, second: Float64, *, seed: int = 0) -> float:
    """How often layers in random order go together as closely, whichever way round.

    NaN where one of both is constant.
    """
    if not np.isfinite(rank_correlation(first, second)):
        return float("nan")

    def closeness(dealt: Float64, axis: int = -1) -> Float64:
        return rank_correlation(np.moveaxis(dealt, axis, -1), second)

    found = permutation_test(
        (first,), closeness, permutation_type="pairings", n_resamples=DRAWS, vectorized=True,
        rng=generator(seed, "layers"),
    )  # fmt: skip
    return float(found.pvalue)


def _centred_ranks(values: Float64) -> Float64:
    ranks = rankdata(values, axis=-1)
    centred: Float64 = ranks - ranks.mean(-1, keepdims=True)
    return centred
