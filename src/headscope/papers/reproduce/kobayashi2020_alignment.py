"""Kobayashi et al. (2020): what they published of word alignment in translation, §5.

Their translation models (five of 6 layers and 4 heads, from five seeds) were never released.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headscope.core.accumulators import Float64
from headscope.core.results import documents, model_name, shape
from headscope.papers.claim_engine import (
    ClaimGroup,
    PaperClaim,
    PaperFigure,
    Published,
    claim_measure,
)
from headscope.papers.quantities import (
    Measured,
    PaperRuns,
    draws_of,
    measured,
    percent_text,
    stored,
    surely_above,
)

TRANSLATION = ("alignment",)  # the run
PAIRS, SHAPE = 508, (6, 4)  # of the paper's gold links, and its models
Measure = Callable[[PaperRuns], Measured]
Draws = Callable[[PaperRuns], Float64]
Compared = tuple[Draws, int]  # draws, and the sign of ours less them


def _draws(variable: str, **choice: str) -> Draws:
    return lambda runs: draws_of(runs.results("alignment", "alignment"), variable, **choice)


def _elsewhere(runs: PaperRuns) -> str:
    """Which other model and pairs than the paper's these are."""
    tree = runs.run("alignment").tree
    other, (layers, heads) = runs.others.get("alignment", ""), shape(tree)
    words = []
    if (layers, heads) != SHAPE:
        words.append(f"links of {model_name(tree)} ({layers} layers × {heads} heads)")
    if other or documents(tree) != PAIRS:
        words.append(other or f"{documents(tree):,} sentence pairs")
    return " on ".join(words)


def _mean_of_heads(runs: PaperRuns) -> Float64:
    """[replicate + 1] of AWI, by norms."""
    heads = _draws("aer", setting="AWI", measure="norm")(runs)
    return np.asarray(heads.mean((1, 2)))


@claim_measure
def _error(runs: PaperRuns, draws: Draws, *others: Compared, best_of: str = "") -> Measured:
    """An error rate; the direction is that it lies surely on one side of all others."""
    run, ours = runs.run("alignment"), draws(runs)
    apart = [sign * (ours - other(runs)) for other, sign in others]
    holds = all(surely_above(gap, run) for gap in apart) if apart else None
    detail = _best(runs, *best_of.split()) if best_of else ""
    return measured(ours, run, holds=holds, detail=detail, elsewhere=_elsewhere(runs))


def _best(runs: PaperRuns, setting: str, measure: str) -> str:
    """`layer 2 of 6; held out 26.0 %`."""
    results = runs.results("alignment", "alignment")
    choice = {"setting": setting, "measure": measure}
    held = stored(results, "held_out", **choice)[0]
    at = int(results["best_layer"].sel(choice)) + 1
    return f"layer {at} of {results.sizes['layer']}; held out {percent_text(held)}"


@claim_measure
def _related(runs: PaperRuns, coefficient: str, setting: str, sign: int) -> Measured:
    run, draws = runs.run("alignment"), _draws(coefficient, setting=setting)(runs)
    holds = surely_above(sign * draws, run)
    return measured(draws, run, holds=holds, elsewhere=_elsewhere(runs))


def _errors(setting: str) -> tuple[tuple[str, Measure, str], ...]:
    """What is asked, its measure and its direction, in the order of the table."""

    def of(variable: str, measure: str) -> Draws:
        return _draws(variable, setting=setting, measure=measure)

    layer, head = (_draws(f"highest_norm_{x}_aer", setting=setting) for x in ("layer", "head"))
    mean, best = ((of(x, "weight"), of(x, "norm")) for x in ("mean_layer_aer", "best_aer"))
    read = setting == "AWI"
    output = _draws("best_aer", setting="AWO", measure="weight")
    below, above = "surely below that of weights", "surely above the mean of layers by norms"
    of_layers = (mean[1], -1 if read else 1)
    of_heads = ((_mean_of_heads, -1),) if read else (of_layers,)
    return (
        ("weights, layer mean", _error(mean[0]), ""),
        (
            "weights, best layer",
            _error(best[0], *([(output, -1)] if read else []), best_of=f"{setting} weight"),
            "surely below that of AWO" if read else "",
        ),
        ("norms, layer mean", _error(mean[1], (mean[0], -1)), below),
        ("norms, best layer", _error(best[1], (best[0], -1), best_of=f"{setting} norm"), below),
        (
            "layer of the highest mean norm", _error(layer, of_layers),
            "surely below the mean of layers by norms" if read else above,
        ),
        (
            "head of the highest mean norm", _error(head, *of_heads),
            "surely below the mean of heads by norms" if read else above,
        ),
    )  # fmt: skip


def _input_better(runs: PaperRuns) -> Measured:
    """How far the best layer by norms errs less on the word that is read."""
    best = [_draws("best_aer", setting=s, measure="norm")(runs) for s in ("AWO", "AWI")]
    run, gap = runs.run("alignment"), best[0] - best[1]
    return measured(gap, run, above=0.0, elsewhere=_elsewhere(runs))


def _claims() -> tuple[PaperClaim, ...]:
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
    claims = [
        PaperClaim(f"alignment-{at}", "Table 3", f"Alignment error rate, {setting}: {what}",
                   TRANSLATION, measure, (Published(text, "code", where="five seeds"),), unit="%",
                   direction=direction)
        for at, (setting, what, measure, direction, text) in enumerate(rows)
    ]  # fmt: skip
    better = "Best layer by norms: error rate of AWO less that of AWI"
    claims.append(
        PaperClaim("alignment-input", "§5", better, TRANSLATION, _input_better, unit="points",
                   direction="the interval lies above 0")
    )  # fmt: skip
    related = (
        ("AWO", "spearman", "ρ", 1, "0.56"), ("AWO", "pearson", "r", 1, "0.55"),
        ("AWI", "spearman", "ρ", -1, "−0.44"), ("AWI", "pearson", "r", -1, "−0.52"),
    )  # fmt: skip
    claims += [
        PaperClaim(f"alignment-{setting}-{letter}", "NMT, heads", f"Error rate by norms against "
                   f"mean norm over heads, {setting}: {letter}", TRANSLATION,
                   _related(name, setting, sign), (Published(text, "code"),),
                   direction=f"the interval lies {'above' if sign > 0 else 'below'} 0")
        for setting, name, letter, sign, text in related
    ]  # fmt: skip
    return tuple(claims)


ALIGNMENT = ClaimGroup(
    "alignment", "Word alignment in translation",
    "In a translation model, norms align words better than weights do. AWO: a link is of the word "
    "that is generated, AWI: of the word that is read.",
    _claims(), (PaperFigure("alignment", "alignment"),),
)  # fmt: skip
