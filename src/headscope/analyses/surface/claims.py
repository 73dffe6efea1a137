"""Words and claims about where heads look: neighbours, special tokens, punctuation; their roles."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from headscope.core.accumulators import Bools
from headscope.core.claim import Claim, LabelRule, claims_where
from headscope.core.head_attention import (
    NEXT,
    OFFSETS,
    ORDER,
    POSITION,
    PREVIOUS,
    SELF,
    SHARED_PART,
    SPECIAL,
    SPECIALS,
    TARGETS,
    attention_documents,
    attention_to,
    has_cls,
    ordinary_attention,
    special_name,
    uniform_share,
)
from headscope.core.results import at, group, surely
from headscope.core.terms import CLARK, OURS, Term
from headscope.core.wording import percent

NAME = "surface"
KINDS = (*(kind for kind in TARGETS if kind not in SPECIALS), *SPECIALS)
PAPERS = {"cls": "[CLS]", "sep": "[SEP]"}
ASKS = {"first": "the tokenizer has no [CLS]"}

TERMS = {
    SELF: Term("itself", "Attention of a token to itself.", f"{CLARK}, §3.1"),
    PREVIOUS: Term(
        "previous token", "Attention of a token to the one before it; the first token has none and "
        "counts as 0.", f"{CLARK}, §3.1",
    ),
    NEXT: Term(
        "next token", "Attention of a token to the one after it; the last token has none and "
        "counts as 0.", f"{CLARK}, §3.1",
    ),
    "sep_from_sep": Term(
        "[SEP] from [SEP]", "The attention that separator tokens themselves give to separators.",
        f"{CLARK}, §3.2",
    ),
    "sep_from_other": Term(
        "[SEP] from other tokens", "The attention that all tokens but the separators give to "
        "separators.", f"{CLARK}, §3.2",
    ),
}  # fmt: skip
LABELS = {"attention": "attention to {choice}"}
RULES = {
    kind: LabelRule(
        target.name, number=target.number or f"attention to {target.goal}", least=target.least,
        source=target.source, asks=ASKS.get(kind, ""),
        unless=("sink",) if kind in SPECIALS else (),
    )
    for kind, target in TARGETS.items()
}  # fmt: skip
RULES["special"] = LabelRule(
    "[CLS] and [SEP]",
    number="attention to [CLS] and [SEP] together", least=SPECIAL, source=f"{OURS}, as for each",
    asks=f"either has {SHARED_PART:g} of it", unless=("cls", "sep", "sink"),
)  # fmt: skip


def claims(tree: xr.DataTree) -> list[Claim]:
    """Heads that give a target clearly more than the mean head, or than uniform attention does."""
    if group(tree, NAME) is None:
        return []
    return [claim for kind in KINDS for claim in _to_target(tree, kind)]


def roles(tree: xr.DataTree, *, by_value: bool, broad_nats: float | None) -> dict[str, Bools]:
    """Role → [layer, head] which heads have it, by their largest target."""
    if group(tree, NAME) is None:
        return {}
    named = [role for role in ORDER if role in TARGETS and (role != "first" or not has_cls(tree))]
    shares: dict[str, Any] = {role: attention_to(tree, role) for role in named}
    return {
        role: (share.value if by_value else surely(share)) > TARGETS[role].least
        for role, share in shares.items()
    }


def _to_target(tree: xr.DataTree, kind: str) -> list[Claim]:
    share = attention_to(tree, kind)
    if share is None or (kind == "first" and has_cls(tree)) or not np.isfinite(share.value).any():
        return []
    reference = ordinary_attention(tree, kind)
    if kind in OFFSETS or kind == "first":
        reference = max(reference, uniform_share(tree))
    if kind in SPECIALS:
        name, goal = special_name(tree, kind, otherwise=PAPERS), special_name(tree, kind)
    else:
        name, goal = TARGETS[kind].name, TARGETS[kind].goal

    def say(layer: int, head: int) -> tuple[str, str]:
        words = percent(*at(share, layer, head))
        sentence = f"attends to {goal}, {words}"
        if float(share.value[layer, head]) <= POSITION:
            usual = percent(reference)
            sentence = f"gives {goal} {words} of its attention, where {usual} is ordinary"
        return f"{name} {words}", sentence

    return claims_where(
        share, reference, RULES[kind], say,
        kind=kind, name=name, n=attention_documents(tree), analysis=NAME,
    )  # fmt: skip
