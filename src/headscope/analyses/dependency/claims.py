"""Claims about the heads that find the words of a relation; the label rule."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from headscope.analyses.language.claims import HELD_OUT, best_head_claims, by_norm, percent_at
from headscope.core.claim import LEAST_EFFECT, Claim, LabelRule
from headscope.core.relation_names import arrow, shown_relations
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

    cells = [at for at in shown_relations(dataset) if ahead[at]]
    n = documents(tree, dataset["accuracy"])
    yield from best_head_claims(
        dataset, share, baseline, kind="dependency", cells=cells, say=say, n=n
    )
