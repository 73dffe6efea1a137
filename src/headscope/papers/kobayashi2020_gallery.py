"""Kobayashi et al. (2020): the figures and tables of the paper, in its layout.

Figures 1 and 2 there are diagrams of the method. Of figures that we know by what they show, not by
their number, none is given.
"""

from functools import partial

import numpy as np
from matplotlib.axes import Axes

from headscope.core.results import estimate
from headscope.draw import marks
from headscope.draw.panel import Panel
from headscope.papers.plates import Plate, PlateCell, PlatePanel, shown
from headscope.papers.quantities import PaperRun, Unmeasured

APART = 0.19  # layers between the marks of two categories
CATEGORIES = ("cls", "sep", "punctuation", "other")
SMALL = "Small numbers are the paper’s."


def _by_head(title: str, variable: str, label: str) -> PlatePanel:
    """A mark for each head and a line for the mean of a layer, by category of the token."""

    def draw(run: PaperRun) -> Panel:
        known = run.results("norms")
        if variable not in known:
            raise Unmeasured(f"needs {variable.replace('_', ' ')}, which its run does not have")
        return Panel(title, partial(_draw_heads, run, variable, label), height=0.8)

    return PlatePanel(title, "norms", draw)


def _draw_heads(run: PaperRun, variable: str, label: str, axes: Axes) -> None:
    known, entries, top = run.results("norms"), [], 0.0
    for place, category in enumerate(CATEGORIES):
        parts = estimate(known, variable, category=category)
        if np.isfinite(parts.value).any():
            shift = (place - 1.5) * APART
            marks.head_scatter(axes, parts, category, shift=shift)
            marks.mean_line(axes, parts.value, category, shift=shift)
            words = {"punctuation": "“.” and “,”", "other": "other tokens"}
            names = {kind: str(run.tree.attrs.get(f"{kind}_token", kind)) for kind in CATEGORIES}
            entries.append((category, words.get(category, names[category])))
            top = max(top, float(np.nanmax(np.fmax(parts.high, parts.value))))
    marks.layer_axis(axes, len(parts.value), run.names)
    if variable == "attention":
        marks.percent_axis(axes, label, top=1.0)
    else:
        marks.value_axis(axes, label, top=1.05 * top)
    marks.legend(axes, entries)


def _table_1() -> tuple[tuple[str, tuple[PlateCell, ...]], ...]:
    letters = ("μ", "σ", "CV", "largest", "smallest")
    return tuple(
        (name, tuple((f"table1-{key}-{letter}", "number", "") for letter in letters[:known]))
        for name, key, known in (
            ("Largest CV (2-4)", "head-2-4", 5),
            ("Smallest CV (2-7)", "head-2-7", 5),
            ("Mean over heads", "mean", 3),
        )
    )


ERRORS = (
    "Weights, layer mean", "Weights, best layer", "Norms, layer mean", "Norms, best layer",
    "Norms, layer of the highest mean norm", "Norms, head of the highest mean norm",
)  # fmt: skip
GALLERY = (
    Plate(
        "Table 1",
        "Dispersion of ‖f(x)‖",
        "Rows: the heads whose ‖f(x)‖ varies most and least, and the average over heads; columns: "
        "mean, standard deviation, coefficient of variation, maximum, minimum.",
        f"{SMALL} In another model, its own heads of largest and smallest CV.",
        heads=("Head", "μ", "σ", "CV", "Max", "Min"),
        rows=_table_1(),
    ),
    Plate(
        "Figure 3",
        "Weights against norms, by category of token",
        "Two panels; layers across. (a) attention weights α, (b) norms ‖αf(x)‖, each for [CLS], "
        "[SEP], periods and commas, and other tokens: by weights special tokens stand out, by "
        "norms the others.",
        "Marks are heads, lines means of a layer; whiskers: 95 % intervals over documents.",
        (
            _by_head("Weight α", "attention", "attention"),
            _by_head("Norm ‖αf(x)‖", "weighted_norm", "norm"),
        ),
        columns=2,
        height=0.8,
    ),
    Plate(
        "",
        "‖f(x)‖ by category of token",
        "The norm of the transformed vector alone; layers across, the same categories.",
        "Marks and lines as in Figure 3.",
        (_by_head("Norm ‖f(x)‖", "value_norm", "norm"),),
        height=0.8,
    ),
    Plate(
        "Table 2",
        "Do α and ‖f(x)‖ cancel?",
        "Spearman’s ρ of α and ‖f(x)‖ for pairs that end in each category of token.",
        SMALL,
        heads=("Category", "ρ"),
        rows=tuple(
            (name, ((f"table2-{key}", "number", ""),))
            for name, key in (
                ("[CLS]", "cls"),
                ("[SEP]", "sep"),
                ("Periods and commas", "punctuation"),
                ("Other tokens", "other"),
            )
        ),
    ),
    Plate(
        "",
        "α against ‖f(x)‖",
        "Each point a pair of tokens, weight across and norm upwards, by category.",
        "Pairs as density, darker where more fall; the line is the median norm.",
        shown(
            "norms",
            "cancellation",
            (0, "To [CLS]"),
            (1, "To [SEP]"),
            (2, "To “.” and “,”"),
            (3, "To other tokens"),
        ),
        columns=4,
        height=1.05,
    ),
    Plate(
        "",
        "Frequency rank",
        "Frequency rank of a token across, ‖f(x)‖ and α of its occurrences upwards: ρ 0.75 and "
        "0.06.",
        "Means of doubling bins of ranks, with 95 % intervals; without the data frequency, ranks "
        "are those of tokens in the text itself.",
        shown("norms", "frequency", (0, "‖f(x)‖ by rank"), (1, "α by rank")),
        columns=2,
        height=0.66,
    ),
    Plate(
        "Table 3",
        "Alignment error rates in translation",
        "Rows: links by weights and by norms, mean over layers, best layer, layer and head of the "
        "highest mean norm; columns: alignment with output (AWO) and with input (AWI).",
        SMALL,
        heads=("Links by", "AWO", "AWI"),
        rows=tuple(
            (
                name,
                (
                    (f"alignment-{at}", "number", ""),
                    (f"alignment-{at + len(ERRORS)}", "number", ""),
                ),
            )
            for at, name in enumerate(ERRORS)
        ),
    ),
    Plate(
        "",
        "Alignment by layer and by head",
        "Error rates of every layer in both settings; and of every head against its mean norm: "
        "ρ 0.56 with output, −0.44 with input.",
        "Bands and whiskers: 95 % intervals over sentence pairs.",
        shown(
            "alignment",
            "alignment",
            (0, "Layers: AWO"),
            (1, "Layers: AWI"),
            (2, "Heads: AWO"),
            (3, "Heads: AWI"),
        ),
        columns=2,
        height=0.72,
    ),
)
