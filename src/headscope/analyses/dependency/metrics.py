"""Numbers per head of the dependency relations, for menus and head cards."""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.core.head_metrics import HeadMetric
from headscope.core.relation_names import arrow, shown_relations
from headscope.core.results import documents, estimate, printable

NAME = "dependency"
MOST_RELATIONS = 20  # ours: as numbers per head; the rest stands in the tables


def metrics(tree: xr.DataTree, variable: str) -> list[HeadMetric] | None:
    """The accuracies of the most frequent relations; None for any other variable."""
    if variable != "accuracy":
        return None
    dependency = tree.children[NAME].to_dataset()
    return [_metric(tree, dependency, at) for at in shown_relations(dependency)[:MOST_RELATIONS]]


def _metric(tree: xr.DataTree, dependency: xr.Dataset, at: int) -> HeadMetric:
    """The accuracy at one relation, in the direction in which its best head is best."""
    relation = str(dependency["relation"].values[at])
    way = int(np.nan_to_num(dependency["best_direction"].values[at]))
    direction = str(dependency["direction"].values[way])
    return HeadMetric(
        key=".".join([NAME, "accuracy", direction, relation]),
        label=arrow(printable(relation), direction),
        unit="probability",
        estimate=estimate(dependency.isel(relation=at, direction=way), "accuracy"),
        n=documents(tree, dependency["accuracy"]),
        place=(NAME, "accuracy", {"relation": relation, "direction": direction}),
    )
