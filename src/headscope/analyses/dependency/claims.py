"""What a run claims about heads that find the words of a relation: claims, numbers, a part of
cards."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.analyses.language.specific import SPECIFIC, by_norm, specific_heads
from headscope.claims.card_part import CardPart
from headscope.claims.claim import Claim
from headscope.claims.head_metrics import HeadMetric
from headscope.claims.plan import LabelRule
from headscope.claims.reading import Reading
from headscope.claims.relation_names import (
    FROM_DEPENDENT,
    LEAST_WORDS,
    arrow,
    frequent_relations,
)
from headscope.claims.terms import CLARK, OURS
from headscope.core.display import printable
from headscope.core.results import at, derived, estimate, group, shape
from headscope.core.wording import percent


def _rule_of(claim: Claim) -> str:
    """The relation itself, by its arrow; of all words together, their syntactic heads."""
    if claim.about != GENERAL:
        return claim.name
    upward = claim.name == arrow(GENERAL, FROM_DEPENDENT)
    return "the syntactic head" if upward else "the dependents"


RULES = {
    "dependency": LabelRule(
        "syntactic relation",
        number="words of a relation whose head, or dependent, gets the most attention",
        least=0.0,
        source=f"{OURS}, after {CLARK}, §4.2",
        words=True,
        asks=SPECIFIC.format(
            rivals="the best fixed offset, what the words beside find, and what it finds of all "
            "other relations",
            cells="relations",
        )
        + f"; {LEAST_WORDS} words or more; it attends to the word more than words beside do; of "
        "all words together it finds more than half",
        predicts=_rule_of,
    ),
}
NAME = "dependency"
GRID = ("layer", "head", "direction", "relation")
GENERAL = "all_but_root_and_punctuation"
MOST = 0.5  # ours: a head that finds fewer of all words is known by single relations
MOST_RELATIONS = 20  # ours: as numbers per head; the rest stands in the tables


def claims(run: Reading) -> list[Claim]:
    """One claim per head, relation and direction: `direct object → verb, 85 % [80, 89] of 178 …`.

    And one per head that finds most of all words, whatever the relation.
    """
    dataset = run.data
    if "reference" not in dataset:
        return []
    ways, labels = ([str(label) for label in dataset[dim].values] for dim in GRID[2:])
    places = [*frequent_relations(dataset), labels.index(GENERAL)]
    here = dataset.isel(relation=places).transpose(*GRID, ...)
    offset, others = here["baseline"].values, here["from_others"].values
    tests, n = here["reference"].size, run.documents("accuracy")
    made = []
    names = [arrow(printable(labels[place]), way) for way in ways for place in places]
    for one in specific_heads(run, here, "accuracy", NAME, names, tests=tests):
        way, place = one.cell
        label, count = labels[places[place]], int(here["count"][place])
        if label != GENERAL or one.ends[1] > MOST:
            rivals = [offset[place], others[one.layer, one.head, way, place]]
            sentence = (
                f"{one.name}, {one.percent} of {count:,} words{by_norm(dataset)}, fixed offset "
                f"{percent(float(rivals[0]))}, words beside {percent(float(rivals[1]))}"
            )
            made.append(one.claim(sentence, n=n, analysis=NAME, about=label))
    return made


def metrics(run: Reading, variable: str) -> list[HeadMetric] | None:
    """The accuracies of the most frequent relations, in their best heads' direction; else None."""
    if variable != "accuracy":
        return None
    dependency, accuracies = run.data, []
    n = run.documents("accuracy")
    for place in frequent_relations(dependency)[:MOST_RELATIONS]:
        way = int(np.nan_to_num(dependency["best_direction"].values[place]))
        here = dependency.isel(relation=place, direction=way)
        relation, direction = str(here["relation"].values), str(here["direction"].values)
        key, label = f"accuracy.{direction}.{relation}", arrow(printable(relation), direction)
        chosen = (NAME, "accuracy", {"relation": relation, "direction": direction})
        parts = estimate(here, "accuracy")
        accuracies.append(HeadMetric(f"{NAME}.{key}", label, "probability", parts, n, chosen))
    return accuracies


RELATIONS_OF_HEAD = 5


@dataclass(frozen=True, slots=True)
class HeadRelation:
    """How well a head finds one relation, in the direction in which it does better.

    words     `direct object → verb`
    value     the accuracy; ci_low, ci_high: its interval
    held_out  of the best head of the relation: that of heads where they were not chosen; else NaN
    baseline  that of the best fixed offset
    rank      1 = the best of `of` heads at it
    count     words asked about
    """

    relation: str
    direction: str
    words: str
    value: float
    ci_low: float
    ci_high: float
    baseline: float
    rank: int
    of: int
    count: int
    held_out: float

    @property
    def percent(self) -> str:
        """The accuracy with its interval, in words; of the best head also that held out."""
        rest = f" ({percent(self.held_out)} held out)" if math.isfinite(self.held_out) else ""
        return percent(self.value, self.ci_low, self.ci_high) + rest


def best_relations(tree: xr.DataTree, layer: int, head: int) -> list[HeadRelation]:
    """The relations that a head finds farthest above the best fixed offset, best first.

    Relations of 25 words or more, by accuracy − baseline, if that is above 0. They are chosen on
    the data that scores them: a label needs more (`label_rules`).
    """
    return relations_of_heads(tree).get((layer, head), [])[:RELATIONS_OF_HEAD]


@derived
def relations_of_heads(tree: xr.DataTree) -> dict[tuple[int, int], list[HeadRelation]]:
    """(layer, head) -> all relations that it finds better than the fixed offset, best first."""
    dataset = group(tree, "dependency")
    if dataset is None:
        return {}
    names = [str(name) for name in dataset["direction"].values]
    relations: dict[tuple[int, int], list[HeadRelation]] = {}
    for place in frequent_relations(dataset):
        here = dataset.isel(relation=place).transpose("layer", "head", ...)
        accuracy = estimate(here, "accuracy")  # [layer, head, direction]
        baseline, label = float(here["baseline"]), str(dataset["relation"].values[place])
        best, held_out = float(here["best_accuracy"]), float(here["held_out"])
        better = np.argwhere((accuracy.value > baseline).any(-1))  # [head that beats the offset, 2]
        for layer, head in better.tolist():
            way = int(np.nanargmax(accuracy.value[layer, head]))
            every, ends = accuracy.value[..., way], at(accuracy, layer, head, way)
            relations.setdefault((layer, head), []).append(
                HeadRelation(
                    label,
                    names[way],
                    arrow(printable(label), names[way]),
                    *ends,
                    baseline,
                    int((every > ends[0]).sum()) + 1,
                    int(np.isfinite(every).sum()),
                    int(here["count"]),
                    held_out if ends[0] >= best else math.nan,
                )
            )
    for of_head in relations.values():
        of_head.sort(key=lambda relation: (relation.baseline - relation.value, relation.relation))
    return relations


def _lines(run: Reading, layer: int, head: int) -> Iterator[str]:
    for one in best_relations(run.tree, layer, head):
        rank = f"{one.rank} of {one.of} heads"
        yield f"{one.words}, {one.percent}, baseline {percent(one.baseline)}; {rank}"


def _data(run: Reading, layer: int, head: int) -> dict[str, Any]:
    return {"relations": [asdict(one) for one in best_relations(run.tree, layer, head)]}


def _page(run: Reading) -> dict[str, Any]:
    """relations [unit] rows of words, accuracy, baseline, rank."""
    rows = [
        [
            [one.words, one.percent, percent(one.baseline), one.rank]
            for one in best_relations(run.tree, *place)
        ]
        for place in np.ndindex(*shape(run.tree))
    ]
    return {"relations": rows}


def _numbers(run: Reading, layer: int, head: int) -> list[str]:
    return [f".{one.direction}.{one.relation}" for one in best_relations(run.tree, layer, head)]


CARD = CardPart(
    place=10,
    title="Best relations, above the best fixed offset",
    lines=_lines,
    data=_data,
    page=_page,
    numbers=_numbers,
)
