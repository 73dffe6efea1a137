"""Sentences on what switching heads off or removing them changed, with numbers.

The score of the whole model; which heads and layers it needs; what their absence does to answers;
how many heads can go. The sentences say what was found, whatever it is.
"""

import math
from functools import partial

import numpy as np
import xarray as xr

from headscope.claims.reading import Reading
from headscope.claims.verdict import SIGNIFICANT
from headscope.core.confidence import stretch
from headscope.core.display import printable
from headscope.core.head_names import renamed
from headscope.core.intervals import Estimate
from headscope.core.results import Floats, at, estimate
from headscope.core.wording import capital, distinct_digits, fixed, heaviest_first, with_ends
from headscope.experiments.ablation import terms
from headscope.experiments.ablation.effects import MARGIN

NAMED = 3  # heads that a sentence names


def ablation_findings(run: Reading) -> list[str]:
    """Sentences on the effect of switching heads off: the score, then the largest effects first.

    An effect weighs what it changes of the score, or of the loss as a share of that of the best
    constant answer; one that is not told from chance weighs nothing.
    """
    ablation = run.data
    score, layer, loss = (surest_change(ablation, start) for start in ("", "layer_", "loss_"))
    flips = "lost" in ablation and float((ablation["lost"] + ablation["gained"]).mean())
    weighted = [
        (verdict_finding(run), score),
        (loss_finding(run), loss / (constant_loss(ablation) or math.nan)),
        (extremes_finding(run), score),
        (layers_finding(run), layer),
        (answers_finding(run), flips / ablation.sizes["example"]),
        (groups_finding(run), 0.0),  # it has no interval
    ]
    return [whole_finding(run), *heaviest_first(weighted)]


def pruning_findings(run: Reading) -> list[str]:
    """Sentences on the effect of removing heads."""
    return [can_go_finding(run.data), half_finding(run.data)]


# --- heads switched off ---------------------------------------------------------------------


def whole_finding(run: Reading) -> str:
    """The score of the whole model, beside that of always giving the most frequent answer."""
    ablation = run.data
    n, name = ablation.sizes["example"], capital(terms.metric_name(ablation))
    score = (
        f"{name} of the whole model on {terms.task_name(ablation)} is {terms.score_text(ablation)}"
    )
    frequent = most_frequent(ablation)
    beside = "" if frequent is None else f"; to say always “{frequent[0]}” gives {frequent[1]}"
    return f"{score}, over {n:,} examples{beside}."


def verdict_finding(run: Reading) -> str:
    """How many heads are helpful, harmful or without effect by the score."""
    ablation = run.data
    many = ablation["verdict"].size
    return (
        f"Of {many} heads by {terms.metric_name(ablation)}: {terms.verdict_text(ablation)} (q < "
        f"0.05, corrected for {many} heads by Benjamini and Hochberg; no effect: surely less than "
        f"{terms.points_text(ablation, MARGIN)} either way).{_named(run, '')}"
    )


def loss_finding(run: Reading) -> str:
    """How many heads are helpful, harmful or without effect by the loss, which is finer."""
    words = terms.verdict_text(run.data, "loss_verdict")
    return f"By the loss, to which every example counts: {words}.{_named(run, 'loss_')}"


def extremes_finding(run: Reading) -> str:
    """The largest fall and rise of the score, and whether the rise exceeds chance; else how large
    an effect these examples could have shown.
    """
    ablation, apart = run.data, run("difference").map(np.ravel)
    if not np.isfinite(apart.value).any():
        return ""
    heads, metric = ablation.sizes["head"], terms.metric_name(ablation)
    low, high = int(np.nanargmin(apart.value)), int(np.nanargmax(apart.value))
    if low == high:
        return f"No head changes {metric}."
    if not (ablation["q"].values < SIGNIFICANT).any():
        return _none_told(run, apart)
    fall, rise = (
        f"{run.names.unit(unit, heads)} ({terms.change_text(ablation, *at(apart, unit))})"
        for unit in (low, high)
    )
    mean = terms.points_text(ablation, float(np.nanmean(apart.value)), signed=True)
    q, up = float(ablation["q"].values.ravel()[high]), float(apart.value[high]) > 0
    if not up:
        verdict = "no head’s absence raises it in these examples"
    elif q < SIGNIFICANT:
        verdict = f"that rise is more than chance (q = {fixed(q, 3)})"
    else:
        verdict = f"that rise is not told from chance (q = {fixed(q, 2)})"
    most = f"{'rises most' if up else 'least'} without {rise}"
    falls = f"falls most without {fall} and " if apart.value[low] < 0 else ""
    return (
        f"{capital(metric)} {falls}{most}; mean over heads {mean}. Kovaleva et al. (2019) find on "
        f"every task a head whose absence helps: here {verdict}."
    )


def smallest_told(ablation: xr.Dataset) -> float:
    """The smallest effect of one head that these examples could have shown, adjusted for all heads.

    Of an accuracy, exactly: as many answers, all changed in one direction, as McNemar's test needs.
    Else about: the median head's interval, widened for the number of tests (Bonferroni). NaN where
    nothing is known of it, or where all examples together are too few.
    """
    heads, n = ablation["verdict"].size, ablation.sizes["example"]
    if str(ablation.attrs["metric"]) == "accuracy":
        needed_answers = math.floor(math.log2(2 * heads / SIGNIFICANT)) + 1
        return needed_answers / n if needed_answers <= n else math.nan
    parts = estimate(ablation, "difference")
    half = (parts.high - parts.low).ravel() / 2
    return float(np.median(half[half > 0]) * stretch(heads)) if (half > 0).any() else math.nan


def _none_told(run: Reading, apart: Estimate) -> str:
    ablation = run.data
    n, metric = ablation.sizes["example"], terms.metric_name(ablation)
    least, heads = smallest_told(ablation), ablation.sizes["head"]
    could = "too few to tell any"
    if math.isfinite(least):
        could = f"the smallest that they could tell is {terms.points_text(ablation, least)}"
    unit = int(np.nanargmax(np.abs(apart.value)))
    most = f"{run.names.unit(unit, heads)} ({terms.change_text(ablation, *at(apart, unit))})"
    q = fixed(float(ablation["q"].values.ravel()[unit]), 2)
    largest = f" The largest, without {most}, has q = {q}." if apart.value[unit] else ""
    return (
        f"Without a single head {metric} shows no difference that these {n:,} examples can tell; "
        f"{could} (corrected for {apart.value.size} heads).{largest} Kovaleva et al. (2019) find "
        "on every task a head whose absence helps: here none is shown."
    )


def layers_finding(run: Reading) -> str:
    """Which whole layers are needed."""
    ablation, apart = run.data, run("layer_difference")
    if not np.isfinite(apart.value).any():
        return ""

    def told(layer: int) -> str:
        return f"layer {run.names.layer(layer)} ({terms.change_text(ablation, *at(apart, layer))})"

    words = ablation["layer_verdict"].values.tolist()
    low, high = int(np.nanargmin(apart.value)), int(np.nanargmax(apart.value))
    most = f"most is lost without {told(low)}"
    if float(apart.value[low]) >= 0:
        most = "without none of them is anything lost"
    order = np.argsort(-np.abs(apart.value), kind="stable").tolist()
    counts = (
        f"Of {len(words)} layers, each without all its heads: "
        f"{terms.verdict_text(ablation, 'layer_verdict')}"
    )
    if not set(words) & set(terms.SURE):
        none = f"no difference that these {ablation.sizes['example']:,} examples can tell"
        q = fixed(float(ablation["layer_q"].values[order[0]]), 2)
        largest = f"; the largest, without {told(order[0])}, has q = {q}"
        return f"{counts}: {none}{largest if apart.value[order[0]] else ''}."
    named = [told(layer) for layer in order if words[layer] in terms.SURE][:NAMED]
    sure = f" Shown to matter: {', '.join(named)}." if named else ""
    return f"{counts}; {most}, least without {told(high)}.{sure}"


def answers_finding(run: Reading) -> str:
    """How many answers single heads change; '' for a regression."""
    ablation = run.data
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


def groups_finding(run: Reading) -> str:
    """Whether heads are redundant with each other; '' without groups."""
    ablation = run.data
    if "group_interaction" not in ablation:
        return ""
    beyond = ablation["group_interaction"].values
    if not np.isfinite(beyond).any():
        return ""
    most = int(np.nanargmax(np.abs(beyond)))
    name = renamed(printable(ablation["group"].values[most]))
    way = "stand in for each other" if beyond[most] < 0 else "do partly the same harm or good"
    amount = terms.points_text(ablation, float(beyond[most]), signed=True)
    return (
        f"Of {len(beyond)} groups of heads, {name} changes the score most beyond the sum of its "
        f"heads alone, by {amount} (no interval): as if they {way}."
    )


def _named(run: Reading, start: str) -> str:
    """` Helpful: L2·H9 (−1.4 points […]).`, the largest changes first."""
    ablation, apart = run.data, run(f"{start}difference").map(np.ravel)
    words, heads = ablation[f"{start}verdict"].values.ravel(), ablation.sizes["head"]
    order = np.argsort(-np.abs(apart.value), kind="stable").tolist()
    named = {word: [unit for unit in order if words[unit] == word] for word in terms.SURE}
    shown = [at(apart, unit) for units in named.values() for unit in units[:NAMED]]
    write = partial(_loss_text, digits=distinct_digits(3, shown)) if start else terms.change_text
    sentences = []
    for word, units in named.items():
        changes = [
            f"{run.names.unit(unit, heads)} ({write(ablation, *at(apart, unit))})"
            for unit in units[:NAMED]
        ]
        more = f" and {len(units) - NAMED} more" if len(units) > NAMED else ""
        sentences += [f" {capital(word)}: {', '.join(changes)}{more}."] if changes else []
    return "".join(sentences)


def _loss_text(_: xr.Dataset, value: float, low: float, high: float, *, digits: int) -> str:
    return f"loss {'+' if value > 0 else ''}{with_ends(value, low, high, digits)}"


def surest_change(ablation: xr.Dataset, start: str) -> float:
    """The largest change of one variant that is more than chance; 0 for none.

    start  of the names of the numbers: "" of the score without a head, "layer_", "loss_"
    """
    sure = ablation[f"{start}q"].values < SIGNIFICANT
    return float(np.abs(ablation[f"{start}difference"].values[sure]).max(initial=0))


def constant_loss(ablation: xr.Dataset) -> float:
    """The loss of the best answer that is always the same: an entropy in nats, or a variance."""
    labels = ablation["label"].values
    if not terms.class_names(ablation):
        return float(np.var(labels.astype(np.float64)))
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(shares * np.log(shares)).sum())


# --- heads removed --------------------------------------------------------------------------


def can_go_finding(pruning: xr.Dataset) -> str:
    """How many heads each order can remove, checked on the other half of the examples."""
    allowed = terms.points_text(pruning, float(pruning.attrs["allowance"]))
    can, best = pruning["can_go"], terms.best_order(pruning)
    orders = [
        f"{int(can.sel(order=name))} {terms.order_name(name)}"
        for name in terms.chosen_orders(pruning)
    ]
    chance = can.values[terms.by_chance(pruning)].astype(int).tolist()
    if chance:
        ends = sorted({min(chance), max(chance)})
        orders.append(f"{' to '.join(map(str, ends))} in random order")
    half = int(pruning["can_go_half"].sel(order=best))
    cost = at(estimate(pruning, "held_out", order=best))
    held = (
        f" Chosen by one half of the examples, {half} can go ({terms.order_name(best)}), which "
        f"costs the other half {terms.change_text(pruning, *cost)}."
        if math.isfinite(cost[0])
        else ""
    )
    return (
        f"Of {int(pruning.attrs['heads'])} heads so many can go with {terms.metric_name(pruning)} "
        f"on {terms.task_name(pruning)} at most {allowed} lower: {', '.join(orders)}.{held}"
    )


def half_finding(pruning: xr.Dataset) -> str:
    """The cost of removing half the heads, beside that of a random order."""
    removed, total = pruning["removed"].values, int(pruning.attrs["heads"])
    point = int(np.argmin(np.abs(removed - total / 2)))
    best, count = terms.best_order(pruning), int(removed[point])
    apart = at(estimate(pruning, "difference", order=best, removed=count))
    base = float(pruning["score"].values[0, 0])
    whole = f"{fixed(100 * base, 1)} %" if terms.in_percent(pruning) else fixed(base, 3)
    costs = (
        f"The whole model has {whole}; {count} heads gone change that by "
        f"{terms.change_text(pruning, *apart)} ({terms.order_name(best)})"
    )
    chance = pruning["difference"].values[terms.by_chance(pruning), point]
    if not len(chance):
        return f"{costs}."
    mean = terms.points_text(pruning, float(chance.mean()), signed=True)
    return f"{costs}, in random order by {mean} on average."


# --- the examples ---------------------------------------------------------------------------


def most_frequent(ablation: xr.Dataset) -> tuple[str, str] | None:
    """The most frequent class and its share; None where the score is not accuracy."""
    classes = terms.class_names(ablation)
    if str(ablation.attrs["metric"]) != "accuracy" or not classes:
        return None
    counts = np.bincount(ablation["label"].values.astype(np.int64), minlength=len(classes))
    share = 100 * counts.max() / counts.sum()
    return classes[int(counts.argmax())], f"{fixed(share, 1)} %"


def moves(ablation: xr.Dataset) -> Floats:
    """[example] number of single heads that change the answer; for a regression, the mean size of
    the change.
    """
    after = ablation["prediction"].transpose("layer", "head", "example").values
    apart = np.abs(after - ablation["baseline_prediction"].values)  # [layer, head, example]
    if ablation.attrs["classes"]:
        return np.asarray((apart > 0).sum((0, 1)), np.float64)
    return np.asarray(apart.mean((0, 1)), np.float64)


def most_moved(ablation: xr.Dataset) -> list[int]:
    """The examples whose answers single heads change, those with most changes first."""
    size = moves(ablation)
    return [place for place in np.argsort(-size, kind="stable").tolist() if size[place] > 0]
