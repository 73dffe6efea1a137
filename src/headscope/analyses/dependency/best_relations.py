"""The relations that one head finds best, for its card."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.core.relation_names import arrow, frequent_relations
from headscope.core.results import derived, estimate, group, printable

RELATIONS = 5  # best ones of a head


@dataclass(frozen=True, slots=True)
class HeadRelation:
    """How well a head finds one relation, in the direction in which it does better.

    words      `direct object → verb`
    ends       the accuracy with its interval
    baseline   that of the best fixed offset
    rank       1 = the best of `of` heads at it
    count      words asked about
    """

    words: str
    relation: str
    direction: str
    ends: tuple[float, float, float]
    baseline: float
    rank: int
    of: int
    count: int


def best_relations(
    tree: xr.DataTree, layer: int, head: int, *, most: int = RELATIONS
) -> list[HeadRelation]:
    """The relations that a head finds farthest above the best fixed offset, best first.

    Of 25 words or more, by accuracy − baseline; none that it finds no better. On the data that it
    is scored on: a label asks for more (`label_rules`).
    """
    return relations_of_heads(tree).get((layer, head), [])[:most]


@derived
def relations_of_heads(tree: xr.DataTree) -> dict[tuple[int, int], list[HeadRelation]]:
    """(layer, head) -> all relations that it finds better than the best fixed offset, best first;
    empty without `dependency`.
    """
    dataset = group(tree, "dependency")
    if dataset is None:
        return {}
    accuracy = estimate(dataset.transpose("layer", "head", ...), "accuracy")
    names = [str(name) for name in dataset["direction"].values]
    relations: dict[tuple[int, int], list[HeadRelation]] = {}
    for place in frequent_relations(dataset):
        value, low, high = (
            part[..., place] for part in (accuracy.value, accuracy.low, accuracy.high)
        )
        baseline, count = (float(dataset[name].values[place]) for name in ("baseline", "count"))
        label = str(dataset["relation"].values[place])
        better = np.argwhere((value > baseline).any(-1))  # [head that beats the offset, 2]
        for layer, head in better.tolist():
            way = int(np.nanargmax(value[layer, head]))
            every, own = value[..., way], float(value[layer, head, way])
            relations.setdefault((layer, head), []).append(
                HeadRelation(
                    arrow(printable(label), names[way]), label, names[way],
                    (own, float(low[layer, head, way]), float(high[layer, head, way])),
                    baseline, int((every > own).sum()) + 1, int(np.isfinite(every).sum()),
                    int(count),
                )
            )  # fmt: skip
    for found in relations.values():
        found.sort(key=lambda relation: (relation.baseline - relation.ends[0], relation.relation))
    return relations
