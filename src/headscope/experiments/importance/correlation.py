"""Compares the importance of heads with the effect of switching them off.

Each importance is compared with the true effect of switching every head off, from a run of
`headscope ablate`: Spearman's rank correlation over heads, and how many of the top heads are the
same. Intervals are over heads: each left out in turn, or of a share of as many (Clopper and
Pearson), so what is said is of heads in general.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.core.accumulators import Float64, Ints
from headscope.core.confidence import CONFIDENCE
from headscope.core.display import title_name
from headscope.core.intervals import Estimate, estimate_correlation, spearman_over_units
from headscope.core.results import Variable, labelled
from headscope.errors import InputError
from headscope.model.model import Model
from headscope.run.store import Run

# How the task suffers without a head; more is worse, or more change.
EFFECTS = ("loss", "loss_size", "score", "score_size")
TOP = 0.1  # ours: the share of heads that are the top ones
SOURCE = "headscope"


@dataclass(frozen=True)
class Effect:
    """The effects of all heads in a finished ablation.

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


def effect_of(run: Run, model: Model, *, task: str, inputs: str) -> Effect:
    """The effects in a run of `headscope ablate`.

    task    name of the task that the importance is about
    inputs  hash of its inputs
    raises  InputError for a run without ablation, of another checkpoint or task
    """
    place = "the ablation" if run.path is None else str(run.path)
    if "ablation" not in run:
        raise InputError(f"{place} holds {', '.join(run)}; wanted a run of `headscope ablate`")
    ablation, of = run["ablation"], run.manifest["model"]
    if of["sha256"] != model.sha256:
        raise InputError(
            f"{place} is of {title_name(of['name'])} with weights {of['sha256'][:12]}, and "
            f"{title_name(model.name)} has {model.sha256[:12]}; wanted an ablation of the same "
            "checkpoint"
        )
    if ablation.attrs["task"] != task:
        raise InputError(
            f"{place} is of the task {ablation.attrs['task']}, and the request of {task}; wanted "
            "the same"
        )
    same = run.manifest["spec"]["corpus"]["inputs_sha256"] == inputs
    note = "" if same else f"the ablation is of {ablation.sizes['example']} examples, not the same"
    loss, score = (
        ablation[name].transpose("layer", "head").values
        for name in ("loss_difference", "difference")
    )
    return Effect(
        loss,
        -score,
        str(run.manifest["fingerprint"]),
        str(ablation.attrs["replacement"]),
        str(ablation.attrs["metric"]),
        note,
    )


def correlations(importance: xr.Dataset, effect: Effect) -> xr.Dataset:
    """Correlation of each method's importances with each effect.

    importance  the group; its head_importance[layer, head, variant]
    returns     rho[variant, effect] with interval, overlap[variant, effect] the share of the top
                heads by the one that are top heads by the other, and effect_of_head[layer, head,
                effect]
    raises      InputError if the two have other heads
    """
    importances = importance["head_importance"].transpose("layer", "head", "variant")
    if importances.shape[:2] != effect.loss.shape:
        raise InputError(
            f"the ablation has {effect.loss.shape} layers and heads, and the importance "
            f"{importances.shape[:2]}; wanted runs of one checkpoint"
        )
    heads = effect.loss.size
    x = importances.values.reshape(heads, -1)  # [unit, variant]
    loss, score = effect.loss.ravel(), effect.score.ravel()  # [unit]
    y = np.stack([loss, np.abs(loss), score, np.abs(score)], -1)  # [unit, effect]
    top, over = max(1, round(TOP * heads)), ("variant", "effect")
    rho = estimate_correlation(
        np.stack(
            [np.stack([spearman_over_units(one, other) for other in y.T], -1) for one in x.T], 1
        )
    )
    tops = [np.argsort(-values, axis=0, kind="stable")[:top].T for values in (x, y)]
    shared = np.array([[np.isin(a, b).sum() for b in tops[1]] for a in tops[0]])
    variables = {
        "rho": Variable(
            rho,
            over,
            "rank correlation over heads with the effect of switching off",
            "1",
            SOURCE,
            "heads",
        ),
        "overlap": Variable(
            _share(shared, top),
            over,
            "share of the top heads that are top by effect",
            "1",
            SOURCE,
            "heads",
        ),
        "effect_of_head": Variable(
            y.reshape(*effect.loss.shape, -1),
            ("layer", "head", "effect"),
            "what becomes of the task without the head",
            "1",
            SOURCE,
        ),
    }
    methods = [str(name) for name in importances["variant"].values]
    return labelled(variables, coords={"variant": methods, "effect": EFFECTS}).assign_attrs(
        replacement=effect.replacement,
        metric=effect.metric,
        top=top,
        heads=heads,
        ablation_note=effect.note,
    )


def _share(shared: Ints, top: int) -> Estimate:
    """The share of some heads among all, with Clopper and Pearson's interval."""
    from scipy.stats import binomtest  # half a second, which reports of other runs need not

    ends = [binomtest(int(some), top).proportion_ci(CONFIDENCE, "exact") for some in shared.ravel()]
    low, high = np.reshape(np.array(ends), (*shared.shape, 2)).transpose(2, 0, 1)
    return Estimate(shared / top, low, high)
