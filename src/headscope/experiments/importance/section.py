"""Says in sentences, tables and sections what the gradients of a loss tell of heads."""

import numpy as np
import xarray as xr

from headscope.core.results import (
    Floats,
    at,
    estimate,
    group,
    head_name,
    layer_name,
    needed,
    token_names,
)
from headscope.core.wording import MISSING, capital, fixed, number, with_ends
from headscope.experiments.ablation.section import scores_table
from headscope.experiments.ablation.terms import METRICS
from headscope.page.sections import FINDINGS, OpeningPlan, SectionPlan, heading_of, of_group
from headscope.page.tabulate import Cell, Column, Rows, Table

NAMES = {
    "gradient": "gradient", "michel": "Michel", "michel_normalised": "Michel, by layer",
    "attattr": "AttAttr", "slope_zero": "slope to nothing", "slope_uniform": "slope to even",
}  # fmt: skip
EXACT = 0.01  # ours: of F, an integral that errs by less is not spoken of
INSTEAD = {"uniform": "attends evenly", "zero": "adds nothing", "mean": "adds its mean"}
NAMED = 3  # heads in the first sentence
LISTED = 12  # heads in the table; all are in the folder `tables`
UNLISTED = ("michel_normalised", "score_size")  # as columns: they follow from others


def methods_of(importance: xr.Dataset) -> list[str]:
    """The methods that the run has."""
    return [str(name) for name in importance["variant"].values]


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


def rho_of(importance: xr.Dataset, method: str, effect: str) -> tuple[float, float, float]:
    """A rank correlation with the ends of its interval."""
    return at(estimate(importance, "rho", variant=method, effect=effect))


def named_units(importance: xr.Dataset, method: str, *, most: int = 4) -> list[int]:
    """Units worth a name: those that cost most, and the most important ones, half and half."""
    values, effect = scattered(importance, method)
    first = np.argsort(-np.abs(effect), kind="stable")[: most // 2].tolist()
    second = np.argsort(-values, kind="stable")[: most - len(first)].tolist()
    return list(dict.fromkeys([*first, *second]))


def scattered(importance: xr.Dataset, method: str) -> tuple[Floats, Floats]:
    """[unit] the importances by a method, and the rise of the loss without the head."""
    both = (("head_importance", {"variant": method}), ("effect_of_head", {"effect": "loss"}))
    x, y = (importance[name].sel(at).transpose("layer", "head").values.ravel() for name, at in both)
    return x, y


def importance_findings(tree: xr.DataTree) -> list[str]:
    """All sentences that the run allows."""
    importance = group(tree, "importance")
    if importance is None or group(tree, "gradients") is None:
        return []
    parts = (most_finding, rho_finding, overlap_finding, integral_note)
    told = (*(part(importance) for part in parts), gradient_finding(tree))
    return [sentence for sentence in told if sentence]


def most_finding(importance: xr.Dataset) -> str:
    """The heads that the loss depends on most, by the first method, beside the median head."""
    method = methods_of(importance)[0]
    values = np.nan_to_num(estimate(importance, "head_importance", variant=method).value)
    most = np.argsort(-values, axis=None, kind="stable")[:NAMED].tolist()
    named = (f"{head_name(unit, values.shape[1])} ({number(values.flat[unit])})" for unit in most)
    return (
        f"By {method_name(method)}, the loss depends most on {', '.join(named)}; the median head "
        f"has {number(float(np.median(values)))}."
    )


def gradient_finding(tree: xr.DataTree) -> str:
    """How gradients to the separator change from layer to layer, beside attention to it."""
    gradients = needed(tree, "gradients")
    sep, other, attention = (
        estimate(gradients, f"layer_{what}", category=kind).value
        for what, kind in (("magnitude", "sep"), ("magnitude", "other"), ("attention", "sep"))
    )
    if not (np.isfinite(sep).all() and np.isfinite(attention).all()):
        return ""
    name = token_names(tree).get("sep", "[SEP]")
    most, least = int(attention.argmax()), int(sep.argmin())
    share = sep / other
    return (
        f"Per edge, |∂loss/∂α| to {name} is {number(sep[0])} in layer {layer_name(0)} and "
        f"{number(sep[-1])} in layer {layer_name(len(sep) - 1)}, {fixed(share[0], 2)} and "
        f"{fixed(share[-1], 2)} times that to other tokens; it is least in layer "
        f"{layer_name(least)}. Attention to {name} is highest in layer {layer_name(most)} "
        f"({fixed(100 * attention[most], 0)} %), where the gradient is "
        f"{fixed(share[most], 2)} times that to other tokens."
    )


def rho_finding(importance: xr.Dataset) -> str:
    """Which method's order is nearest to what switching heads off does to the loss."""
    if "rho" not in importance:
        return ""
    rhos = {name: rho_of(importance, name, "loss") for name in methods_of(importance)}
    sure = [name for name, (_, low, high) in rhos.items() if low > 0 or high < 0]
    told = [f"{method_name(name)} {with_ends(*rhos[name], 2)}" for name in sure]
    if others := ", ".join(method_name(name) for name in rhos if name not in sure):
        told.append(f"none that so many heads can tell for {others}")
    return (
        f"Rank correlation over {int(importance.attrs['heads'])} heads with the rise of the loss "
        f"when a head {INSTEAD[str(importance.attrs['replacement'])]}: {'; '.join(told)}."
    )


def overlap_finding(importance: xr.Dataset) -> str:
    """How many of the most important heads are those that cost most."""
    if "overlap" not in importance:
        return ""
    top, heads = int(importance.attrs["top"]), int(importance.attrs["heads"])
    shared = {name: _shared(importance, name) for name in methods_of(importance)}
    ends = [
        f"{shared[name]} ({method_name(name)})" for name in sorted(shared, key=shared.__getitem__)
    ]
    told = ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"
    return (
        f"Of the {top} heads without which the loss rises most, {told} are among the {top} most "
        f"important; by chance {fixed(top * top / heads, 1)}."
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
        f"AttAttr’s attributions miss F(A) − F(0) by up to {number(float(errors[worst]))} (layer "
        f"{layer_name(worst)}, mean over examples): more than {int(importance.attrs['steps'])} "
        "steps are wanted."
    )


def _shared(importance: xr.Dataset, method: str) -> int:
    """How many of the top heads by a method are among those without which the loss rises most."""
    share = float(estimate(importance, "overlap", variant=method, effect="loss").value)
    return round(int(importance.attrs["top"]) * share)


def importance_table(importance: xr.Dataset) -> Table:
    """The most important heads by the first method, with the numbers of the others."""
    methods = [name for name in methods_of(importance) if name not in UNLISTED]
    parts = {name: estimate(importance, "head_importance", variant=name) for name in methods}
    first, heads = parts[methods[0]].value, importance.sizes["head"]
    order = np.argsort(-np.nan_to_num(first).ravel(), kind="stable")[:LISTED].tolist()
    rows = [
        [
            Cell(head_name(unit, heads)),
            *(_cell(at(part, *divmod(unit, heads)), ".3g", ".2g") for part in parts.values()),
        ]
        for unit in order
    ]
    caption = (
        f"The {len(rows)} most important heads by {method_name(methods[0])}, with 95 % intervals, "
        "over examples. All heads: table of heads, and tables/importance."
    )
    columns = [Column("Head"), *(Column(capital(method_name(m)), "", m) for m in methods)]
    return Table("Most important heads", columns, [Rows(rows)], caption)


def against_table(importance: xr.Dataset) -> Table | None:
    """Each method against each effect of switching off."""
    if "rho" not in importance:
        return None
    effects = [str(name) for name in importance["effect"].values if str(name) not in UNLISTED]
    top, heads = int(importance.attrs["top"]), int(importance.attrs["heads"])
    rows = []
    for name in methods_of(importance):
        cells = [_cell(rho_of(importance, name, effect), ".2f", ".2f") for effect in effects]
        told = Cell(f"{_shared(importance, name)} of {top}")
        rows.append([Cell(capital(method_name(name))), *cells, told])
    columns = [
        Column("Method"),
        *(Column(capital(effect_name(importance, effect)), "ρ", "rho") for effect in effects),
        Column("Top heads shared", "", "overlap"),
    ]
    caption = (
        "Spearman’s rank correlation over heads with what becomes of the task when a head is "
        "switched off, with its 95 % interval over heads; and how many of the "
        f"{top} heads without which the loss rises most are among the {top} most important (by "
        f"chance {top * top / heads:.1f})."
    )
    return Table("Importance against switching off", columns, [Rows(rows)], caption)


def _cell(value: tuple[float, float, float], digits: str, ends: str) -> Cell:
    number, low, high = value
    small = f"[{low:{ends}}, {high:{ends}}]" if np.isfinite(low) else ""
    text = f"{number:{digits}}" if np.isfinite(number) else MISSING
    return Cell(text.replace("-", "−"), small.replace("-", "−"))


GRADIENT_SECTIONS = (
    SectionPlan(
        id="gradients", title="Where do gradients go?",
        text="Attention that is changed a little changes the loss by its gradient. Where much "
        "attention rests on a token and the gradient is small, it matters little that it does: "
        "the token is a place to rest (Clark et al. 2019).",
        pictures=("gradients",), chapter=FINDINGS,
    ),
)  # fmt: skip
SECTIONS = (
    SectionPlan(
        id="importance", title="Which heads does the loss depend on?",
        text="All of these are read off gradients, at the price of a few passes. They say what a "
        "small change would do, which need not be what switching off does.",
        pictures=("importance",), tables=(of_group("importance", importance_table),),
        chapter=FINDINGS,
    ),
    SectionPlan(
        id="against", title="Is that what happens when heads are switched off?",
        text="If an importance is worth its name, heads to the right lie high.",
        pictures=("importance_against_ablation",),
        tables=(of_group("importance", against_table),), chapter=FINDINGS,
    ),
)  # fmt: skip

OPENING = OpeningPlan(
    heading=heading_of("Which heads of ", " matter?"), findings=importance_findings,
    tables=(scores_table,),
)  # fmt: skip
