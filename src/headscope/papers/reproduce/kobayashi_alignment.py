"""What did Kobayashi et al. (2020) publish on word alignment, and how is it read off a run?

Their translation models (five of 6 layers and 4 heads, from five seeds) were never released.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headscope.core.accumulators import Float64
from headscope.core.results import documents, model_name, shape
from headscope.papers.reproduce.line import Answer, Line, Published, Results
from headscope.papers.reproduce.reading import answer, drawn, ends, percent, surely_above

ALIGNMENT = ("alignment",)
PAIRS, SHAPE = 508, (6, 4)  # of the paper's gold links, and its models
Measure = Callable[[Results], Answer]
Compared = tuple[Callable[[Results], Float64], int]  # draws, and the sign of ours less them


def _drawn(variable: str, **choice: str) -> Callable[[Results], Float64]:
    return lambda results: drawn(results.group("alignment", "alignment"), variable, **choice)


def _elsewhere(results: Results) -> str:
    """Which other model and pairs than the paper's these are."""
    tree = results.run("alignment").tree
    other, (layers, heads) = results.others.get("alignment", ""), shape(tree)
    found = []
    if (layers, heads) != SHAPE:
        found.append(f"links of {model_name(tree)} ({layers} layers × {heads} heads)")
    if other or documents(tree) != PAIRS:
        found.append(other or f"{documents(tree):,} sentence pairs")
    return " on ".join(found)


def _mean_of_heads(results: Results) -> Float64:
    """[replicate + 1] of AWI, by norms."""
    heads = _drawn("aer", setting="AWI", measure="norm")(results)
    return np.asarray(heads.mean((1, 2)))


def _error(draws: Callable[[Results], Float64], *others: Compared, told: str = "") -> Measure:
    """An error rate; the direction is that it lies surely on one side of all others."""

    def measure(results: Results) -> Answer:
        run, ours = results.run("alignment"), draws(results)
        apart = [sign * (ours - other(results)) for other, sign in others]
        holds = all(surely_above(gap, run) for gap in apart) if apart else None
        shown = _best(results, *told.split()) if told else ""
        return answer(ours, run, holds=holds, shown=shown, elsewhere=_elsewhere(results))

    return measure


def _best(results: Results, setting: str, measure: str) -> str:
    """`layer 2 of 6; held out 26.0 %`."""
    found = results.group("alignment", "alignment")
    choice = {"setting": setting, "measure": measure}
    held = ends(found, "held_out", **choice)[0]
    at = int(found["best_layer"].sel(choice)) + 1
    return f"layer {at} of {found.sizes['layer']}; held out {percent(held)}"


def _related(coefficient: str, setting: str, sign: int) -> Measure:
    def measure(results: Results) -> Answer:
        run, draws = results.run("alignment"), _drawn(coefficient, setting=setting)(results)
        holds = surely_above(sign * draws, run)
        return answer(draws, run, holds=holds, elsewhere=_elsewhere(results))

    return measure


def _errors(setting: str) -> tuple[tuple[str, Measure, str], ...]:
    """What, our answer and its direction, in the order of the table."""

    def of(variable: str, measure: str) -> Callable[[Results], Float64]:
        return _drawn(variable, setting=setting, measure=measure)

    layer, head = (_drawn(f"highest_norm_{x}_aer", setting=setting) for x in ("layer", "head"))
    mean, best = ((of(x, "weight"), of(x, "norm")) for x in ("mean_layer_aer", "best_aer"))
    read = setting == "AWI"
    output = _drawn("best_aer", setting="AWO", measure="weight")
    below, above = "surely below that of weights", "surely above the mean of layers by norms"
    of_layers = (mean[1], -1 if read else 1)
    of_heads = ((_mean_of_heads, -1),) if read else (of_layers,)
    return (
        ("weights, layer mean", _error(mean[0]), ""),
        (
            "weights, best layer",
            _error(best[0], *([(output, -1)] if read else []), told=f"{setting} weight"),
            "surely below that of AWO" if read else "",
        ),
        ("norms, layer mean", _error(mean[1], (mean[0], -1)), below),
        ("norms, best layer", _error(best[1], (best[0], -1), told=f"{setting} norm"), below),
        (
            "layer of the highest mean norm", _error(layer, of_layers),
            "surely below the mean of layers by norms" if read else above,
        ),
        (
            "head of the highest mean norm", _error(head, *of_heads),
            "surely below the mean of heads by norms" if read else above,
        ),
    )  # fmt: skip


def _input_better(results: Results) -> Answer:
    """How far the best layer by norms errs less on the word that is read."""
    best = [_drawn("best_aer", setting=s, measure="norm")(results) for s in ("AWO", "AWI")]
    run, gap = results.run("alignment"), best[0] - best[1]
    return answer(gap, run, holds=surely_above(gap, run), elsewhere=_elsewhere(results))


def alignment() -> tuple[Line, ...]:
    """Error rates of word alignment, and what norms have to do with them."""
    published = {
        "AWO": ("68.4", "47.7", "62.9", "41.4", "83.0", "87.1"),
        "AWI": ("68.5", "29.8", "60.4", "25.0", "25.0", "35.5"),
    }
    rows = [
        (setting, *row, text)
        for setting, texts in published.items()
        for row, text in zip(_errors(setting), texts, strict=True)
    ]
    lines = [
        Line(f"alignment-{at}", "Table 3", f"Alignment error rate, {setting}: {what}", ALIGNMENT,
             measure, (Published(text, "code", where="five seeds"),), unit="%",
             direction=direction)
        for at, (setting, what, measure, direction, text) in enumerate(rows)
    ]  # fmt: skip
    better = "Best layer by norms: error rate of AWO less that of AWI"
    lines.append(
        Line("alignment-input", "§5", better, ALIGNMENT, _input_better, unit="points",
             direction="the interval lies above 0")
    )  # fmt: skip
    related = (
        ("AWO", "spearman", "ρ", 1, "0.56"), ("AWO", "pearson", "r", 1, "0.55"),
        ("AWI", "spearman", "ρ", -1, "−0.44"), ("AWI", "pearson", "r", -1, "−0.52"),
    )  # fmt: skip
    lines += [
        Line(f"alignment-{setting}-{letter}", "NMT, heads",
             f"Error rate by norms against mean norm over heads, {setting}: {letter}", ALIGNMENT,
             _related(name, setting, sign), (Published(text, "code"),),
             direction=f"the interval lies {'above' if sign > 0 else 'below'} 0")
        for setting, name, letter, sign, text in related
    ]  # fmt: skip
    return tuple(lines)
