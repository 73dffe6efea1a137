"""Read where heads attend, and how widely, from the results of a run.

Several questions need these results of `surface` and `entropy`. They are read here, so that no
analysis needs to know another. Absent results are None, or NaN throughout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.results import Floats, documents, estimate, group, token_names
from headscope.core.terms import CLARK, OURS

LOOK, SPREAD = "surface", "entropy"
SPECIALS = ("cls", "sep", "special")
POSITION = 0.5  # Clark's notebook: next, previous
SPECIAL = 0.6  # Clark's notebook: [CLS], [SEP], punctuation


@dataclass(frozen=True)
class Target:
    """What a head's attention can go to, by the word of the data that is its key in TARGETS.

    name    what a label calls it
    goal    what a sentence calls it
    offset  of a position: how many tokens on; None for kinds of tokens
    least   the share from which a head is named after it
    source  of that threshold
    number  what is compared with it; `attention to` the goal by default
    """

    name: str
    goal: str
    offset: int | None = None
    least: float = SPECIAL
    source: str = f"{CLARK}, §6"
    number: str = ""


TARGETS = {
    "self": Target(
        "token itself", "the token itself", 0, POSITION, f"{OURS}, as for a position",
        "attention of tokens to themselves",
    ),
    "previous": Target("previous token", "the previous token", -1, POSITION),
    "next": Target("next token", "the next token", 1, POSITION),
    "first": Target("first token", "the first token", source=f"{OURS}, as for [CLS]"),
    "cls": Target("[CLS]", "[CLS]"),
    "sep": Target("[SEP]", "[SEP]"),
    "punctuation": Target("punctuation", "full stops and commas"),
}  # fmt: skip
OFFSETS = {name: one.offset for name, one in TARGETS.items() if one.offset is not None}
SHARED_PART = 0.25  # ours: of the weight that [CLS] and [SEP] share, what either has at least
PLACES = {"cls": "the opening token", "sep": "the separator"}


def attention_to(tree: xr.DataTree, target: str) -> Estimate | None:
    """[layer, head] the share of attention to a target; None where it was not measured.

    `special` stands for [CLS] and [SEP] together, where they share the attention: NaN elsewhere.
    """
    surface = group(tree, LOOK)
    if surface is None:
        return None
    if target != "special":
        return estimate(surface, "attention", target=target)
    parts = [estimate(surface, "attention", target=part) for part in ("cls", "sep")]
    both = added(*parts)
    shared = np.minimum(parts[0].value, parts[1].value) >= SHARED_PART * both.value
    return Estimate(*(np.where(shared, part, np.nan) for part in (both.value, both.low, both.high)))


def ordinary_attention(tree: xr.DataTree, target: str) -> float:
    """The mean share over heads that goes to a target; for `special`, over all heads."""
    surface = group(tree, LOOK)
    assert surface is not None
    parts = ("cls", "sep") if target == "special" else (target,)
    return sum(
        float(np.nanmean(estimate(surface, "attention", target=part).value)) for part in parts
    )


def attention_documents(tree: xr.DataTree) -> int:
    """The documents behind `attention_to`."""
    surface = group(tree, LOOK)
    return documents(tree, None if surface is None else surface["attention"])


def spread(tree: xr.DataTree) -> tuple[Estimate | None, float]:
    """[layer, head] entropy over all queries, and that of uniform attention, in nats."""
    entropy = group(tree, SPREAD)
    if entropy is None or not float(entropy["uniform"]) > 0:
        return None, float("nan")
    return estimate(entropy, "entropy", query="all"), float(entropy["uniform"])


def uniform_share(tree: xr.DataTree) -> float:
    """The share of one token under uniform attention: about exp(−mean ln n); 0 where not known."""
    entropy = group(tree, SPREAD)
    return 0.0 if entropy is None else float(np.exp(-float(entropy["uniform"])))


def has_cls(tree: xr.DataTree) -> bool:
    """Whether the run's inputs open with a classification token."""
    share = attention_to(tree, "cls")
    if share is None:
        return bool(tree.attrs.get("cls_token", ""))
    return bool(np.isfinite(share.value).any())


def special_name(tree: xr.DataTree, kind: str, *, otherwise: Mapping[str, str] = PLACES) -> str:
    """The name of the tokens of one of SPECIALS: the tokenizer's, else that of `otherwise`."""
    names = {part: token_names(tree)[part] or otherwise[part] for part in ("cls", "sep")}
    return names.get(kind) or f"{names['cls']} and {names['sep']}"


def added(one: Estimate, other: Estimate) -> Estimate:
    """The sum of two estimates; its interval adds the ends, and is never too narrow."""
    sums: list[Floats] = [
        np.asarray(a + b)
        for a, b in ((one.value, other.value), (one.low, other.low), (one.high, other.high))
    ]
    return Estimate(*sums)
