"""All that is known of one head: labels, numbers with their rank, relations, maps, like heads."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.analyses.dependency.best_relations import HeadRelation, best_relations
from headscope.analyses.divergence.clusters import Cluster, NearHead, cluster_of, nearest_heads
from headscope.analyses.patterns.typical_maps import TypicalMap, TypicalMaps
from headscope.core.head_labels import HeadLabels, head_labels
from headscope.core.head_metrics import HeadMetric, head_metrics
from headscope.core.results import at, documents, estimate, group, head_name, shape
from headscope.errors import InputError

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
class RankedNumber:
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


@dataclass(frozen=True)
class HeadCard:
    """One head, 0-based; `source` says where its maps come from (`TypicalMaps.source`)."""

    layer: int
    head: int
    name: str
    labels: HeadLabels
    numbers: list[RankedNumber]
    relations: list[HeadRelation]
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


def number_of(metric: HeadMetric, layer: int, head: int) -> RankedNumber:
    """One number of one head, ranked."""
    values = metric.estimate.value
    own, all_of = float(values[layer, head]), values[np.isfinite(values)]
    ends = at(metric.estimate, layer, head)
    if not math.isfinite(own):
        return RankedNumber(metric, ends, 0, len(all_of), math.nan)
    below, same = float((all_of < own).sum()), float((all_of == own).sum()) - 1
    others = len(all_of) - 1
    percentile = 100 * (below + same / 2) / others if others else math.nan
    return RankedNumber(metric, ends, int((all_of > own).sum()) + 1, len(all_of), percentile)


def _classes(tree: xr.DataTree, layer: int, head: int) -> dict[str, Ends]:
    """Class of maps → its share of the head's maps."""
    dataset = group(tree, "patterns")
    if dataset is None or "share" not in dataset:
        return {}
    names = [str(name) for name in dataset["pattern"].values]
    return {name: at(estimate(dataset, "share", pattern=name), layer, head) for name in names}
