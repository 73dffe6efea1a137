"""Report section on word alignment: summary, table and figure."""

from functools import partial

from matplotlib.axes import Axes

from headscope.claims.caption_words import with_interval
from headscope.claims.reading import Reading
from headscope.core.results import at
from headscope.core.wording import percent
from headscope.draw.head_marks import note_heads, number_texts
from headscope.draw.marks import layer_bands, percent_axis
from headscope.draw.panel import Panel
from headscope.draw.style import color, marker
from headscope.page.sections import OpeningPlan, heading_of
from headscope.page.tabulate import Cell, Column, Table, rows_table, share

WORDS = {"AWO": "the word that is generated", "AWI": "the word that is read"}
SHORT = {"AWO": "the word generated (AWO)", "AWI": "the word read (AWI)"}
BY = {"weight": "weights", "norm": "norms"}
LOOK = {"weight": "mean", "norm": "strongest"}  # whose colours and marks they get


def findings(run: Reading) -> list[str]:
    """For each setting: the best layer by weights and by norms."""
    lines = []
    for setting, words in WORDS.items():
        rates = []
        for measure, name in BY.items():
            rate = run("best_aer", setting=setting, measure=measure)
            layer = _best_layer(run, setting, measure)
            rates.append(f"{percent(*at(rate))} by {name} (layer {layer})")
        lines.append(
            f"Linked to {words} ({setting}), the best layer has an alignment error rate of "
            f"{' and '.join(rates)}."
        )
    return lines


def _best_layer(run: Reading, setting: str, measure: str) -> int:
    return int(run("best_layer", setting=setting, measure=measure).value) + run.names.first


def rates_table(run: Reading) -> Table | None:
    """The error rates of each setting, by weights and by norms."""

    def cell(variable: str, **choice: str) -> Cell:
        return share(*at(run(variable, **choice)))

    rows = []
    for setting in WORDS:
        for measure, name in BY.items():
            of = {"setting": setting, "measure": measure}
            highest = [
                cell(f"highest_norm_{unit}_aer", setting=setting) for unit in ("layer", "head")
            ]
            rows.append(
                [
                    setting,
                    name,
                    cell("mean_layer_aer", **of),
                    cell("best_aer", **of),
                    _best_layer(run, setting, measure),
                    cell("held_out", **of),
                    *(highest if measure == "norm" else [""] * 2),
                ]
            )
    columns = [
        "Setting",
        "By",
        Column("Mean of layers", "%", "aer"),
        Column("Best layer", "%"),
        "Layer",
        Column("Held out", "%", "held_out"),
        Column("Layer of highest norm", "%", "mean_norm"),
        Column("Head of highest norm", "%"),
    ]
    caption = (
        "Alignment error rates as in Kobayashi et al. (2020), Table 3; 95 % intervals "
        "over sentence pairs. Held out: a layer chosen on one half of the pairs, scored on the "
        "other, both ways. Every layer and head: tables/alignment."
    )
    return rows_table("Error rates of word alignment", columns, rows, caption)


OPENING = OpeningPlan(heading=heading_of("How well cross-attention aligns words in "))

# --- the figure -------------------------------------------------------------------------------


def panels(run: Reading) -> list[Panel]:
    """Layers, then heads, of each setting."""
    return [
        Panel(f"{of}: {text}", partial(draw, run, setting))
        for of, draw in {"Layers": _layers, "Heads": _heads}.items()
        for setting, text in SHORT.items()
    ]


def _layers(run: Reading, setting: str, axes: Axes) -> None:
    lines = [
        (run("layer_aer", setting=setting, measure=measure), word, BY[measure])
        for measure, word in LOOK.items()
    ]
    layer_bands(axes, lines, "alignment error rate", run.names)


def _heads(run: Reading, setting: str, axes: Axes) -> None:
    norm = run("mean_norm")
    aer = run("aer", setting=setting, measure="norm")
    x, word = norm.value.ravel(), LOOK["norm"]  # [unit]
    axes.vlines(x, aer.low.ravel(), aer.high.ravel(), color=color(word), lw=0.7, alpha=0.35)
    axes.plot(x, aer.value.ravel(), marker(word), color=color(word), ms=3.6, mew=0)
    note_heads(axes, x, aer.value, number_texts(aer, "probability"), series="error rate")
    axes.set_xlabel("mean norm ‖αf(x)‖")
    axes.set_xlim(0, 1.05 * float(x.max()) or 1.0)
    percent_axis(axes, "alignment error rate", top=1.0)
    words = with_interval("ρ", *at(run("spearman", setting=setting)))
    axes.text(1, 1.02, words, transform=axes.transAxes, ha="right", fontsize=6.5)
