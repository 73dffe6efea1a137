"""Puts the trainings of a study together: the group `study`.

score_before, score_after [variant, task, seed]   learned: whether surely above chance
effect, loss_effect [variant, task, seed, layer, head]   without the head, where it was learned
mean_effect, needed_share, … [layer, head, task]   over the plain seeds that learned the task
heads_needed, … [variant, task, seed]              how many heads the score needs
map_change [variant, task, seed, layer, head]      and by layer, beside gradients and weights
feature_before, … [variant, task, seed, quantity]  numbers of all heads, before and after
gain… [variant, task, seed]                        of each seed's best head to switch off
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.accumulators import Array, Float64
from headscope.core.display import printable
from headscope.core.intervals import (
    CORRELATION,
    DIFFERENCE,
    POSITIVE,
    Estimate,
    estimate,
    without_interval,
)
from headscope.core.results import Variable, labelled
from headscope.experiments.ablation.effects import (
    HARMFUL,
    HELPFUL,
    difference_estimate,
    effects,
)
from headscope.experiments.ablation.settings import REPLACEMENTS
from headscope.experiments.comparison.similarity import chance_of
from headscope.experiments.study.features import feature_variables
from headscope.experiments.study.gains import HeadGain, gains
from headscope.experiments.study.over_seeds import (
    absent,
    estimated_mean,
    paired_mean,
    replication,
    stacked,
    with_seeds,
)
from headscope.experiments.study.terms import TOGETHER
from headscope.experiments.study.trainings import PLAIN, StudyTraining
from headscope.run.shard_files import State
from headscope.tasks.task import Task

SOURCE = "Kovaleva et al. 2019, §4.3, §4.6"
OURS = "headscope"
SEEDS = "seeds and examples"  # of what intervals of means are
MEASURES = {
    "gradient_norm": "norm of the layer's gradients, mean over steps",
    "relative_change": "how far the layer's weights moved, of their own norm",
    "learning_rate": "largest learning rate of the layer",
}


@dataclass(frozen=True)
class StudyParts:
    """The finished trainings of a study.

    states  by training, see `studying`
    tasks   by name
    labels  by the name of a task: [example] of what is scored on
    """

    states: Mapping[StudyTraining, State]
    tasks: Mapping[str, Task]
    labels: Mapping[str, Array]
    layers: int
    heads: int

    @property
    def variants(self) -> list[str]:
        """The variants, in their order."""
        return list(dict.fromkeys(one.variant for one in self.states))

    @property
    def seeds(self) -> list[int]:
        """The seeds, in their order."""
        return list(dict.fromkeys(one.seed for one in self.states))

    def each(self, variant: str, task: str) -> list[State]:
        """[seed] the states of one variant and task."""
        return [self.states[StudyTraining(variant, task, seed)] for seed in self.seeds]

    def every(self) -> Iterator[tuple[str, str, list[State]]]:
        """Variant, task, and [seed] states."""
        return ((v, t, self.each(v, t)) for v in self.variants for t in self.tasks)

    @staticmethod
    def learned(state: State) -> bool:
        """Whether a training scores surely above chance: of others no head is switched off."""
        return "others" in state


def study_result(parts: StudyParts, *, replicates: int, replacement: str, seed: int) -> xr.Dataset:
    """The group `study` of finished trainings."""
    every = [some for *_, some in parts.every()]
    numbers, named = feature_variables(every, len(parts.variants), len(parts.tasks))
    without = _without_heads(parts, replicates=replicates, seed=seed)
    variables = _scores(parts) | _changes(parts) | numbers | without
    replacements = [name for name in REPLACEMENTS if name != replacement]
    coords: dict[str, Sequence[Any]] = {
        "variant": parts.variants,
        "task": list(map(printable, parts.tasks)),
        "seed": parts.seeds,
        "replacement": replacements,
        "quantity": named["quantity"],
    }
    dataset = labelled(variables, coords=coords)
    of_tasks = {
        "metric": [task.metrics[0] for task in parts.tasks.values()],
        "examples": [len(parts.labels[name]) for name in parts.tasks],
    }
    of_features = {name: ("quantity", named[name]) for name in ("label", "unit")}
    return dataset.assign_coords(
        {name: ("task", few) for name, few in of_tasks.items()} | of_features
    )


def _ends(array: Array) -> Estimate:
    """An estimate of [end, *cell]: value, low, high."""
    return Estimate(*(np.asarray(end, np.float64) for end in array))


# --- scores, maps, gradients ------------------------------------------------------------------


def _scores(parts: StudyParts) -> dict[str, Variable]:
    dims, sizes = ("variant", "task", "seed"), (len(parts.variants), len(parts.tasks), -1)
    states = [state for *_, some in parts.every() for state in some]
    before, after = (
        stacked([_ends(state["scores"][at]) for state in states], *sizes) for at in (0, 1)
    )
    knows = np.array([parts.learned(state) for state in states], np.float64).reshape(sizes)
    chance = np.concatenate([parts.each(PLAIN, task)[0]["chance"] for task in parts.tasks])
    words = "whether the score is surely above that of a constant answer"
    return {
        "score_before": Variable(before, dims, "score with an untrained head", "1", SOURCE),
        "score_after": Variable(after, dims, "score after training", "1", SOURCE),
        "chance": Variable(chance, ("task",), "score of the best constant answer", "1", OURS),
        "learned": Variable(knows, dims, words, "1", OURS),
    }


def _changes(parts: StudyParts) -> dict[str, Variable]:
    dims, leading = ("variant", "task"), (len(parts.variants), len(parts.tasks))
    every, variables = [some for *_, some in parts.every()], dict[str, Variable]()
    for name, more, words in (
        ("map_change", ("layer", "head"), "1 - cosine of the maps before and after training"),
        ("layer_map_change", ("layer",), "1 - cosine of the maps, mean over heads"),
    ):
        seeds = [[_ends(state[name]) for state in some] for some in every]
        each = stacked([one for some in seeds for one in some], *leading, len(parts.seeds))
        mean = stacked([estimated_mean(some, POSITIVE) for some in seeds], *leading)
        variables[name] = Variable(each, (*dims, "seed", *more), words, "1", SOURCE)
        said, of_mean = f"{words}, mean over seeds", (*dims, *more)
        if name == "map_change":  # of plain trainings alone, which come first: a number per head
            of_mean = ("layer", "head", "task")
            mean = mean.map(lambda end: np.moveaxis(end[0], 0, -1))
            said = f"{said}, plain trainings"
        variables[f"mean_{name}"] = Variable(mean, of_mean, said, "1", SOURCE, SEEDS)
    for name, words, layer, bounds in (
        *((name, words, ("layer",), POSITIVE) for name, words in MEASURES.items()),
        *((name, words, (), CORRELATION) for name, words in TOGETHER.items()),
    ):
        values = np.stack([np.stack([state[name] for state in some]) for some in every])
        values = values if layer else values[..., 0]  # [variant*task, seed, *layer]
        shaped = values.reshape(*leading, *values.shape[1:])
        mean = stacked([with_seeds(one, bounds=bounds) for one in values], *leading)
        variables[name] = Variable(shaped, (*dims, "seed", *layer), words, "1", OURS)
        said = f"{words}, mean over seeds"
        variables[f"mean_{name}"] = Variable(mean, (*dims, *layer), said, "1", OURS, "seeds")
    return variables | _chances(parts, variables)


def _chances(parts: StudyParts, variables: Mapping[str, Variable]) -> dict[str, Variable]:
    """p of how closely mean change goes with depth and with mean gradients, over layers."""
    change, gradient = (
        _value(variables[f"mean_{name}"]) for name in ("layer_map_change", "gradient_norm")
    )  # [variant, task, layer]
    depth = np.broadcast_to(np.arange(parts.layers, dtype=np.float64), change.shape)
    out = {}
    for name, other, words in (
        ("depth_p", depth, "depth"),
        ("gradient_norm_p", gradient, "mean gradients"),
    ):
        pairs = zip(change.reshape(-1, parts.layers), other.reshape(-1, parts.layers), strict=True)
        p = np.array([chance_of(*pair) for pair in pairs]).reshape(change.shape[:2])
        said = f"p that mean 1 - cosine goes with {words} over layers by chance"
        out[name] = Variable(p, ("variant", "task"), said, "1", OURS)
    return out


def _value(variable: Variable) -> Float64:
    assert isinstance(variable.value, Estimate)
    return variable.value.value


# --- without heads ----------------------------------------------------------------------------

# name: what it is, its dimensions, and of what its interval is where it is not examples
_EFFECTS = {
    "effect": ("change of the score without the head", "seed grid", ""),
    "loss_effect": ("change of the loss without the head", "seed grid", ""),
    "heads_needed": ("heads that the score needs", "seed", ""),
    "heads_needed_by_loss": ("heads that the loss needs", "seed", ""),
    "heads_harmful": ("heads that lower the score", "seed", ""),
    "mean_heads_needed": ("heads that the score needs, mean over seeds", "task", "seeds"),
    "mean_heads_needed_by_loss": ("heads that the loss needs, mean over seeds", "task", "seeds"),
    "mean_heads_harmful": ("heads that lower the score, mean over seeds", "task", "seeds"),
    "mean_effect": ("change of the score without the head, mean over seeds", "grid", SEEDS),
    "mean_loss_effect": ("change of the loss without the head, mean over seeds", "grid", SEEDS),
    "needed_share": ("share of seeds whose score needs the head", "grid", "seeds"),
    "harmful_share": ("share of seeds whose score rises without the head", "grid", "seeds"),
    "loss_needed_share": ("share of seeds whose loss needs the head", "grid", "seeds"),
    "best_unit": ("layer · heads + head whose absence raises the score most", "seed", ""),
    "gain": ("change of the score without the best head, where it was chosen", "seed", ""),
    "gain_elsewhere": ("the same head in the other seeds", "seed", ""),
    "gain_half": ("chosen by one half of the examples, on that half", "seed", ""),
    "gain_held_out": ("chosen by one half of the examples, on the other", "seed", ""),
    "gain_beside": ("mean over the other heads of its layer", "seed", ""),
    "gain_replaced": ("the same head with another replacement", "replaced", ""),
    "mean_gain": ("change of the score without the best head, mean over seeds", "task", SEEDS),
    "mean_gain_elsewhere": ("the same heads in other seeds, mean over seeds", "task", SEEDS),
    "mean_gain_half": ("chosen by a half, on that half, mean over seeds", "task", "seeds"),
    "mean_gain_held_out": ("chosen by a half, on the other, mean over seeds", "task", SEEDS),
    "mean_gain_beside": ("other heads of the layer, mean over seeds", "task", "seeds"),
    "mean_gain_replaced": ("with another replacement, mean over seeds", "task replaced", SEEDS),
}  # fmt: skip


def _without_heads(parts: StudyParts, *, replicates: int, seed: int) -> dict[str, Variable]:
    """The variables of `_EFFECTS`."""
    columns, variables = dict[str, list[Estimate]](), dict[str, Variable]()
    for _, task, states in parts.every():
        for name, one in _of_task(parts, task, states, replicates=replicates, seed=seed).items():
            columns.setdefault(name, []).append(one)
    grid, of_task = ("layer", "head"), ("variant", "task")
    of_seed = (*of_task, "seed")
    sizes = {"grid": (*grid, "task"), "seed grid": (*of_seed, *grid), "seed": of_seed}
    sizes |= {"task": of_task, "replaced": (*of_seed, "replacement")}
    sizes |= {"task replaced": (*of_task, "replacement")}
    for name, (words, dims, over) in _EFFECTS.items():
        several = stacked(columns[name], len(parts.variants), len(parts.tasks))
        if dims == "grid":  # of plain trainings alone, so that each task has a number per head
            several = several.map(lambda end: np.moveaxis(end[0], 0, -1))
        has_ends = np.isfinite(several.low).any()
        value = several if has_ends or over else several.value
        variables[name] = Variable(value, sizes[dims], words, "1", SOURCE, over)
    return variables


def _of_task(
    parts: StudyParts, task: str, states: Sequence[State], *, replicates: int, seed: int
) -> dict[str, Estimate]:
    """The variables of `_EFFECTS` of one variant and task; [seed] states."""
    labels, grid = parts.labels[task], (parts.layers, parts.heads)
    there = [at for at, state in enumerate(states) if parts.learned(state)]
    some = [
        effects(parts.tasks[task], labels, states[at]["answers"], replicates=replicates)
        for at in there
    ]

    def shaped(one: Estimate) -> Estimate:
        return one.map(lambda end: end.reshape(*end.shape[:-1], *grid))

    def mean(each: Sequence[Estimate], way: Callable[[Sequence[Estimate]], Estimate]) -> Estimate:
        return shaped(way(each)) if each else absent(*grid)

    scores, losses = [one.difference for one in some], [one.loss_difference for one in some]
    of_seeds = {
        "effect": _placed([shaped(one) for one in scores], there, len(states), *grid),
        "loss_effect": _placed([shaped(one) for one in losses], there, len(states), *grid),
        "mean_effect": mean(
            scores, partial(paired_mean, interval=difference_estimate, bounds=DIFFERENCE)
        ),
        "mean_loss_effect": mean(losses, partial(paired_mean, interval=estimate)),
    }
    for words, word, share, count in (
        ([one.verdict for one in some], HELPFUL, "needed_share", "heads_needed"),
        ([one.verdict for one in some], HARMFUL, "harmful_share", "heads_harmful"),
        ([one.loss_verdict for one in some], HELPFUL, "loss_needed_share", "heads_needed_by_loss"),
    ):
        holds = np.array(words, str).reshape(len(some), parts.layers * parts.heads) == word
        counts = holds.sum(1).astype(np.float64)
        of_seeds[share] = shaped(replication(holds))
        each = [without_interval(one) for one in counts]
        of_seeds[count] = _placed(each, there, len(states))
        of_seeds[f"mean_{count}"] = with_seeds(counts, bounds=(0, holds.shape[1]))
    best = gains(
        parts.tasks[task],
        labels,
        [states[at]["answers"] for at in there],
        [states[at]["others"] for at in there],
        some,
        heads=parts.heads,
        replicates=replicates,
        seed=seed,
    )
    return of_seeds | _gains(best, there, len(states))


def _gains(best: Sequence[HeadGain], there: Sequence[int], seeds: int) -> dict[str, Estimate]:
    """What is left of gains, by seed and as means; `there` are the places of seeds that learned."""
    rows: dict[str, list[Estimate]] = {
        "best_unit": [without_interval(np.array(float(one.unit))) for one in best],
        "gain": [one.chosen for one in best],
        "gain_elsewhere": [one.elsewhere for one in best],
        "gain_half": [without_interval(np.array(one.half)) for one in best],
        "gain_held_out": [one.held_out for one in best],
        "gain_beside": [without_interval(np.array(one.beside)) for one in best],
        "gain_replaced": [one.replaced for one in best],
    }
    out = {}
    for name, few in rows.items():
        shape = (len(REPLACEMENTS) - 1,) if name == "gain_replaced" else ()
        out[name] = _placed(few, there, seeds, *shape)
        if name == "best_unit":
            continue
        if name in ("gain_half", "gain_beside"):  # without an interval over examples
            values = np.array([one.value for one in few])
            out[f"mean_{name}"] = with_seeds(values, bounds=DIFFERENCE)
        else:
            out[f"mean_{name}"] = estimated_mean(few, DIFFERENCE) if few else absent(*shape)
    return out


def _placed(few: Sequence[Estimate], there: Sequence[int], seeds: int, *shape: int) -> Estimate:
    """[seed, *shape] the estimates of seeds that learned; NaN for others."""
    cells = [absent(*shape) for _ in range(seeds)]
    for at, one in zip(there, few, strict=True):
        cells[at] = one
    return stacked(cells, seeds)
