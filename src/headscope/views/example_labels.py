"""Label each head by its attention in one example: `previous token 87 %`.

Targets and thresholds are those of `claims.head_attention`, as for labels. As an example
is short, two rules differ. Special tokens do not count as queries: they are few of 128 tokens, but
a fourth of eight. And a label must stand out from uniform attention, as a claim must: among three
tokens every head gives much to each.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headscope.claims.claim import LEAST_EFFECT
from headscope.claims.head_attention import (
    BROAD_SHARE,
    NEXT,
    PREVIOUS,
    SELF,
    TARGETS,
    map_entropy,
    map_shares,
)
from headscope.core.accumulators import Bools, Float64
from headscope.core.wording import percent
from headscope.errors import InputError
from headscope.views.captured_example import StackMaps, TokenSide

Floats = npt.NDArray[np.floating]
Shares = dict[str, Float64]
KINDS = ("cls", "sep", "punctuation")
# what a head can be named after, the least share for it; a later one wins, as with Clark et al.
ORDER = (SELF, NEXT, PREVIOUS, "broad", "first", "cls", "sep", "punctuation")
LEAST = {name: BROAD_SHARE if name == "broad" else TARGETS[name].least for name in ORDER}


def stack_labels(stack: StackMaps, sides: Sequence[TokenSide]) -> list[list[str]]:
    """[layer][head] the labels of a stack by its own maps; '' where keys are other tokens."""
    if stack.queries != stack.keys:
        return [[""] * stack.attention.shape[1] for _ in stack.attention]
    return example_labels(stack.attention, sides[stack.keys])


def example_labels(attention: Floats, side: TokenSide) -> list[list[str]]:
    """Where most of a head's attention goes, as the mean over queries: `previous token 87 %`.

    The share of `broad` is the mean entropy over that of uniform attention; where no token sees a
    later one, to the tokens that it sees. `first token` is for examples without an opening token.

    attention  [layer, head, query, key] probabilities between the tokens of a side; special ones
               are no queries, unless all are special
    returns    [layer][head] texts, '' where nothing is telling
    raises     InputError if the shapes do not agree or a number is missing
    """
    _check(attention, side)
    kinds, special = {kind: getattr(side, kind) for kind in KINDS}, side.special
    queries = np.ones(len(special)) if special.all() else ~special * 1.0
    queries /= queries.sum()
    uniform = _uniform(attention)
    names = {word: target.name for word, target in TARGETS.items()}
    names |= {SELF: "itself", "broad": "broad"}
    for kind in ("cls", "sep"):
        flags = zip(side.tokens, kinds[kind], strict=True)
        names[kind] = next((token for token, flag in flags if flag), "")
    chance, widest = _shares(uniform, queries, kinds), map_entropy(uniform, queries)
    texts = []
    for maps in attention:  # one layer at a time, to hold little
        shares = _shares(maps, queries, kinds)
        if widest > 0:
            shares["broad"] = map_entropy(maps, queries) / widest
        labels = [""] * len(maps)
        for target, least in LEAST.items():
            for head in np.flatnonzero(_telling(shares, chance, target, least)).tolist():
                share = percent(min(float(shares[target][head]), 1.0))
                labels[head] = f"{names[target]} {share}"
        texts.append(labels)
    return texts


def _uniform(attention: Floats) -> Float64:
    """[1, query, key] uniform attention: to all tokens, or to those up to the query."""
    seen = np.ones(attention.shape[-2:])
    if not any(np.triu(maps, 1).any() for maps in attention):
        seen = np.tril(seen)
    return np.asarray(seen / seen.sum(-1, keepdims=True))[None]


def _shares(maps: Floats, queries: Float64, kinds: dict[str, Bools]) -> Shares:
    """[head] the mean attention to each target; to the first token where none opens the input."""
    shares = map_shares(maps, queries, kinds)
    if kinds["cls"].any():
        del shares["first"]
    return shares


def _telling(shares: Shares, chance: Shares, target: str, least: float) -> Bools:
    """[head] whether the share is above `least`, and stands out from uniform attention."""
    if target not in shares:
        return np.zeros(len(shares[SELF]), dtype=bool)
    share = shares[target]
    if target == "broad":
        return np.asarray(share > least)
    ordinary = float(chance[target][0])
    return np.asarray((share > least) & (share - ordinary > LEAST_EFFECT * (1 - ordinary)))


def _check(attention: Floats, side: TokenSide) -> None:
    tokens = attention.shape[-1] if attention.ndim else 0
    if attention.ndim != 4 or attention.shape[-2] != tokens or tokens == 0:
        raise InputError(
            f"attention has the shape {attention.shape}; wanted [layer, head, query, key] with as "
            "many queries as keys, at least 1"
        )
    for kind in ("special", *KINDS):
        if (shape := getattr(side, kind).shape) != (tokens,):
            raise InputError(
                f"{kind} has the shape {shape}; wanted ({tokens},), one for each token"
            )
    if not np.isfinite(attention).all():
        raise InputError("attention holds NaN or infinite weights; wanted a number for every pair")
