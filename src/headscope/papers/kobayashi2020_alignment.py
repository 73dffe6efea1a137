"""Kobayashi et al. (2020): what they published of word alignment in translation, §5.

Their translation models (five of 6 layers and 4 heads, from five seeds) were never released.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from headscope.claims.verdict import all_of
from headscope.core.accumulators import Float64
from headscope.core.intervals import SHARE
from headscope.core.results import documents, model_name, shape
from headscope.core.wording import grid_size
from headscope.papers.claim_engine import ClaimGroup, PaperClaim
from headscope.papers.published import Published
from headscope.papers.quantities import Measure, Measured, PaperRun, percent_text, reads, stored

PAIRS, SHAPE = 508, (6, 4)  # of the paper's gold links, and its models
Draws = Callable[[PaperRun], Float64]
Compared = tuple[Draws, int]  # draws, and the sign of ours less them


def _draws(variable: str, **choice: str) -> Draws:
    return lambda run: run.draws("alignment", variable, **choice)


def _aligned(run: PaperRun, draws: Float64, **more: Any) -> Measured:
    """A number of the translation model, which says where model or pairs are not the paper's."""
    other, (layers, heads) = run.beside.others.get("alignment", ""), shape(run.tree)
    words = []
    if (layers, heads) != SHAPE:
        words.append(f"links of {model_name(run.tree)} ({grid_size(layers, heads)})")
    if other or documents(run.tree) != PAIRS:
        words.append(other or f"{documents(run.tree):,} sentence pairs")
    return run.measured(draws, elsewhere=" on ".join(words), **more)


@reads("alignment")
def _error(run: PaperRun, draws: Draws, *others: Compared, best_of: str = "") -> Measured:
    """An error rate; the direction is that it lies surely on one side of all others."""
    ours = draws(run)
    apart = [sign * (ours - other(run)) for other, sign in others]
    verdict = all_of(map(run.above, apart)) if apart else None
    detail = _best(run, *best_of.split()) if best_of else ""
    return _aligned(run, ours, bounds=SHARE, verdict=verdict, detail=detail)


def _best(run: PaperRun, setting: str, measure: str) -> str:
    """`layer 2 of 6; held out 26.0 %`."""
    results, choice = run.results("alignment"), {"setting": setting, "measure": measure}
    held = stored(results, "held_out", **choice)[0]
    at = int(results["best_layer"].sel(choice)) + 1
    return f"layer {at} of {results.sizes['layer']}; held out {percent_text(held)}"


@reads("alignment")
def _related(run: PaperRun, coefficient: str, setting: str, sign: int) -> Measured:
    draws = run.draws("alignment", coefficient, setting=setting)
    return _aligned(run, draws, verdict=run.above(sign * draws))


@reads("alignment")
def _input_better(run: PaperRun) -> Measured:
    """How far the best layer by norms errs less on the word that is read."""
    output, read = (_draws("best_aer", setting=s, measure="norm")(run) for s in ("AWO", "AWI"))
    return _aligned(run, output - read, over=0.0)


def _mean_of_heads(run: PaperRun) -> Float64:
    """[replicate + 1] of AWI, by norms."""
    return np.asarray(run.draws("alignment", "aer", setting="AWI", measure="norm").mean((1, 2)))


def _errors(setting: str) -> tuple[tuple[str, Measure, str], ...]:
    """Each question, its measure and its direction, in the order of the table."""
    layer, head = (_draws(f"highest_norm_{x}_aer", setting=setting) for x in ("layer", "head"))
    mean, best = (
        [_draws(x, setting=setting, measure=m) for m in ("weight", "norm")]
        for x in ("mean_layer_aer", "best_aer")
    )
    read = setting == "AWI"
    output = [(_draws("best_aer", setting="AWO", measure="weight"), -1)] if read else []
    below, above = "surely below that of weights", "surely above the mean of layers by norms"
    of_layers = (mean[1], -1 if read else 1)
    of_heads = (_mean_of_heads, -1) if read else of_layers
    return (
        ("weights, layer mean", _error(mean[0]), ""),
        (
            "weights, best layer",
            _error(best[0], *output, best_of=f"{setting} weight"),
            "surely below that of AWO" if read else "",
        ),
        ("norms, layer mean", _error(mean[1], (mean[0], -1)), below),
        ("norms, best layer", _error(best[1], (best[0], -1), best_of=f"{setting} norm"), below),
        (
            "layer of the highest mean norm",
            _error(layer, of_layers),
            "surely below the mean of layers by norms" if read else above,
        ),
        (
            "head of the highest mean norm",
            _error(head, of_heads),
            "surely below the mean of heads by norms" if read else above,
        ),
    )


TABLE_3 = {
    "AWO": ("68.4", "47.7", "62.9", "41.4", "83.0", "87.1"),
    "AWI": ("68.5", "29.8", "60.4", "25.0", "25.0", "35.5"),
}
RELATED = (
    ("AWO", "spearman", "ρ", 1, "0.56"), ("AWO", "pearson", "r", 1, "0.55"),
    ("AWI", "spearman", "ρ", -1, "−0.44"), ("AWI", "pearson", "r", -1, "−0.52"),
)  # fmt: skip
ROWS = [
    (setting, *row, text)
    for setting, texts in TABLE_3.items()
    for row, text in zip(_errors(setting), texts, strict=True)
]
ALIGNMENT = ClaimGroup(
    "alignment",
    "Word alignment in translation",
    "In a translation model, norms align words better than weights do. AWO: a link is of the word "
    "that is generated, AWI: of the word that is read.",
    (
        *(
            PaperClaim(
                f"alignment-{at}",
                "Table 3",
                f"Alignment error rate, {setting}: {what}",
                measure,
                (Published(text, "code", where="five seeds"),),
                "%",
                direction,
            )
            for at, (setting, what, measure, direction, text) in enumerate(ROWS)
        ),
        PaperClaim(
            "alignment-input",
            "§5",
            "Best layer by norms: error rate of AWO less that of AWI",
            _input_better(),
            (),
            "points",
            "the interval lies above 0",
        ),
        *(
            PaperClaim(
                f"alignment-{setting}-{letter}",
                "NMT, heads",
                f"Error rate by norms against mean norm over heads, {setting}: {letter}",
                _related(name, setting, sign),
                (Published(text, "code"),),
                direction=f"the interval lies {'above' if sign > 0 else 'below'} 0",
            )
            for setting, name, letter, sign, text in RELATED
        ),
    ),
)
