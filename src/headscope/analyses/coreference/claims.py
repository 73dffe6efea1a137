"""Claims about the heads that find antecedents; the label rule."""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.analyses.language.claims import HELD_OUT, best_head_claims, by_norm
from headscope.core.claim import Claim, LabelRule
from headscope.core.relation_names import LEAST_WORDS
from headscope.core.results import group, printable
from headscope.core.terms import CLARK, OURS

MENTIONS = {
    "all": "mentions", "pronoun": "pronouns", "proper": "proper names",
    "nominal": "common noun phrases",
}  # fmt: skip
RULES = {
    "coreference": LabelRule(
        "coreference",
        number="mentions whose antecedent gets the most attention", least=0.0,
        source=f"{OURS}, after {CLARK}, §4.3", words=True,
        asks=HELD_OUT.format(what="the kind of mention", rival="the nearest mention"),
    ),
}  # fmt: skip


def claims(tree: xr.DataTree) -> list[Claim]:
    """One claim per kind of mention at which the nearest mention is beaten."""
    dataset = group(tree, "coreference")
    if dataset is None:
        return []

    def say(at: int, share: str, baseline: str) -> tuple[str, str]:
        kind = str(dataset["mention_type"].values[at])
        words = MENTIONS.get(kind, printable(kind))
        return f"coreference of {words}", (
            f"coreference: antecedent found for {share} of {words}{by_norm(dataset)}, "
            f"nearest mention {baseline}"
        )

    cells = np.flatnonzero(dataset["count"].values >= LEAST_WORDS).tolist()
    return best_head_claims(tree, "coreference", cells, say, brief="coreference", system="nearest")
