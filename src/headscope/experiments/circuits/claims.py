"""Labels of heads by what they do on made inputs."""

import numpy as np
import xarray as xr

from headscope.core.accumulators import Bools
from headscope.core.claim import Claim, LabelRule, claims_where
from headscope.core.intervals import Estimate
from headscope.core.results import at, documents, estimate, group
from headscope.core.terms import GOULD, OLSSON, OURS, WANG, WU
from headscope.core.wording import fixed, percent

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
RULES["copying"] = LabelRule(
    "copying", number="of the attention, the share to tokens that raise themselves most of those "
    "in the input", least=COPIED, source=f"{OURS}, after {OLSSON}",
    variable="copied",
)  # fmt: skip
RULES["retrieval"] = LabelRule(
    "retrieval",
    number="share of a needle’s tokens that are attended to most as they are told",
    least=RETRIEVED,
    source=WU,
    asks="of 10 runs or more that the model answers",
    variable="retrieval",
)
RULES["successor"] = LabelRule(
    "successor", number="share of ordinals whose successor comes out on top", least=LEAST,
    source=f"{GOULD}; the threshold is {OURS}’s", variable="successor",
)  # fmt: skip


def claims(tree: xr.DataTree) -> list[Claim]:
    """Heads that attend to a made target more than to the same places without it; that copy; that
    count on.
    """
    dataset = group(tree, NAME)
    if dataset is None:
        return []
    scores = [one for kind in SCORES for one in _by_score(tree, dataset, kind)]
    rest = _copying(tree, dataset), _successor(tree, dataset), _retrieval(dataset)
    return [*scores, *(one for some in rest for one in some)]


def _by_score(tree: xr.DataTree, dataset: xr.Dataset, kind: str) -> list[Claim]:
    score, null = (estimate(dataset, name, circuit=kind) for name in ("score", "null"))
    above = estimate(dataset, "surely_above", circuit=kind).value
    name, _, against, does, _ = SCORES[kind]

    def say(layer: int, head: int) -> tuple[str, str]:
        words, usual = percent(*at(score, layer, head)), percent(float(null.value[layer, head]))
        return f"{name} {words}", f"{does}, {words}; to {against} {usual}"

    return claims_where(
        _where(score, ~(above <= 0)), float(np.nanmean(score.value)), RULES[kind], say, kind=kind,
        name=name, n=documents(tree), analysis=NAME,
    )  # fmt: skip


def _copying(tree: xr.DataTree, dataset: xr.Dataset) -> list[Claim]:
    share, weights = estimate(dataset, "copied"), dataset["weight_copying"].values

    def say(layer: int, head: int) -> tuple[str, str]:
        words = percent(*at(share, layer, head))
        by_weights = fixed(float(weights[layer, head]), 2)
        return (
            f"copying {words}",
            f"speaks for the tokens that it attends to: {words} of its attention goes to such as "
            f"raise themselves most; by weights {by_weights}",
        )

    return claims_where(
        share, float(dataset.attrs["chance"]), RULES["copying"], say,
        kind="copying", name="copying", n=documents(tree), analysis=NAME,
    )  # fmt: skip


def _successor(tree: xr.DataTree, dataset: xr.Dataset) -> list[Claim]:
    if "successor" not in dataset:
        return []
    share, asked = estimate(dataset, "successor"), len(str(dataset.attrs["ordinals"]).split(";"))

    def say(layer: int, head: int) -> tuple[str, str]:
        words = percent(*at(share, layer, head))
        return f"successor {words}", f"turns ordinals into their successors, {words} of {asked}"

    return claims_where(
        share, 0.0, RULES["successor"], say, kind="successor", name="successor", n=asked,
        analysis=NAME,
    )  # fmt: skip


def _retrieval(dataset: xr.Dataset) -> list[Claim]:
    if "retrieval" not in dataset:
        return []
    share = estimate(dataset, "retrieval")

    def say(layer: int, head: int) -> tuple[str, str]:
        words = percent(*at(share, layer, head))
        return f"retrieval {words}", f"attends to the needle’s tokens as they are told, {words}"

    return claims_where(
        share, float(np.nanmean(share.value)), RULES["retrieval"], say, kind="retrieval",
        name="retrieval", n=int(dataset.attrs["answered"]), analysis=NAME,
    )  # fmt: skip


def _where(share: Estimate, asked: Bools) -> Estimate:
    return share.map(lambda part: np.where(asked, part, np.nan))
