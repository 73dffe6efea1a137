"""Makes labelled numbers of the answers of a run of `headscope ablate`.

Of every head `x[layer, head]`, of every layer `layer_x[layer]`, and of groups of heads, where some
were asked for, `group_x[group]`; x being what `Effects` has. The answers themselves are kept as
well (`prediction`), so that tables can say which examples changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.labelled import Variable, labelled
from headscope.core.results import printable
from headscope.experiments.ablation.effects import Effects, baseline, effects, losses_of
from headscope.experiments.ablation.variants import Variant, variant_name
from headscope.tasks.metrics import predicted
from headscope.tasks.task import Task

SOURCE = "Kovaleva et al. 2019, §4.6"
OURS = "headscope"

Answers = npt.NDArray[np.floating[Any]]
Labels = npt.NDArray[Any]


@dataclass(frozen=True)
class AblatedTask:
    """What an ablation is computed for: the task, its examples, the groups of heads.

    ids     [example]
    texts   [example] what was read
    labels  [example]
    groups  further variants, after all heads and all layers
    """

    task: Task
    ids: Sequence[str]
    texts: Sequence[str]
    labels: Labels
    layers: int
    heads: int
    groups: Sequence[Variant] = ()
    replicates: int = 1000
    seed: int = 0

    @property
    def places(self) -> dict[str, tuple[slice, tuple[str, ...], tuple[int, ...]]]:
        """By the first part of a variable's name: which variants, and their dims and sizes."""
        single = self.layers * self.heads
        both = single + self.layers
        found: dict[str, tuple[slice, tuple[str, ...], tuple[int, ...]]] = {
            "": (slice(0, single), ("layer", "head"), (self.layers, self.heads)),
            "layer_": (slice(single, both), ("layer",), (self.layers,)),
        }
        if self.groups:
            count = len(self.groups)
            found["group_"] = (slice(both, both + count), ("group",), (count,))
        return found


def ablation_result(
    asking: AblatedTask, answers: Answers, *, about: Mapping[str, str]
) -> xr.Dataset:
    """The group `ablation`.

    answers  [variant + 1, example, output] first the whole model's, then all heads, all layers, and
             the groups
    about    further attributes: the replacement, how the variants were run
    """
    task, labels = asking.task, asking.labels
    how: dict[str, Any] = {"replicates": asking.replicates, "seed": asking.seed}
    every = effects(task, labels, answers, **how)
    whole = answers[0, :, 0] if task.is_regression else answers[0]
    variables = {
        "baseline": Variable(
            baseline(task, labels, answers[0], **how), (), f"{task.metrics[0]} of the whole model",
            "1", SOURCE,
        ),
        "baseline_loss": Variable(
            float(losses_of(task, labels, whole).mean()), (), "loss of the whole model",
            _loss_unit(task), OURS,
        ),
    }  # fmt: skip
    told = np.stack([_told(task, a) for a in answers])  # [variant + 1, example]
    for prefix, (places, dims, sizes) in asking.places.items():
        part = every.of(places)
        variables |= _variables(task, part, prefix, dims, sizes)
        predictions = told[1:][places].reshape(*sizes, -1)  # [*dims, example]
        text = f"answer to every example, without the {_what(prefix)}"
        variables[f"{prefix}prediction"] = Variable(
            predictions, (*dims, "example"), text, "1", OURS
        )
    variables["baseline_prediction"] = Variable(told[0], ("example",), "answer", "1", OURS)
    variables["label"] = Variable(labels, ("example",), "right answer", "1", OURS)
    if asking.groups:
        value = _interaction(asking, every.difference.value)
        text = "change of the score beyond the sum of what each head changes alone"
        variables["group_interaction"] = Variable(value, ("group",), text, "1", OURS)
    names = [variant_name(variant, asking.heads) for variant in asking.groups]
    dataset = labelled(
        variables, coords={"example": [printable(x) for x in asking.ids], "group": names}
    )
    dataset = dataset.assign_coords(text=("example", list(asking.texts)))
    for name in dataset.data_vars:
        last = str(name).rpartition("_")[2]
        if last in ("prediction", "label", "p"):  # in tables of their own: effects and flips
            dataset[name].attrs["tidy"] = 0
    return dataset.assign_attrs(
        task=printable(task.name),
        metric=task.metrics[0],
        classes="\n".join(printable(label) for label in task.labels),
        **about,
    )


def _variables(
    task: Task, part: Effects, prefix: str, dims: Sequence[str], sizes: Sequence[int]
) -> dict[str, Variable]:
    metric, without = task.metrics[0], f"without the {_what(prefix)}"
    unit = _loss_unit(task)
    bh = "corrected (Benjamini and Hochberg 1995)"
    # name: (value, long name, unit, source)
    rows: dict[str, tuple[Any, str, str, str]] = {
        "score": (part.score, f"{metric} {without}", "1", SOURCE),
        "difference": (part.difference, f"change of {metric} {without}", "1", SOURCE),
        "p": (part.p, f"p of the change of {metric}", "1", OURS),
        "q": (part.q, f"p of the change of {metric}, {bh}", "1", OURS),
        "loss": (part.loss, f"loss {without}", unit, OURS),
        "loss_difference": (part.loss_difference, f"change of the loss {without}", unit, OURS),
        "loss_p": (part.loss_p, "p of the change of the loss", "1", OURS),
        "loss_q": (part.loss_q, f"p of the change of the loss, {bh}", "1", OURS),
        "verdict": (_texts(part.verdict), f"what the {_what(prefix)} is for the score", "1", OURS),
        "loss_verdict": (
            _texts(part.loss_verdict), f"what the {_what(prefix)} is for the loss", "1", OURS,
        ),
    }  # fmt: skip
    if not task.is_regression:
        rows["lost"] = (part.lost, f"right answers that become wrong {without}", "1", OURS)
        rows["gained"] = (part.gained, f"wrong answers that become right {without}", "1", OURS)
    return {
        f"{prefix}{name}": Variable(_shaped(value, sizes), dims, text, units, source)
        for name, (value, text, units, source) in rows.items()
    }


def _what(prefix: str) -> str:
    return {"": "head", "layer_": "layer", "group_": "group"}[prefix]


def _loss_unit(task: Task) -> str:
    return "1" if task.is_regression else "nats"


def _texts(words: Sequence[str]) -> npt.NDArray[Any]:
    return np.array(words, dtype=object)


def _shaped(value: Any, sizes: Sequence[int]) -> Any:
    """[*sizes] from [variant]."""
    if isinstance(value, Estimate):
        return Estimate(*(part.reshape(sizes) for part in (value.value, value.low, value.high)))
    return value.reshape(sizes)  # [*sizes]


def _told(task: Task, answers: Answers) -> npt.NDArray[Any]:
    """[example] the class, as a small number, or the number that was told."""
    if task.is_regression:
        return answers[:, 0].astype(np.float32)
    return predicted(task, answers).astype(np.int16)


def _interaction(
    asking: AblatedTask, differences: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """[group] their change less the sum of the changes of their heads, each alone."""
    at = asking.places["group_"][0]
    alone = [
        sum(differences[layer * asking.heads + head] for layer, head in group)
        for group in asking.groups
    ]
    return np.asarray(differences[at] - np.array(alone))
