"""Terms and wording of a study."""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.claims.terms import KOVALEVA, OURS, Term
from headscope.core.results import at, estimate
from headscope.core.wording import number, percent
from headscope.experiments.ablation import terms as ablation
from headscope.experiments.study.trainings import (
    FROM_SCRATCH,
    FROZEN,
    LAYER_DECAY,
    PLAIN,
    RANDOM_LABELS,
)

TERMS = {
    "mean_effect": Term(
        "effect over seeds",
        "The score without the head less that of the whole checkpoint, mean over the seeds that "
        "learned the task. Its interval is over seeds and examples: t over seeds and the interval "
        "over examples, which all seeds share, added as squares.",
        OURS,
    ),
    "needed_share": Term(
        "replication rate",
        "In how many of the seeds that learned the task the head is needed: its score falls "
        "without the head by more than chance, corrected for all heads (q < 0.05). The interval "
        "is Clopper and Pearson’s (1934).",
        OURS,
    ),
    "learned": Term(
        "learned",
        "The score after training lies surely above that of the best constant answer. Otherwise "
        "the checkpoint is at chance, and nothing is said of its heads.",
        OURS,
    ),
    "map_change": Term(
        "change of maps",
        "One less the cosine of a head’s maps before and after training, on the same examples.",
        f"{KOVALEVA}, §4.3",
    ),
    "gain_held_out": Term(
        "held-out gain",
        "One half of the examples chooses the head whose absence helps most; the gain is measured "
        "on the other half. Both ways round, mean.",
        OURS,
    ),
}
TOGETHER = {
    "depth_correlation": "rank correlation over layers of 1 - cosine with depth",
    "gradient_norm_correlation": "rank correlation over layers of 1 - cosine with gradients",
    "relative_change_correlation": "rank correlation over layers of 1 - cosine with moved weights",
    "gradient_norm_depth_correlation": "rank correlation over layers of gradients with depth",
}
MARKS = {
    PLAIN: ("blue", "o"),
    LAYER_DECAY: ("vermillion", "s"),
    FROZEN: ("orange", "v"),
    RANDOM_LABELS: ("green", "D"),
    FROM_SCRATCH: ("purple", "^"),
}
LABELS = {
    "mean_effect": "change of the score without the head, {choice}",
    "mean_loss_effect": "change of the loss without the head, {choice}",
    "needed_share": "seeds whose score needs the head, {choice}",
    "loss_needed_share": "seeds whose loss needs the head, {choice}",
    "harmful_share": "seeds whose score rises without the head, {choice}",
    "mean_map_change": "change of maps, 1 − cosine, {choice}",
}


def tasks_of(data: xr.Dataset) -> list[str]:
    """The names of the tasks, in their order."""
    return [str(task) for task in data["task"].values]


def variants_of(data: xr.Dataset) -> list[str]:
    """The names of the variants, in their order."""
    return [str(variant) for variant in data["variant"].values]


def task_attrs(data: xr.Dataset, task: str) -> xr.Dataset:
    """A dataset with the attributes by which the words on an ablation name task and score."""
    metric = str(data["metric"].sel(task=task).values)
    return xr.Dataset(attrs={"task": task, "metric": metric})


def task_title(data: xr.Dataset, task: str) -> str:
    """The name of a task as papers write it."""
    return ablation.task_name(task_attrs(data, task))


def score_words(data: xr.Dataset, task: str, name: str, **choice: object) -> str:
    """A score with its interval: `87 % [85, 89]`."""
    write = percent if ablation.in_percent(task_attrs(data, task)) else number
    return write(*at(estimate(data, name, task=task, **choice)))


def learned_seeds(data: xr.Dataset, task: str, variant: str = PLAIN) -> list[int]:
    """The seeds that learned a task."""
    knows = data["learned"].sel(variant=variant, task=task).values > 0
    return [int(seed) for seed in np.asarray(data["seed"].values)[knows]]


def learned_text(data: xr.Dataset, task: str, variant: str) -> str:
    """How many seeds of a variant learned a task: `2 of 3 seeds`, or `at chance`."""
    count = len(learned_seeds(data, task, variant))
    return f"{count} of {data.sizes['seed']} seeds" if count else "at chance"
