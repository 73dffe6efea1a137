"""What did Kobayashi et al. (2020) publish, and how is each of it read off a run?

The mixing ratios of their sequel (2021) stand in an appendix, as one run gives both.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headscope.core.accumulators import Float64
from headscope.core.terms import KOBAYASHI20, KOBAYASHI21
from headscope.core.wording import fixed
from headscope.papers.reproduce import kobayashi_alignment
from headscope.papers.reproduce import kobayashi_more as more
from headscope.papers.reproduce.line import (
    Answer,
    Line,
    NotRun,
    Paper,
    Published,
    Results,
    Section,
    Shown,
)
from headscope.papers.reproduce.reading import (
    answer,
    counted,
    drawn,
    ends,
    layer_at,
    named,
    paper_head,
    surely_above,
)

NORMS = ("norms",)
FIGURE_3 = 0.03  # how far our reading of Figure 3a may be wrong
FIGURE_3B = 0.1  # and of Figure 3b
CATEGORIES = {"cls": "[CLS]", "sep": "[SEP]", "punctuation": "“.” and “,”", "other": "other tokens"}
LEAST_CV = 0.1  # ours: a spread of a tenth of the mean is a spread

Measure = Callable[[Results], Answer]


# --- Table 1: dispersion of ‖f(x)‖ -----------------------------------------------------------


def _at_head(variable: str, head: tuple[int, int], *, most: bool) -> Measure:
    """A number of the paper's head; in another model, of the one whose norms vary most or least."""

    def measure(results: Results) -> Answer:
        run, norms = results.run("norms"), results.group("norms", "norms")
        spread = drawn(norms, "value_norm_cv")[0]
        at = paper_head(results, spread if most else -spread, head)
        value, low, high = ends(norms.isel(layer=at[0], head=at[1]), variable)
        return Answer(value, low, high, counted(run), shown=f"of {named(*at)}")

    return measure


def _over_heads(variable: str) -> Measure:
    def measure(results: Results) -> Answer:
        run = results.run("norms")
        draws = drawn(results.group("norms", "norms"), variable).mean((1, 2))  # [replicate + 1]
        holds = surely_above(draws, run, LEAST_CV) if variable == "value_norm_cv" else None
        return answer(draws, run, holds=holds)

    return measure


def _table_1() -> tuple[Line, ...]:
    rows = (
        ("head-2-4", "head 2-4, of the largest CV", ("4.26", "1.59", "0.37", "12.66", "0.96")),
        ("head-2-7", "head 2-7, of the smallest CV", ("4.00", "0.50", "0.12", "6.15", "1.35")),
        ("mean", "mean over heads", ("5.15", "1.17", "0.22")),
    )
    names = {
        "value_norm_mean": "μ", "value_norm_sd": "σ", "value_norm_cv": "CV",
        "value_norm_max": "largest", "value_norm_min": "smallest",
    }  # fmt: skip
    lines = []
    for key, words, values in rows:
        for (variable, letter), text in zip(names.items(), values, strict=False):
            head, most = ((1, 3), True) if key == "head-2-4" else ((1, 6), False)
            measure = (
                _over_heads(variable) if key == "mean" else _at_head(variable, head, most=most)
            )
            direction = ""
            if key == "mean" and variable == "value_norm_cv":
                direction = f"the interval of the mean CV lies above {LEAST_CV}"
            claim = f"{letter} of ‖f(x)‖: {words}"
            published = (Published(text, "read"),)
            lines.append(
                Line(f"table1-{key}-{letter}", "Table 1", claim, NORMS, measure, published,
                     direction=direction)
            )  # fmt: skip
    return tuple(lines)


# --- Figure 3: by category -------------------------------------------------------------------


def _layer(variable: str, category: str, layer: int) -> Measure:
    """The mean over the heads of a layer (from 1; in another model, at the same depth)."""

    def measure(results: Results) -> Answer:
        run, norms = results.run("norms"), results.group("norms", "norms")
        draws = drawn(norms, variable, category=category)  # [replicate + 1, layer, head]
        at = layer_at(layer, draws.shape[1])
        shown = "" if at == layer - 1 else f"layer {at + 1}"
        return answer(draws[:, at].mean(1), run, shown=shown)

    return measure


def _curves(results: Results, variable: str) -> dict[str, Float64]:
    """category → [replicate + 1, layer], the mean over heads."""
    norms = results.group("norms", "norms")
    return {c: drawn(norms, variable, category=c).mean(2) for c in CATEGORIES}


def _peak(category: str, first: float, last: float) -> Measure:
    """In which layer a category draws most attention, and whether between two shares of depth."""

    def measure(results: Results) -> Answer:
        curve = _curves(results, "attention")[category][0]  # [layer]
        at = int(np.nanargmax(curve))
        depth = at / max(len(curve) - 1, 1)
        shown = f"most in layer {at + 1} of {len(curve)}, {fixed(float(curve[at]), 2)}"
        return Answer(at + 1, n=counted(results.run("norms")), holds=first <= depth <= last,
                      shown=shown)  # fmt: skip

    return measure


def _other_above(results: Results) -> Answer:
    """How far ‖αf‖ of other tokens stands above that of any other category, at its least."""
    run, curves = results.run("norms"), _curves(results, "weighted_norm")
    rest = np.fmax.reduce([curves[c] for c in ("cls", "sep", "punctuation")])
    gap = curves["other"] - rest  # [replicate + 1, layer]
    at = int(np.nanargmin(gap[0]))
    return answer(gap[:, at], run, holds=surely_above(gap[:, at], run),
                  shown=f"least in layer {at + 1}")  # fmt: skip


def _special_low(results: Results) -> Answer:
    """The largest ‖αf‖ of special tokens and punctuation in any layer."""
    run, curves = results.run("norms"), _curves(results, "weighted_norm")
    top = np.fmax.reduce([curves[c] for c in ("cls", "sep", "punctuation")])
    ratio = (top / curves["other"])[0]
    at = int(np.nanargmax(top[0]))
    return answer(top[:, at], run, holds=bool(np.nanmax(ratio) < 0.5),
                  shown=f"layer {at + 1}; at most {fixed(float(np.nanmax(ratio)), 2)} of other "
                  "tokens’")  # fmt: skip


def _figure_3a() -> tuple[Line, ...]:
    read = (
        ("cls", 2, "0.27"), ("cls", 3, "0.25"), ("cls", 6, "0.00"), ("sep", 5, "0.45"),
        ("sep", 6, "0.55–0.60"), ("sep", 7, "0.55–0.60"), ("sep", 8, "0.55–0.60"),
        ("sep", 9, "0.55–0.60"), ("sep", 10, "0.50"), ("sep", 11, "0.10"), ("sep", 12, "0.10"),
        ("punctuation", 11, "0.48"), ("punctuation", 12, "0.56"), ("other", 1, "0.86"),
        ("other", 12, "0.34"),
    )  # fmt: skip
    lines = [
        Line(
            f"figure3a-{category}-{layer}", "Figure 3a",
            f"Attention to {CATEGORIES[category]} in layer {layer}, mean over heads", NORMS,
            _layer("attention", category, layer), (Published(text, "read", FIGURE_3),),
        )
        for category, layer, text in read
    ]  # fmt: skip
    peaks = (
        ("cls", "early layers attend to [CLS]", 0.0, 0.4, "layers 1 to 5 of 12"),
        ("sep", "middle layers attend to [SEP]", 0.3, 0.85, "layers 5 to 10 of 12"),
        ("punctuation", "deep layers attend to “.” and “,”", 0.7, 1.0, "layers 9 to 12 of 12"),
    )
    lines += [
        Line(
            f"figure3a-{category}-peak", "Figure 3a", f"By weights, {claim}: layer of the most",
            NORMS, _peak(category, first, last),
            direction=f"the layer of most attention is at the depth of {where}",
        )
        for category, claim, first, last, where in peaks
    ]  # fmt: skip
    return tuple(lines)


def _figure_3b() -> tuple[Line, ...]:
    read = ((1, "3.4"), (8, "1.75"), (10, "2.35"), (12, "1.75"))
    lines = [
        Line(
            f"figure3b-other-{layer}", "Figure 3b",
            f"‖αf(x)‖ of other tokens in layer {layer}, mean over heads", NORMS,
            _layer("weighted_norm", "other", layer), (Published(text, "read", FIGURE_3B),),
        )
        for layer, text in read
    ]  # fmt: skip
    special = "‖αf(x)‖ of special tokens and punctuation stays low in all layers: the largest"
    above = "By norms, other tokens contribute more than any of [CLS], [SEP], punctuation"
    return (
        *lines,
        Line("figure3b-special", "Figure 3b", special, NORMS, _special_low,
             (Published("≤ 0.4", "read", FIGURE_3B),),
             direction="in every layer below half of that of other tokens"),
        Line("figure3b-above", "Figure 3b", above + ": least difference of a layer", NORMS,
             _other_above, direction="the difference is above 0 in the layer where it is least"),
    )  # fmt: skip


# --- Table 2 and frequency -------------------------------------------------------------------


def _cancellation(category: str) -> Measure:
    def measure(results: Results) -> Answer:
        norms = results.group("norms", "norms")
        value, low, high = ends(norms, "spearman_attention_value_norm", category=category)
        below = high if np.isfinite(high) else value
        return Answer(value, low, high, counted(results.run("norms")), holds=bool(below < 0))

    return measure


def _strongest(results: Results) -> Answer:
    norms = results.group("norms", "norms")
    found = {c: ends(norms, "spearman_attention_value_norm", category=c)[0] for c in CATEGORIES}
    order = sorted((value, c) for c, value in found.items() if np.isfinite(value))
    if not order:
        raise NotRun("the correlation does not exist for any category")
    shown = ", ".join(f"{CATEGORIES[c]} {fixed(v, 2)}" for v, c in order)
    holds = order[0][1] == "sep" and order[-1][1] == "other"
    return Answer(n=counted(results.run("norms")), holds=holds, shown=shown)


def _frequency(quantity: str) -> Measure:
    def measure(results: Results) -> Answer:
        run, norms = more.ranked_run(results), results.group("norms", "norms")
        value, low, high = ends(norms, "spearman_frequency", quantity=quantity)
        holds = None
        if quantity == "value_norm":
            other = ends(norms, "spearman_frequency", quantity="attention")
            holds = bool(low > 0 and low > other[2])
        return Answer(value, low, high, counted(run), holds=holds)

    return measure


def _table_2() -> tuple[Line, ...]:
    rows = (("cls", "−0.34"), ("sep", "−0.69"), ("punctuation", "−0.25"), ("other", "−0.06"))
    lines = [
        Line(
            f"table2-{category}", "Table 2",
            f"Spearman’s ρ of α and ‖f(x)‖: {CATEGORIES[category]}", NORMS,
            _cancellation(category), (Published(text, "read"),),
            direction="the interval lies below 0",
        )
        for category, text in rows
    ]  # fmt: skip
    order = "Cancellation is strongest at [SEP] and weakest at other tokens"
    return (
        *lines,
        Line("table2-order", "Table 2", order, NORMS, _strongest,
             direction="[SEP] has the lowest ρ and other tokens the highest"),
    )  # fmt: skip


def _frequencies() -> tuple[Line, ...]:
    return (
        Line("frequency-norm", "frequency", "Spearman’s ρ of ‖f(x)‖ with frequency rank", NORMS,
             _frequency("value_norm"), (Published("0.75", "read"),),
             direction="the interval lies above 0, and above that of α"),
        Line("frequency-attention", "frequency", "Spearman’s ρ of α with frequency rank", NORMS,
             _frequency("attention"), (Published("0.06", "read"),)),
    )  # fmt: skip


PAPER = Paper(
    "kobayashi2020",
    "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms",
    KOBAYASHI20,
    "google-bert/bert-base-uncased",
    ("bert-base-uncased",),
    (
        Section("data", "The data", "992 segments of Wikipedia, those of Clark et al. (2019), with "
                "segment ids 0 and 1.", more.data()),
        Section("table1", "Dispersion of ‖f(x)‖", "The length of the vector that a head would add "
                "for a token varies from token to token, so weights alone do not say what is "
                "gathered.", _table_1()),
        Section("figure3a", "What weights say", "By attention weights alone, special tokens and "
                "punctuation draw most.", _figure_3a(), (Shown("norms", "weight_against_norm",
                "Figure 3: weights (a), norms (b)"),)),
        Section("figure3b", "What norms say", "Once the vectors are weighed in, the same tokens "
                "contribute little.", _figure_3b()),
        Section("table2", "Why: weight and norm cancel", "Large weights fall on short vectors.",
                _table_2(), (Shown("norms", "cancellation"),)),
        Section("frequency", "Frequency", "Frequent words have short vectors, whatever attention "
                "they draw.", _frequencies(), (Shown("norms", "frequency"),)),
        Section("alignment", "Word alignment in translation", "In a translation model, norms align "
                "words better than weights do. AWO: a link is of the word that is generated, AWI: "
                "of the word that is read.", kobayashi_alignment.alignment(),
                (Shown("alignment", "alignment"),)),
        Section("mixing", "Appendix: mixing ratios (2021)", "The sequel adds the residual "
                f"connection and layer normalisation ({KOBAYASHI21}): most of a token stays "
                "itself. There 12 % of the tokens were masked; here none are.", more.sequel(),
                (Shown("norms", "mixing"),)),
    ),
)  # fmt: skip
