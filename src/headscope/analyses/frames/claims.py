"""Claims about the heads that link frame elements and targets; the label rule."""

import numpy as np
import xarray as xr

from headscope.analyses.language.specific import by_norm
from headscope.core.claim import LEAST_EFFECT, Claim, LabelRule, effects
from headscope.core.head_metrics import HeadMetric
from headscope.core.results import at, documents, estimate, group
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
    """One claim per head and direction of a score that chance does not give.

    None by weighted norm: it has no ceiling, so an effect would be on no common scale.
    """
    dataset = group(tree, "frames")
    if dataset is None or by_norm(dataset):
        return []
    n, made = documents(tree, dataset["score"]), []
    for end, words in (("", "frame element → target"), ("_reversed", "target → frame element")):
        score, chance = estimate(dataset, f"score{end}"), dataset[f"chance{end}"].values
        size = effects(score, chance)
        sure = dataset[f"p_value{end}"].values <= CERTAIN
        for layer, head in np.argwhere(sure & (size > LEAST_EFFECT)).tolist():
            ends, ordinary = at(score, layer, head), float(chance[layer, head])
            sentence = f"{words}, {percent(*ends)} of its attention, chance {percent(ordinary)}"
            made.append(
                Claim(
                    layer, head, "frames", float(size[layer, head]), words, sentence, sentence,
                    *ends, ordinary, n, "frames",
                )
            )  # fmt: skip
    return made


def metrics(tree: xr.DataTree, variable: str) -> list[HeadMetric] | None:
    """None, as usual; no numbers of their own for what goes with a score."""
    return [] if variable.removesuffix("_reversed") in BESIDE else None
