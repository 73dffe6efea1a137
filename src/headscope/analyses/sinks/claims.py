"""Words and claims about sinks by a threshold, and about massive activations."""

import numpy as np
import xarray as xr

from headscope.core.claim import Claim, LabelRule, claims_where
from headscope.core.head_attention import SPECIALS, TARGETS, norm_share, special_name
from headscope.core.results import at, documents, estimate, group
from headscope.core.terms import GU, OURS, SUN, Term
from headscope.core.wording import percent

NAME = "sinks"
NEARLY_ALL = 0.9  # ours
KINDS = ("first", "cls", "sep", "punctuation", "other")

TERMS = {
    "sink_share": Term(
        "sink by threshold",
        "The share of inputs in which some token gets more than 0.3 of the attention, mean over "
        "all tokens that see it.",
        GU,
    ),
    "sink_share_of": Term("sink on a kind of token", "The same of the tokens of a kind.", GU),
    "sink_rate": Term(
        "heads with a sink",
        "The share of heads, and of inputs, in which the token at a position is a sink by "
        "threshold.",
        GU,
    ),
    "largest": Term(
        "largest activation",
        "The largest |x| of the residual stream that a layer’s attention reads, over the tokens "
        "and dimensions of an input.",
        SUN,
    ),
    "massive": Term(
        "massive activation",
        "A number of the residual stream above 100 and above 1,000 times the median of an input’s "
        "numbers, in size.",
        SUN,
    ),
}
LABELS = {
    "sink_share": "inputs with a sink",
    "sink_share_of": "inputs with a sink on {choice}",
}
RULES = {
    "threshold_sink": LabelRule(
        "sink in nearly all inputs",
        number="share of inputs in which a token of the kind gets more than 0.3 of the attention",
        least=NEARLY_ALL,
        source=f"{GU}; the share is {OURS}’s",
        unless=("sink", "first", *SPECIALS, "punctuation"),
        variable="sink_share_of",
    ),
}


def claims(tree: xr.DataTree) -> list[Claim]:
    """Heads that have a sink in many inputs, by the kind of token that it is."""
    dataset = group(tree, NAME)
    there = [] if dataset is None else [k for k in KINDS if k in dataset["kind"].values]
    return [claim for kind in there for claim in _on(tree, kind)]


def goal_of(tree: xr.DataTree, kind: str) -> str:
    """What a sentence calls the tokens of a kind."""
    if kind in SPECIALS:
        return special_name(tree, kind)
    return TARGETS[kind].goal if kind in TARGETS else "some other token"


def counted(dataset: xr.Dataset) -> str:
    """Which inputs count, in words that follow “inputs”; "" if all do."""
    least = int(dataset.attrs.get("least", 16))
    return f" of {least} tokens or more" if least > 1 else ""


def _on(tree: xr.DataTree, kind: str) -> list[Claim]:
    dataset, goal = tree.children[NAME].to_dataset(), goal_of(tree, kind)
    share, part = estimate(dataset, "sink_share_of", kind=kind), norm_share(tree, kind)
    if not np.isfinite(share.value).any():
        return []

    def say(layer: int, head: int) -> tuple[str, str]:
        words = percent(*at(share, layer, head))
        known = part is not None and np.isfinite(part.value[layer, head])
        of_norm = f", with {percent(*at(part, layer, head))} of the norm" if known and part else ""
        return (
            f"sink on {goal} in {words} of inputs",
            f"rests on {goal} in {words} of inputs{counted(dataset)}: more than 0.3 of the "
            f"attention{of_norm}",
        )

    return claims_where(
        share,
        float(np.nanmean(share.value)),
        RULES["threshold_sink"],
        say,
        kind="threshold_sink",
        name=f"sink on {goal} in nearly all inputs",
        n=documents(tree, dataset["sink_share_of"]),
        analysis=NAME,
        brief=f"sink on {goal}",
    )
