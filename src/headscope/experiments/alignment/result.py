"""Scores the aligned words of a model against the gold alignment, as labelled results.

The alignment error rate of links A against sure links S and possible links P ⊇ S, all pooled over
the corpus: AER = 1 − (|A∩P| + |A∩S|) / (|A| + |S|) (Och and Ney 2003). Beside it, whether long
vectors tell which heads are right. Everything is computed on all pairs and without each group of
them: arrays begin with [replicate + 1]. Correlations over heads leave out heads instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core.accumulators import Float64, Ints, correlation, halves, left_out, ratio
from headscope.core.intervals import (
    POSITIVE,
    SHARE,
    Estimate,
    estimate,
    estimate_correlation,
    spearman_over_units,
)
from headscope.core.results import Variable, labelled
from headscope.run.shard_files import State

PAPER = "Kobayashi et al. 2020, §5"
OURS = "headscope"
SETTINGS = ("AWO", "AWI")  # the word that is generated, the word that is read
MEASURES = ("weight", "norm")
NORM = MEASURES.index("norm")
OVER_HEADS = ("spearman", "pearson")


def alignment_result(scores: AlignmentScores) -> xr.Dataset:
    """The group `alignment`; intervals are over the pairs of sentences.

    setting  AWO: a link is of the word that is generated; AWI: of the word that is read
    measure  by weight α, or by norm ‖αf(x)‖; of a layer, by the mean weight of its heads, or by the
             norm of the sum of their vectors
    """
    setting, both = ("setting",), ("setting", "measure")
    rate, highest = "alignment error rate", "of the highest mean norm"
    together = f"{{}} of {rate} and mean norm over heads"
    rows = {
        "aer": (scores.head, ("layer", "head", *both), f"{rate} of a head"),
        "layer_aer": (scores.layer, ("layer", *both), f"{rate} of a layer"),
        "mean_layer_aer": (scores.layer.mean(1), both, f"{rate}, mean of layers"),
        "best_aer": (scores.best, both, f"{rate} of the best layer"),
        "highest_norm_layer_aer": (
            scores.highest_norm_layer,
            setting,
            f"{rate} of the layer {highest}",
        ),
        "highest_norm_head_aer": (
            scores.highest_norm_head,
            setting,
            f"{rate} of the head {highest}",
        ),
        "mean_norm": (scores.norm, ("layer", "head"), "mean weighted norm ‖αf(x)‖"),
        "spearman": (
            scores.correlation(spearman_over_units),
            setting,
            together.format("Spearman’s ρ"),
        ),
        "pearson": (
            scores.correlation(pearson_over_units),
            setting,
            together.format("Pearson’s r"),
        ),
        "held_out": (
            scores.held_out,
            both,
            f"{rate} of the best layer, chosen on one half and scored on the other",
        ),
    }
    variables = {
        name: Variable(
            _estimate(name, draws),
            dims,
            text,
            "1",
            OURS if name == "held_out" else PAPER,
            "heads" if name in OVER_HEADS else "",
        )
        for name, (draws, dims, text) in rows.items()
    }
    best = f"the layer of the lowest {rate}"
    variables["best_layer"] = Variable(scores.best_layer, both, best, "1", PAPER)
    return labelled(variables, coords={"setting": SETTINGS, "measure": MEASURES})


@dataclass(frozen=True)
class AlignmentScores:
    """Error rates, with replicate 0 the data.

    head      [replicate + 1, layer, head, setting, measure]
    layer     [replicate + 1, layer, setting, measure]
    norm      [replicate + 1, layer, head] mean ‖αf(x)‖ over all queries and keys
    held_out  [replicate + 1, setting, measure] the layer that is best on one half of the pairs, on
              the other half; mean of both ways
    """

    head: Float64
    layer: Float64
    norm: Float64
    held_out: Float64

    @property
    def best(self) -> Float64:
        """[replicate + 1, setting, measure] the lowest error rate of a layer."""
        return np.asarray(self.layer.min(1))

    @property
    def best_layer(self) -> Ints:
        """[setting, measure] the layer that has it."""
        return np.asarray(self.layer[0].argmin(0))

    @property
    def highest_norm_layer(self) -> Float64:
        """[replicate + 1, setting] error rate by norms of the layer whose heads have the longest
        vectors.
        """
        return _of_highest(self.layer, self.norm.mean(2))

    @property
    def highest_norm_head(self) -> Float64:
        """[replicate + 1, setting] error rate by norms of the head with the longest vectors."""
        rows = len(self.norm)
        by_unit = self.head.reshape(rows, -1, *self.head.shape[3:])
        return _of_highest(by_unit, self.norm.reshape(rows, -1))  # [replicate + 1, unit, …]

    def correlation(self, over: Callable[[Float64, Float64], Float64]) -> Float64:
        """[head + 1, setting] of the heads' error rates by norms with their mean norms."""
        norm, aer = self.norm[0].ravel(), self.head[0, ..., NORM]
        settings = [over(norm, aer[..., at].ravel()) for at in range(aer.shape[-1])]
        return np.stack(settings, -1)  # [unit + 1, setting]


def pearson_over_units(one: Float64, other: Float64) -> Float64:
    """[unit + 1] Pearson's r over units: of all, then without each."""
    kept = [np.delete(np.stack([one, other]), at, 1) for at in ((), *range(len(one)))]
    return np.array([correlation(*pairs) for pairs in kept])


def _estimate(name: str, draws: Float64) -> Estimate:
    if name in OVER_HEADS:
        return estimate_correlation(draws)
    return estimate(draws, bounds=POSITIVE if name == "mean_norm" else SHARE)


def _of_highest(rates: Float64, norm: Float64) -> Float64:
    """[replicate + 1, setting] error rates by norms, [replicate + 1, unit, setting, measure], of
    the unit with the highest norm, [replicate + 1, unit].
    """
    return np.asarray(rates[np.arange(len(norm)), norm.argmax(1), :, NORM])


def scores_of(state: State, ids: list[str], *, replicates: int, seed: int) -> AlignmentScores:
    """The scores of all pairs.

    state  as `align.counts_of`, of pairs with these ids
    """
    weights = left_out(ids, replicates=replicates)  # [pair, replicate + 1]
    wanted, layer = state["wanted"], state["layer"]
    norm = ratio(
        np.einsum("pr,plh->rlh", weights, state["norm"]),
        (weights.T @ state["cells"])[:, None, None],
    )
    first = halves(ids, seed=seed)[:, None] == 0  # [pair, 1]
    halved = [error_rate(layer, wanted, weights * half) for half in (first, ~first)]
    held_out = [
        np.take_along_axis(scored, chosen.argmin(1)[:, None], 1)[:, 0]
        for chosen, scored in (halved, halved[::-1])
    ]  # [replicate + 1, setting, measure] each
    return AlignmentScores(
        error_rate(state["head"], wanted, weights),
        error_rate(layer, wanted, weights),
        norm,
        np.asarray((held_out[0] + held_out[1]) / 2),
    )


def error_rate(counts: npt.NDArray[np.int32], wanted: Ints, weights: Float64) -> Float64:
    """[replicate + 1, …] AER of links that were counted.

    counts   [pair, …, COUNTED]
    wanted   [pair] sure links
    weights  [pair, replicate + 1] whether each pair is left in
    """
    pooled = np.tensordot(weights, counts.astype(np.float64), (0, 0))  # [replicate + 1, …, COUNTED]
    sure = (weights.T @ wanted).reshape(-1, *[1] * (pooled.ndim - 2))  # [replicate + 1, 1, …]
    correct, possible, certain = (pooled[..., at] for at in range(3))
    return 1 - ratio(possible + certain, correct + sure)
