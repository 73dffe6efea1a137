"""All that is known of one head: labels, numbers with their rank, relations, maps, like heads."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.analyses.divergence.clusters import Cluster, NearHead, cluster_of, nearest_heads
from headscope.analyses.patterns.typical_maps import TypicalMap, TypicalMaps
from headscope.core.head_labels import HeadLabels, head_labels
from headscope.core.head_metrics import HeadMetric, head_metrics
from headscope.core.relation_names import arrow, frequent_relations
from headscope.core.results import at, documents, estimate, group, head_name, printable, shape
from headscope.errors import InputError

RELATIONS = 5  # best ones of a head
NEAREST = 5  # heads
CLASS_NAMES = {"vertical_diagonal": "vertical + diagonal"}
# Where typical maps come from.
FROM = {
    "patterns": "of the classes that most maps of the head belong to, those that the classifier is "
    "surest of",
    "examples": "of the inputs that the run kept, those nearest to the head’s means",
}
Ends = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a head, and where it stands among all heads.

    rank        1 = the largest of `of` heads; 0 where the head has no such number
    percentile  share of the other heads below it, equal ones by half, in percent; NaN likewise
    """

    metric: HeadMetric
    ends: Ends
    rank: int
    of: int
    percentile: float

    @property
    def analysis(self) -> str:
        """The group that holds it."""
        return self.metric.key.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Relation:
    """How well a head finds one relation, in the direction in which it does better."""

    words: str
    relation: str
    direction: str
    ends: Ends
    baseline: float
    rank: int
    of: int
    count: int


@dataclass(frozen=True)
class HeadCard:
    """One head, 0-based; `source` says where its maps come from (`TypicalMaps.source`)."""

    layer: int
    head: int
    name: str
    labels: HeadLabels
    numbers: list[Number]
    relations: list[Relation]
    classes: dict[str, Ends]
    nearest: list[NearHead]
    maps: list[TypicalMap]
    source: str
    n: int
    cluster: Cluster | None = None


def head_card(tree: xr.DataTree, layer: int, head: int) -> HeadCard:
    """Everything in a run about one head; what the run lacks is empty.

    raises  InputError for a head that is not there
    """
    layers, heads = shape(tree)
    if not (0 <= layer < layers and 0 <= head < heads):
        raise InputError(
            f"found no head L{layer + 1}·H{head + 1}; wanted one of {layers} layers × {heads} "
            f"heads: L1·H1 to L{layers}·H{heads}"
        )
    maps = TypicalMaps(tree)
    return HeadCard(
        layer=layer,
        head=head,
        name=head_name(layer * heads + head, heads),
        labels=head_labels(tree)[layer, head],
        numbers=[number_of(metric, layer, head) for metric in head_metrics(tree)],
        relations=best_relations(tree, layer, head),
        classes=_classes(tree, layer, head),
        nearest=nearest_heads(tree, layer, head, NEAREST),
        maps=maps.of(layer, head),
        source=maps.source,
        n=documents(tree),
        cluster=cluster_of(tree, layer, head),
    )


def number_of(metric: HeadMetric, layer: int, head: int) -> Number:
    """One number of one head, ranked."""
    values = metric.estimate.value
    own, all_of = float(values[layer, head]), values[np.isfinite(values)]
    ends = at(metric.estimate, layer, head)
    if not math.isfinite(own):
        return Number(metric, ends, 0, len(all_of), math.nan)
    below, same = float((all_of < own).sum()), float((all_of == own).sum()) - 1
    others = len(all_of) - 1
    percentile = 100 * (below + same / 2) / others if others else math.nan
    return Number(metric, ends, int((all_of > own).sum()) + 1, len(all_of), percentile)


def best_relations(
    tree: xr.DataTree, layer: int, head: int, *, most: int = RELATIONS
) -> list[Relation]:
    """The relations that a head finds farthest above the best fixed offset, best first.

    Of 25 words or more, by accuracy − baseline; none that it finds no better. On the data that it
    is scored on: a label asks for more (`label_rules`).
    """
    dataset = group(tree, "dependency")
    if dataset is None:
        return []
    accuracy = estimate(dataset.transpose("layer", "head", ...), "accuracy")
    names = [str(name) for name in dataset["direction"].values]
    found = []
    for place in frequent_relations(dataset):
        one = [part[..., place] for part in (accuracy.value, accuracy.low, accuracy.high)]
        here = one[0][layer, head]  # [direction]
        baseline = float(dataset["baseline"].values[place])
        if not np.isfinite(here).any() or not np.nanmax(here) > baseline:
            continue
        way = int(np.nanargmax(here))
        value, low, high = (float(part[layer, head, way]) for part in one)
        every = one[0][..., way]
        label = str(dataset["relation"].values[place])
        found.append(
            Relation(
                arrow(printable(label), names[way]), label, names[way], (value, low, high),
                baseline, int((every > value).sum()) + 1, int(np.isfinite(every).sum()),
                int(dataset["count"].values[place]),
            )
        )  # fmt: skip
    return sorted(found, key=lambda r: (r.baseline - r.ends[0], r.relation))[:most]


def _classes(tree: xr.DataTree, layer: int, head: int) -> dict[str, Ends]:
    """Class of maps → its share of the head's maps."""
    dataset = group(tree, "patterns")
    if dataset is None or "share" not in dataset:
        return {}
    names = [str(name) for name in dataset["pattern"].values]
    return {name: at(estimate(dataset, "share", pattern=name), layer, head) for name in names}
