"""Do clusters of heads, and layers of similar heads, differ from untrained networks?

Networks of a few steps of training differ widely in how clear their clusters are. So clusters tell
of learning only where no network of the run's control has any. Likeness of layers is compared with
each network of the control over heads: it must lie above the control's beyond the interval of the
difference, of 99 %, as networks differ more than heads do.
"""

import numpy as np
import xarray as xr

from headscope.claims.control import controls
from headscope.core.accumulators import generator
from headscope.core.results import Floats, derived, group, shape

CLEAR = 0.05  # of p
DRAWS = 400
FAIR = 0.25  # of a mean silhouette; Kaufman and Rousseeuw 1990: below it there is no structure
LOWER = 0.5  # percent, for 99 %


@derived
def clusters_of_control(tree: xr.DataTree) -> float:
    """The clearest mean silhouette of a network of the control whose heads fall into clusters, by
    their p or as they are fair ones; NaN where there is none.
    """
    means = list[float]()
    for network in controls(tree):
        there = group(network, "divergence")
        if there is None:
            continue
        mean, p = float(there["silhouette"].mean()), float(there.get("cluster_p", np.nan))
        if p <= CLEAR or mean >= FAIR:
            means.append(mean)
    return max(means, default=np.nan)


@derived
def layers_of_control(tree: xr.DataTree) -> float:
    """How much less heads of one layer differ than others in a network of the control, as a share,
    the largest of those that the run does not clearly exceed; NaN where there is none.
    """
    gaps, own = list[float](), _less(tree, "run")
    for number, network in enumerate(controls(tree)):
        if group(network, "divergence") is None:
            continue
        other = _less(network, f"control {number}")
        if not np.nanpercentile(own[1:] - other[1:], LOWER) > 0:
            gaps.append(float(other[0]))
    return max(gaps, default=np.nan)


def _less(tree: xr.DataTree, name: str) -> Floats:
    """[draw + 1] 1 - divergence within / between layers; first as it is, then heads resampled."""
    dataset = group(tree, "divergence")
    assert dataset is not None
    js = dataset["js"].transpose("unit", "unit_other", ...).values
    units, heads = len(js), shape(tree)[1]
    layer = np.arange(units) // heads
    same = (layer[:, None] == layer) & ~np.eye(units, dtype=bool)
    other = layer[:, None] != layer
    random = generator(int(tree.attrs.get("seed", 0)), "control", name)
    drawn = random.multinomial(heads, np.full(heads, 1 / heads), size=(DRAWS, units // heads))
    # [draw + 1, unit]
    weights = np.vstack([np.ones(units), drawn.reshape(DRAWS, units)]).astype(np.float64)

    def mean(pairs: Floats) -> Floats:
        sums, counts = (((weights @ part) * weights).sum(1) for part in (js * pairs, pairs))
        return np.asarray(sums / np.where(counts > 0, counts, np.nan))

    within, between = mean(same.astype(np.float64)), mean(other.astype(np.float64))
    return np.asarray(1 - within / np.where(between > 0, between, np.nan))
