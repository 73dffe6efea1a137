"""Labels of heads by what they do on made inputs."""

import numpy as np
import xarray as xr

from headscope.core.claim import Claim, LabelRule, claims_where
from headscope.core.results import at, documents, estimate, group
from headscope.core.terms import GOULD, OLSSON, OURS, WANG, WU
from headscope.core.wording import percent

NAME = "circuits"
LEAST = 0.25  # ours: of the attention, or of ordinals
RETRIEVED = 0.1  # Wu et al.
COPIED = 0.5  # ours: of the attention to drawn tokens
SCORES = {  # kind -> its label, what is compared, what it is held against, what it does, source
    "induction": (
        "induction", "attention of a token that comes again to what came after it before",
        "the same places without a repeat", "attends to what came after the same token before",
        OLSSON,
    ),
    "previous_token": (
        "previous token, made inputs", "attention of random tokens to the previous one",
        "an earlier token at random", "attends to the previous of random tokens", WANG,
    ),
    "duplicate_token": (
        "duplicate token", "attention of a token that comes again to itself before",
        "the same places without a repeat", "attends to the same token before", WANG,
    ),
}  # fmt: skip
RULES = {
    kind: LabelRule(
        name, number=number, least=LEAST, source=f"{source}; the threshold is {OURS}’s",
        asks=f"surely above attention to {against}, for all heads and scores at once",
        variable=kind,
    )
    for kind, (name, number, against, _, source) in SCORES.items()
}  # fmt: skip
OTHERS = {  # kind -> the variable it rests on, and what the head does
    "copying": (
        "copied", "speaks for what it attends to: {} of its attention goes to tokens that raise "
        "themselves most",
    ),
    "retrieval": ("retrieval", "attends to the needle’s tokens as they are told, {}"),
    "successor": ("successor", "turns ordinals into their successors, {}"),
}  # fmt: skip
RULES["copying"] = LabelRule(
    "copying", number="of the attention, the share to tokens that raise themselves most of those "
    "in the input", least=COPIED, source=f"{OURS}, after {OLSSON}", variable="copied",
)  # fmt: skip
RULES["retrieval"] = LabelRule(
    "retrieval", number="share of a needle’s tokens that are attended to most as they are told",
    least=RETRIEVED, source=WU, asks="of 10 runs or more that the model answers",
    variable="retrieval",
)  # fmt: skip
RULES["successor"] = LabelRule(
    "successor", number="share of ordinals whose successor comes out on top", least=LEAST,
    source=f"{GOULD}; the threshold is {OURS}’s", variable="successor",
)  # fmt: skip


def claims(tree: xr.DataTree) -> list[Claim]:
    """Heads that attend to a made target, more than to the same places without it; that copy,
    retrieve, count on.
    """
    if (dataset := group(tree, NAME)) is None:
        return []
    scores = [one for kind in SCORES for one in _by_score(tree, dataset, kind)]
    there = [kind for kind, (variable, _) in OTHERS.items() if variable in dataset]
    return [*scores, *(one for kind in there for one in _other(tree, dataset, kind))]


def _by_score(tree: xr.DataTree, dataset: xr.Dataset, kind: str) -> list[Claim]:
    score, null = (estimate(dataset, name, circuit=kind) for name in ("score", "null"))
    above = estimate(dataset, "surely_above", circuit=kind).value
    name, _, against, does, _ = SCORES[kind]

    def say(layer: int, head: int) -> tuple[str, str]:
        words, usual = percent(*at(score, layer, head)), percent(float(null.value[layer, head]))
        return f"{name} {words}", f"{does}, {words}; to {against} {usual}"

    asked = score.map(lambda part: np.where(above <= 0, np.nan, part))
    return claims_where(
        asked, float(np.nanmean(score.value)), RULES[kind], say, kind=kind, name=name,
        n=documents(tree, dataset["score"]), analysis=NAME,
    )  # fmt: skip


def _other(tree: xr.DataTree, dataset: xr.Dataset, kind: str) -> list[Claim]:
    variable, does = OTHERS[kind]
    share = estimate(dataset, variable)

    def say(layer: int, head: int) -> tuple[str, str]:
        words = percent(*at(share, layer, head))
        return f"{kind} {words}", does.format(words)

    return claims_where(
        share, float(np.nanmean(share.value)), RULES[kind], say, kind=kind, name=kind,
        n=documents(tree, dataset[variable]), analysis=NAME,
    )  # fmt: skip
