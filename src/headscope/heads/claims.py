"""What can be said of a head in one sentence, and how far does it stand out?

Effects (see `claim`) are taken with reference = the larger of uniform attention and the mean head,
and ceiling = 1 for shares and the uniform entropy for entropy. Low entropy is the mirror image,
from the mean head down to 0. Sinks are in `sinks`, what a head knows of language in `functions`
and `word_claims`, the classes of its maps in `map_claims`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from headscope.analyses.language.claims import function_claims
from headscope.analyses.language.word_claims import word_claims
from headscope.analyses.norms.claims import SPECIALS, ordinary, sink_claims, special_name, weight_on
from headscope.analyses.patterns.claims import map_claims
from headscope.core.accumulators import Estimate
from headscope.core.claim import LEAST_EFFECT, Claim, effects
from headscope.core.results import at, documents, estimate, group, shape, surely
from headscope.core.wording import number, percent, plain
from headscope.heads.label_rules import NARROW_SHARE, RULES
from headscope.heads.roles import POSITION, has_cls

GOALS = {
    "previous": ("previous token", "the previous token"),
    "next": ("next token", "the next token"),
    "self": ("token itself", "the token itself"),
    "first": ("first token", "the first token"),
    "punctuation": ("punctuation", "full stops and commas"),
}
KINDS = (*GOALS, *SPECIALS)
PAPERS = {"cls": "[CLS]", "sep": "[SEP]"}
Say = Callable[[int, int], tuple[str, str]]


def all_claims(tree: xr.DataTree) -> list[Claim]:
    """Every claim of an effect above LEAST_EFFECT, or above the threshold of its rule, in no meant
    order; several per head.
    """
    claims = [claim for kind in KINDS for claim in _target_claims(tree, kind)]
    claims += [*_broad_claims(tree), *_narrow_claims(tree), *map_claims(tree), *word_claims(tree)]
    sinks = sink_claims(tree)
    resting = {(claim.layer, claim.head, claim.about) for claim in sinks}
    claims = [claim for claim in claims if (claim.layer, claim.head, claim.kind) not in resting]
    return claims + sinks + function_claims(tree)


def _target_claims(tree: xr.DataTree, kind: str) -> list[Claim]:
    surface = group(tree, "surface")
    if surface is None or (kind == "first" and has_cls(tree)):
        return []
    share = weight_on(surface, kind)
    if not np.isfinite(share.value).any():
        return []
    reference = ordinary(surface, kind)
    if kind in ("previous", "next", "self", "first"):
        reference = max(reference, _uniform_share(tree))
    name, goal = GOALS.get(kind) or (
        special_name(tree, kind, otherwise=PAPERS), special_name(tree, kind)
    )  # fmt: skip

    def say(layer: int, head: int) -> tuple[str, str]:
        words = percent(*at(share, layer, head))
        label = f"{name} {words}"
        if float(share.value[layer, head]) > POSITION:
            return label, f"attends to {goal}, {words}"
        usual = percent(reference, np.nan, np.nan)
        return label, f"gives {goal} {words} of its attention, where {usual} is ordinary"

    n = documents(tree, surface["attention"])
    return _claims(kind, share, reference, say, name=name, n=n, analysis="surface")


def _broad_claims(tree: xr.DataTree) -> list[Claim]:
    entropy, uniform = _entropy(tree)
    if entropy is None:
        return []
    share = Estimate(entropy.value / uniform, entropy.low / uniform, entropy.high / uniform)
    reference = float(np.nanmean(share.value))

    def say(layer: int, head: int) -> tuple[str, str]:
        nats = number(*at(entropy, layer, head))
        label = f"broad, near-uniform: {percent(*at(share, layer, head))} of uniform entropy"
        return label, f"attends broadly: entropy {nats} of {plain(uniform, 'nats')} nats"

    n, name = _entropy_n(tree), "broad, near-uniform"
    made = _claims("broad", share, reference, say, name=name, n=n, analysis="entropy")
    return [claim for claim in made if claim.value > RULES["broad"].least]


def _narrow_claims(tree: xr.DataTree) -> list[Claim]:
    """Heads of low entropy that no single target explains: they pick, but not by position."""
    entropy, uniform = _entropy(tree)
    if entropy is None:
        return []
    narrow = ~_explained(tree) & (entropy.value < NARROW_SHARE * uniform)
    value = np.where(narrow, 1 - entropy.value / uniform, np.nan)
    share = Estimate(value, 1 - entropy.high / uniform, 1 - entropy.low / uniform)
    reference = 1 - float(np.nanmean(entropy.value)) / uniform

    def say(layer: int, head: int) -> tuple[str, str]:
        nats = f"entropy {number(*at(entropy, layer, head))} of {plain(uniform, 'nats')} nats"
        return (
            f"few tokens, no one target: {nats}",
            f"focuses on few tokens without one main target: {nats}",
        )

    n, name = _entropy_n(tree), "few tokens, no one target"
    return _claims("narrow", share, reference, say, name=name, n=n, analysis="entropy")


def _claims(
    kind: str, share: Estimate, reference: float, say: Say, *, name: str, n: int, analysis: str
) -> list[Claim]:
    """One claim per head whose value is clearly above the reference, or passes its rule."""
    effect = effects(share, reference)
    wanted = (effect > LEAST_EFFECT) | (surely(share) > RULES[kind].least)
    claims = []
    for layer, head in np.argwhere(wanted & np.isfinite(effect)).tolist():
        size, (label, sentence) = float(effect[layer, head]), say(layer, head)
        ends = at(share, layer, head)
        claims.append(
            Claim(
                layer, head, kind, size, name, label, sentence, *ends, reference, n, analysis
            )
        )  # fmt: skip
    return claims


def _explained(tree: xr.DataTree) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """[layer, head] whether some single target takes more than half of the attention."""
    surface = group(tree, "surface")
    explained = np.zeros(shape(tree), dtype=bool)
    if surface is not None:
        for kind in KINDS:
            explained |= weight_on(surface, kind).value > POSITION
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
