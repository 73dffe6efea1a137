"""What is said of the heads that find the words of a relation: claims, their rule, numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from headscope.analyses.language.claims import HELD_OUT, best_head_claims, by_norm, percent_at
from headscope.core.claim import LEAST_EFFECT, Claim, LabelRule
from headscope.core.head_metrics import HeadMetric
from headscope.core.relation_names import arrow, frequent_relations
from headscope.core.results import documents, estimate, group, printable
from headscope.core.terms import CLARK, OURS
from headscope.core.wording import percent

RULES = {
    "dependency": LabelRule(
        "syntactic relation",
        number="words of a relation whose head, or dependent, gets the most attention", least=0.0,
        source=f"{OURS}, after {CLARK}, §4.2", most=2, words=True,
        asks=HELD_OUT.format(what="the relation", rival="the best fixed offset"),
    ),
}  # fmt: skip
NAME = "dependency"
MOST_RELATIONS = 20  # ours: as numbers per head; the rest stands in the tables


def claims(tree: xr.DataTree) -> list[Claim]:
    """Those of an effect above LEAST_EFFECT."""
    return [claim for claim in _relations(tree) if claim.effect > LEAST_EFFECT]


def _relations(tree: xr.DataTree) -> Iterator[Claim]:
    """One claim per relation that is beaten: `direct object → verb, 86 % [84, 88], …`."""
    dataset = group(tree, "dependency")
    if dataset is None:
        return
    share, baseline = estimate(dataset, "best_accuracy"), dataset["baseline"].values
    ahead = estimate(dataset, "advantage").low > 0
    way = dataset["best_direction"].values

    def say(at: int) -> tuple[str, str]:
        direction = str(dataset["direction"].values[int(way[at])])
        words = arrow(printable(dataset["relation"].values[at]), direction)
        ordinary = percent(float(baseline[at]), np.nan, np.nan)
        return words, f"{words}, {percent_at(share, at)}{by_norm(dataset)}, baseline {ordinary}"

    cells = [at for at in frequent_relations(dataset) if ahead[at]]
    n = documents(tree, dataset["accuracy"])
    yield from best_head_claims(
        dataset, share, baseline, kind="dependency", cells=cells, say=say, n=n
    )


def metrics(tree: xr.DataTree, variable: str) -> list[HeadMetric] | None:
    """The accuracies of the most frequent relations; None for any other variable."""
    if variable != "accuracy":
        return None
    dependency = tree.children[NAME].to_dataset()
    return [_metric(tree, dependency, at) for at in frequent_relations(dependency)[:MOST_RELATIONS]]


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
