"""Words of vector norms, and claims about attention sinks: heads that rest on special tokens.

Kobayashi et al. (2020) found that heads give [SEP] much weight and little norm. A sink has both:
what it rests on adds next to nothing.
Decoders whose inputs no special token opens have their first token in its place.
Where [CLS] and [SEP] share the weight, they count together: the ends of the two intervals are
added, which makes an interval at least as wide as that of the sum.
"""

import numpy as np
import xarray as xr

from headscope.core.claim import Claim, LabelRule, claims_where
from headscope.core.head_attention import (
    SHARED_PART,
    SPECIALS,
    TARGETS,
    added,
    attention_documents,
    attention_to,
    norm_share,
    ordinary_attention,
    special_name,
)
from headscope.core.intervals import Estimate
from headscope.core.results import at, estimate, group, surely
from headscope.core.terms import KOBAYASHI20, OURS, Term
from headscope.core.wording import number, percent

NAME = "norms"
SINK_SHARE = 0.5  # ours: most of the attention rests there
SINK_NORM = 0.5  # ours: of what all other tokens contribute
LEAST_SHARE = 1 / 3  # ours: of the attention; less is no resting place worth a sentence

TERMS = {
    "value_norm": Term("value norm ‖f(x)‖", "The length of the vector that a head would add for a "
        "token if it attended to that token alone, before any attention weight.", KOBAYASHI20),
    "weighted_norm": Term("weighted norm ‖αf(x)‖",
        "Attention times value norm: the length of what a token really contributes through a head; "
        "for a category, the sum over its tokens.", KOBAYASHI20),
    "layer_weighted_norm": Term("layer norm of the sum ‖Σαf(x)‖",
        "The length of what a token contributes through all heads of a layer together; heads can "
        "reinforce or cancel each other.", KOBAYASHI20),
    "value_norm_cv": Term("dispersion of value norms",
        "Standard deviation over mean of a head’s value norms: how differently it treats tokens "
        "before any attention weight.", f"{KOBAYASHI20}, Table 1"),
    "value_norm_max": Term("largest value norm",
        "The length of the longest vector that a head would add for any token of the corpus; no "
        "interval, as no part of the corpus holds a longer one.", f"{KOBAYASHI20}, Table 1"),
    "value_norm_min": Term("smallest value norm",
        "The length of the shortest vector that a head would add for any token of the corpus; no "
        "interval, as no part of the corpus holds a shorter one.", f"{KOBAYASHI20}, Table 1"),
    "spearman_attention_value_norm": Term("cancellation", "Attention and value norm pull against "
        "each other: large weights fall on tokens whose vectors are short, seen as a negative rank "
        "correlation between the two.", f"{KOBAYASHI20}, Table 2"),
    "spearman_frequency": Term("frequency effect", "Rank correlation with a token’s frequency rank "
        "(1 = most frequent): positive when rarer tokens get more, or mix more.", KOBAYASHI20),
    "sink": Term("attention sink", "A head that rests more than half of its attention on [CLS], on "
        "[SEP], on both, or on the first token where no special one opens the input, while what "
        "they add has less than half the norm of what the other tokens add.",
        f"{KOBAYASHI20}; the thresholds are ours"),
}  # fmt: skip
LABELS = {
    "attention": "summed attention to {choice}", "value_norm": "value norm of {choice}",
    "weighted_norm": "weighted norm of {choice}", "value_norm_mean": "value norm, mean",
    "value_norm_sd": "value norm, SD", "value_norm_cv": "value norm, CV",
    "value_norm_max": "value norm, largest", "value_norm_min": "value norm, smallest",
}  # fmt: skip
RULES = {
    "sink": LabelRule(
        "attention sink",
        number="attention to [CLS], to [SEP], to both together, or to the first token of a decoder "
        "without [CLS]", least=SINK_SHARE,
        source=f"{OURS}, after {KOBAYASHI20}",
        asks=f"what they add has a norm less than {SINK_NORM:g} of what all other tokens but full "
        "stops and commas add, upper end against lower end; both together only where either has "
        f"{SHARED_PART:g} of the attention to them",
    ),
}  # fmt: skip


def claims(tree: xr.DataTree) -> list[Claim]:
    """One claim per sink; about `cls`, `sep`, `first`, or `special`: [CLS] and [SEP] together."""
    norms = group(tree, NAME)
    if norms is None or "weighted_norm" not in norms:
        return []
    there = [kind for kind in ("cls", "sep", "other", "first") if kind in norms["category"]]
    weights = {kind: attention_to(tree, kind) for kind in (*SPECIALS, *there[3:])}
    length = {kind: estimate(norms, "weighted_norm", category=kind) for kind in there}
    length["special"] = added(length["cls"], length["sep"])
    return [
        claim
        for kind, weight in weights.items()
        if weight is not None and np.isfinite(weight.value).any()
        for claim in _sinks(tree, kind, weight, length[kind], length["other"])
    ]


def _sinks(
    tree: xr.DataTree, about: str, weight: Estimate, norm: Estimate, others: Estimate
) -> list[Claim]:
    first, part = about == "first", norm_share(tree, about)
    goal = TARGETS[about].goal if first else special_name(tree, about)
    upper = np.where(np.isfinite(norm.high), norm.high, norm.value)
    sink = (weight.value > LEAST_SHARE) & (upper < SINK_NORM * surely(others))
    name = "rests on first token" if first else f"attention sink on {goal}"
    what = "they add" if about == "special" else f"{goal} adds"

    def say(layer: int, head: int) -> tuple[str, str]:
        share, length, rest = (at(part, layer, head) for part in (weight, norm, others))
        of_norm = f", {percent(*at(part, layer, head))} of all" if first and part else ""
        return (
            f"{name}: weight {number(*share)}, norm {number(*length)}{of_norm}",
            f"rests {percent(*share)} of its attention on {goal}, yet what {what} has norm "
            f"{number(*length)}{of_norm}, against {number(*rest)} from other tokens",
        )

    share = Estimate(np.where(sink, weight.value, np.nan), weight.low, weight.high)
    return claims_where(
        share, ordinary_attention(tree, about), RULES["sink"], say, kind="sink", name=name,
        n=attention_documents(tree), analysis=NAME, about=about,
    )  # fmt: skip
