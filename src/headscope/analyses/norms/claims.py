"""Claims about attention sinks: heads that rest on special tokens that add next to nothing.

Kobayashi et al. (2020) found that heads give [SEP] much weight and little norm. A sink has both.
Where [CLS] and [SEP] share the weight, they count together: the ends of the two intervals are
added, which makes an interval at least as wide as that of the sum.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.claim import LEAST_EFFECT, Claim, LabelRule, effects
from headscope.core.head_attention import (
    SHARED_PART,
    SPECIALS,
    added,
    attention_documents,
    attention_to,
    ordinary_attention,
    special_name,
)
from headscope.core.results import at, estimate, group, surely
from headscope.core.terms import KOBAYASHI20, OURS
from headscope.core.wording import number, percent

NAME = "norms"
SINK_SHARE = 0.5  # ours: most of the attention rests there
SINK_NORM = 0.5  # ours: of what all other tokens contribute
LEAST_SHARE = 1 / 3  # ours: of the attention; less is no resting place worth a sentence

RULES = {
    "sink": LabelRule(
        "attention sink",
        number="attention to [CLS], to [SEP], or to both together", least=SINK_SHARE,
        source=f"{OURS}, after {KOBAYASHI20}",
        asks=f"what they add has a norm less than {SINK_NORM:g} of what all other tokens but full "
        "stops and commas add, upper end against lower end; both together only where either has "
        f"{SHARED_PART:g} of the attention to them",
    ),
}  # fmt: skip


def claims(tree: xr.DataTree) -> list[Claim]:
    """One claim per sink; about `cls`, `sep`, or `special`: both together."""
    norms = group(tree, NAME)
    weights = {kind: attention_to(tree, kind) for kind in SPECIALS}
    if norms is None or "weighted_norm" not in norms:
        return []
    length = {
        kind: estimate(norms, "weighted_norm", category=kind) for kind in ("cls", "sep", "other")
    }
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
    """The claims about one place."""
    reference, goal = ordinary_attention(tree, about), special_name(tree, about)
    n = attention_documents(tree)
    effect = effects(weight, reference)
    upper = np.where(np.isfinite(norm.high), norm.high, norm.value)
    sink = (weight.value > LEAST_SHARE) & (upper < SINK_NORM * surely(others))
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
                *share, reference, n, NAME, about, replaces=about,
            )
        )  # fmt: skip
    return claims
