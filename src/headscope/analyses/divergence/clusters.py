"""Which heads behave alike, in clusters and one by one, and what does each cluster do?

Reads what the analysis `divergence` found. The label that half of the heads or more bear names a
cluster, if fewer of the other heads bear it. Where there is none, or where it leaves open where
they attend, so does the target that they attend to more than all other heads, or how much wider or
narrower they attend. What is left is mixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.claim import Claim
from headscope.core.head_attention import TARGETS, attention_to, has_cls, spread
from headscope.core.head_labels import head_labels
from headscope.core.head_roles import head_roles
from headscope.core.results import (
    Floats,
    at,
    derived,
    estimate,
    group,
    head_name,
    shape,
    token_names,
)
from headscope.core.wording import percent, plain

MIXED = "mixed"
MOST_HEADS = 0.5  # ours: of a cluster's heads bear the label that names it
MORE = 0.25  # ours: than of the other heads
SPREADS = 0.8  # a large difference by Cohen's convention, in standard deviations of all heads
LEAST_SHARE = 0.1  # ours: of the attention; less does not name a cluster
WIDTHS = ("broad", "narrow")
# Kinds of labels that leave open where a head attends.
OPEN = (*WIDTHS, "vertical", "diagonal", "vertical_diagonal", "block")
WIDTH = "width"  # the entropy of attention
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Difference:
    """How the heads of a cluster differ from all other heads in one number.

    of       a target, or WIDTH
    spreads  standard deviations (of all heads) that the means lie apart
    here, there  the means of the cluster's and of the other heads
    """

    of: str
    spreads: float
    here: float
    there: float


def cluster_names(tree: xr.DataTree, number: npt.NDArray[np.int64]) -> list[str]:
    """What each cluster does; number [unit] the cluster of every head, from 0.

    `attention sink on [SEP] (9 of 12)`; `more to the next token (27 %, others 4 %)`; `mixed`
    """
    labels = [labels_of.labels for labels_of in head_labels(tree).values()]  # [unit]
    numbers = _numbers(tree)
    return [_name(tree, labels, numbers, number == at) for at in range(int(number.max()) + 1)]


def _name(
    tree: xr.DataTree,
    labels: Sequence[Sequence[Claim]],
    numbers: dict[str, Floats],
    own: Bools,
) -> str:
    label, kind = _common_label(labels, own)
    parts = [label] if label else []
    if not label or kind in OPEN:
        largest = _largest(_differences(numbers, own), widths=kind not in WIDTHS)
        parts += [_said(tree, largest)] if largest else []
    return "; ".join(parts) or MIXED


def _common_label(labels: Sequence[Sequence[Claim]], own: Bools) -> tuple[str, str]:
    """The label that tells the cluster from the other heads, with how many bear it, and its kind.

    '' where no label is borne by MOST_HEADS of its heads and, as a share, by MORE than of others.
    """
    names = [{claim.name: claim.kind for claim in of_head} for of_head in labels]
    inside = Counter(name for at in np.flatnonzero(own) for name in names[at])
    outside = Counter(name for at in np.flatnonzero(~own) for name in names[at])
    count, others = int(own.sum()), max(int((~own).sum()), 1)
    more = {
        name: borne / count - outside[name] / others
        for name, borne in sorted(inside.items())
        if borne >= MOST_HEADS * count
    }
    best = max(more, key=lambda name: more[name], default="")
    if not best or more[best] < MORE:
        return "", ""
    kind = next(of_head[best] for of_head in names if best in of_head)
    return best if inside[best] == count else f"{best} ({inside[best]} of {count})", kind


def _numbers(tree: xr.DataTree) -> dict[str, Floats]:
    """Target → [unit] mean attention to it, and WIDTH → the entropy; those that the run has."""
    wanted = [name for name in TARGETS if name != "first" or not has_cls(tree)]
    parts = {name: attention_to(tree, name) for name in wanted} | {WIDTH: spread(tree)[0]}
    flat = {name: part.value.reshape(-1) for name, part in parts.items() if part is not None}
    return {name: value for name, value in flat.items() if np.isfinite(value).all()}


def _differences(numbers: dict[str, Floats], own: Bools) -> list[Difference]:
    """One for every number in which heads differ at all; none if there are no other heads."""
    if own.all():
        return []
    return [
        Difference(
            name,
            float((value[own].mean() - value[~own].mean()) / value.std()),
            float(value[own].mean()),
            float(value[~own].mean()),
        )
        for name, value in numbers.items()
        if value.std() > 0
    ]


def _largest(differences: Sequence[Difference], *, widths: bool) -> Difference | None:
    """The largest that can name a cluster: more to a target, before wider or narrower."""
    targets = [
        one for one in differences
        if one.of != WIDTH and one.spreads >= SPREADS and one.here >= LEAST_SHARE
    ]  # fmt: skip
    if targets:
        return max(targets, key=lambda one: one.spreads)
    wide = [one for one in differences if one.of == WIDTH and abs(one.spreads) >= SPREADS]
    return wide[0] if wide and widths else None


def _said(tree: xr.DataTree, one: Difference) -> str:
    if one.of == WIDTH:
        how = "spread wider" if one.spreads > 0 else "on fewer tokens"
        ends = [f"{plain(one.here, 'nats')} nats", plain(one.there, "nats")]
        return f"{how} (entropy {ends[0]}, others {ends[1]})"
    goal = token_names(tree).get(one.of) or TARGETS[one.of].goal
    ends = [percent(value, np.nan, np.nan) for value in (one.here, one.there)]
    return f"more to {goal} ({ends[0]}, others {ends[1]})"


CORE = 0.8  # ours: of a cluster's heads lie in the layers that are named
CLUSTER_VARIABLES = (
    "cluster",
    "medoid",
    "jaccard",
)  # variables without which a run has no clusters


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
class NearHead:
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
    if divergence is None or not all(name in divergence for name in CLUSTER_VARIABLES):
        return []
    number = divergence["cluster"].values.astype(int)  # [unit]
    silhouette = estimate(divergence, "cluster_silhouette")
    made = []
    for cluster, what in enumerate(cluster_names(tree, number)):
        units = np.flatnonzero(number == cluster)
        layers, whole = _core((units // shape(tree)[1]).tolist())
        made.append(
            Cluster(
                cluster, what, tuple(units.tolist()), int(divergence["medoid"].values[cluster]),
                layers, whole, at(silhouette, cluster),
                float(divergence["jaccard"].values[cluster]),
            )
        )  # fmt: skip
    return made


def cluster_of(tree: xr.DataTree, layer: int, head: int) -> Cluster | None:
    """The cluster of one head, 0-based; None where the run has no clusters."""
    unit = layer * shape(tree)[1] + head
    return next((one for one in clusters(tree) if unit in one.units), None)


def nearest_heads(tree: xr.DataTree, layer: int, head: int, count: int = 5) -> list[NearHead]:
    """The heads whose attention is most like that of one head, the nearest first.

    layer, head  0-based
    returns      at most `count`, without the head itself; none where the run has no divergence
    """
    divergence = group(tree, "divergence")
    if divergence is None or "js" not in divergence:
        return []
    heads = shape(tree)[1]
    unit, js = layer * heads + head, divergences(tree)
    row = js.value[unit]  # [unit]
    order = [at for at in np.argsort(row, kind="stable").tolist() if at != unit]
    return [
        NearHead(
            at // heads, at % heads, float(row[at]), float(js.low[unit, at]),
            float(js.high[unit, at]),
        )
        for at in order[:count]
        if np.isfinite(row[at])
    ]  # fmt: skip


@derived
def divergences(tree: xr.DataTree) -> Estimate:
    """[unit, unit_other] of all pairs of heads."""
    divergence = group(tree, "divergence")
    assert divergence is not None
    return estimate(divergence.transpose("unit", "unit_other", ...), "js")


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
                "cluster": one.number,
                "size": len(one.units),
                "what": one.what,
                "name": one.name,
                "first_layer": one.layers[0],
                "last_layer": one.layers[1],
                "medoid": head_name(one.medoid, heads),
                "silhouette": one.silhouette[0],
                "silhouette_ci_low": one.silhouette[1],
                "silhouette_ci_high": one.silhouette[2],
                "jaccard": one.jaccard,
                "roles": "; ".join(
                    f"{number} {role}"
                    for role, number in Counter(roles[list(one.units)].tolist()).most_common()
                ),
                "heads": " ".join(head_name(unit, heads) for unit in one.units),
            }
            for one in clusters(tree)
        ]
    )


def _core(layers: Sequence[int]) -> tuple[tuple[int, int], bool]:
    """The shortest stretch of layers that holds CORE of the heads, the first of equals."""
    ordered = sorted(layers)
    need = int(np.ceil(CORE * len(ordered)))
    spans = [(ordered[at], ordered[at + need - 1]) for at in range(len(ordered) - need + 1)]
    first, last = min(spans, key=lambda span: (span[1] - span[0], span[0]))
    return (first, last), first == ordered[0] and last == ordered[-1]


def tables(tree: xr.DataTree) -> dict[str, pd.DataFrame]:
    """The clusters of heads."""
    return {"clusters": cluster_table(tree)}
