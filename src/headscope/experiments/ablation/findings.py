"""Says in sentences with numbers what switching heads off and removing them changed.

The score of the whole model; which heads and layers it needs; what their absence does to answers;
how many heads can go. The sentences say what was found, whatever it is.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.question import in_run, parts
from headscope.core.results import estimate, group, head_name, printable
from headscope.core.wording import capital, fixed
from headscope.experiments.ablation.task_wording import (
    RANDOM,
    best_order,
    chosen_orders,
    in_percent,
    metric_name,
    moves,
    points_text,
    score_text,
    task_name,
    verdict_counts,
)

NAMED = 3  # heads that a sentence names
SURE = ("helpful", "harmful")
ORDERS = {"greedy": "greedy", "alone": "least needed alone"}


def ablation_findings(tree: xr.DataTree) -> list[str]:
    """What switching heads off did, in sentences."""
    ablation = group(tree, "ablation")
    if ablation is None:
        return []
    sentences = [
        whole_finding(ablation), verdict_finding(ablation), loss_finding(ablation),
        extremes_finding(ablation), layers_finding(ablation), answers_finding(ablation),
        groups_finding(ablation),
    ]  # fmt: skip
    return [sentence for sentence in sentences if sentence]


def pruning_findings(tree: xr.DataTree) -> list[str]:
    """What removing heads did, in sentences."""
    pruning = group(tree, "pruning")
    if pruning is None:
        return []
    return [sentence for sentence in (can_go_finding(pruning), half_finding(pruning)) if sentence]


def task_findings(tree: xr.DataTree) -> list[str]:
    """All sentences that a run about a task allows: of its questions, by their place."""
    return [sentence for part in parts("findings", in_run(tree)) for sentence in part(tree)]


def question(tree: xr.DataTree) -> tuple[str, str]:
    """What a run about a task asks, before and after the name of its model."""
    if (ablation := group(tree, "ablation")) is not None:
        return "Which heads of ", f" does {task_name(ablation)} need?"
    if (pruning := group(tree, "pruning")) is not None:
        return "How many heads of ", f" can {task_name(pruning)} do without?"
    return "Which heads of ", " matter?"


# --- heads switched off ---------------------------------------------------------------------


def whole_finding(ablation: xr.Dataset) -> str:
    """The score of the whole model, and that of the most frequent answer."""
    n, name = ablation.sizes["example"], capital(metric_name(ablation))
    told = f"{name} of the whole model on {task_name(ablation)} is {score_text(ablation)}"
    frequent = most_frequent(ablation)
    beside = "" if frequent is None else f"; to say always “{frequent[0]}” gives {frequent[1]}"
    return f"{told}, over {n:,} examples{beside}."


def verdict_finding(ablation: xr.Dataset) -> str:
    """How many heads are helpful, harmful, indifferent by the score."""
    counts = verdict_counts(ablation)
    many = ablation["verdict"].size
    words = ", ".join(f"{count} {word}" for word, count in counts.items())
    return (
        f"Of {many} heads by {metric_name(ablation)}: {words} (q < 0.05, corrected for {many} "
        f"heads by Benjamini and Hochberg).{_named(ablation, '')}"
    )


def loss_finding(ablation: xr.Dataset) -> str:
    """The same by the loss, which is finer."""
    counts = verdict_counts(ablation, "loss_verdict")
    words = ", ".join(f"{count} {word}" for word, count in counts.items())
    return f"By the loss, to which every example counts: {words}.{_named(ablation, 'loss_')}"


def extremes_finding(ablation: xr.Dataset) -> str:
    """The largest fall and the largest rise, and whether a rise is more than chance."""
    apart = estimate(ablation, "difference")
    if not np.isfinite(apart.value).any():
        return ""
    heads = ablation.sizes["head"]
    low, high = int(np.nanargmin(apart.value)), int(np.nanargmax(apart.value))
    mean = points_text(ablation, float(np.nanmean(apart.value)), signed=True)
    fall = f"{head_name(low, heads)} ({change_text(ablation, _at(apart, low))})"
    rise = f"{head_name(high, heads)} ({change_text(ablation, _at(apart, high))})"
    q = float(ablation["q"].values.ravel()[high])
    up = float(apart.value.ravel()[high]) > 0
    if not up:
        verdict = "no head’s absence raises it"
    elif q < 0.05:
        verdict = f"that rise is more than chance (q = {fixed(q, 3)})"
    else:
        verdict = f"that rise is not told from chance (q = {fixed(q, 2)})"
    if low == high:
        return f"No head changes {metric_name(ablation)}."
    return (
        f"{capital(metric_name(ablation))} falls most without {fall} and "
        f"{'rises most' if up else 'least'} without {rise}; mean over heads {mean}. Kovaleva et "
        f"al. (2019) find on every task a head whose absence helps: here {verdict}."
    )


def layers_finding(ablation: xr.Dataset) -> str:
    """Which whole layers are needed."""
    apart = estimate(ablation, "layer_difference")
    if not np.isfinite(apart.value).any():
        return ""
    words = ablation["layer_verdict"].values.tolist()
    low, high = int(np.nanargmin(apart.value)), int(np.nanargmax(apart.value))
    counts = verdict_counts(ablation, "layer_verdict")
    told = ", ".join(f"{count} {word}" for word, count in counts.items())
    most = f"most is lost without layer {low + 1} ({change_text(ablation, _at(apart, low))})"
    if float(apart.value[low]) >= 0:
        most = "without none of them is anything lost"
    best = f"least without layer {high + 1} ({change_text(ablation, _at(apart, high))})"
    named = [
        f"layer {at + 1} ({change_text(ablation, _at(apart, at))})"
        for at in np.argsort(-np.abs(apart.value), kind="stable") if words[at] in SURE
    ]  # fmt: skip
    sure = f" Not indifferent: {', '.join(named[:NAMED])}." if named else ""
    return f"Of {len(words)} layers, each without all its heads: {told}; {most}, {best}.{sure}"


def answers_finding(ablation: xr.Dataset) -> str:
    """How many answers hang on single heads; '' for a regression."""
    if "lost" not in ablation:
        return ""
    lost, gained = (float(ablation[name].mean()) for name in ("lost", "gained"))
    size = moves(ablation)
    same = int((size == 0).sum())
    return (
        f"A head switched off makes {fixed(lost, 1)} right answers wrong and {fixed(gained, 1)} "
        f"wrong ones right, mean over heads; {same:,} of {len(size):,} answers "
        f"({fixed(100 * same / len(size), 0)} %) are the same whichever head is off."
    )


def groups_finding(ablation: xr.Dataset) -> str:
    """Whether heads stand in for each other; '' without groups."""
    if "group_interaction" not in ablation:
        return ""
    beyond = ablation["group_interaction"].values
    if not np.isfinite(beyond).any():
        return ""
    at = int(np.nanargmax(np.abs(beyond)))
    name = printable(ablation["group"].values[at])
    way = "stand in for each other" if beyond[at] < 0 else "do partly the same harm or good"
    amount = points_text(ablation, float(beyond[at]), signed=True)
    return (
        f"Of {len(beyond)} groups of heads, {name} changes the score most beyond the sum of its "
        f"heads alone, by {amount} (no interval): as if they {way}."
    )


def most_frequent(ablation: xr.Dataset) -> tuple[str, str] | None:
    """The most frequent class and its share; None where the score is no accuracy."""
    classes = [name for name in str(ablation.attrs["classes"]).split("\n") if name]
    if str(ablation.attrs["metric"]) != "accuracy" or not classes:
        return None
    counts = np.bincount(ablation["label"].values.astype(np.int64), minlength=len(classes))
    share = 100 * counts.max() / counts.sum()
    return classes[int(counts.argmax())], f"{fixed(share, 1)} %"


def change_text(result: xr.Dataset, apart: Estimate) -> str:
    """A difference of scores with its interval: `−1.4 points [−2.5, −0.3]`."""
    scale, digits = (100, 1) if in_percent(result) else (1, 3)
    low, high = float(apart.low), float(apart.high)
    text = points_text(result, float(apart.value), signed=True)
    if not math.isfinite(low):
        return text
    return f"{text} [{fixed(scale * low, digits)}, {fixed(scale * high, digits)}]"


# --- heads removed --------------------------------------------------------------------------


def can_go_finding(pruning: xr.Dataset) -> str:
    """How many heads can go in each order, and what the other half of the examples says of it."""
    allowed = points_text(pruning, float(pruning.attrs["allowance"]))
    best, total = best_order(pruning), int(pruning.attrs["heads"])
    told = [f"{_count(pruning, name)} {order_name(name)}" for name in chosen_orders(pruning)]
    chance = [int(pruning["can_go"].values[at]) for at in _by_chance(pruning)]
    if chance:
        ends = sorted({min(chance), max(chance)})
        told.append(f"{' to '.join(map(str, ends))} in random order")
    half = int(pruning["can_go_half"].sel(order=best))
    apart = estimate(pruning, "held_out", order=best)
    held = (
        f" Chosen by one half of the examples, {half} can go ({order_name(best)}), which costs the "
        f"other half {change_text(pruning, apart)}."
        if np.isfinite(apart.value) else ""
    )  # fmt: skip
    return (
        f"Of {total} heads so many can go with {metric_name(pruning)} on {task_name(pruning)} at "
        f"most {allowed} lower: {', '.join(told)}.{held}"
    )


def half_finding(pruning: xr.Dataset) -> str:
    """What half the heads cost, and what they would cost in random order."""
    removed, total = pruning["removed"].values, int(pruning.attrs["heads"])
    at = int(np.argmin(np.abs(removed - total / 2)))
    best = best_order(pruning)
    apart = estimate(pruning, "difference", order=best, removed=int(removed[at]))
    base = float(pruning["score"].values[0, 0])
    whole = f"{fixed(100 * base, 1)} %" if in_percent(pruning) else fixed(base, 3)
    told = (
        f"The whole model has {whole}; {int(removed[at])} heads gone change that by "
        f"{change_text(pruning, apart)} ({order_name(best)})"
    )
    chance = _by_chance(pruning)
    if not chance:
        return f"{told}."
    mean = float(pruning["difference"].values[chance, at].mean())
    return f"{told}, in random order by {points_text(pruning, mean, signed=True)} on average."


def order_name(name: str) -> str:
    """An order of removal in words."""
    return ORDERS.get(name, f"by {printable(name)}" if not name.startswith(RANDOM) else name)


# --- details --------------------------------------------------------------------------------


def _named(ablation: xr.Dataset, start: str) -> str:
    """` Helpful: L2·H9 (−1.4 points […]).`, those that change most first."""
    words, heads = ablation[f"{start}verdict"].values.ravel(), ablation.sizes["head"]
    apart = estimate(ablation, f"{start}difference")
    order = np.argsort(-np.abs(apart.value.ravel()), kind="stable")
    sentences = []
    for word in SURE:
        units = [int(at) for at in order if words[at] == word]
        told = [f"{head_name(at, heads)} ({_told(ablation, start, _at(apart, at))})"
                for at in units[:NAMED]]  # fmt: skip
        more = f" and {len(units) - NAMED} more" if len(units) > NAMED else ""
        sentences += [f" {capital(word)}: {', '.join(told)}{more}."] if told else []
    return "".join(sentences)


def _told(ablation: xr.Dataset, start: str, apart: Estimate) -> str:
    if not start:
        return change_text(ablation, apart)
    value, low, high = (float(part) for part in (apart.value, apart.low, apart.high))
    plus = "loss +" if value > 0 else "loss "
    ends = f" [{fixed(low, 3)}, {fixed(high, 3)}]" if math.isfinite(low) else ""
    return f"{plus}{fixed(value, 3)}{ends}"


def _at(parts: Estimate, place: int) -> Estimate:
    return Estimate(*(part.ravel()[place] for part in (parts.value, parts.low, parts.high)))


def _count(pruning: xr.Dataset, name: str) -> int:
    return int(pruning["can_go"].sel(order=name))


def _by_chance(pruning: xr.Dataset) -> list[int]:
    names = [str(name) for name in pruning["order"].values]
    return [at for at, name in enumerate(names) if name.startswith(RANDOM)]
