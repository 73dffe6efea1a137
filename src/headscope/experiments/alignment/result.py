"""What does a run on word alignment hold? Error rates and norms as labelled numbers."""

from __future__ import annotations

import xarray as xr

from headscope.core.accumulators import estimate
from headscope.core.labelled import Variable, labelled
from headscope.experiments.alignment.links import MEASURES, SETTINGS
from headscope.experiments.alignment.scores import Scores

PAPER = "Kobayashi et al. 2020, §5"
OURS = "headscope"


def alignment_result(scores: Scores, *, pairs: int) -> xr.Dataset:
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
