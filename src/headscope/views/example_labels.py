"""Label each head by its attention in one example: `previous token 87 %`.

Roles and thresholds are those of `core.head_roles`; `itself` is one more target. As an example is
short, two rules differ. Special tokens do not count as queries: they are few of 128 tokens, but a
fourth of eight. And a label must stand out from uniform attention, as a claim must: among three
tokens every head gives much to each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headscope.core.claim import LEAST_EFFECT
from headscope.core.head_attention import OFFSETS, TARGETS
from headscope.core.head_roles import BROAD_SHARE, ORDER
from headscope.core.wording import percent
from headscope.errors import InputError
from headscope.views.captured_example import StackMaps, TokenSide

Floats = npt.NDArray[np.floating]
Bools = npt.NDArray[np.bool_]
Shares = dict[str, npt.NDArray[np.float64]]
# role -> least share; a later role wins, as in `head_roles`
LEAST = {role: BROAD_SHARE if role == "broad" else TARGETS[role].least for role in ("self", *ORDER)}


def stack_labels(stack: StackMaps, sides: Sequence[TokenSide]) -> list[list[str]]:
    """[layer][head] the labels of a stack by its own maps; '' where keys are other tokens."""
    side = sides[stack.keys]
    if stack.queries != stack.keys:
        return [[""] * stack.attention.shape[1] for _ in stack.attention]
    flags = (side.cls, side.sep)
    names = [next((t for t, f in zip(side.tokens, flag, strict=True) if f), "") for flag in flags]
    return example_labels(
        stack.attention, special=side.special, cls=side.cls, sep=side.sep,
        punctuation=side.punctuation, cls_name=names[0], sep_name=names[1],
    )  # fmt: skip


def example_labels(
    attention: Floats,
    *,
    special: Bools,
    cls: Bools,
    sep: Bools,
    punctuation: Bools,
    cls_name: str = "[CLS]",
    sep_name: str = "[SEP]",
) -> list[list[str]]:
    """Where most of a head's attention goes, as the mean over queries: `previous token 87 %`.

    The share of `broad` is the mean entropy over that of uniform attention; where no token sees a
    later one, to the tokens that it sees. `first token` is for examples without an opening token.

    attention         [layer, head, query, key] probabilities
    special           [token] no queries, unless all are special
    cls, sep, punctuation   [token] which tokens are of the kind
    cls_name, sep_name      what to call them
    returns           [layer][head] texts, '' where nothing is telling
    raises            InputError if the shapes do not agree or a number is missing
    """
    kinds = {"cls": cls, "sep": sep, "punctuation": punctuation}
    _check(attention, {"special": special, **kinds})
    queries = np.ones(len(special)) if special.all() else ~special * 1.0
    queries /= queries.sum()
    uniform = _uniform(attention)
    names = {
        "self": "itself", "next": "next token", "previous": "previous token", "broad": "broad",
        "first": "first token", "cls": cls_name, "sep": sep_name, "punctuation": "punctuation",
    }  # fmt: skip
    chance, widest = _shares(uniform, queries, kinds), _entropy(uniform, queries)
    found = []
    for maps in attention:  # one layer at a time, to hold little
        shares = _shares(maps, queries, kinds)
        if widest > 0:
            shares["broad"] = _entropy(maps, queries) / widest
        labels = [""] * len(maps)
        for role, least in LEAST.items():
            for head in np.flatnonzero(_telling(shares, chance, role, least)).tolist():
                share = percent(min(float(shares[role][head]), 1.0), np.nan, np.nan)
                labels[head] = f"{names[role]} {share}"
        found.append(labels)
    return found


def _uniform(attention: Floats) -> npt.NDArray[np.float64]:
    """[1, query, key] uniform attention: to all tokens, or to those up to the query."""
    seen = np.ones(attention.shape[-2:])
    if not any(np.triu(maps, 1).any() for maps in attention):
        seen = np.tril(seen)
    return np.asarray(seen / seen.sum(-1, keepdims=True))[None]


def _shares(maps: Floats, queries: npt.NDArray[np.float64], kinds: dict[str, Bools]) -> Shares:
    """[head] the mean attention to each target; maps [head, query, key], queries sum to 1."""
    parts = maps * queries[:, None]  # [head, query, key]
    shares = {role: parts.diagonal(offset, 1, 2).sum(-1) for role, offset in OFFSETS.items()}
    received = parts.sum(-2)  # [head, key]
    shares |= {kind: received[:, tokens].sum(-1) for kind, tokens in kinds.items()}
    if not kinds["cls"].any():
        shares["first"] = received[:, 0]
    return shares


def _telling(shares: Shares, chance: Shares, role: str, least: float) -> Bools:
    """[head] whether the share is above `least`, and stands out from uniform attention."""
    if role not in shares:
        return np.zeros(len(shares["self"]), dtype=bool)
    share = shares[role]
    if role == "broad":
        return np.asarray(share > least)
    ordinary = float(chance[role][0])
    return np.asarray((share > least) & (share - ordinary > LEAST_EFFECT * (1 - ordinary)))


def _entropy(maps: Floats, queries: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """[head] the mean entropy over queries in nats; maps [head, query, key]."""
    weights = maps.astype(np.float64)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return np.asarray(-(weights * logs).sum(-1) @ queries)


def _check(attention: Floats, kinds: dict[str, Bools]) -> None:
    tokens = attention.shape[-1] if attention.ndim else 0
    if attention.ndim != 4 or attention.shape[-2] != tokens or tokens == 0:
        raise InputError(
            f"attention has the shape {attention.shape}; wanted [layer, head, query, key] with as "
            "many queries as keys, at least 1"
        )
    for kind, flags in kinds.items():
        if flags.shape != (tokens,):
            raise InputError(f"{kind} has the shape {flags.shape}; wanted ({tokens},), one a token")
    if not np.isfinite(attention).all():
        raise InputError("attention holds NaN or infinite weights; wanted a number for every pair")
