"""Report sections on the importance of heads: sentences, tables and figures."""

import numpy as np

from headscope.claims.reading import Reading
from headscope.claims.verdict import differs
from headscope.core.confidence import stretch
from headscope.core.intervals import Estimate
from headscope.core.results import at, counted, documents, largest_first, shape, token_names
from headscope.core.wording import capital, fixed, number, percent, with_ends
from headscope.experiments.ablation.section import scores_table
from headscope.page.sections import OpeningPlan, heading_of
from headscope.page.tabulate import Cell, Column, Table, rows_table
from headscope.tasks.metrics import METRICS

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


def methods_of(run: Reading) -> list[str]:
    """The methods that the run has."""
    return [str(name) for name in run.data["variant"].values]


def method_name(method: str) -> str:
    """A method of importance in running text."""
    return NAMES.get(method, method.replace("_", " "))


def effect_name(run: Reading, effect: str) -> str:
    """How the task suffers without a head: `rise of the loss`, `change of accuracy`, …"""
    metric = str(run.data.attrs["metric"])
    words = METRICS.get(metric, metric)
    return {
        "loss": "rise of the loss",
        "loss_size": "change of the loss, either way",
        "score": f"fall of {words}",
        "score_size": f"change of {words}, either way",
    }[effect]


def rho_of(run: Reading, method: str, effect: str) -> tuple[float, float, float]:
    """A rank correlation with the ends of its interval."""
    return at(run("rho", variant=method, effect=effect))


def named_units(run: Reading, method: str, *, most: int = 4) -> list[int]:
    """Units worth a name: those that cost most, and the most important ones, half and half."""
    values, effect = (parts.value.ravel() for parts in scattered(run, method))  # [unit]
    first = np.argsort(-np.abs(effect), kind="stable")[: most // 2].tolist()
    second = np.argsort(-values, kind="stable")[: most - len(first)].tolist()
    return list(dict.fromkeys([*first, *second]))


def scattered(run: Reading, method: str) -> tuple[Estimate, Estimate]:
    """[layer, head] the importances by a method, and the rise of the loss without the head."""
    return run(f"head_importance.{method}"), run("effect_of_head.loss")


def gradient_finding(run: Reading) -> str:
    """How gradients to the separator change from layer to layer, beside attention to it."""
    sep, other, attention = (
        run(f"layer_{key}").value for key in ("magnitude.sep", "magnitude.other", "attention.sep")
    )
    if not (np.isfinite(sep).all() and np.isfinite(attention).all()):
        return ""
    name = token_names(run.tree).get("sep", "[SEP]")
    most, least = int(attention.argmax()), int(sep.argmin())
    share = sep / other
    return (
        f"Per edge, |∂loss/∂α| to {name} is {number(sep[0])} in layer {run.names.layer(0)} and "
        f"{number(sep[-1])} in layer {run.names.layer(len(sep) - 1)}, {number(share[0])} and "
        f"{number(share[-1])} times that to other tokens; it is least in layer "
        f"{run.names.layer(least)}. Attention to {name} is highest in layer "
        f"{run.names.layer(most)} ({fixed(100 * attention[most], 0)} %), where the gradient is "
        f"{number(share[most])} times that to other tokens."
    )


def difference_finding(run: Reading) -> str:
    """From how many heads the examples tell the most important one, and the smallest difference of
    two that they could tell. The sides of two intervals are added, however the two go together,
    and are long enough for all pairs of heads.
    """
    method, heads = methods_of(run)[0], shape(run.tree)[1]
    parts = run(f"head_importance.{method}").map(np.ravel)  # [unit]
    others = parts.value.size - 1
    if not (others and np.isfinite(parts.low).all()):
        return ""
    top, longer = int(parts.value.argmax()), stretch(others * (others + 1) // 2)
    between = parts.value[top] - parts.low[top] + parts.high - parts.value  # [unit]
    separate = int((parts.value[top] - parts.value > longer * between).sum())
    first = f"{run.names.unit(top, heads)} is most important, {number(*at(parts, top))}"
    these = f"these {documents(run.tree):,} {counted(run.tree)} can tell"
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


def rho_finding(run: Reading) -> str:
    """Which method's order is nearest to what switching heads off does to the loss."""
    if "rho" not in run.data:
        return ""
    rhos = {name: rho_of(run, name, "loss") for name in methods_of(run)}
    verdicts = {name: differs(*rho) for name, rho in rhos.items()}
    sure = [name for name, verdict in verdicts.items() if verdict.holds]
    correlations = [f"{method_name(name)} {with_ends(*rhos[name], 2)}" for name in sure]
    if others := [name for name in rhos if name not in sure]:
        least = max(verdicts[name].smallest for name in others)
        could = f" (they could tell {fixed(least, 2)})" if np.isfinite(least) else ""
        names = "; ".join(map(method_name, others))
        correlations.append(f"none that so many heads can tell for {names}{could}")
    return (
        f"Rank correlation over {int(run.data.attrs['heads'])} heads with the rise of the loss "
        f"when a head {INSTEAD[str(run.data.attrs['replacement'])]}: {'; '.join(correlations)}. "
        "What an untrained network would show was not measured."
    )


def overlap_finding(run: Reading) -> str:
    """How many of the most important heads are those that cost most."""
    if "overlap" not in run.data:
        return ""
    top, heads = int(run.data.attrs["top"]), int(run.data.attrs["heads"])
    shared = {name: _shared(run, name) for name in methods_of(run)}
    ends = [
        f"{percent(*shared[name])} ({method_name(name)})"
        for name in sorted(shared, key=lambda name: shared[name][0])
    ]
    counted = ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"
    return (
        f"Of the {top} heads without which the loss rises most, {counted} are among the {top} most "
        f"important; by chance {percent(top / heads)}."
    )


def integral_note(run: Reading) -> str:
    """How far AttAttr's integral errs, where that matters."""
    if "completeness_error" not in run.data:
        return ""
    errors = run("completeness_error").value
    worst = int(np.argmax(errors))
    if errors[worst] <= EXACT * max(run("output_change").value[worst], EXACT):
        return ""
    return (
        f"AttAttr’s attributions miss F(A) − F(0) by up to {number(float(errors[worst]))} (layer "
        f"{run.names.layer(worst)}, mean over examples): more than {int(run.data.attrs['steps'])} "
        "steps are wanted."
    )


def _shared(run: Reading, method: str) -> tuple[float, float, float]:
    """The share of the top heads by a method without which the loss rises most, too."""
    return at(run("overlap", variant=method, effect="loss"))


def importance_table(run: Reading) -> Table | None:
    """The most important heads by the first method, with the numbers of the others."""
    methods = [name for name in methods_of(run) if name not in UNLISTED]
    parts = [run(f"head_importance.{name}") for name in methods]
    rows = [
        [run.names.head(*place), *(_cell(number(*at(part, *place))) for part in parts)]
        for place in largest_first(np.nan_to_num(parts[0].value))[:LISTED]
    ]
    caption = (
        f"The {len(rows)} most important heads by {method_name(methods[0])}, with 95 % intervals, "
        "over examples. All heads: table of heads, and tables/importance."
    )
    columns = ["Head", *(Column(capital(method_name(m)), "", m) for m in methods)]
    return rows_table("Most important heads", columns, rows, caption)


def against_table(run: Reading) -> Table | None:
    """Each method against each effect of switching off."""
    if "rho" not in run.data:
        return None
    effects = [str(name) for name in run.data["effect"].values if str(name) not in UNLISTED]
    top, heads = int(run.data.attrs["top"]), int(run.data.attrs["heads"])
    rows = []
    for name in methods_of(run):
        cells = [_cell(with_ends(*rho_of(run, name, effect), 2)) for effect in effects]
        overlap = _cell(percent(*_shared(run, name)).replace(" %", "\u00a0%"))
        rows.append([capital(method_name(name)), *cells, overlap])
    columns = [
        "Method",
        *(Column(capital(effect_name(run, effect)), "ρ", "rho") for effect in effects),
        Column("Top heads shared", "", "overlap"),
    ]
    caption = (
        "Spearman’s rank correlation over heads with what becomes of the task when a head is off; "
        f"and how many of the {top} heads without which the loss rises most are among the {top} "
        f"most important (by chance {percent(top / heads)}). 95 % intervals over heads."
    )
    return rows_table("Importance against switching off", columns, rows, caption)


def _cell(written: str) -> Cell:
    text, _, ends = written.partition(" ")
    return Cell(text, ends)


OPENING = OpeningPlan(heading=heading_of("Which heads of ", " matter?"), tables=(scores_table,))
