"""Do the last layers change most?

Kovaleva et al. (2019, §4.3) saw the last two layers change most, on all tasks but QQP.
"""

from __future__ import annotations

import numpy as np

from headscope.core.accumulators import Float64, estimate
from headscope.core.labelled import Variable
from headscope.experiments.comparison.ranks import rank_correlation

LAST = 2
_SOURCE = "Kovaleva et al. 2019, §4.3; the statistic is ours"


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
        name: Variable(estimate(drawn, documents=documents), (), words, "1", _SOURCE)
        for name, (drawn, words) in draws.items()
    }
    first = (last.min(1) > other.max(1))[1:] if documents > 1 and len(change) > 1 else np.array([])
    share = float(first.mean()) if len(first) else float("nan")
    words = "share of resamples in which the last layers change most"
    return found | {"last_are_first": Variable(share, (), words, "probability", _SOURCE)}
