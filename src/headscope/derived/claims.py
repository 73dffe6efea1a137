"""What can be said of a head in one sentence, and how far does it stand out?

Effects (see `claim`) are taken with reference = the larger of uniform attention and the mean head,
and ceiling = 1 for shares and the uniform entropy for entropy. Low entropy is the mirror image,
from the mean head down to 0. What a head knows of language is in `functions`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from headscope.accumulate import Estimate
from headscope.derived.claim import LEAST_EFFECT, Claim, effects
from headscope.derived.functions import function_claims
from headscope.derived.reading import Floats, documents, estimate, group, shape, token_names
from headscope.derived.roles import POSITION, has_cls, is_broad
from headscope.derived.wording import number, percent, plain

TARGETS = ("previous", "next", "self", "first", "cls", "sep", "punctuation")
NARROW_SHARE = 0.5  # ours: of the uniform entropy; what is above is not called narrow
SINK_SHARE = 1 / 3  # ours: of the attention; less is no resting place
SINK_NORM = 0.5  # ours: a sink's tokens contribute less than half of what all other tokens do


def all_claims(tree: xr.DataTree) -> list[Claim]:
    """Every claim of an effect above LEAST_EFFECT, in no meant order; several per head."""
    claims = [claim for kind in TARGETS for claim in _target_claims(tree, kind)]
    return claims + _broad_claims(tree) + _narrow_claims(tree) + function_claims(tree)


def _target_claims(tree: xr.DataTree, kind: str) -> list[Claim]:
    surface = group(tree, "surface")
    if surface is None or (kind == "first" and has_cls(tree)):
        return []
    share = estimate(surface, "attention", target=kind)
    if not np.isfinite(share.value).any():
        return []
    reference = float(np.nanmean(share.value))
    if kind in ("previous", "next", "self", "first"):
        reference = max(reference, _uniform_share(tree))
    n = documents(tree, surface["attention"])

    def say(layer: int, head: int) -> str:
        words = percent(*_at(share, layer, head))
        goal = _goal(tree, kind)
        sink = kind in ("cls", "sep") and float(share.value[layer, head]) > SINK_SHARE
        norms = _sink_norms(tree, kind, layer, head) if sink else ""
        if norms:
            return f"rests {words} of its attention on {goal}, yet what {goal} adds {norms}"
        if float(share.value[layer, head]) > POSITION:
            return f"attends to {goal}, {words}"
        ordinary = percent(reference, np.nan, np.nan)
        return f"gives {goal} {words} of its attention, where {ordinary} is ordinary"

    return _claims(kind, share, reference, n, say)


def _broad_claims(tree: xr.DataTree) -> list[Claim]:
    entropy, uniform = _entropy(tree)
    if entropy is None:
        return []
    reference = float(np.nanmean(entropy.value)) / uniform
    value = np.where(is_broad(tree), entropy.value / uniform, np.nan)
    share = Estimate(value, entropy.low / uniform, entropy.high / uniform)

    def say(layer: int, head: int) -> str:
        nats = number(*_at(entropy, layer, head))
        return f"attends broadly: entropy {nats} of {plain(uniform, 'nats')} nats"

    return _claims("broad", share, reference, _entropy_n(tree), say)


def _narrow_claims(tree: xr.DataTree) -> list[Claim]:
    """Heads of low entropy that no single target explains: they pick, but not by position."""
    entropy, uniform = _entropy(tree)
    if entropy is None:
        return []
    narrow = ~_explained(tree) & (entropy.value < NARROW_SHARE * uniform)
    value = np.where(narrow, 1 - entropy.value / uniform, np.nan)
    share = Estimate(value, 1 - entropy.high / uniform, 1 - entropy.low / uniform)
    reference = 1 - float(np.nanmean(entropy.value)) / uniform

    def say(layer: int, head: int) -> str:
        nats = number(*_at(entropy, layer, head))
        return (
            "focuses on few tokens without one main target: "
            f"entropy {nats} of {plain(uniform, 'nats')} nats"
        )

    return _claims("narrow", share, reference, _entropy_n(tree), say)


def _claims(
    kind: str, share: Estimate, reference: float, n: int, say: Callable[[int, int], str]
) -> list[Claim]:
    """One claim per head whose value is clearly above the reference."""
    effect = effects(share, reference)
    claims = []
    for layer, head in np.argwhere(effect > LEAST_EFFECT).tolist():
        value, low, high = _at(share, layer, head)
        size = float(effect[layer, head])
        sentence = say(layer, head)
        claims.append(Claim(layer, head, kind, size, sentence, value, low, high, reference, n))
    return claims


def _goal(tree: xr.DataTree, kind: str) -> str:
    """What a head attends to, in words."""
    if kind in ("cls", "sep"):
        return token_names(tree)[kind] or {"cls": "the opening token", "sep": "the separator"}[kind]
    return {
        "previous": "the previous token",
        "next": "the next token",
        "self": "the token itself",
        "first": "the first token",
        "punctuation": "full stops and commas",
    }[kind]


def _sink_norms(tree: xr.DataTree, kind: str, layer: int, head: int) -> str:
    """The half sentence that tells a sink: much weight, little norm; '' where it is none."""
    norms = group(tree, "norms")
    if norms is None or "weighted_norm" not in norms:
        return ""
    here = _at(estimate(norms, "weighted_norm", category=kind), layer, head)
    rest = _at(estimate(norms, "weighted_norm", category="other"), layer, head)
    if not here[0] < SINK_NORM * rest[0]:
        return ""
    return f"has norm {number(*here)}, against {number(*rest)} from other tokens"


def _explained(tree: xr.DataTree) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """[layer, head] whether some single target takes more than half of the attention."""
    surface = group(tree, "surface")
    explained = np.zeros(shape(tree), dtype=bool)
    if surface is not None:
        for kind in TARGETS:
            explained |= estimate(surface, "attention", target=kind).value > POSITION
    return explained


def _uniform_share(tree: xr.DataTree) -> float:
    """What uniform attention gives one token: about exp(−mean ln n); 0 where not known."""
    entropy = group(tree, "entropy")
    return 0.0 if entropy is None else float(np.exp(-float(entropy["uniform"])))


def _entropy(tree: xr.DataTree) -> tuple[Estimate | None, float]:
    entropy = group(tree, "entropy")
    if entropy is None or not float(entropy["uniform"]) > 0:
        return None, float("nan")
    return estimate(entropy, "entropy", query="all"), float(entropy["uniform"])


def _entropy_n(tree: xr.DataTree) -> int:
    entropy = group(tree, "entropy")
    return documents(tree, None if entropy is None else entropy["entropy"])


def _at(parts: Estimate, layer: int, head: int) -> tuple[float, float, float]:
    cells: list[Floats] = [parts.value, parts.low, parts.high]
    value, low, high = (float(cell[layer, head]) for cell in cells)
    return value, low, high
