"""Claims about where heads look: neighbours, special tokens, punctuation; roles and label rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core.claim import Claim, LabelRule, Phrases, claims_where
from headscope.core.head_attention import (
    SHARED_PART,
    SPECIALS,
    attention_documents,
    attention_to,
    has_cls,
    ordinary_attention,
    special_name,
    uniform_share,
)
from headscope.core.head_roles import POSITION, SPECIAL
from headscope.core.results import at, group, surely
from headscope.core.terms import CLARK, OURS
from headscope.core.wording import percent

NAME = "surface"
# kind → its name as a label, and in a sentence
GOALS = {
    "previous": ("previous token", "the previous token"),
    "next": ("next token", "the next token"),
    "self": ("token itself", "the token itself"),
    "first": ("first token", "the first token"),
    "punctuation": ("punctuation", "full stops and commas"),
}
KINDS = (*GOALS, *SPECIALS)
PAPERS = {"cls": "[CLS]", "sep": "[SEP]"}

RULES = {
    "previous": LabelRule(
        "previous token",
        number="attention to the previous token", least=POSITION, source=f"{CLARK}, §6",
    ),
    "next": LabelRule(
        "next token",
        number="attention to the next token", least=POSITION, source=f"{CLARK}, §6",
    ),
    "self": LabelRule(
        "token itself",
        number="attention of tokens to themselves", least=POSITION,
        source=f"{OURS}, as for a position",
    ),
    "first": LabelRule(
        "first token",
        number="attention to the first token", least=SPECIAL, source=f"{OURS}, as for [CLS]",
        asks="the tokenizer has no [CLS]",
    ),
    "cls": LabelRule(
        "[CLS]",
        number="attention to [CLS]", least=SPECIAL, source=f"{CLARK}, §6", unless=("sink",),
    ),
    "sep": LabelRule(
        "[SEP]",
        number="attention to [SEP]", least=SPECIAL, source=f"{CLARK}, §6", unless=("sink",),
    ),
    "special": LabelRule(
        "[CLS] and [SEP]",
        number="attention to [CLS] and [SEP] together", least=SPECIAL,
        source=f"{OURS}, as for each", asks=f"either has {SHARED_PART:g} of it",
        unless=("cls", "sep", "sink"),
    ),
    "punctuation": LabelRule(
        "punctuation",
        number="attention to full stops and commas", least=SPECIAL, source=f"{CLARK}, §6",
    ),
}  # fmt: skip


def claims(tree: xr.DataTree) -> list[Claim]:
    """Heads that give a target clearly more than the mean head, or than uniform attention does."""
    if group(tree, NAME) is None:
        return []
    return [claim for kind in KINDS for claim in _to_target(tree, kind)]


def roles(
    tree: xr.DataTree, *, by_value: bool, broad_nats: float | None
) -> dict[str, npt.NDArray[np.bool_]]:
    """Role → [layer, head] which heads have it, by their largest target."""
    if group(tree, NAME) is None:
        return {}
    least = {"next": POSITION, "previous": POSITION, "cls": SPECIAL, "sep": SPECIAL}
    least["punctuation"] = SPECIAL
    if not has_cls(tree):
        least["first"] = SPECIAL
    shares: dict[str, Any] = {role: attention_to(tree, role) for role in least}
    return {
        role: (share.value if by_value else surely(share)) > least[role]
        for role, share in shares.items()
    }


def _to_target(tree: xr.DataTree, kind: str) -> list[Claim]:
    share = attention_to(tree, kind)
    if share is None or (kind == "first" and has_cls(tree)) or not np.isfinite(share.value).any():
        return []
    reference = ordinary_attention(tree, kind)
    if kind in ("previous", "next", "self", "first"):
        reference = max(reference, uniform_share(tree))
    name, goal = GOALS.get(kind) or (
        special_name(tree, kind, otherwise=PAPERS), special_name(tree, kind)
    )  # fmt: skip

    def say(layer: int, head: int) -> Phrases:
        words = percent(*at(share, layer, head))
        if float(share.value[layer, head]) > POSITION:
            return Phrases(f"{name} {words}", f"attends to {goal}, {words}")
        usual = percent(reference, np.nan, np.nan)
        return Phrases(
            f"{name} {words}", f"gives {goal} {words} of its attention, where {usual} is ordinary"
        )

    return claims_where(
        share, reference, RULES[kind], say,
        kind=kind, name=name, n=attention_documents(tree), analysis=NAME,
    )  # fmt: skip
