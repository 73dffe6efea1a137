"""Numbers of prompts as means over independent items, and whether the model knows the answers.

Prompts of one item are no independent draws, so intervals are over items. A model that does not
surely have more than half of the answers right says nothing of the heads that bring them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headscope.claims.verdict import Verdict, above
from headscope.core.accumulators import REPLICATES, Float64, left_out, means_over
from headscope.core.intervals import Estimate, estimate, estimate_share, without_interval
from headscope.core.results import Variable, at
from headscope.core.wording import how_many, percent
from headscope.experiments.circuits.prompts import PromptSet

FEWEST_ITEMS = 10  # couples: of fewer there are no intervals
CHANCE = 0.5  # of two answers, which one lies above


def about(prompts: PromptSet, share: Estimate | None = None) -> dict[str, Any]:
    """Attributes of results: which prompts, how many items, and notes.

    share  `accuracy` of the model; None where the results say nothing of answers
    """
    items = len(set(prompts.items))
    few = ""
    if items < FEWEST_ITEMS:
        many = how_many(items, "independent item")
        few = f"{many}: values without intervals; wanted {FEWEST_ITEMS} or more"
    bare = "" if prompts.corrupted else "prompts without corrupted ones: nothing was patched"
    unknown = ""
    if share is not None and not knows_answers(share).holds:
        unknown = (
            "cannot tell what heads do for the answer: it lies above the wrong one after "
            f"{percent(*at(share))} of the prompts, not surely above chance ({percent(CHANCE)})"
        )
    notes = "; ".join(note for note in (unknown, *prompts.notes, few, bare) if note)
    return {
        "prompts": prompts.kind,
        "prompt_count": len(prompts.prompts),
        "n": items,
        "notes": notes,
    }


def mean_over(items: Sequence[str], values: Float64, *, replicates: int = REPLICATES) -> Estimate:
    """The mean of values [prompt, …] with its interval over items."""
    return share_over(items, values, np.ones(len(values)), replicates=replicates)


def share_over(
    items: Sequence[str], values: Float64, of: Float64, *, replicates: int = REPLICATES
) -> Estimate:
    """Σ values [prompt, …] / Σ of [prompt], with its interval over items, where they are enough."""
    kept = left_out(items, replicates=replicates)  # [prompt, replicate + 1]
    draws = means_over(kept, values, of)
    return estimate(draws) if len(set(items)) >= FEWEST_ITEMS else without_interval(draws[0], draws)


def accuracy(
    items: Sequence[str], difference: Float64, *, replicates: int = REPLICATES
) -> Estimate:
    """The share of prompts whose logit difference [prompt] is above 0, with its interval.

    An item counts as one question, however many of its prompts there are; for fewer than
    FEWEST_ITEMS there is no interval.
    """
    kept, independent = left_out(items, replicates=replicates), len(set(items))
    draws = means_over(kept, (difference > 0).astype(np.float64))  # [replicate + 1]
    if independent < FEWEST_ITEMS:
        return without_interval(draws[0], draws)
    return estimate_share(draws, kept.sum(0) * independent / len(items))


def accuracy_variable(share: Estimate) -> Variable:
    """`accuracy` as a variable of a result."""
    words = "share of prompts with the answer above the wrong one"
    return Variable(share, (), words, "probability", "headscope")


def knows_answers(share: Estimate) -> Verdict:
    """Whether a model has surely more of the answers right than by chance, from its `accuracy`."""
    return above(*at(share), CHANCE)
