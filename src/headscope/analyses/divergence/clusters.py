"""Which heads behave alike, in clusters and one by one, and what does each cluster do?

Reads what the analysis `divergence` found; `cluster_names` gives the words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from headscope.analyses.divergence.cluster_names import cluster_names
from headscope.core.accumulators import Estimate
from headscope.core.head_roles import head_roles
from headscope.core.results import derived, estimate, group, head_name, shape

CORE = 0.8  # ours: of a cluster's heads lie in the layers that are named
FOUND = ("cluster", "medoid", "jaccard")  # variables without which a run has no clusters


@dataclass(frozen=True)
class Cluster:
    """Heads that attend alike.

    number      from 0, in order of the mean layer; printed from 1
    what        what they do: `attention sink on [SEP] (9 of 12)`, …, `mixed`
    units       layer · heads + head, 0-based, in order
    medoid      the unit nearest to all others
    layers      first and last layer, 0-based, of the shortest stretch that holds CORE of its heads
    all_layers  whether these layers hold all its heads
    silhouette  how well apart from the next cluster, mean over its heads, -1 to 1
    jaccard     how much of it is found again in a replicate, 0 to 1; NaN without replicates
    """

    number: int
    what: str
    units: tuple[int, ...]
    medoid: int
    layers: tuple[int, int]
    all_layers: bool
    silhouette: tuple[float, float, float]
    jaccard: float

    @property
    def place(self) -> str:
        """`layers 6–9`, `mostly layers 6–9`, `layer 4`, printed from 1."""
        first, last = (layer + 1 for layer in self.layers)
        words = f"layer {first}" if first == last else f"layers {first}–{last}"
        return words if self.all_layers else f"mostly {words}"

    @property
    def name(self) -> str:
        """`12 heads, layers 6–9: attention sink on [SEP] (9 of 12)`."""
        count = len(self.units)
        return f"{count} {'head' if count == 1 else 'heads'}, {self.place}: {self.what}"


@dataclass(frozen=True)
class Near:
    """A head near to another: 0-based place, and their divergence with its interval."""

    layer: int
    head: int
    js: float
    low: float
    high: float


@derived
def clusters(tree: xr.DataTree) -> list[Cluster]:
    """The clusters of a run, in order; none where it has no divergence, or is an old run."""
    divergence = group(tree, "divergence")
    if divergence is None or not all(name in divergence for name in FOUND):
        return []
    number = divergence["cluster"].values.astype(int)  # [unit]
    silhouette = estimate(divergence, "cluster_silhouette")
    found = []
    for at, what in enumerate(cluster_names(tree, number)):
        units = np.flatnonzero(number == at)
        layers, whole = _core((units // shape(tree)[1]).tolist())
        found.append(
            Cluster(
                at, what, tuple(units.tolist()), int(divergence["medoid"].values[at]), layers,
                whole, _at(silhouette, at), float(divergence["jaccard"].values[at]),
            )
        )  # fmt: skip
    return found


def cluster_of(tree: xr.DataTree, layer: int, head: int) -> Cluster | None:
    """The cluster of one head, 0-based; None where the run has no clusters."""
    unit = layer * shape(tree)[1] + head
    return next((found for found in clusters(tree) if unit in found.units), None)


def nearest_heads(tree: xr.DataTree, layer: int, head: int, count: int = 5) -> list[Near]:
    """The heads whose attention is most like that of one head, the nearest first.

    layer, head  0-based
    returns      at most `count`, without the head itself; none where the run has no divergence
    """
    divergence = group(tree, "divergence")
    if divergence is None or "js" not in divergence:
        return []
    heads = shape(tree)[1]
    unit = layer * heads + head
    row = estimate(divergence.transpose("unit", "unit_other", ...).isel(unit=unit), "js")
    order = [at for at in np.argsort(row.value, kind="stable").tolist() if at != unit]
    return [
        Near(at // heads, at % heads, *_at(row, at))
        for at in order[:count]
        if np.isfinite(row.value[at])
    ]


def cluster_table(tree: xr.DataTree) -> pd.DataFrame:
    """One row per cluster: model, revision, cluster (0-based), size, what, name, first_layer and
    last_layer (0-based, of most of its heads), medoid, silhouette with its interval, jaccard, how
    many heads have each role, and its heads as papers name them.
    """
    heads, roles = shape(tree)[1], head_roles(tree).reshape(-1)  # [unit]
    return pd.DataFrame(
        [
            {
                "model": str(tree.attrs.get("model", "")),
                "revision": str(tree.attrs.get("revision", "")),
                "cluster": found.number,
                "size": len(found.units),
                "what": found.what,
                "name": found.name,
                "first_layer": found.layers[0],
                "last_layer": found.layers[1],
                "medoid": head_name(found.medoid, heads),
                "silhouette": found.silhouette[0],
                "silhouette_ci_low": found.silhouette[1],
                "silhouette_ci_high": found.silhouette[2],
                "jaccard": found.jaccard,
                "roles": "; ".join(
                    f"{number} {role}"
                    for role, number in Counter(roles[list(found.units)].tolist()).most_common()
                ),
                "heads": " ".join(head_name(unit, heads) for unit in found.units),
            }
            for found in clusters(tree)
        ]
    )


def _core(layers: Sequence[int]) -> tuple[tuple[int, int], bool]:
    """The shortest stretch of layers that holds CORE of the heads, the first of equals."""
    ordered = sorted(layers)
    need = int(np.ceil(CORE * len(ordered)))
    spans = [(ordered[at], ordered[at + need - 1]) for at in range(len(ordered) - need + 1)]
    first, last = min(spans, key=lambda span: (span[1] - span[0], span[0]))
    return (first, last), first == ordered[0] and last == ordered[-1]


def _at(parts: Estimate, at: int) -> tuple[float, float, float]:
    return float(parts.value[at]), float(parts.low[at]), float(parts.high[at])


def tables(tree: xr.DataTree) -> dict[str, pd.DataFrame]:
    """The clusters of heads."""
    return {"clusters": cluster_table(tree)}
