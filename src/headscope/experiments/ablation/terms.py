"""Terms, labels and wording of the results on ablation and pruning."""

import math
from collections import Counter

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.claims.reading import Reading
from headscope.claims.terms import BENJAMINI, KOVALEVA, MCNEMAR, MICHEL, OURS, Term
from headscope.core.display import printable
from headscope.core.results import at, estimate
from headscope.core.wording import decimals, fixed, number, percent
from headscope.tasks.metrics import METRICS
from headscope.tasks.task import GLUE

TERMS = {
    "ablation": Term(
        "ablation",
        "Switching a head or layer off to see what becomes of a task: its attention becomes even "
        "(1/L on the L real tokens), or what it gives 0, or its mean over the data. Told is the "
        "score without it less that of the whole model, in points where it is a share.",
        f"{KOVALEVA}, §4.6",
    ),
    "loss_difference": Term(
        "change of the loss",
        "The mean cross-entropy (of a regression, squared error) with the head off less that of "
        "the whole model; above 0 the model has become worse.",
        OURS,
    ),
    "helpful": Term(
        "helpful",
        "The score falls without the head, by more than chance; not surely by too little to count.",
        f"{KOVALEVA}, §4.6",
    ),
    "harmful": Term(
        "harmful",
        "The score rises without the head, by more than chance; not surely by too little to count.",
        f"{KOVALEVA}, §4.6",
    ),
    "no_effect": Term(
        "no effect",
        "The whole 95 % interval of the change lies within a point of the score about 0; of the "
        "loss, within a hundredth of what the best answer costs that is always the same (an "
        "equivalence test).",
        OURS,
    ),
    "cannot_tell": Term(
        "cannot tell",
        "The change is told neither from chance nor from one that matters: so many examples cannot "
        "tell.",
        OURS,
    ),
    "q": Term(
        "q",
        "The p of a difference, corrected for looking at many heads: of those with q < 0.05, 5 % "
        "are expected to be false alarms.",
        f"{BENJAMINI}; of single accuracies, {MCNEMAR}",
    ),
    "lost": Term("lost", "Right answers that become wrong without the head.", OURS),
    "gained": Term("gained", "Wrong answers that become right without the head.", OURS),
    "group_interaction": Term(
        "interaction",
        "The change of the score with several heads off less the sum of what each changes alone: "
        "below 0 they stand in for each other.",
        OURS,
    ),
    "can_go": Term(
        "heads that can go",
        "The most heads that are gone, the least needed first, at a point of the curve where the "
        "score has fallen by no more than is allowed; before it the curve may dip below.",
        f"{MICHEL}; the measure is ours",
    ),
}
ABLATION_LABELS = {
    "score": "score without the head",
    "difference": "change of the score without the head",
    "q": "q of the change of the score",
    "loss_q": "q of the change of the loss",
}
PRUNING_LABELS = {"turn": "heads removed before this one, {choice}"}
VERDICTS = ("helpful", "harmful", "no effect", "cannot tell")
SURE = VERDICTS[:2]
FORMER = ("indifferent", "unknown")  # in runs of older versions, which told no effect from neither
RANDOM = "random "  # how the names of random orders of removal begin
ORDERS = {"greedy": "greedy", "alone": "least needed alone"}


def order_name(name: str) -> str:
    """The name of an order of removal."""
    return ORDERS.get(name, f"by {printable(name)}" if not name.startswith(RANDOM) else name)


def best_order(pruning: xr.Dataset) -> str:
    """The order that removes most heads, random ones left out; the first of equals."""
    names = chosen_orders(pruning)
    can = [float(pruning["can_go"].sel(order=name)) for name in names]
    return names[int(np.argmax(can))]


def chosen_orders(pruning: xr.Dataset) -> list[str]:
    """The orders of removal that are not random."""
    names = [str(name) for name in pruning["order"].values]
    return [name for name in names if not name.startswith(RANDOM)]


def by_chance(pruning: xr.Dataset) -> npt.NDArray[np.bool_]:
    """[order] whether an order of removal is random."""
    return np.array([str(name).startswith(RANDOM) for name in pruning["order"].values])


def verdict_counts(ablation: xr.Dataset, variable: str = "verdict") -> dict[str, int]:
    """Number of variants by verdict."""
    words = (str(word) for word in ablation[variable].values.ravel())
    counts = Counter(VERDICTS[-1] if word in FORMER else word for word in words)
    return {word: counts[word] for word in VERDICTS}


def verdict_text(ablation: xr.Dataset, variable: str = "verdict") -> str:
    """`1 helpful, 0 harmful, 9 no effect, 62 cannot tell`."""
    counts = verdict_counts(ablation, variable)
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def remarks(run: Reading) -> list[list[str]]:
    """[unit] verdicts on each head, `helpful by the loss`; empty where unknown."""
    by = {"verdict": metric_name(run.data), "loss_verdict": "the loss"}
    words = zip(*(run.data[name].values.ravel() for name in by), strict=True)  # [unit, by]
    links = dict.fromkeys(SURE, "by") | {VERDICTS[2]: "on"}
    return [
        [
            f"{word} {links[word]} {what}"
            for word, what in zip(verdicts, by.values(), strict=True)
            if word in links
        ]
        for verdicts in words
    ]


def class_names(ablation: xr.Dataset) -> list[str]:
    """The classes of the task; none in a regression."""
    return [name for name in str(ablation.attrs["classes"]).split("\n") if name]


def metric_name(result: xr.Dataset) -> str:
    """The score's name in running text."""
    metric = str(result.attrs["metric"])
    return METRICS.get(metric, metric)


def task_name(result: xr.Dataset) -> str:
    """The name of the task as papers write it, `SST-2`; a task of the user keeps its name."""
    name = str(result.attrs["task"])
    return {"cola": "CoLA"}.get(name, name.upper()) if name in GLUE else name


def in_percent(result: xr.Dataset) -> bool:
    """Whether the score is a share, written in percent, and its changes in points."""
    return str(result.attrs["metric"]) in ("accuracy", "f1")


def score_unit(result: xr.Dataset) -> str:
    """Unit of a change of the score: points, or none."""
    return "points" if in_percent(result) else ""


def score_text(ablation: xr.Dataset) -> str:
    """The whole model's score with its interval, `87 % [85, 89]` or `0.83 [0.80, 0.85]`."""
    return (percent if in_percent(ablation) else number)(*at(estimate(ablation, "baseline")))


def points_text(
    result: xr.Dataset, value: float, *, signed: bool = False, beside: tuple[float, ...] = ()
) -> str:
    """A difference of scores: `0.5 points` of a share, else the number; signed with + or −.

    beside  numbers that are written with as many decimals, such as its ends
    """
    share = in_percent(result)
    scale = 100 if share else 1
    digits = decimals(1 if share else 3, *(scale * one for one in (value, *beside)))
    text = fixed(scale * value, digits)
    plus = "+" if signed and float(text.replace("−", "-")) > 0 else ""
    return f"{plus}{text} points" if share else f"{plus}{text}"


def change_text(result: xr.Dataset, value: float, low: float, high: float) -> str:
    """A difference of scores with its interval: `−1.4 points [−2.5, −0.3]`."""
    text = points_text(result, value, signed=True, beside=(low, high))
    if not math.isfinite(low):
        return text
    three = (value, low, high)
    ends = (points_text(result, end, beside=three).removesuffix(" points") for end in three[1:])
    return f"{text} [{', '.join(ends)}]"
