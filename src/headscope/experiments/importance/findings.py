"""Says in sentences with numbers what the gradients of a loss tell of heads."""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.core.results import Floats, estimate, group, head_name, token_names
from headscope.core.wording import fixed
from headscope.experiments.ablation.task_wording import METRICS

NAMES = {
    "gradient": "gradient", "michel": "Michel", "michel_normalised": "Michel, by layer",
    "attattr": "AttAttr", "slope_zero": "slope to nothing", "slope_uniform": "slope to even",
}  # fmt: skip
EXACT = 0.01  # ours: of F, an integral that errs by less is not spoken of
INSTEAD = {"uniform": "attends evenly", "zero": "adds nothing", "mean": "adds its mean"}


def method_name(method: str) -> str:
    """A method of importance in running text."""
    return NAMES.get(method, method.replace("_", " "))


def effect_name(importance: xr.Dataset, effect: str) -> str:
    """What becomes of the task without a head: `rise of the loss`, `change of accuracy`, …"""
    metric = str(importance.attrs["metric"])
    words = METRICS.get(metric, metric)
    return {
        "loss": "rise of the loss", "loss_size": "change of the loss, either way",
        "score": f"fall of {words}", "score_size": f"change of {words}, either way",
    }[effect]  # fmt: skip


def importance_findings(tree: xr.DataTree) -> list[str]:
    """All sentences that the run allows."""
    found, gradients = group(tree, "importance"), group(tree, "gradients")
    if found is None or gradients is None:
        return []
    sentences = [gradient_finding(tree), rho_finding(found), overlap_finding(found)]
    return [sentence for sentence in (*sentences, integral_note(found)) if sentence]


def gradient_finding(tree: xr.DataTree) -> str:
    """How gradients to the separator change from layer to layer, beside attention to it."""
    gradients = group(tree, "gradients")
    assert gradients is not None
    sep, other = (_layers(gradients, "layer_magnitude", kind) for kind in ("sep", "other"))
    attention = _layers(gradients, "layer_attention", "sep")
    if not (np.isfinite(sep).all() and np.isfinite(attention).all()):
        return ""
    name = token_names(tree).get("sep", "[SEP]")
    most, least = int(attention.argmax()), int(sep.argmin())
    share = sep / other
    return (
        f"Per edge, |∂loss/∂α| to {name} is {_small(sep[0])} in layer 1 and {_small(sep[-1])} in "
        f"layer {len(sep)}, {fixed(share[0], 2)} and {fixed(share[-1], 2)} times that to other "
        f"tokens; it is least in layer {least + 1}. Attention to {name} is highest in layer "
        f"{most + 1} ({fixed(100 * attention[most], 0)} %), where the gradient is "
        f"{fixed(share[most], 2)} times that to other tokens."
    )


def rho_finding(importance: xr.Dataset) -> str:
    """Which method's order is nearest to what switching heads off does to the loss."""
    if "rho" not in importance:
        return ""
    told = [
        f"{method_name(name)} {_rho(importance, name, 'loss')}" for name in _methods(importance)
    ]
    size = [
        f"{method_name(name)} {_rho(importance, name, 'loss_size')}"
        for name in _methods(importance)
    ]
    return (
        f"Rank correlation over {int(importance.attrs['heads'])} heads with the rise of the loss "
        f"when a head {INSTEAD[str(importance.attrs['replacement'])]}: {', '.join(told)}; with its "
        f"change either way: {', '.join(size)} (95 % intervals over heads)."
    )


def overlap_finding(importance: xr.Dataset) -> str:
    """How many of the most important heads are those that cost most."""
    if "overlap" not in importance:
        return ""
    top, heads = int(importance.attrs["top"]), int(importance.attrs["heads"])
    shares = importance["overlap"].sel(effect="loss").transpose("method").values.tolist()
    told = [
        f"{round(top * share)} ({method_name(name)})"
        for name, share in zip(_methods(importance), shares, strict=True)
    ]
    return (
        f"Of the {top} heads without which the loss rises most, so many are among the {top} most "
        f"important: {', '.join(told)}; by chance {fixed(top * top / heads, 1)}."
    )


def integral_note(importance: xr.Dataset) -> str:
    """How far AttAttr's integral errs, where that matters."""
    if "completeness_error" not in importance:
        return ""
    errors = importance["completeness_error"].values
    worst = int(np.argmax(errors))
    if errors[worst] <= EXACT * max(float(importance["output_change"].values[worst]), EXACT):
        return ""
    return (
        f"AttAttr’s attributions miss F(A) − F(0) by up to {_small(float(errors[worst]))} (layer "
        f"{worst + 1}, mean over examples): more than {int(importance.attrs['steps'])} steps are "
        "wanted."
    )


def rho_lines(importance: xr.Dataset) -> list[str]:
    """One line per method for the terminal, and what is to be known of the ablation."""
    if "rho" not in importance:
        return []
    note = str(importance.attrs["ablation_note"])
    lines = [f"rank correlation over heads with the {effect_name(importance, 'loss')} (and with "
             "its size):"]  # fmt: skip
    lines += [
        f"  {name}: {_rho(importance, name, 'loss')} ({_rho(importance, name, 'loss_size')})"
        for name in _methods(importance)
    ]
    return [*lines, *([note] if note else [])]


def named_units(importance: xr.Dataset, method: str, *, most: int = 4) -> list[int]:
    """Units worth a name: those that cost most, and the most important ones, half and half."""
    values, effect = scattered(importance, method)
    first = np.argsort(-np.abs(effect), kind="stable")[: most // 2].tolist()
    second = np.argsort(-values, kind="stable")[: most - len(first)].tolist()
    return list(dict.fromkeys([*first, *second]))


def scattered(importance: xr.Dataset, method: str, effect: str = "loss") -> tuple[Floats, Floats]:
    """[unit] the importances by a method, and an effect of switching off."""
    both = (("head_importance", {"method": method}), ("effect_of_head", {"effect": effect}))
    x, y = (importance[name].sel(at).transpose("layer", "head").values.ravel() for name, at in both)
    return x, y


def unit_name(importance: xr.Dataset, unit: int) -> str:
    """`L2·H9` of a unit."""
    return head_name(unit, importance.sizes["head"])


def _rho(importance: xr.Dataset, method: str, effect: str) -> str:
    parts = estimate(importance, "rho", method=method, effect=effect)
    value, low, high = (float(part) for part in (parts.value, parts.low, parts.high))
    ends = f" [{fixed(low, 2)}, {fixed(high, 2)}]" if np.isfinite(low) else ""
    return f"{fixed(value, 2)}{ends}"


def _layers(importance: xr.Dataset, variable: str, category: str) -> Floats:
    return np.asarray(importance[variable].sel(category=category).values, np.float64)


def _methods(importance: xr.Dataset) -> list[str]:
    return [str(name) for name in importance["method"].values]


def _small(value: float) -> str:
    """Two figures, of any size."""
    return f"{value:.1e}".replace("e-0", " · 10^-").replace("e+0", " · 10^") if (
        0 < abs(value) < 0.001
    ) else f"{value:.2g}"  # fmt: skip
