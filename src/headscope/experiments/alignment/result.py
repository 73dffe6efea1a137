"""Scores the links of a model against the gold ones, as labelled numbers.

The alignment error rate of links A against sure links S and possible links P ⊇ S, all pooled over
the corpus: AER = 1 − (|A∩P| + |A∩S|) / (|A| + |S|) (Och and Ney 2003). Beside it, whether long
vectors tell which heads are right. Everything is computed on the data and on every bootstrap
resample of the pairs: arrays begin with [replicate + 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.stats import rankdata

from headscope.core.accumulators import Float64, bootstrap_weights, estimate, halves, ratio
from headscope.core.labelled import Variable, labelled
from headscope.run.store import State

PAPER = "Kobayashi et al. 2020, §5"
OURS = "headscope"
SETTINGS = ("AWO", "AWI")  # the word that is generated, the word that is read
MEASURES = ("weight", "norm")
NORM = MEASURES.index("norm")


def alignment_result(scores: AlignmentScores, *, pairs: int) -> xr.Dataset:
    """The group `alignment`; intervals are over the pairs of sentences.

    setting  AWO: a link is of the word that is generated; AWI: of the word that is read
    measure  by weight α, or by norm ‖αf(x)‖; of a layer, by the mean weight of its heads, or by the
             norm of the sum of their vectors
    """
    both = ("setting", "measure")
    rows = {
        "aer": (scores.head, ("layer", "head", *both), "alignment error rate of a head"),
        "layer_aer": (scores.layer, ("layer", *both), "alignment error rate of a layer"),
        "mean_layer_aer": (scores.layer.mean(1), both, "alignment error rate, mean of layers"),
        "best_aer": (scores.best, both, "alignment error rate of the best layer"),
        "highest_norm_layer_aer": (
            scores.highest_norm_layer, ("setting",),
            "alignment error rate of the layer of the highest mean norm",
        ),
        "highest_norm_head_aer": (
            scores.highest_norm_head, ("setting",),
            "alignment error rate of the head of the highest mean norm",
        ),
        "mean_norm": (scores.norm, ("layer", "head"), "mean weighted norm ‖αf(x)‖"),
        **{
            name: (
                scores.correlation(name), ("setting",),
                f"{sign} of alignment error rate and mean norm over heads",
            )
            for name, sign in (("spearman", "Spearman’s ρ"), ("pearson", "Pearson’s r"))
        },
    }  # fmt: skip
    variables = {
        name: Variable(estimate(draws, documents=pairs), dims, text, "1", PAPER)
        for name, (draws, dims, text) in rows.items()
    }
    held_out = "alignment error rate of the best layer, chosen on one half and scored on the other"
    found = estimate(scores.held_out, documents=pairs)
    variables["held_out"] = Variable(found, both, held_out, "1", OURS)
    best = "the layer of the lowest alignment error rate"
    variables["best_layer"] = Variable(scores.best_layer, both, best, "1", PAPER)
    coords = {"setting": SETTINGS, "measure": MEASURES}
    return labelled(variables, coords=coords)


# --- error rates ------------------------------------------------------------------------------


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
    def best_layer(self) -> npt.NDArray[np.int64]:
        """[setting, measure] the layer that has it."""
        return np.asarray(self.layer[0].argmin(0))

    @property
    def highest_norm_layer(self) -> Float64:
        """[replicate + 1, setting] by norms, of the layer whose heads have the longest vectors."""
        at = self.norm.mean(2).argmax(1)  # [replicate + 1]
        return np.asarray(self.layer[np.arange(len(at)), at, :, NORM])

    @property
    def highest_norm_head(self) -> Float64:
        """[replicate + 1, setting] by norms, of the head with the longest vectors."""
        by_unit = self.norm.reshape(len(self.norm), -1)  # [replicate + 1, unit]
        at = np.unravel_index(by_unit.argmax(1), self.norm.shape[1:])
        return np.asarray(self.head[np.arange(len(by_unit)), at[0], at[1], :, NORM])

    def correlation(self, coefficient: str) -> Float64:
        """[replicate + 1, setting] of the heads' error rates by norms with their mean norms.

        coefficient  "spearman" or "pearson"
        """
        norm = self.norm.reshape(len(self.norm), 1, -1)  # [replicate + 1, 1, unit]
        aer = self.head[..., NORM].reshape(*norm.shape[::2], -1)  # [replicate + 1, unit, setting]
        aer = np.swapaxes(aer, 1, 2)  # [replicate + 1, setting, unit]
        if coefficient == "spearman":
            norm, aer = (rankdata(x, axis=-1, nan_policy="propagate") for x in (norm, aer))
        norm, aer = (x - x.mean(-1, keepdims=True) for x in (norm, aer))
        spread = np.sqrt((norm**2).sum(-1) * (aer**2).sum(-1))
        return ratio((norm * aer).sum(-1), spread)


def scores_of(state: State, ids: list[str], *, replicates: int, seed: int) -> AlignmentScores:
    """The scores of all pairs.

    state  as `align.counts_of`, of pairs with these ids
    """
    weights = bootstrap_weights(ids, replicates=replicates, seed=seed)  # [pair, replicate + 1]
    first = halves(ids, seed=seed) == 0  # [pair]
    norm = ratio(
        np.einsum("pr,plh->rlh", weights, state["norm"]),
        (weights.T @ state["cells"])[:, None, None],
    )
    return AlignmentScores(
        error_rate(state["head"], state["wanted"], weights),
        error_rate(state["layer"], state["wanted"], weights),
        norm,
        _held_out(state, weights, first),
    )


def error_rate(
    counts: npt.NDArray[np.int32], wanted: npt.NDArray[np.int64], weights: Float64
) -> Float64:
    """[replicate + 1, …] AER of links that were counted.

    counts   [pair, …, COUNTED]
    wanted   [pair] sure links
    weights  [pair, replicate + 1] how often each pair occurs
    """
    pooled = np.tensordot(weights, counts.astype(np.float64), (0, 0))  # [replicate + 1, …, COUNTED]
    sure = (weights.T @ wanted).reshape(-1, *[1] * (pooled.ndim - 2))  # [replicate + 1, 1, …]
    found, possible, certain = (pooled[..., at] for at in range(3))
    return 1 - ratio(possible + certain, found + sure)


def _held_out(state: State, weights: Float64, first: npt.NDArray[np.bool_]) -> Float64:
    """See `AlignmentScores.held_out`."""
    halved = [
        error_rate(state["layer"], state["wanted"], weights * half[:, None])
        for half in (first, ~first)
    ]  # [replicate + 1, layer, setting, measure] each
    both = []
    for chosen, scored in (halved, halved[::-1]):
        at = chosen.argmin(1)[:, None]  # [replicate + 1, 1, setting, measure]
        both.append(np.take_along_axis(scored, at, 1)[:, 0])
    return np.asarray((both[0] + both[1]) / 2)
