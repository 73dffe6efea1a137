"""Report section on word alignment: summary, table and figure."""

from functools import partial

import xarray as xr
from matplotlib.axes import Axes

from headscope.claims.caption_words import over, with_interval
from headscope.core.head_names import first
from headscope.core.results import at, estimate, needed
from headscope.core.wording import percent
from headscope.draw.marks import layer_bands, percent_axis
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color, marker
from headscope.page.sections import FINDINGS, OpeningPlan, SectionPlan, heading_of, of_group
from headscope.page.tabulate import Cell, Column, Rows, Table, share

WORDS = {"AWO": "the word that is generated", "AWI": "the word that is read"}
SHORT = {"AWO": "the word generated (AWO)", "AWI": "the word read (AWI)"}
BY = {"weight": "weights", "norm": "norms"}
LOOK = {"weight": "mean", "norm": "strongest"}  # whose colours and marks they get


def findings(tree: xr.DataTree) -> list[str]:
    """Of each setting: the best layer by weights and by norms."""
    alignment = needed(tree, "alignment")
    lines = []
    for setting, words in WORDS.items():
        rates = []
        for measure, name in BY.items():
            rate = estimate(alignment, "best_aer", setting=setting, measure=measure)
            layer = _best_layer(alignment, setting, measure)
            rates.append(f"{percent(*at(rate))} by {name} (layer {layer})")
        lines.append(
            f"Linked to {words} ({setting}), the best layer has an alignment error rate of "
            f"{' and '.join(rates)}."
        )
    return lines


def _best_layer(alignment: xr.Dataset, setting: str, measure: str) -> int:
    return int(alignment["best_layer"].sel(setting=setting, measure=measure)) + first()


def _table(alignment: xr.Dataset) -> Table:
    def cell(variable: str, **choice: str) -> Cell:
        return share(*at(estimate(alignment, variable, **choice)))

    rows = []
    for setting in WORDS:
        for measure, name in BY.items():
            of = {"setting": setting, "measure": measure}
            highest = [
                cell(f"highest_norm_{unit}_aer", setting=setting) for unit in ("layer", "head")
            ]
            rows.append(
                [
                    Cell(setting),
                    Cell(name),
                    cell("mean_layer_aer", **of),
                    cell("best_aer", **of),
                    Cell(str(_best_layer(alignment, setting, measure))),
                    cell("held_out", **of),
                    *(highest if measure == "norm" else [Cell("")] * 2),
                ]
            )
    columns = [
        Column("Setting"),
        Column("By"),
        Column("Mean of layers", "%", "aer"),
        Column("Best layer", "%"),
        Column("Layer"),
        Column("Held out", "%", "held_out"),
        Column("Layer of highest norm", "%", "mean_norm"),
        Column("Head of highest norm", "%"),
    ]
    caption = (
        "Alignment error rates as in Kobayashi et al. (2020), Table 3; 95 % intervals "
        "over sentence pairs. Held out: a layer chosen on one half of the pairs, scored on the "
        "other, both ways. Every layer and head: tables/alignment."
    )
    return Table("Error rates of word alignment", columns, [Rows(rows)], caption)


OPENING = OpeningPlan(
    heading=heading_of("How well cross-attention aligns words in "), findings=findings
)
SECTIONS = (
    SectionPlan(
        id="part-alignment",
        title="Which layers and heads align words?",
        chapter=FINDINGS,
        text="A word of the translation is linked to the source word that gets most of a head’s, "
        "or a layer’s, cross-attention: by weights, or by the norms of the weighted vectors. "
        "Links to the closing sign are left out.",
        pictures=("alignment",),
        tables=(of_group("alignment", _table),),
    ),
)


# --- the figure -------------------------------------------------------------------------------


def _panels(tree: xr.DataTree) -> list[Panel]:
    alignment = needed(tree, "alignment")
    return [
        Panel(f"{of}: {text}", partial(draw, alignment, setting))
        for of, draw in {"Layers": _layers, "Heads": _heads}.items()
        for setting, text in SHORT.items()
    ]


def _caption(tree: xr.DataTree) -> str:
    return (
        "Alignment error rate (0 % is perfect) of cross-attention. (a, b) Of each layer: links by "
        "the mean weight of its heads, and by the norm of the sum of their weighted vectors. "
        "(c, d) Of each head by norms, against its mean norm ‖αf(x)‖, and Spearman’s ρ. Bands, "
        "whiskers and brackets: 95 % intervals over sentence pairs; "
        f"{over(tree)}. After Kobayashi et al. (2020), Table 3."
    )


def _layers(alignment: xr.Dataset, setting: str, axes: Axes) -> None:
    lines = [
        (estimate(alignment, "layer_aer", setting=setting, measure=measure), word, BY[measure])
        for measure, word in LOOK.items()
    ]
    layer_bands(axes, lines, "alignment error rate")


def _heads(alignment: xr.Dataset, setting: str, axes: Axes) -> None:
    norm = estimate(alignment, "mean_norm")
    aer = estimate(alignment, "aer", setting=setting, measure="norm")
    x, word = norm.value.ravel(), LOOK["norm"]  # [unit]
    axes.vlines(x, aer.low.ravel(), aer.high.ravel(), color=color(word), lw=0.7, alpha=0.35)
    axes.plot(x, aer.value.ravel(), marker(word), color=color(word), ms=3.6, mew=0)
    axes.set_xlabel("mean norm ‖αf(x)‖")
    axes.set_xlim(0, 1.05 * float(x.max()) or 1.0)
    percent_axis(axes, "alignment error rate", top=1.0)
    words = with_interval("ρ", *at(estimate(alignment, "spearman", setting=setting)))
    axes.text(0.98, 0.05, words, transform=axes.transAxes, ha="right", fontsize=6.5)


FIGURES = (Picture("alignment", "Which words does it align?", ("alignment",), _panels, _caption),)
