"""Claims about the heads that look from one kind of words to another; the label rule."""

from __future__ import annotations

import xarray as xr

from headscope.analyses.language.claims import word_claims
from headscope.core.claim import Claim, LabelRule
from headscope.core.head_attention import OFFSETS
from headscope.core.terms import KOVALEVA, OURS

PAIRS = ("subject_to_verb", "verb_to_subject", "noun_to_pronoun", "pronoun_to_noun")
PAIR_SHARE = 0.5  # ours, as a position: of the attention of a word
RULES = {
    "pair": LabelRule(
        "pair of words",
        number="largest attention from subject to verb, from noun to pronoun, or back",
        least=PAIR_SHARE, source=f"{OURS}, after {KOVALEVA}, §4.5", words=True,
        asks="the largest of all heads, over 25 inputs or more",
        unless=tuple(OFFSETS),
    ),
}  # fmt: skip


def claims(tree: xr.DataTree) -> list[Claim]:
    """At most one claim per pair of kinds of words."""
    return [*word_claims(tree, "pairs", "pair", PAIRS, least=PAIR_SHARE, times=0.0)]
