"""Report sections on the importance of heads: sentences, tables and figures."""

import numpy as np
import xarray as xr

from headscope.claims.verdict import differs
from headscope.core.intervals import stretch
from headscope.core.results import (
    Floats,
    at,
    counted,
    documents,
    estimate,
    group,
    head_name,
    layer_name,
    needed,
    shape,
    token_names,
)
from headscope.core.wording import capital, fixed, number, percent, with_ends
from headscope.experiments.ablation.section import scores_table
from headscope.experiments.ablation.terms import METRICS
from headscope.page.sections import FINDINGS, OpeningPlan, SectionPlan, heading_of, of_group
from headscope.page.tabulate import Cell, Column, Rows, Table

NAMES = {
    "gradient": "gradient",
    "michel": "Michel",
    "michel_normalised": "Michel, by layer",
    "attattr": "AttAttr",
    "slope_zero": "slope to nothing",
    "slope_uniform": "slope to even",
}
EXACT = 0.01  # ours: of F, an integral that errs by less is not spoken of
INSTEAD = {"uniform": "attends evenly", "zero": "adds nothing", "mean": "adds its mean"}
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
        "loss": "rise of the loss",
        "loss_size": "change of the loss, either way",
        "score": f"fall of {words}",
        "score_size": f"change of {words}, either way",
    }[effect]


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
    parts = rho_finding, overlap_finding, integral_note
    sentences = (
        difference_finding(tree),
        *(part(importance) for part in parts),
        gradient_finding(tree),
    )
    return [sentence for sentence in sentences if sentence]


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
        f"{number(sep[-1])} in layer {layer_name(len(sep) - 1)}, {number(share[0])} and "
        f"{number(share[-1])} times that to other tokens; it is least in layer "
        f"{layer_name(least)}. Attention to {name} is highest in layer {layer_name(most)} "
        f"({fixed(100 * attention[most], 0)} %), where the gradient is "
        f"{number(share[most])} times that to other tokens."
    )


def difference_finding(tree: xr.DataTree) -> str:
    """From how many heads the examples tell the most important one, and the smallest difference of
    two that they could tell. The sides of two intervals are added, however the two go together,
    and are long enough for all pairs of heads.
    """
    importance, heads = needed(tree, "importance"), shape(tree)[1]
    method = methods_of(importance)[0]
    parts = estimate(importance, "head_importance", variant=method).map(np.ravel)  # [unit]
    others = parts.value.size - 1
    if not (others and np.isfinite(parts.low).all()):
        return ""
    top, longer = int(parts.value.argmax()), stretch(others * (others + 1) // 2)
    between = parts.value[top] - parts.low[top] + parts.high - parts.value  # [unit]
    separate = int((parts.value[top] - parts.value > longer * between).sum())
    first = f"{head_name(top, heads)} is most important, {number(*at(parts, top))}"
    these = f"these {documents(tree):,} {counted(tree)} can tell"
    says = (
        f"{first}: by a difference that {these} from {separate} of {others} other heads"
        if separate
        else f"heads show no difference that {these}"
    )
    least = number(longer * float(np.median(parts.high - parts.low)))
    return (
        f"By {method_name(method)} {says}; the smallest that they could tell is about {least} "
        "(corrected for all pairs of heads)."
    )


def rho_finding(importance: xr.Dataset) -> str:
    """Which method's order is nearest to what switching heads off does to the loss."""
    if "rho" not in importance:
        return ""
    rhos = {name: rho_of(importance, name, "loss") for name in methods_of(importance)}
    verdicts = {name: differs(*rho) for name, rho in rhos.items()}
    sure = [name for name, verdict in verdicts.items() if verdict.holds]
    correlations = [f"{method_name(name)} {with_ends(*rhos[name], 2)}" for name in sure]
    if others := [name for name in rhos if name not in sure]:
        least = max(verdicts[name].smallest for name in others)
        could = f" (they could tell {fixed(least, 2)})" if np.isfinite(least) else ""
        names = "; ".join(map(method_name, others))
        correlations.append(f"none that so many heads can tell for {names}{could}")
    return (
        f"Rank correlation over {int(importance.attrs['heads'])} heads with the rise of the loss "
        f"when a head {INSTEAD[str(importance.attrs['replacement'])]}: {'; '.join(correlations)}. "
        "What an untrained network would show was not measured."
    )


def overlap_finding(importance: xr.Dataset) -> str:
    """How many of the most important heads are those that cost most."""
    if "overlap" not in importance:
        return ""
    top, heads = int(importance.attrs["top"]), int(importance.attrs["heads"])
    shared = {name: _shared(importance, name) for name in methods_of(importance)}
    ends = [
        f"{percent(*shared[name])} ({method_name(name)})"
        for name in sorted(shared, key=lambda name: shared[name][0])
    ]
    counted = ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"
    return (
        f"Of the {top} heads without which the loss rises most, {counted} are among the {top} most "
        f"important; by chance {percent(top / heads)}."
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


def _shared(importance: xr.Dataset, method: str) -> tuple[float, float, float]:
    """The share of the top heads by a method without which the loss rises most, too."""
    return at(estimate(importance, "overlap", variant=method, effect="loss"))


def importance_table(importance: xr.Dataset) -> Table:
    """The most important heads by the first method, with the numbers of the others."""
    methods = [name for name in methods_of(importance) if name not in UNLISTED]
    parts = {name: estimate(importance, "head_importance", variant=name) for name in methods}
    first, heads = parts[methods[0]].value, importance.sizes["head"]
    order = np.argsort(-np.nan_to_num(first).ravel(), kind="stable")[:LISTED].tolist()
    rows = [
        [
            Cell(head_name(unit, heads)),
            *(_cell(number(*at(part, *divmod(unit, heads)))) for part in parts.values()),
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
        cells = [_cell(with_ends(*rho_of(importance, name, effect), 2)) for effect in effects]
        overlap = _cell(percent(*_shared(importance, name)).replace(" %", "\u00a0%"))
        rows.append([Cell(capital(method_name(name))), *cells, overlap])
    columns = [
        Column("Method"),
        *(Column(capital(effect_name(importance, effect)), "ρ", "rho") for effect in effects),
        Column("Top heads shared", "", "overlap"),
    ]
    caption = (
        "Spearman’s rank correlation over heads with what becomes of the task when a head is off; "
        f"and how many of the {top} heads without which the loss rises most are among the {top} "
        f"most important (by chance {percent(top / heads)}). 95 % intervals over heads."
    )
    return Table("Importance against switching off", columns, [Rows(rows)], caption)


def _cell(written: str) -> Cell:
    text, _, ends = written.partition(" ")
    return Cell(text, ends)


GRADIENT_SECTIONS = (
    SectionPlan(
        id="gradients",
        title="Where do gradients go?",
        text="Attention that is changed a little changes the loss by its gradient. Where much "
        "attention rests on a token and the gradient is small, it matters little that it does: "
        "the token is a place to rest (Clark et al. 2019).",
        pictures=("gradients",),
        chapter=FINDINGS,
    ),
)
SECTIONS = (
    SectionPlan(
        id="importance",
        title="Which heads does the loss depend on?",
        text="All of these are read off gradients, at the price of a few passes. They say what a "
        "small change would do, which need not be what switching off does.",
        pictures=("importance",),
        tables=(of_group("importance", importance_table),),
        chapter=FINDINGS,
    ),
    SectionPlan(
        id="against",
        title="Is that what happens when heads are switched off?",
        text="If an importance is worth its name, heads to the right lie high.",
        pictures=("importance_against_ablation",),
        tables=(of_group("importance", against_table),),
        chapter=FINDINGS,
    ),
)

OPENING = OpeningPlan(
    heading=heading_of("Which heads of ", " matter?"),
    findings=importance_findings,
    tables=(scores_table,),
)
