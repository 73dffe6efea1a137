"""Which heads rest their attention on special tokens that add next to nothing?

Kobayashi et al. (2020) found that heads give [SEP] much weight and little norm. A sink is told by
both. Where [CLS] and [SEP] share the weight, they are told together: the ends of the two intervals
are added, which makes an interval at least as wide as that of the sum.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.claim import LEAST_EFFECT, Claim, effects
from headscope.core.results import Floats, at, documents, estimate, group, surely, token_names
from headscope.core.wording import number, percent
from headscope.heads.label_rules import SHARED_PART, SINK_NORM, SINK_SHARE

TOLD = 1 / 3  # ours: of the attention; less is no resting place worth a sentence
SPECIALS = ("cls", "sep", "special")
PLACES = {"cls": "the opening token", "sep": "the separator"}


def sink_claims(tree: xr.DataTree) -> list[Claim]:
    """One claim per sink; about `cls`, `sep`, or `special`: both together."""
    surface, norms = group(tree, "surface"), group(tree, "norms")
    if surface is None or norms is None or "weighted_norm" not in norms:
        return []
    length = {
        kind: estimate(norms, "weighted_norm", category=kind) for kind in ("cls", "sep", "other")
    }
    length["special"] = _sum(length["cls"], length["sep"])
    return [
        claim
        for kind in SPECIALS
        for claim in _of(
            tree, kind, weight_on(surface, kind), length[kind], length["other"]
        )
    ]  # fmt: skip


def weight_on(surface: xr.Dataset, kind: str) -> Estimate:
    """[layer, head] the attention to a target; to `special` only where [CLS] and [SEP] share it."""
    if kind != "special":
        return estimate(surface, "attention", target=kind)
    parts = [estimate(surface, "attention", target=part) for part in ("cls", "sep")]
    both = _sum(*parts)
    shared = np.minimum(parts[0].value, parts[1].value) >= SHARED_PART * both.value
    return Estimate(*(np.where(shared, part, np.nan) for part in (both.value, both.low, both.high)))


def ordinary(surface: xr.Dataset, kind: str) -> float:
    """What the mean head gives to a target: of all heads, however they share."""
    parts = ("cls", "sep") if kind == "special" else (kind,)
    return sum(
        float(np.nanmean(estimate(surface, "attention", target=part).value)) for part in parts
    )


def special_name(tree: xr.DataTree, kind: str, *, otherwise: Mapping[str, str] = PLACES) -> str:
    """What to call the tokens of one of SPECIALS: as the tokenizer does, or `otherwise`."""
    names = {part: token_names(tree)[part] or otherwise[part] for part in ("cls", "sep")}
    return names.get(kind) or f"{names['cls']} and {names['sep']}"


def _of(
    tree: xr.DataTree, about: str, weight: Estimate, norm: Estimate, others: Estimate
) -> list[Claim]:
    """The claims about one place."""
    surface = tree.children["surface"].to_dataset()
    if not np.isfinite(weight.value).any():
        return []
    reference, goal = ordinary(surface, about), special_name(tree, about)
    n = documents(tree, surface["attention"])
    effect = effects(weight, reference)
    upper = np.where(np.isfinite(norm.high), norm.high, norm.value)
    sink = (weight.value > TOLD) & (upper < SINK_NORM * surely(others))
    wanted = sink & ((effect > LEAST_EFFECT) | (surely(weight) > SINK_SHARE))
    name = f"attention sink on {goal}"
    what = "they add" if about == "special" else f"{goal} adds"
    claims = []
    for layer, head in np.argwhere(wanted & np.isfinite(effect)).tolist():
        share, length, rest = (at(part, layer, head) for part in (weight, norm, others))
        sentence = (
            f"rests {percent(*share)} of its attention on {goal}, yet what {what} has norm "
            f"{number(*length)}, against {number(*rest)} from other tokens"
        )
        label = f"{name}: weight {number(*share)}, norm {number(*length)}"
        claims.append(
            Claim(
                layer, head, "sink", float(effect[layer, head]), name, label, sentence,
                *share, reference, n, "norms", about,
            )
        )  # fmt: skip
    return claims


def _sum(one: Estimate, other: Estimate) -> Estimate:
    parts: list[Floats] = [
        np.asarray(a + b)
        for a, b in ((one.value, other.value), (one.low, other.low), (one.high, other.high))
    ]
    return Estimate(*parts)
