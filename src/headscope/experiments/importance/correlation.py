"""Compares the importance of heads with what becomes of the task when they are switched off.

Each importance is held against the true effect of switching every head off, from a run of
`headscope ablate`: Spearman's rank correlation over heads, and how many of the top heads are the
same. Intervals are over heads (resampled with replacement): both runs look at the same examples,
and an ablation keeps no replicates of its losses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.stats import rankdata

from headscope.core.accumulators import Estimate, Float64, estimate, generator
from headscope.core.labelled import Variable, labelled
from headscope.core.results import title_name
from headscope.errors import InputError
from headscope.model.model import Model
from headscope.run.finished_run import Run

# What becomes of the task without a head; more is worse, or more change.
EFFECTS = ("loss", "loss_size", "score", "score_size")
TOP = 0.1  # ours: the share of heads that are the top ones
SOURCE = "headscope"


@dataclass(frozen=True)
class Effect:
    """What a finished ablation says of every head.

    loss         [layer, head] by how much the loss rises without it
    score        [layer, head] by how much the score falls
    about        its fingerprint, for the spec of who uses it
    replacement  what stood in for the heads
    metric       the score's name
    note         how its examples differ from ours; "" if they do not
    """

    loss: Float64
    score: Float64
    about: str
    replacement: str
    metric: str
    note: str = ""

    @property
    def by_name(self) -> dict[str, Float64]:
        """The numbers of EFFECTS."""
        return {
            "loss": self.loss, "loss_size": np.abs(self.loss),
            "score": self.score, "score_size": np.abs(self.score),
        }  # fmt: skip


def effect_of(run: Run, model: Model, *, task: str, inputs: str) -> Effect:
    """The effects in a run of `headscope ablate`.

    task    name of the task that the importance is about
    inputs  hash of its inputs
    raises  InputError for a run without ablation, of another checkpoint or task
    """
    place = "the ablation" if run.path is None else str(run.path)
    if "ablation" not in run:
        raise InputError(f"{place} holds {', '.join(run)}; wanted a run of `headscope ablate`")
    found, of = run["ablation"], run.manifest["model"]
    if of["sha256"] != model.sha256:
        raise InputError(
            f"{place} is of {title_name(of['name'])} with weights {of['sha256'][:12]}, and "
            f"{title_name(model.name)} has {model.sha256[:12]}; wanted an ablation of the same "
            "checkpoint"
        )
    if found.attrs["task"] != task:
        raise InputError(
            f"{place} is of the task {found.attrs['task']}, and asked is {task}; wanted the same"
        )
    spec = run.manifest["spec"]
    same = spec["corpus"]["inputs_sha256"] == inputs
    note = "" if same else f"the ablation is of {found.sizes['example']} examples, not the same"
    loss, score = (
        found[name].transpose("layer", "head").values for name in ("loss_difference", "difference")
    )
    return Effect(
        loss, -score, str(run.manifest["fingerprint"]), str(found.attrs["replacement"]),
        str(found.attrs["metric"]), note,
    )  # fmt: skip


def correlations(
    importance: xr.Dataset, effect: Effect, *, replicates: int, seed: int
) -> xr.Dataset:
    """How each method's importances go with each effect.

    importance  the group; its head_importance[layer, head, method]
    returns     rho[method, effect] with interval, overlap[method, effect] the share of the top
                heads by the one that are top heads by the other, and effect_of_head[layer, head,
                effect]
    raises      InputError if the two have other heads
    """
    given = importance["head_importance"].transpose("layer", "head", "method")
    if given.shape[:2] != effect.loss.shape:
        raise InputError(
            f"the ablation has {effect.loss.shape} layers and heads, and the importance "
            f"{given.shape[:2]}; wanted runs of one checkpoint"
        )
    heads = effect.loss.size
    x = given.values.reshape(heads, -1)  # [unit, method]
    y = np.stack([effect.by_name[name].ravel() for name in EFFECTS], -1)  # [unit, effect]
    top = max(1, round(TOP * heads))
    over = ("method", "effect")
    variables = {
        "rho": Variable(
            _rho(x, y, replicates=replicates, seed=seed), over,
            "rank correlation over heads with the effect of switching off", "1", SOURCE,
        ),
        "overlap": Variable(
            _overlap(x, y, top), over, "share of the top heads that are top by effect", "1", SOURCE
        ),
        "effect_of_head": Variable(
            y.reshape(*effect.loss.shape, -1), ("layer", "head", "effect"),
            "what becomes of the task without the head", "1", SOURCE,
        ),
    }  # fmt: skip
    coords: Mapping[str, list[str]] = {
        "method": [str(name) for name in given["method"].values], "effect": list(EFFECTS)
    }  # fmt: skip
    found = labelled(variables, coords=coords)
    return found.assign_attrs(
        replacement=effect.replacement, metric=effect.metric, top=top, heads=heads,
        ablation_note=effect.note,
    )  # fmt: skip


def _rho(x: Float64, y: Float64, *, replicates: int, seed: int) -> Estimate:
    """[method, effect] of x [unit, method] and y [unit, effect], intervals over units."""
    rng, units = generator(seed, "heads"), len(x)
    draws = [_spearman(x, y)]
    for _ in range(replicates):
        at = rng.integers(0, units, units)
        draws.append(_spearman(x[at], y[at]))
    return estimate(np.stack(draws), documents=units)


def _spearman(x: Float64, y: Float64) -> Float64:
    """[method, effect] rank correlation; NaN where one of the two does not vary."""
    a, b = (rankdata(values, axis=0) for values in (x, y))
    a, b = a - a.mean(0), b - b.mean(0)
    norms = np.sqrt((a**2).sum(0))[:, None] * np.sqrt((b**2).sum(0))
    found = np.full(norms.shape, np.nan)
    np.divide(a.T @ b, norms, out=found, where=norms > 0)
    return found


def _overlap(x: Float64, y: Float64, top: int) -> Float64:
    """[method, effect] share of the `top` units of x that are among those of y."""
    first, second = (
        [set(np.argsort(-column, kind="stable")[:top].tolist()) for column in values.T]
        for values in (x, y)
    )
    return np.array([[len(a & b) / top for b in second] for a in first])
