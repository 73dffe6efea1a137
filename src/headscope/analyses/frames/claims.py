"""Claims about the heads that link frame elements and targets; the label rule."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from headscope.analyses.language.claims import by_norm
from headscope.core.claim import LEAST_EFFECT, Claim, LabelRule, effects
from headscope.core.head_metrics import HeadMetric
from headscope.core.results import documents, estimate, group
from headscope.core.terms import KOVALEVA, OURS
from headscope.core.wording import percent

BESIDE = ("distribution", "score_quantile", "chance", "p_value")  # they go with a score
CERTAIN = 0.05  # p of a frame head, corrected for looking at all heads
RULES = {
    "frames": LabelRule(
        "frames",
        number="largest attention between frame element and target", least=0.0,
        source=f"{OURS}, after {KOVALEVA}, §4.2", words=True,
        asks="p ≤ 0.05 against chance, corrected for looking at all heads; effect above 0.05",
    ),
}  # fmt: skip


def claims(tree: xr.DataTree) -> list[Claim]:
    """Those of an effect above LEAST_EFFECT."""
    return [claim for claim in _frames(tree) if claim.effect > LEAST_EFFECT]


def _frames(tree: xr.DataTree) -> Iterator[Claim]:
    """One claim per head and direction of a score that chance does not give.

    None by weighted norm: it has no ceiling, so an effect would be on no common scale.
    """
    dataset = group(tree, "frames")
    if dataset is None or by_norm(dataset):
        return
    for end, words in (("", "frame element → target"), ("_reversed", "target → frame element")):
        score = estimate(dataset, f"score{end}")
        chance = dataset[f"chance{end}"].values
        sure = dataset[f"p_value{end}"].values <= CERTAIN
        size = effects(score, chance)
        for layer, head in np.argwhere(sure & np.isfinite(size)).tolist():
            value, low, high = (float(p[layer, head]) for p in (score.value, score.low, score.high))
            ordinary = float(chance[layer, head])
            sentence = (
                f"{words}, {percent(value, low, high)} of its attention, "
                f"chance {percent(ordinary, np.nan, np.nan)}"
            )
            n = documents(tree, dataset["score"])
            yield Claim(
                layer, head, "frames", float(size[layer, head]), words, sentence, sentence,
                value, low, high, ordinary, n, "frames",
            )  # fmt: skip


def metrics(tree: xr.DataTree, variable: str) -> list[HeadMetric] | None:
    """None, as usual; no numbers of their own for what goes with a score."""
    return [] if variable.removesuffix("_reversed") in BESIDE else None
