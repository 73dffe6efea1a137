"""Which heads behave alike, in clusters and one by one, and what does each cluster do?

Reads what the analysis `divergence` found. The label that half of the heads or more bear names a
cluster, if fewer of the other heads bear it. Where there is none, or where it leaves open where
they attend, so does the target that they attend to more than all other heads, or how much wider or
narrower they attend. What is left is mixed.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.claims.card_part import CardPart, named_ends
from headscope.claims.claim import Claim
from headscope.claims.head_attention import TARGETS, attention_to, has_cls, spread
from headscope.claims.head_labels import UNLABELLED, head_labels
from headscope.claims.reading import Reading
from headscope.core.accumulators import Bools
from headscope.core.head_names import HeadNames, names_of
from headscope.core.intervals import Estimate
from headscope.core.results import Floats, at, derived, estimate, group, needed, shape, token_names
from headscope.core.wording import number, percent, plain
from headscope.draw.label_kinds import label_kinds

MIXED = "mixed"
LN2 = float(np.log(2))  # nats: the largest divergence there can be
MOST_HEADS = 0.5  # ours: of a cluster's heads bear the label that names it
MORE = 0.25  # ours: than of the other heads
SPREADS = 0.8  # a large difference by Cohen's convention, in standard deviations of all heads
LEAST_SHARE = 0.1  # ours: of the attention; less does not name a cluster
WIDTHS = ("broad", "narrow")
# Kinds of labels that leave open where a head attends.
OPEN = (*WIDTHS, "vertical", "diagonal", "vertical_diagonal", "block")
WIDTH = "width"  # the entropy of attention
CORE = 0.8  # ours: of a cluster's heads lie in the layers that are named
CLUSTER_VARIABLES = {"cluster", "medoid", "jaccard"}  # without which a run has no clusters


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
    names       of the heads of the run
    """

    number: int
    what: str
    units: tuple[int, ...]
    medoid: int
    layers: tuple[int, int]
    all_layers: bool
    silhouette: tuple[float, float, float]
    jaccard: float
    names: HeadNames = field(repr=False)

    @property
    def place(self) -> str:
        """`layers 6–9`, `mostly layers 6–9`, `layer 4`, as they are counted in print."""
        first, last = map(self.names.layer, self.layers)
        words = f"layer {first}" if first == last else f"layers {first}–{last}"
        return words if self.all_layers else f"mostly {words}"

    @property
    def name(self) -> str:
        """`12 heads, layers 6–9: attention sink on [SEP] (9 of 12)`."""
        count = len(self.units)
        return f"{count} {'head' if count == 1 else 'heads'}, {self.place}: {self.what}"


@derived
def clusters(tree: xr.DataTree) -> list[Cluster]:
    """The clusters of a run, in order; none where it has no divergence, or is an old run."""
    divergence = group(tree, "divergence")
    if divergence is None or not set(divergence) >= CLUSTER_VARIABLES:
        return []
    cluster_of_unit = divergence["cluster"].values.astype(int)  # [unit]
    silhouette = estimate(divergence, "cluster_silhouette")
    labels = [labels_of.labels for labels_of in head_labels(tree).values()]  # [unit]
    numbers, made = _numbers(tree), []
    for cluster in range(int(cluster_of_unit.max()) + 1):
        own = cluster_of_unit == cluster
        units = np.flatnonzero(own)
        layers, whole = _core((units // shape(tree)[1]).tolist())
        made.append(
            Cluster(
                cluster,
                _name(tree, labels, numbers, own),
                tuple(units.tolist()),
                int(divergence["medoid"].values[cluster]),
                layers,
                whole,
                at(silhouette, cluster),
                float(divergence["jaccard"].values[cluster]),
                names_of(tree),
            )
        )
    return made


def _core(layers: Sequence[int]) -> tuple[tuple[int, int], bool]:
    """The shortest stretch of layers that holds CORE of the heads, the first of equals."""
    ordered = sorted(layers)
    need = int(np.ceil(CORE * len(ordered)))
    spans = [(ordered[at], ordered[at + need - 1]) for at in range(len(ordered) - need + 1)]
    first, last = min(spans, key=lambda span: (span[1] - span[0], span[0]))
    return (first, last), first == ordered[0] and last == ordered[-1]


def _name(
    tree: xr.DataTree, labels: Sequence[Sequence[Claim]], numbers: dict[str, Floats], own: Bools
) -> str:
    """`attention sink on [SEP] (9 of 12)`; `more to the next token (27 %, others 4 %)`; `mixed`."""
    label, kind = _common_label(labels, own)
    parts = [label] if label else []
    if not label or kind in OPEN:
        parts.append(_difference(tree, numbers, own, widths=kind not in WIDTHS))
    return "; ".join(filter(None, parts)) or MIXED


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


def _difference(tree: xr.DataTree, numbers: dict[str, Floats], own: Bools, *, widths: bool) -> str:
    """What a cluster's heads do much more: attend to a target, or (`widths`) wider or narrower;
    '' for what is no difference as it is printed.
    """
    if own.all():
        return ""
    differ = {name: value for name, value in numbers.items() if value.std() > 0}
    here, there = (
        {name: float(value[heads].mean()) for name, value in differ.items()}
        for heads in (own, ~own)
    )
    apart = {name: (here[name] - there[name]) / value.std() for name, value in differ.items()}
    targets = {
        name: far
        for name, far in apart.items()
        if name != WIDTH and far >= SPREADS and here[name] >= LEAST_SHARE
    }
    if targets:
        best = max(targets, key=lambda name: targets[name])
        goal = token_names(tree).get(best) or TARGETS[best].goal
        ends = [percent(side[best]) for side in (here, there)]
        return f"more to {goal} ({ends[0]}, others {ends[1]})" if ends[0] != ends[1] else ""
    if not widths or abs(apart.get(WIDTH, 0)) < SPREADS:
        return ""
    how = "spread wider" if apart[WIDTH] > 0 else "on fewer tokens"
    ends = [plain(side[WIDTH], "nats") for side in (here, there)]
    return f"{how} (entropy {ends[0]} nats, others {ends[1]})" if ends[0] != ends[1] else ""


@dataclass(frozen=True)
class NearHead:
    """A head near to another: 0-based place, and their divergence with its interval."""

    layer: int
    head: int
    js: float
    low: float
    high: float


def finding(run: Reading) -> str:
    """How many clusters there are, and how large the largest is."""
    groups = clusters(run.tree)
    largest = max((len(one.units) for one in groups), default=0)
    return f"{len(groups)} clusters, the largest of {largest} heads." if groups else ""


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
    order = [other for other in np.argsort(row, kind="stable").tolist() if other != unit]
    return [
        NearHead(other // heads, other % heads, *at(js, unit, other))
        for other in order[:count]
        if np.isfinite(row[other])
    ]


@derived
def divergences(tree: xr.DataTree) -> Estimate:
    """[unit, unit_other] of all pairs of heads."""
    return estimate(needed(tree, "divergence").transpose("unit", "unit_other", ...), "js")


def most(divergences: Floats) -> float:
    """The last shade of a map of divergences: the largest, at most the most there can be."""
    return min(float(np.nanmax(divergences)), LN2) or LN2


def averaged(run: Reading) -> str:
    """What the divergences are a mean of, for captions."""
    drawn = float(run.data["queries"]) if "queries" in run.data else np.nan
    tokens = "tokens" if np.isnan(drawn) else f"{drawn:.0f} drawn queries"
    return f"mean over {tokens}, then inputs"


def _lines(run: Reading, layer: int, head: int) -> Iterator[str]:
    tree, names = run.tree, run.names
    for near in nearest_heads(tree, layer, head):
        labels = head_labels(tree)[near.layer, near.head].labels
        says = labels[0].short if labels else UNLABELLED
        name = names.head(near.layer, near.head)
        yield f"{name:<8}{number(near.js, near.low, near.high):<22}{says}"
    if cluster := cluster_of(tree, layer, head):
        yield f"cluster {cluster.number + 1}: {cluster.name}"


def _data(run: Reading, layer: int, head: int) -> dict[str, Any]:
    names = run.names
    own = cluster_of(run.tree, layer, head)
    nearest = [
        {
            "layer": names.number(near.layer),
            "head": near.head,
            "name": names.head(near.layer, near.head),
            **named_ends((near.js, near.low, near.high)),
        }
        for near in nearest_heads(run.tree, layer, head)
    ]
    cluster = own and {
        "cluster": own.number,
        "name": own.name,
        "size": len(own.units),
        "silhouette": named_ends(own.silhouette),
        "jaccard": own.jaccard,
    }
    return {"nearest": nearest, "cluster": cluster}


def _page(run: Reading) -> dict[str, Any]:
    """`nearest`: [unit] rows of unit and divergence; `cluster`: [unit] which of them, or -1."""
    layers, heads = shape(run.tree)
    rows = [
        [
            [near.layer * heads + near.head, number(near.js, near.low, near.high)]
            for near in nearest_heads(run.tree, *place)
        ]
        for place in np.ndindex(layers, heads)
    ]
    groups = clusters(run.tree)
    number_of = {unit: one.number for one in groups for unit in one.units}
    own = [number_of.get(unit, -1) for unit in range(layers * heads)] if groups else []
    return {"nearest": rows, "clusters": [one.name for one in groups], "cluster": own}


CARD = CardPart(
    place=30,
    title="Nearest heads, Jensen–Shannon divergence in nats",
    lines=_lines,
    data=_data,
    page=_page,
)


def tables(run: Reading) -> dict[str, pd.DataFrame]:
    """The clusters, one row each: model, revision, cluster (0-based), size, what, name, first_layer
    and last_layer (0-based, of most of its heads), medoid, silhouette with its interval, jaccard,
    how many heads have which label as their most telling one, and its heads as papers name them.
    """
    tree, names = run.tree, run.names
    heads, rows = shape(tree)[1], []
    titles = {unit: kind.title for kind in label_kinds(tree) for unit in kind.units}
    for one in clusters(tree):
        counts = Counter(titles[unit] for unit in one.units).most_common()
        rows.append(
            {
                "model": str(tree.attrs.get("model", "")),
                "revision": str(tree.attrs.get("revision", "")),
                "cluster": one.number,
                "size": len(one.units),
                "what": one.what,
                "name": one.name,
                "first_layer": names.number(one.layers[0]),
                "last_layer": names.number(one.layers[1]),
                "medoid": names.unit(one.medoid, heads),
                "silhouette": one.silhouette[0],
                "silhouette_ci_low": one.silhouette[1],
                "silhouette_ci_high": one.silhouette[2],
                "jaccard": one.jaccard,
                "labels": "; ".join(f"{many} {title}" for title, many in counts),
                "heads": " ".join(names.unit(unit, heads) for unit in one.units),
            }
        )
    return {"clusters": pd.DataFrame(rows)}
