"""Converts the answers of an ablation into labelled results and tables.

Of every head `x[layer, head]`, of every layer `layer_x[layer]`, and of groups of heads, where some
were asked for, `group_x[group]`; x being what `Effects` has. The answers themselves are kept as
well (`prediction`), so that tables can say which examples changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.claims.reading import WITHHELD, Reading
from headscope.claims.verdict import Outcome
from headscope.core.accumulators import Array, Float64
from headscope.core.display import printable
from headscope.core.head_names import HeadNames, renamed
from headscope.core.intervals import Estimate
from headscope.core.results import LIMITS, Variable, labelled
from headscope.experiments.ablation.effects import (
    HARMFUL,
    HELPFUL,
    Answers,
    Effects,
    effects,
    losses_of,
    numbers_told,
)
from headscope.tasks.metrics import below_chance, draws_of, predicted, score_estimate
from headscope.tasks.task import Task

if TYPE_CHECKING:
    from headscope.model.variants import Variant

SOURCE = "Kovaleva et al. 2019, §4.6"
OURS = "headscope"
WHAT = {"": "head", "layer_": "layer", "group_": "group"}  # by the start of a variable's name
MOVED = 0.1  # ours: of a regression, a change by this share of the labels' range counts


def variant_name(variant: Variant, heads: int, names: HeadNames) -> str:
    """`L4·H1 + L2·H12`; a layer without heads is `L4`.

    heads  of a layer
    """
    words = []
    for layer in sorted({layer for layer, _ in variant}):
        off = sorted(head for at, head in variant if at == layer)
        if len(off) == heads:
            words.append(f"L{names.layer(layer)}")
        else:
            words += [names.head(layer, head) for head in off]
    return " + ".join(words)


BEYOND = "change of the score beyond the sum of what each head changes alone"


def ablation_result(
    task: Task,
    labels: Array,
    answers: Answers,
    *,
    layers: int,
    heads: int,
    names: HeadNames,
    groups: Sequence[Variant],
    ids: Sequence[str],
    texts: Sequence[str],
    about: Mapping[str, str],
    replicates: int,
    seed: int,
) -> xr.Dataset:
    """The group `ablation`.

    labels      [example]
    names       of the model's heads
    answers     [variant + 1, example, output] first the whole model's, then all heads, all layers,
                and the groups
    ids, texts  [example] what was read
    about       further attributes: the replacement, how the variants were run
    """
    every = effects(task, labels, answers, replicates=replicates)
    outputs = numbers_told(task, answers)
    # [variant + 1, example] the class, as a small number, or the predicted number
    numbers = np.stack([predicted(task, a) for a in outputs])
    numbers = numbers.astype(np.float32 if task.is_regression else np.int16)
    variables = _of_whole_model(task, labels, outputs[0], replicates)
    first = 0
    for start, sizes in (
        ("", {"layer": layers, "head": heads}),
        ("layer_", {"layer": layers}),
        ("group_", {"group": len(groups)}),
    ):
        count = math.prod(sizes.values())
        places, first = slice(first, first + count), first + count
        if not count:
            continue
        variables |= _variables(task, every.of(places), start, sizes)
        text = f"answer to every example, without the {WHAT[start]}"
        predictions = numbers[1:][places].reshape(*sizes.values(), -1)  # [*dims, example]
        dims = (*sizes, "example")
        variables[f"{start}prediction"] = Variable(predictions, dims, text, "1", OURS)
    variables["baseline_prediction"] = Variable(numbers[0], ("example",), "answer", "1", OURS)
    variables["label"] = Variable(labels, ("example",), "right answer", "1", OURS)
    if groups:
        beyond = _beyond(every.difference.value, groups, heads)
        variables["group_interaction"] = Variable(beyond, ("group",), BEYOND, "1", OURS)
    named = [variant_name(v, heads, replace(names, first=1)) for v in groups]
    coords = {"example": [printable(x) for x in ids], "group": named}
    dataset = labelled(variables, coords=coords).assign_coords(text=("example", list(texts)))
    for name, variable in dataset.data_vars.items():
        if str(name).rpartition("_")[2] in ("prediction", "label", "p"):  # in tables of their own
            variable.attrs["tidy"] = 0
    classes = "\n".join(printable(label) for label in task.labels)
    return _withheld(dataset, below_chance(task, labels, outputs[0])).assign_attrs(
        task=printable(task.name), metric=task.metrics[0], classes=classes, **about
    )


def _withheld(dataset: xr.Dataset, why: str) -> xr.Dataset:
    """With a reason, the dataset without verdicts that call a head helpful or harmful."""
    if not why:
        return dataset
    names = [str(name) for name in dataset.data_vars if str(name).endswith("verdict")]
    unsure = {
        name: dataset[name].where(
            ~dataset[name].isin([HELPFUL, HARMFUL]), Outcome.CANNOT_TELL.value
        )
        for name in names
    }
    return dataset.assign(unsure).assign_attrs({WITHHELD: printable(why)})


def _of_whole_model(
    task: Task, labels: Array, answers: Float64, replicates: int
) -> dict[str, Variable]:
    """Variables of the whole model, from its answers [example, output]."""
    scores = draws_of(task, labels, answers, replicates=replicates)
    baseline = score_estimate(task, scores, len(labels))
    loss = float(losses_of(task, labels, answers).mean())
    return {
        "baseline": Variable(baseline, (), f"{task.metrics[0]} of the whole model", "1", SOURCE),
        "baseline_loss": Variable(loss, (), "loss of the whole model", _loss_unit(task), OURS),
    }


def _beyond(change: Float64, groups: Sequence[Variant], heads: int) -> Float64:
    """[group] effect of each group beyond the sum of its heads; `change` has the groups last."""
    alone = [sum(change[layer * heads + head] for layer, head in group) for group in groups]
    beyond: Float64 = change[-len(groups) :] - np.array(alone)
    return beyond


def _variables(
    task: Task, part: Effects, start: str, sizes: Mapping[str, int]
) -> dict[str, Variable]:
    metric, what, unit = task.metrics[0], WHAT[start], _loss_unit(task)
    without, bh = f"without the {what}", "corrected (Benjamini and Hochberg 1995)"
    # name of the effect: long name, unit, source
    rows = {
        "score": (f"{metric} {without}", "1", SOURCE),
        "difference": (f"change of {metric} {without}", "1", SOURCE),
        "p": (f"p of the change of {metric}", "1", OURS),
        "q": (f"p of the change of {metric}, {bh}", "1", OURS),
        "loss": (f"loss {without}", unit, OURS),
        "loss_difference": (f"change of the loss {without}", unit, OURS),
        "loss_p": ("p of the change of the loss", "1", OURS),
        "loss_q": (f"p of the change of the loss, {bh}", "1", OURS),
        "verdict": (f"what the {what} is for the score", "1", OURS),
        "loss_verdict": (f"what the {what} is for the loss", "1", OURS),
    }
    if not task.is_regression:
        rows["lost"] = (f"right answers that become wrong {without}", "1", OURS)
        rows["gained"] = (f"wrong answers that become right {without}", "1", OURS)
    variables, shape = {}, tuple(sizes.values())
    for name, (text, units, source) in rows.items():
        value: Any = getattr(part, name)
        if isinstance(value, Estimate):
            value = value.map(lambda end: end.reshape(shape))
        else:
            value = np.array(value, object if "verdict" in name else np.float64).reshape(shape)
        variables[f"{start}{name}"] = Variable(value, tuple(sizes), text, units, source)
    return variables


def _loss_unit(task: Task) -> str:
    return "1" if task.is_regression else "nats"


def tables(run: Reading) -> dict[str, pd.DataFrame]:
    """Tables of effects and of changed answers.

    ablation_effects  one row per head, then per layer, then per group: name (as papers count),
                      layer and head (from 0; missing where there is none), score, difference with
                      ci_low and ci_high, p, q, verdict, lost, gained, loss, loss_difference with
                      its interval, loss_p, loss_q, loss_verdict
    ablation_flips    one row per example and variant whose answer is another than the whole
                      model's: name, layer, head, example (its id), text, label, before, after, and
                      change: "lost" (right before), "gained" (right now), "other" (wrong both
                      times); of a regression the numbers, and only changes by MOVED of the labels'
                      range or more, "nearer" or "farther"
    """
    by_name = {}
    for name, rows_of in (("ablation_effects", _effects), ("ablation_flips", _flips)):
        parts = [rows_of(run.data, start, places) for start, places in _places(run.data).items()]
        table = pd.concat(parts, ignore_index=True)
        by_name[name] = table.astype({"layer": "Int64", "head": "Int64"})
    return by_name


def _places(ablation: xr.Dataset) -> dict[str, pd.DataFrame]:
    """Name, layer and head of each variant, keyed by the prefix of a variable's name."""
    names = HeadNames(())
    numbers, heads = ablation["layer"].values.tolist(), ablation.sizes["head"]
    places = [(layer, head) for layer in numbers for head in range(heads)]
    of_heads = [
        {"name": names.own(*place), "layer": place[0], "head": place[1]} for place in places
    ]
    of_layers = {
        "name": [f"L{layer + names.first}" for layer in numbers],
        "layer": numbers,
        "head": pd.NA,
    }
    by_start = {"": pd.DataFrame(of_heads), "layer_": pd.DataFrame(of_layers)}
    if "group_score" in ablation:
        groups = [renamed(str(name)) for name in ablation["group"].values]
        by_start["group_"] = pd.DataFrame({"name": groups, "layer": pd.NA, "head": pd.NA})
    return by_start


def _effects(ablation: xr.Dataset, start: str, places: pd.DataFrame) -> pd.DataFrame:
    columns = {"score": "score"}  # name of the column: of the variable
    for name, prefix in (("difference", ""), ("loss_difference", "loss_")):
        columns |= {name: name, **{prefix + end[1:]: name + end for end in LIMITS}}
    for name in ("p", "q", "lost", "gained", "loss", "loss_p", "loss_q", "verdict", "loss_verdict"):
        columns |= {name: name} if start + name in ablation else {}
    return places.assign(
        **{column: ablation[start + name].values.ravel() for column, name in columns.items()}
    )


def _flips(ablation: xr.Dataset, start: str, places: pd.DataFrame) -> pd.DataFrame:
    before, right = ablation["baseline_prediction"].values, ablation["label"].values  # [example]
    after = ablation[f"{start}prediction"].values.reshape(-1, len(before))  # [variant, example]
    classes = [name for name in str(ablation.attrs["classes"]).split("\n") if name]
    least = MOVED * float(np.ptp(right)) if not classes else 0
    variant, example = np.nonzero(np.abs(after - before) > least)
    columns: dict[str, Any] = {
        name: places[name].to_numpy()[variant] for name in ("name", "layer", "head")
    }
    columns["example"] = ablation["example"].values[example]
    if "text" in ablation.coords:
        columns["text"] = ablation["text"].values[example]
    a, b, y = after[variant, example], before[example], right[example]  # [flip]
    for column, values in (("label", y), ("before", b), ("after", a)):
        columns[column] = [classes[int(x)] for x in values] if classes else values
    if classes:
        change = np.where(b == y, "lost", np.where(a == y, "gained", "other"))
    else:
        change = np.where(np.abs(a - y) < np.abs(b - y), "nearer", "farther")
    return pd.DataFrame({**columns, "change": change})
