"""Claims about the heads that look for a kind of words; the label rule."""

from __future__ import annotations

import xarray as xr

from headscope.analyses.language.claims import word_claims
from headscope.core.claim import Claim, LabelRule
from headscope.core.terms import KOVALEVA, OURS

FEATURES = ("noun", "verb", "pronoun", "subject", "object", "negation")
FEATURE_TIMES = 3.0  # ours: the mean head
FEATURE_SHARE = 0.1  # ours: of the attention of all tokens
RULES = {
    "feature": LabelRule(
        "kind of words",
        number="attention of all tokens to the most attended noun, verb, pronoun, subject, object "
        "or negation", least=FEATURE_SHARE, source=f"{OURS}, after {KOVALEVA}, §4.4", words=True,
        asks="the largest of all heads, over 25 inputs or more; lower end above "
        f"{FEATURE_TIMES:g} times the mean head",
    ),
}  # fmt: skip


def claims(tree: xr.DataTree) -> list[Claim]:
    """At most one claim per kind of words."""
    return [
        *word_claims(
            tree, "features", "feature", FEATURES, least=FEATURE_SHARE, times=FEATURE_TIMES
        )
    ]
