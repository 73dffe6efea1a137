"""Claims about heads that look widely, or at few tokens of no one kind."""

import numpy as np

from headscope.claims.head_attention import (
    BROAD_SHARE,
    POSITION,
    TARGETS,
    attention_to,
    relative_spread,
)
from headscope.claims.plan import ClaimPlan, LabelRule
from headscope.claims.reading import Reading
from headscope.claims.terms import CLARK, OURS
from headscope.core.accumulators import Bools
from headscope.core.intervals import Estimate
from headscope.core.results import shape

NARROW_SHARE = 0.5  # ours: of the uniform entropy
EXPLAINING = (*TARGETS, "special")  # why a head attends to few tokens


def _broad(run: Reading) -> Estimate | None:
    return relative_spread(run.tree)


def _narrow(run: Reading) -> Estimate | None:
    share = relative_spread(run.tree)
    return share and Estimate(1 - share.value, 1 - share.high, 1 - share.low)


def _unexplained(run: Reading, narrow: Estimate) -> Bools:
    """[layer, head] of low entropy that no single target with most of the attention explains."""
    explained = np.zeros(shape(run.tree), dtype=bool)
    for target in EXPLAINING:
        share = attention_to(run.tree, target)
        if share is not None:
            explained |= share.value > POSITION
    return np.asarray((narrow.value > 1 - NARROW_SHARE) & ~explained)


CLAIMS = (
    ClaimPlan(
        kind="broad",
        rule=LabelRule(
            "broad, near-uniform",
            number="entropy, of that of uniform attention",
            least=BROAD_SHARE,
            source=f"{OURS}; {CLARK}, §6: 3.8 nats, for inputs of up to 128 tokens",
        ),
        share=_broad,
        where=lambda run, share: share.value > BROAD_SHARE,
        label="broad, near-uniform: {share:%} of uniform entropy",
        sentence="attends broadly: entropy {entropy.all} of {uniform:nats} nats",
        brief="broad",
    ),
    ClaimPlan(
        kind="narrow",
        rule=LabelRule(
            "few tokens, no one target",
            number="1 − entropy, of that of uniform attention",
            least=1 - NARROW_SHARE,
            source=OURS,
            asks=f"no one target has {POSITION:g} of the attention",
            unless=(*EXPLAINING, "sink"),
        ),
        share=_narrow,
        where=_unexplained,
        label="few tokens, no one target: entropy {entropy.all} of {uniform:nats} nats",
        sentence="focuses on few tokens without one main target: entropy {entropy.all} of "
        "{uniform:nats} nats",
        brief="few tokens",
        counted=False,
    ),
)
