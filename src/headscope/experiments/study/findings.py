"""Sentences on a study: scores, heads that seeds agree on, changes, and why disabling helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from headscope.claims.caption_words import with_interval
from headscope.claims.reading import Reading
from headscope.claims.verdict import SIGNIFICANT, above, below
from headscope.core.intervals import Estimate
from headscope.core.results import at, estimate
from headscope.core.wording import capital, how_many, listed
from headscope.experiments.ablation.terms import change_text, metric_name, points_text
from headscope.experiments.comparison.findings import chance_text
from headscope.experiments.study.terms import (
    learned_seeds,
    score_words,
    task_attrs,
    task_title,
    tasks_of,
    variants_of,
)
from headscope.experiments.study.trainings import PLAIN, RANDOM_LABELS, VARIANTS

NAMED = 3  # heads that a sentence names


def study_findings(run: Reading) -> list[str]:
    """Sentences in the order of the questions: scores, heads, layers, gains."""
    data = run.data
    tasks = tasks_of(data)
    makers = (scores_finding, heads_finding, gain_finding)
    scores, heads, gains = ([make(run, task) for task in tasks] for make in makers)
    layers = [layers_finding(run, variant) for variant in variants_of(data)]
    return [one for one in (spread_finding(data), *scores, *heads, *layers, *gains) if one]


def spread_finding(data: xr.Dataset) -> str:
    """That one seed says nothing of spread; "" for several."""
    if data.sizes["seed"] > 1:
        return ""
    return "There is one seed: nothing is said of what other seeds would give."


def scores_finding(run: Reading, task: str) -> str:
    """The scores of each seed beside a constant answer, and which trainings are at chance."""
    data = run.data
    seeds = [int(seed) for seed in data["seed"].values]
    scores = [score_words(data, task, "score_after", variant=PLAIN, seed=seed) for seed in seeds]
    about = task_attrs(data, task)
    chance = score_words(data, task, "chance")
    words = (
        f"On {task_title(data, task)}, {metric_name(about)} after training is {listed(scores)} "
        f"({how_many(len(seeds), 'seed')}); a constant answer gives {chance}."
    )
    learned = learned_seeds(data, task)
    low = [seed for seed in seeds if seed not in learned]
    if not low:
        return words
    if not learned:
        return f"{words} Every seed is at chance, and says nothing of heads or layers."
    named, one = listed(list(map(str, low))), len(low) == 1
    are = f"Seed {named} is at chance, and says" if one else f"Seeds {named} are at chance, and say"
    return f"{words} {are} nothing of heads."


def heads_finding(run: Reading, task: str) -> str:
    """Which heads the seeds that learned a task agree on; "" without such seeds."""
    data, count = run.data, len(learned_seeds(run.data, task))
    if not count:
        return ""
    effect = run("mean_effect", task=task)
    parts = []
    for name, by in (("needed_share", "score"), ("loss_needed_share", "loss")):
        share = run(name, task=task).value
        every, some = int((share == 1).sum()), int((share > 0).sum())
        more = f", {some} in one or more" if count > 1 else ""
        parts.append(f"by the {by} {every} in {_all(count)}{more}")
    words = (
        f"Heads of {effect.value.size} that {task_title(data, task)} needs (q < 0.05): "
        f"{'; '.join(parts)}."
    )
    return words + _most(run, task, effect, count)


def _all(count: int) -> str:
    return "the one seed that learned it" if count == 1 else f"all {count} seeds that learned it"


def _most(run: Reading, task: str, effect: Estimate, count: int) -> str:
    """The largest falls of heads that some seed needs; "" where none is needed, as the
    largest of many falls is below 0 by chance.
    """
    share, about = run("needed_share", task=task).map(np.ravel), task_attrs(run.data, task)
    fall, heads = effect.map(np.ravel), run.data.sizes["head"]
    order = np.argsort(fall.value, kind="stable").tolist()
    order = [unit for unit in order if fall.value[unit] < 0 < share.value[unit]]
    named = [
        f"{run.names.unit(unit, heads)} ({change_text(about, *at(fall, unit))}, needed in "
        f"{round(count * share.value[unit])} of {count})"
        for unit in order[:NAMED]
    ]
    return f" The score falls most without {listed(named)}." if named else ""


def layers_finding(run: Reading, variant: str) -> str:
    """Do the last layers change most, and do those with larger gradients? Tasks by the answer;
    a task on which every seed is at chance gives none.
    """
    tasks = [task for task in tasks_of(run.data) if not _at_chance(run.data, variant, task)]
    of_depth = _sorted_out(run, variant, "depth", tasks)
    known = [task for tasks_so in of_depth.values() for task in tasks_so]
    of_gradients = _sorted_out(run, variant, "gradient_norm", known)
    said = " ".join([*_sentences(_DEPTH, of_depth), *_sentences(_GRADIENTS, of_gradients)])
    before = "" if variant == PLAIN else f"{capital(variant)} ({VARIANTS[variant]}): "
    return before + said if said else ""


_DEPTH = {
    1: "Later layers change more",
    -1: "Earlier layers change more",
    0: "Whether later layers change more cannot be told",
}
_GRADIENTS = {
    1: "Layers with larger gradients change more",
    -1: "Layers with larger gradients change less, so they do not explain it",
    0: "Whether layers with larger gradients change more cannot be told",
}


def _sentences(words: Mapping[int, str], answers: Mapping[int, Mapping[str, str]]) -> list[str]:
    """A sentence for each answer, with the tasks of which it holds."""
    return [f"{words[sign]}: {'; '.join(some.values())}." for sign, some in answers.items() if some]


def _sorted_out(
    run: Reading, variant: str, name: str, tasks: Sequence[str]
) -> dict[int, dict[str, str]]:
    """1, -1 or 0 -> the tasks in which change of maps surely goes with it, surely against it, or
    neither; with the numbers. A task is left out where nothing was measured.
    """
    answers: dict[int, dict[str, str]] = {1: {}, -1: {}, 0: {}}
    for task in tasks:
        value, low, high = at(run(f"mean_{name}_correlation", variant=variant, task=task))
        if not np.isfinite(value):
            continue
        p = float(run.data[f"{name}_p"].sel(variant=variant, task=task))
        alike = run.data.sizes["seed"] > 1 and not np.isfinite(low)  # in every seed the same
        sure = p < SIGNIFICANT and (alike or low > 0 or high < 0)
        numbers = with_interval("ρ", value, low, high) + (" in every seed" if alike else "")
        words = f"{task_title(run.data, task)} ({numbers}, {chance_text(p)})"
        answers[int(np.sign(value)) * sure][task] = words
    return answers


def _at_chance(data: xr.Dataset, variant: str, task: str) -> bool:
    """Whether no seed learned a task that could be learned."""
    learned = bool(data["learned"].sel(variant=variant, task=task).values.any())
    return not learned and variant != RANDOM_LABELS


def gain_finding(run: Reading, task: str) -> str:
    """What is left elsewhere of the gain of the best head to switch off."""
    data, about = run.data, task_attrs(run.data, task)
    plain = {"variant": PLAIN, "task": task}
    gain, held_out = (at(run(f"mean_{name}", **plain)) for name in ("gain", "gain_held_out"))
    if not np.isfinite(gain[0]):
        return ""
    half, beside = (float(data[f"mean_gain_{name}"].sel(plain)) for name in ("half", "beside"))
    elsewhere = at(run("mean_gain_elsewhere", **plain))
    others = (
        ""
        if not np.isfinite(elsewhere[0])
        else (f", in the other seeds {change_text(about, *elsewhere)}")
    )
    verdict = "no gain is shown"
    if above(*held_out).holds:
        verdict = "the gain holds"
    elif below(*held_out).holds:
        verdict = "it is a loss"
    return (
        f"Without the best head of each seed, {task_title(data, task)} changes by "
        f"{points_text(about, gain[0], signed=True)} where the head was chosen{others}. Chosen on "
        f"one half of dev, the change is {points_text(about, half, signed=True)} there and "
        f"{change_text(about, *held_out)} on the other half: {verdict}. Other heads of the layer: "
        f"{points_text(about, beside, signed=True)}."
    )


def share_text(data: xr.Dataset, name: str, task: str, unit: int, count: int) -> tuple[str, str]:
    """`2 of 3`, and the interval of the share."""
    share = estimate(data, name, task=task).map(np.ravel)
    value, low, high = at(share, unit)
    return f"{round(count * value)} of {count}", f"[{100 * low:.0f}, {100 * high:.0f}] %"


def learned_finding(run: Reading) -> str:
    """How many plain trainings learned their task, beside the heading of the scores."""
    data = run.data
    tasks = tasks_of(data)
    learned = sum(len(learned_seeds(data, task)) for task in tasks)
    return f"{learned} of {len(tasks) * data.sizes['seed']} plain trainings are above chance."


def agreement_finding(run: Reading) -> str:
    """How many heads all seeds need, by task, beside the heading of the heads."""
    data = run.data
    words = [
        f"{task_title(data, task)} {int((run('loss_needed_share', task=task).value == 1).sum())}"
        for task in tasks_of(data)
        if learned_seeds(data, task)
    ]
    return f"Heads that the loss needs in every seed: {', '.join(words)}." if words else ""


def held_out_finding(run: Reading) -> str:
    """The held-out gains by task, beside the heading of gains."""
    data = run.data
    words = [
        f"{task_title(data, task)} {change_text(task_attrs(data, task), *three)}"
        for task in tasks_of(data)
        if np.isfinite((three := at(run("mean_gain_held_out", variant=PLAIN, task=task)))[0])
    ]
    return f"Held-out gain: {'; '.join(words)}." if words else ""
