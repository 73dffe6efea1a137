"""Claims about attention sinks: heads that rest on special tokens.

Kobayashi et al. (2020) found that heads give [SEP] much weight and little norm. A sink has both:
what it rests on adds next to nothing, beside what other tokens add, or would add: of a head that
gives all its attention to one token, other tokens add nothing either.
Decoders whose inputs no special token opens have their first token in its place.
Where [CLS] and [SEP] share the weight, they count together: the ends of the two intervals are
added, which makes an interval at least as wide as that of the sum.
"""

from dataclasses import dataclass

import numpy as np

from headscope.claims.claim import Claim
from headscope.claims.head_attention import (
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
from headscope.claims.plan import NOTHING, LabelRule
from headscope.claims.reading import Reading
from headscope.claims.terms import KOBAYASHI20, OURS
from headscope.core.intervals import Estimate
from headscope.core.results import Floats, at, surely
from headscope.core.wording import number, percent

SINK_SHARE = 0.5  # ours: most of the attention rests there
SINK_NORM = 0.5  # ours: of what all other tokens contribute
SINK_VALUE = 0.1  # ours: of the length of other tokens’ vectors
LEAST_SHARE = 1 / 3  # ours: of the attention; less is no resting place worth a sentence

LOOKS = {
    "cls": "the opening token",
    "sep": "the separators",
    "special": "all special tokens",
    "first": "the first token",
}
RULES = {
    "sink": LabelRule(
        "attention sink",
        number="attention to [CLS], to [SEP], to both together, or to the first token of a decoder "
        "without [CLS]",
        least=SINK_SHARE,
        source=f"{OURS}, after {KOBAYASHI20}",
        asks=f"what they add has a norm less than {SINK_NORM:g} of what all other tokens but full "
        "stops and commas add, upper end against lower end, or each has a value vector less than "
        f"{SINK_VALUE:g} as long as theirs; both together only where either has {SHARED_PART:g} "
        "of the attention to them, and then neither alone",
        predicts=lambda claim: LOOKS[claim.about],
        expects=NOTHING,
    ),
}


def claims(run: Reading) -> list[Claim]:
    """One claim per sink; about `cls`, `sep`, `first`, or `special`: [CLS] and [SEP] together."""
    if not {"weighted_norm", "value_norm"} <= set(run.data):
        return []
    there = [kind for kind in ("cls", "sep", "other", "first") if kind in run.data["category"]]
    lengths = {
        kind: _Lengths(run("weighted_norm", category=kind), run("value_norm", category=kind))
        for kind in there
    }
    lengths["special"] = lengths["cls"].with_(lengths["sep"])
    weights = {kind: attention_to(run.tree, kind) for kind in (*SPECIALS, *there[3:])}
    made = [
        claim
        for kind, weight in weights.items()
        if weight is not None and np.isfinite(weight.value).any()
        for claim in _sinks(run, kind, weight, lengths[kind], lengths["other"])
    ]
    rule = RULES["sink"]
    shared = {(c.layer, c.head) for c in made if c.about == "special" and rule.passes(c)}
    return [c for c in made if c.about == "special" or (c.layer, c.head) not in shared]


@dataclass(frozen=True)
class _Lengths:
    """What heads add from a kind of token, and the length of a vector before it is weighted."""

    added: Estimate
    of_value: Estimate

    def with_(self, other: "_Lengths") -> "_Lengths":
        """Two kinds together: what both add, and the longer vector."""
        one, two = self.of_value, other.of_value
        parts = zip((one.value, one.low, one.high), (two.value, two.low, two.high), strict=True)
        longer = Estimate(*(np.fmax(*pair) for pair in parts))
        return _Lengths(added(self.added, other.added), longer)


def _sinks(
    run: Reading, about: str, weight: Estimate, own: _Lengths, others: _Lengths
) -> list[Claim]:
    tree = run.tree
    first, part = about == "first", norm_share(tree, about)
    goal = TARGETS[about].goal if first else special_name(tree, about)
    little = _most(own.added) < SINK_NORM * surely(others.added)
    short = _most(own.of_value) < SINK_VALUE * surely(others.of_value)
    name = "rests on first token" if first else f"attention sink on {goal}"
    what = "they add" if about == "special" else f"{goal} adds"

    def say(layer: int, head: int) -> tuple[str, str]:
        share, norm, rest = (at(one, layer, head) for one in (weight, own.added, others.added))
        known = first and part is not None and np.isfinite(part.value[layer, head])
        of_norm = f", {percent(*at(part, layer, head))} of all" if known and part else ""
        against = f"against {number(*rest)} from other tokens"
        if not little[layer, head]:
            ends = (number(*at(one.of_value, layer, head)) for one in (own, others))
            against = "as its vectors have length {}, and those of other tokens {}".format(*ends)
        return (
            f"{name}: weight {number(*share)}, norm {number(*norm)}{of_norm}",
            f"rests {percent(*share)} of its attention on {goal}, yet what {what} has norm "
            f"{number(*norm)}{of_norm}, {against}",
        )

    sink = (weight.value > LEAST_SHARE) & (little | short)
    share = Estimate(np.where(sink, weight.value, np.nan), weight.low, weight.high)
    return run.claims(
        share,
        ordinary_attention(tree, about),
        RULES["sink"],
        say,
        kind="sink",
        name=name,
        n=attention_documents(tree),
        about=about,
        replaces=about,
    )


def _most(parts: Estimate) -> Floats:
    """The upper ends of the intervals; the values where there are none."""
    return np.asarray(np.where(np.isfinite(parts.high), parts.high, parts.value))
