"""Words and claims about how widely heads look."""

import numpy as np
import xarray as xr

from headscope.core.accumulators import Bools
from headscope.core.claim import Claim, LabelRule, claims_where
from headscope.core.head_attention import (
    BROAD_SHARE,
    POSITION,
    TARGETS,
    attention_to,
    relative_spread,
    spread,
)
from headscope.core.intervals import Estimate
from headscope.core.results import at, documents, needed, shape
from headscope.core.terms import CLARK, OURS, Term
from headscope.core.wording import number, percent, plain

NAME = "entropy"
NARROW_SHARE = 0.5  # ours: of the uniform entropy
EXPLAINING = (*TARGETS, "special")  # why a head attends to few tokens

TERMS = {
    "entropy": Term(
        "entropy",
        "How widely a head spreads its attention, in nats: 0 when all of it "
        "goes to one token, ln n when n tokens get the same.",
        f"{CLARK}, §3.3",
    ),
    "uniform": Term(
        "uniform attention",
        "What a head would show that gave every token of the input the same attention; the "
        "reference for entropy is the mean of ln n over inputs.",
        f"{CLARK}, §3.3",
    ),
}
LABELS = {("entropy", "all"): "entropy, all tokens", ("entropy", "cls"): "entropy, [CLS] only"}
RULES = {
    "broad": LabelRule(
        "broad, near-uniform",
        number="entropy, of that of uniform attention",
        least=BROAD_SHARE,
        source=f"{OURS}; {CLARK}, §6: 3.8 nats, for inputs of up to 128 tokens",
    ),
    "narrow": LabelRule(
        "few tokens, no one target",
        number="1 − entropy, of that of uniform attention",
        least=1 - NARROW_SHARE,
        source=OURS,
        asks=f"no one target has {POSITION:g} of the attention",
        unless=(*EXPLAINING, "sink"),
    ),
}


def claims(tree: xr.DataTree) -> list[Claim]:
    """Heads of high entropy; and of low entropy that no single target explains.

    Effects of low entropy are the mirror image: from the mean head down to 0.
    """
    nats, uniform = spread(tree)
    share = relative_spread(tree)
    if nats is None or share is None:
        return []
    return [*_broad(tree, nats, uniform, share), *_narrow(tree, nats, uniform, share)]


def _broad(tree: xr.DataTree, nats: Estimate, uniform: float, share: Estimate) -> list[Claim]:
    def say(layer: int, head: int) -> tuple[str, str]:
        words = number(*at(nats, layer, head))
        return (
            f"broad, near-uniform: {percent(*at(share, layer, head))} of uniform entropy",
            f"attends broadly: entropy {words} of {plain(uniform, 'nats')} nats",
        )

    made = claims_where(
        share,
        float(np.nanmean(share.value)),
        RULES["broad"],
        say,
        kind="broad",
        name="broad, near-uniform",
        n=documents(tree, needed(tree, NAME)[NAME]),
        analysis=NAME,
        brief="broad",
    )
    return [claim for claim in made if claim.value > BROAD_SHARE]


def _narrow(tree: xr.DataTree, nats: Estimate, uniform: float, share: Estimate) -> list[Claim]:
    narrow = ~_explained(tree) & (share.value < NARROW_SHARE)
    rest = Estimate(np.where(narrow, 1 - share.value, np.nan), 1 - share.high, 1 - share.low)

    def say(layer: int, head: int) -> tuple[str, str]:
        words = f"entropy {number(*at(nats, layer, head))} of {plain(uniform, 'nats')} nats"
        return (
            f"few tokens, no one target: {words}",
            f"focuses on few tokens without one main target: {words}",
        )

    return claims_where(
        rest,
        1 - float(np.nanmean(share.value)),
        RULES["narrow"],
        say,
        kind="narrow",
        name="few tokens, no one target",
        n=documents(tree, needed(tree, NAME)[NAME]),
        analysis=NAME,
        brief="few tokens",
        counted=False,
    )


def _explained(tree: xr.DataTree) -> Bools:
    """[layer, head] whether some single target takes more than half of the attention."""
    explained = np.zeros(shape(tree), dtype=bool)
    for target in EXPLAINING:
        share = attention_to(tree, target)
        if share is not None:
            explained |= share.value > POSITION
    return explained
