"""Claims about sinks by a threshold, by the kind of token that they are on."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from headscope.claims.head_attention import SPECIALS, TARGETS, norm_share, special_name
from headscope.claims.plan import ClaimPlan, LabelRule
from headscope.claims.reading import Reading
from headscope.claims.terms import GU, OURS

KINDS = ("first", "cls", "sep", "punctuation", "other")


def kinds(run: Reading) -> Iterator[dict[str, str]]:
    """Kinds of tokens that the run has, each with what a sentence calls it."""
    for kind in KINDS:
        if kind in run.data["kind"].values:
            yield {"kind": kind, "goal": goal_of(run, kind)}


def goal_of(run: Reading, kind: str) -> str:
    """What a sentence calls the tokens of a kind."""
    if kind in SPECIALS:
        return special_name(run.tree, kind)
    return TARGETS[kind].goal if kind in TARGETS else "some other token"


def counted(run: Reading) -> str:
    """Which inputs count, in words that follow “inputs”; "" if all do."""
    least = int(run.data.attrs.get("least", 16))
    return f" of {least} tokens or more" if least > 1 else ""


def _sentence(run: Reading, layer: int, head: int, **fields: Any) -> str:
    part = fields["norm"]
    known = part is not None and np.isfinite(part.value[layer, head])
    of_norm = ", with {norm:%} of the norm" if known else ""
    inputs = f"inputs{counted(run)}"
    return f"rests on {{goal}} in {{share:%}} of {inputs}: more than 0.3 of the attention{of_norm}"


CLAIMS = (
    ClaimPlan(
        kind="threshold_sink",
        rule=LabelRule(
            "sink in nearly all inputs",
            number="share of inputs in which a token of the kind gets more than 0.3 of the "
            "attention",
            least=0.9,
            source=f"{GU}; the share is {OURS}’s",
            unless=("sink", "first", *SPECIALS, "punctuation"),
            variable="sink_share_of",
        ),
        each=kinds,
        share="sink_share_of",
        also={"norm": lambda run, kind, goal: norm_share(run.tree, kind)},
        name="sink on {goal} in nearly all inputs",
        brief="sink on {goal}",
        label="sink on {goal} in {share:%} of inputs",
        sentence=_sentence,
    ),
)
