"""What is said of the heads that find the words of a relation: claims, their rule, numbers."""

import numpy as np
import xarray as xr

from headscope.analyses.language.claims import HELD_OUT, best_head_claims, by_norm
from headscope.core.claim import Claim, LabelRule
from headscope.core.head_metrics import HeadMetric
from headscope.core.relation_names import LEAST_WORDS, arrow, frequent_relations
from headscope.core.results import documents, estimate, group, needed, printable
from headscope.core.terms import CLARK, OURS
from headscope.core.wording import percent

RULES = {
    "dependency": LabelRule(
        "syntactic relation",
        number="words of a relation whose head, or dependent, gets the most attention", least=0.0,
        source=f"{OURS}, after {CLARK}, §4.2", most=2, words=True,
        asks=HELD_OUT.format(
            what="the relation", rival="the best fixed offset", least=LEAST_WORDS, corrected=""
        ),
    ),
}  # fmt: skip
NAME = "dependency"
MOST_RELATIONS = 20  # ours: as numbers per head; the rest stands in the tables


def claims(tree: xr.DataTree) -> list[Claim]:
    """One claim per relation that is beaten: `direct object → verb, 85 % [83, 87] held out …`."""
    dataset = group(tree, NAME)
    if dataset is None:
        return []
    labels = [str(label) for label in dataset["relation"].values]

    def say(at: int, share: str, baseline: str) -> tuple[str, str]:
        direction = dataset["direction"].values[int(dataset["best_direction"][at])]
        words = arrow(printable(labels[at]), str(direction))
        chosen = percent(float(dataset["best_accuracy"][at]))
        told = f"{share}{by_norm(dataset)} held out ({chosen} where the head was chosen)"
        return words, f"{words}, {told}, baseline {baseline}"

    return best_head_claims(
        tree, NAME, frequent_relations(dataset), say, about=labels,
        baseline=estimate(dataset, "baseline").value,
        ahead=estimate(dataset, "advantage").low > 0,
    )  # fmt: skip


def metrics(tree: xr.DataTree, variable: str) -> list[HeadMetric] | None:
    """The accuracies of the most frequent relations, in their best heads' direction; else None."""
    if variable != "accuracy":
        return None
    dependency, accuracies = needed(tree, NAME), []
    n = documents(tree, dependency["accuracy"])
    for at in frequent_relations(dependency)[:MOST_RELATIONS]:
        way = int(np.nan_to_num(dependency["best_direction"].values[at]))
        here = dependency.isel(relation=at, direction=way)
        relation, direction = str(dependency["relation"].values[at]), str(here["direction"].values)
        key, label = f"accuracy.{direction}.{relation}", arrow(printable(relation), direction)
        place = (NAME, "accuracy", {"relation": relation, "direction": direction})
        parts = estimate(here, "accuracy")
        accuracies.append(HeadMetric(f"{NAME}.{key}", label, "probability", parts, n, place))
    return accuracies
