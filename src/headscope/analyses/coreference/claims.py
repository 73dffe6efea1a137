"""Claims about the heads that find antecedents; the label rule."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from headscope.analyses.language.claims import HELD_OUT, best_head_claims, by_norm, percent_at
from headscope.core.claim import LEAST_EFFECT, Claim, LabelRule
from headscope.core.relation_names import LEAST_WORDS
from headscope.core.results import documents, estimate, group, printable
from headscope.core.terms import CLARK, OURS
from headscope.core.wording import percent

NEAREST = "nearest"
MENTIONS = {
    "all": "mentions",
    "pronoun": "pronouns",
    "proper": "proper names",
    "nominal": "common noun phrases",
}
RULES = {
    "coreference": LabelRule(
        "coreference",
        number="mentions whose antecedent gets the most attention", least=0.0,
        source=f"{OURS}, after {CLARK}, §4.3", words=True,
        asks=HELD_OUT.format(what="the kind of mention", rival="the nearest mention"),
    ),
}  # fmt: skip


def claims(tree: xr.DataTree) -> list[Claim]:
    """Those of an effect above LEAST_EFFECT."""
    return [claim for claim in _mentions(tree) if claim.effect > LEAST_EFFECT]


def _mentions(tree: xr.DataTree) -> Iterator[Claim]:
    """One claim per kind of mention at which the nearest mention is beaten."""
    dataset = group(tree, "coreference")
    if dataset is None:
        return
    share = estimate(dataset, "best_accuracy")
    baseline = estimate(dataset, "baseline", system=NEAREST).value
    ahead = estimate(dataset, "advantage", system=NEAREST).low > 0
    kinds = dataset["mention_type"].values.tolist()

    def say(at: int) -> tuple[str, str]:
        ordinary = percent(float(baseline[at]), np.nan, np.nan)
        kind = MENTIONS.get(kinds[at], printable(kinds[at]))
        return f"coreference of {kind}", (
            f"coreference: antecedent found for {percent_at(share, at)} of {kind}"
            f"{by_norm(dataset)}, nearest mention {ordinary}"
        )

    cells = np.flatnonzero(ahead & (dataset["count"].values >= LEAST_WORDS)).tolist()
    n = documents(tree, dataset["accuracy"])
    yield from best_head_claims(
        dataset, share, baseline, kind="coreference", brief="coreference", cells=cells, say=say, n=n
    )
