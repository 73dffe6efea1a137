"""Kobayashi et al. (2020): what they published of weights and norms, and all sections.

The mixing ratios of their sequel (2021) stand in an appendix, as one run gives both.
"""

from __future__ import annotations

import numpy as np

from headscope.core.accumulators import Float64
from headscope.core.terms import KOBAYASHI20, KOBAYASHI21
from headscope.core.wording import fixed
from headscope.papers.claim_engine import (
    ClaimGroup,
    Paper,
    PaperClaim,
    PaperFigure,
    Published,
    claim_measure,
)
from headscope.papers.quantities import (
    MIXING,
    NORMS,
    Measured,
    PaperRuns,
    Unmeasured,
    counted,
    layer_at,
    measured,
    mixing_ratio,
    norms,
    paper_head,
    place_name,
    stored,
    surely_above,
    upper_end,
)
from headscope.papers.reproduce.kobayashi2020_alignment import ALIGNMENT
from headscope.run.finished_run import Run

TEXT = (NORMS,)  # the run on texts
FIGURE_3A = 0.03  # how far our reading of Figure 3a may be wrong
FIGURE_3B = 0.1  # and of Figure 3b
CATEGORIES = {"cls": "[CLS]", "sep": "[SEP]", "punctuation": "“.” and “,”", "other": "other tokens"}
LEAST_CV = 0.1  # ours: a spread of a tenth of the mean is a spread


# --- the data --------------------------------------------------------------------------------


@claim_measure
def _count(runs: PaperRuns, what: str, expected: int) -> Measured:
    tokens = runs.results("tokens", "tokens")
    value = float(tokens[what])
    detail = "" if value.is_integer() else fixed(value, 4)
    n = f"{int(tokens['inputs']):,} inputs"
    return Measured(value, n=n, holds=value == expected, detail=detail)


COUNTS = (
    ("inputs", "Segments", 992),
    ("tokens", "Tokens of all segments", 121_134),
    ("separators", "[SEP] of a segment, mean", 2),
    ("punctuation_pairs", "Pairs of a token and a “.” or “,”, behind Table 2", 1_269_712),
    ("other_pairs", "Pairs of a token and another token, behind Table 2", 13_506_446),
)
DATA = ClaimGroup(
    "data", "The data",
    "992 segments of Wikipedia, those of Clark et al. (2019), with segment ids 0 and 1.",
    tuple(
        PaperClaim(f"data-{key}", "data", words, ("tokens",), _count(key, expected),
                   (Published(f"{expected:,}", "code"),), direction="the same number: then the "
                   "text is, as far as this shows, the released one")
        for key, words, expected in COUNTS
    ),
)  # fmt: skip


# --- Table 1: dispersion of ‖f(x)‖ -----------------------------------------------------------


@claim_measure
def _at_head(runs: PaperRuns, variable: str, head: tuple[int, int], *, most: bool) -> Measured:
    """A number of the paper's head; in another model, of the one whose norms vary most or least."""
    run = runs.run(NORMS)
    spread = norms(run, "value_norm_cv")[0]
    layer, head_at = paper_head(runs, spread if most else -spread, head)
    number = stored(runs.results(NORMS, NORMS).isel(layer=layer, head=head_at), variable)
    return Measured(*number, counted(run), detail=f"of {place_name(layer, head_at)}")


@claim_measure
def _over_heads(runs: PaperRuns, variable: str) -> Measured:
    run = runs.run(NORMS)
    above = LEAST_CV if variable == "value_norm_cv" else None
    return measured(norms(run, variable).mean((1, 2)), run, above=above)


def _table_1() -> tuple[PaperClaim, ...]:
    names = {
        "value_norm_mean": "μ", "value_norm_sd": "σ", "value_norm_cv": "CV",
        "value_norm_max": "largest", "value_norm_min": "smallest",
    }  # fmt: skip
    largest = {name: _at_head(name, (1, 3), most=True) for name in names}
    smallest = {name: _at_head(name, (1, 6), most=False) for name in names}
    mean = {name: _over_heads(name) for name in names}
    rows = (
        ("head-2-4", "head 2-4, of the largest CV", largest,
         ("4.26", "1.59", "0.37", "12.66", "0.96")),
        ("head-2-7", "head 2-7, of the smallest CV", smallest,
         ("4.00", "0.50", "0.12", "6.15", "1.35")),
        ("mean", "mean over heads", mean, ("5.15", "1.17", "0.22")),
    )  # fmt: skip
    directions = {"mean-CV": f"the interval of the mean CV lies above {LEAST_CV}"}
    return tuple(
        PaperClaim(f"table1-{key}-{letter}", "Table 1", f"{letter} of ‖f(x)‖: {words}", TEXT,
                   measures[name], (Published(text, "read"),),
                   direction=directions.get(f"{key}-{letter}", ""))
        for key, words, measures, values in rows
        for (name, letter), text in zip(names.items(), values, strict=False)
    )  # fmt: skip


DISPERSION = ClaimGroup(
    "table1", "Dispersion of ‖f(x)‖",
    "The length of the vector that a head would add for a token varies from token to token, so "
    "weights alone do not say what is gathered.", _table_1(),
)  # fmt: skip


# --- Figure 3: by category -------------------------------------------------------------------


@claim_measure
def _layer(runs: PaperRuns, variable: str, category: str, layer: int) -> Measured:
    """The mean over the heads of a layer (from 1; in another model, at the same depth)."""
    run = runs.run(NORMS)
    draws = norms(run, variable, category=category)  # [replicate + 1, layer, head]
    at = layer_at(layer, draws.shape[1])
    detail = "" if at == layer - 1 else f"layer {at + 1}"
    return measured(draws[:, at].mean(1), run, detail=detail)


def _curves(runs: PaperRuns, variable: str) -> dict[str, Float64]:
    """category → [replicate + 1, layer], the mean over heads."""
    return {c: norms(runs.run(NORMS), variable, category=c).mean(2) for c in CATEGORIES}


@claim_measure
def _peak(runs: PaperRuns, category: str, first: float, last: float) -> Measured:
    """In which layer a category draws most attention, and whether between two shares of depth."""
    curve = _curves(runs, "attention")[category][0]  # [layer]
    at = int(np.nanargmax(curve))
    holds = first <= at / max(len(curve) - 1, 1) <= last
    detail = f"most in layer {at + 1} of {len(curve)}, {fixed(float(curve[at]), 2)}"
    return Measured(at + 1, n=counted(runs.run(NORMS)), holds=holds, detail=detail)


def _other_above(runs: PaperRuns) -> Measured:
    """How far ‖αf‖ of other tokens stands above that of any other category, at its least."""
    curves = _curves(runs, "weighted_norm")
    gap = curves["other"] - _largest_special(curves)  # [replicate + 1, layer]
    at = int(np.nanargmin(gap[0]))
    return measured(gap[:, at], runs.run(NORMS), above=0.0, detail=f"least in layer {at + 1}")


def _special_low(runs: PaperRuns) -> Measured:
    """The largest ‖αf‖ of special tokens and punctuation in any layer."""
    curves = _curves(runs, "weighted_norm")
    top = _largest_special(curves)
    most = float(np.nanmax((top / curves["other"])[0]))
    at = int(np.nanargmax(top[0]))
    detail = f"layer {at + 1}; at most {fixed(most, 2)} of other tokens’"
    return measured(top[:, at], runs.run(NORMS), holds=most < 0.5, detail=detail)


def _largest_special(curves: dict[str, Float64]) -> Float64:
    """[replicate + 1, layer] the largest of [CLS], [SEP] and punctuation."""
    return np.asarray(np.fmax.reduce([curves[c] for c in ("cls", "sep", "punctuation")]))


READ_3A = (
    ("cls", 2, "0.27"), ("cls", 3, "0.25"), ("cls", 6, "0.00"), ("sep", 5, "0.45"),
    ("sep", 6, "0.55–0.60"), ("sep", 7, "0.55–0.60"), ("sep", 8, "0.55–0.60"),
    ("sep", 9, "0.55–0.60"), ("sep", 10, "0.50"), ("sep", 11, "0.10"), ("sep", 12, "0.10"),
    ("punctuation", 11, "0.48"), ("punctuation", 12, "0.56"), ("other", 1, "0.86"),
    ("other", 12, "0.34"),
)  # fmt: skip
PEAKS = (
    ("cls", "early layers attend to [CLS]", 0.0, 0.4, "layers 1 to 5 of 12"),
    ("sep", "middle layers attend to [SEP]", 0.3, 0.85, "layers 5 to 10 of 12"),
    ("punctuation", "deep layers attend to “.” and “,”", 0.7, 1.0, "layers 9 to 12 of 12"),
)
WEIGHTS = ClaimGroup(
    "figure3a", "What weights say",
    "By attention weights alone, special tokens and punctuation draw most.", (
        *(PaperClaim(f"figure3a-{category}-{layer}", "Figure 3a",
                     f"Attention to {CATEGORIES[category]} in layer {layer}, mean over heads", TEXT,
                     _layer("attention", category, layer), (Published(text, "read", FIGURE_3A),))
          for category, layer, text in READ_3A),
        *(PaperClaim(f"figure3a-{category}-peak", "Figure 3a",
                     f"By weights, {claim}: layer of the most", TEXT, _peak(category, first, last),
                     direction=f"the layer of most attention is at the depth of {where}")
          for category, claim, first, last, where in PEAKS),
    ),
    (PaperFigure(NORMS, "weight_against_norm", "Figure 3: weights (a), norms (b)"),),
)  # fmt: skip
READ_3B = ((1, "3.4"), (8, "1.75"), (10, "2.35"), (12, "1.75"))
VECTORS = ClaimGroup(
    "figure3b", "What norms say",
    "Once the vectors are weighed in, the same tokens contribute little.", (
        *(PaperClaim(f"figure3b-other-{layer}", "Figure 3b",
                     f"‖αf(x)‖ of other tokens in layer {layer}, mean over heads", TEXT,
                     _layer("weighted_norm", "other", layer), (Published(text, "read", FIGURE_3B),))
          for layer, text in READ_3B),
        PaperClaim("figure3b-special", "Figure 3b", "‖αf(x)‖ of special tokens and punctuation "
                   "stays low in all layers: the largest", TEXT, _special_low,
                   (Published("≤ 0.4", "read", FIGURE_3B),),
                   direction="in every layer below half of that of other tokens"),
        PaperClaim("figure3b-above", "Figure 3b", "By norms, other tokens contribute more than any "
                   "of [CLS], [SEP], punctuation: least difference of a layer", TEXT, _other_above,
                   direction="the difference is above 0 in the layer where it is least"),
    ),
)  # fmt: skip


# --- Table 2 and frequency -------------------------------------------------------------------


def _rho(runs: PaperRuns, category: str) -> tuple[float, float, float]:
    results = runs.results(NORMS, NORMS)
    return stored(results, "spearman_attention_value_norm", category=category)


@claim_measure
def _cancellation(runs: PaperRuns, category: str) -> Measured:
    number = _rho(runs, category)
    return Measured(*number, counted(runs.run(NORMS)), holds=upper_end(number) < 0)


def _strongest(runs: PaperRuns) -> Measured:
    values = {category: _rho(runs, category)[0] for category in CATEGORIES}
    order = sorted((value, c) for c, value in values.items() if np.isfinite(value))
    if not order:
        raise Unmeasured("the correlation does not exist for any category")
    detail = ", ".join(f"{CATEGORIES[c]} {fixed(v, 2)}" for v, c in order)
    holds = order[0][1] == "sep" and order[-1][1] == "other"
    return Measured(n=counted(runs.run(NORMS)), holds=holds, detail=detail)


def _ranked_run(runs: PaperRuns) -> Run:
    """The run of norms, if its ranks are those of a training corpus; else raises Unmeasured."""
    run = runs.run(NORMS)
    if not run.manifest.get("spec", {}).get("frequency"):
        raise Unmeasured(
            "needs frequency: ranks of this model’s own tokens, rank_count_ids.txt for BERT "
            "uncased; git clone https://github.com/gorokoba560/norm-analysis-of-transformer"
        )
    return run


@claim_measure
def _frequency(runs: PaperRuns, quantity: str) -> Measured:
    run, results = _ranked_run(runs), runs.results(NORMS, NORMS)
    value, low, high = stored(results, "spearman_frequency", quantity=quantity)
    holds = None
    if quantity == "value_norm":
        other = stored(results, "spearman_frequency", quantity="attention")
        holds = low > 0 and low > other[2]
    return Measured(value, low, high, counted(run), holds=holds)


CANCELLING = (("cls", "−0.34"), ("sep", "−0.69"), ("punctuation", "−0.25"), ("other", "−0.06"))
CANCELLATION = ClaimGroup(
    "table2", "Why: weight and norm cancel", "Large weights fall on short vectors.", (
        *(PaperClaim(f"table2-{category}", "Table 2",
                     f"Spearman’s ρ of α and ‖f(x)‖: {CATEGORIES[category]}", TEXT,
                     _cancellation(category), (Published(text, "read"),),
                     direction="the interval lies below 0")
          for category, text in CANCELLING),
        PaperClaim("table2-order", "Table 2", "Cancellation is strongest at [SEP] and weakest at "
                   "other tokens", TEXT, _strongest,
                   direction="[SEP] has the lowest ρ and other tokens the highest"),
    ),
    (PaperFigure(NORMS, "cancellation"),),
)  # fmt: skip
FREQUENCY = ClaimGroup(
    "frequency", "Frequency",
    "Frequent words have short vectors, whatever attention they draw.", (
        PaperClaim("frequency-norm", "frequency", "Spearman’s ρ of ‖f(x)‖ with frequency rank",
                   TEXT, _frequency("value_norm"), (Published("0.75", "read"),),
                   direction="the interval lies above 0, and above that of α"),
        PaperClaim("frequency-attention", "frequency", "Spearman’s ρ of α with frequency rank",
                   TEXT, _frequency("attention"), (Published("0.06", "read"),)),
    ),
    (PaperFigure(NORMS, "frequency"),),
)  # fmt: skip


# --- the sequel ------------------------------------------------------------------------------


@claim_measure
def _mixing(runs: PaperRuns, method: str, above: str) -> Measured:
    run = runs.run(NORMS)
    ratios = mixing_ratio(run, method).mean(1)
    holds = surely_above(mixing_ratio(run, above).mean(1) - ratios, run) if above else None
    return measured(ratios, run, holds=holds)


@claim_measure
def _rank_of_mixing(runs: PaperRuns, method: str) -> Measured:
    run = _ranked_run(runs)
    number = stored(runs.results(NORMS, MIXING), "spearman_frequency", method=method)
    return Measured(*number, counted(run), holds=upper_end(number) < 0)


METHODS = {
    "attn_w": "Attn-W", "attn_n": "Attn-N", "attnres_w": "AttnRes-W", "attnres_n": "AttnRes-N",
    "attnresln_n": "AttnResLn-N",
}  # fmt: skip
ORDERED = (  # method, the one that it lies below, values
    ("attn_w", "", (Published("97.1"), Published("96.41", "code", where="released notebook"))),
    ("attn_n", "attn_w", (Published("85.2"),)),
    ("attnres_w", "attn_n", (Published("48.6"),)),
    ("attnres_n", "attnres_w", (Published("22.3"),)),
    ("attnresln_n", "attnres_n", (Published("18.8"),)),
)
RANKED = (("res", "attnres_n", "−0.84"), ("resln", "attnresln_n", "−0.54"))
SEQUEL = ClaimGroup(
    MIXING, "Appendix: mixing ratios (2021)",
    f"The sequel adds the residual connection and layer normalisation ({KOBAYASHI21}): most of a "
    "token stays itself. There 12 % of the tokens were masked; here none are.", (
        *(PaperClaim(f"mixing-{method}", "2021, Wikipedia means", f"Mixing ratio by "
                     f"{METHODS[method]}", TEXT, _mixing(method, above), values, "%",
                     f"surely below {METHODS[above]}" if above else "")
          for method, above, values in ORDERED),
        *(PaperClaim(f"mixing-rank-{key}", "2021", f"Rank correlation of {METHODS[method]} with "
                     "frequency rank", TEXT, _rank_of_mixing(method), (Published(text),),
                     direction="the interval lies below 0: frequent tokens take more from others")
          for key, method, text in RANKED),
    ),
    (PaperFigure(NORMS, MIXING),),
)  # fmt: skip


PAPER = Paper(
    "kobayashi2020",
    "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms",
    KOBAYASHI20,
    "google-bert/bert-base-uncased",
    ("bert-base-uncased",),
    (DATA, DISPERSION, WEIGHTS, VECTORS, CANCELLATION, FREQUENCY, ALIGNMENT, SEQUEL),
)
