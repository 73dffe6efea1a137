"""Claims that a head looks for a kind of words, or from one kind to another; the label rules.

Kovaleva et al. (2019), sections 4.4 and 4.5, give no threshold. Only the head of the largest value
is named, and only if it stands far out. The weighted norm has no ceiling, so that an effect would
be on no common scale: no claims are made by it.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from headscope.analyses.features.word_types import TYPES
from headscope.core.claim import Claim, LabelRule, effects
from headscope.core.dictionary import name
from headscope.core.head_attention import OFFSETS
from headscope.core.relation_names import LEAST_WORDS
from headscope.core.results import at, documents, estimate, group, surely
from headscope.core.terms import KOVALEVA, OURS
from headscope.core.wording import percent

FEATURE_TIMES = 3.0  # ours: the mean head
FEATURE_SHARE = 0.1  # ours: of the attention of all tokens
PAIRS = ("subject_to_verb", "verb_to_subject", "noun_to_pronoun", "pronoun_to_noun")
PAIR_SHARE = 0.5  # ours, as a position: of the attention of a word
FEATURE_RULES = {
    "feature": LabelRule(
        "kind of words",
        number="attention of all tokens to the most attended noun, verb, pronoun, subject, object "
        "or negation", least=FEATURE_SHARE, source=f"{OURS}, after {KOVALEVA}, §4.4", words=True,
        asks="the largest of all heads, over 25 inputs or more; lower end above "
        f"{FEATURE_TIMES:g} times the mean head",
    ),
}  # fmt: skip
PAIR_RULES = {
    "pair": LabelRule(
        "pair of words",
        number="largest attention from subject to verb, from noun to pronoun, or back",
        least=PAIR_SHARE, source=f"{OURS}, after {KOVALEVA}, §4.5", words=True,
        asks="the largest of all heads, over 25 inputs or more",
        unless=tuple(OFFSETS),
    ),
}  # fmt: skip


def feature_claims(tree: xr.DataTree) -> list[Claim]:
    """At most one claim per kind of words."""
    said = (
        "looks for {kind}: the most attended takes {words} of the attention of all tokens, where "
        "{ordinary} is ordinary"
    )
    least = FEATURE_SHARE, FEATURE_TIMES
    return [*_claims(tree, ("features", "feature"), TYPES, "to {kind}", said, least=least)]


def pair_claims(tree: xr.DataTree) -> list[Claim]:
    """At most one claim per pair of kinds of words."""
    said = "attends from {kind}, {words}, where {ordinary} is ordinary"
    return [*_claims(tree, ("pairs", "pair"), PAIRS, "{kind}", said, least=(PAIR_SHARE, 0.0))]


def _claims(
    tree: xr.DataTree, of: tuple[str, str], choices: tuple[str, ...], goal: str, sentence: str, *,
    least: tuple[float, float],
) -> Iterator[Claim]:  # fmt: skip
    """At most one claim per choice: of the head of the largest value.

    of              the group, and its dimension of choices, which is the kind of the claims
    goal, sentence  their words, to be filled in
    least           what the lower end of its interval must exceed, and how many times the mean head
    """
    analysis, dim = of
    dataset = group(tree, analysis)
    if dataset is None or dataset.attrs.get("measure", "attention") != "attention":
        return
    n = documents(tree, dataset["attention"])
    for choice in choices:
        share = estimate(dataset, "attention", **{dim: choice})
        if not np.isfinite(share.value).any() or dataset["count"].sel({dim: choice}) < LEAST_WORDS:
            continue
        reference = float(np.nanmean(share.value))
        layer, head = map(int, np.unravel_index(np.nanargmax(share.value), share.value.shape))
        if surely(share)[layer, head] > max(least[0], least[1] * reference):
            size = float(effects(share, reference)[layer, head])
            ends = at(share, layer, head)
            words, ordinary = percent(*ends), percent(reference)
            to = goal.format(kind=name(choice))
            yield Claim(
                layer, head, dim, size, to, f"{to}, {words}, mean head {ordinary}",
                sentence.format(kind=name(choice), words=words, ordinary=ordinary),
                *ends, reference, n, analysis, choice,
            )  # fmt: skip
