"""Kobayashi et al. (2020): what they published of weights and norms, and all sections.

The mixing ratios of their sequel (2021) stand in an appendix, as one run gives both.
"""

from functools import partial

import numpy as np

from headscope.claims.bibliography import SOURCES
from headscope.claims.terms import KOBAYASHI20, KOBAYASHI21
from headscope.claims.verdict import above, all_of, below
from headscope.core.accumulators import Float64
from headscope.core.intervals import POSITIVE, SHARE
from headscope.core.wording import fixed
from headscope.papers import quantities
from headscope.papers.claim_engine import ClaimGroup, Paper, PaperClaim, PaperFigure
from headscope.papers.kobayashi2020_alignment import ALIGNMENT
from headscope.papers.kobayashi2020_gallery import GALLERY
from headscope.papers.own_models import BERT_UNCASED
from headscope.papers.published import Published
from headscope.papers.quantities import RULE, Measured, PaperRun, Unmeasured

FIGURE_3A = 0.03  # how far our reading of Figure 3a may be wrong
FIGURE_3B = 0.1  # and of Figure 3b
CATEGORIES = {"cls": "[CLS]", "sep": "[SEP]", "punctuation": "“.” and “,”", "other": "other tokens"}
HALF = 0.5
LEAST_CV = 0.1  # ours: a spread of a tenth of the mean is a spread


@quantities.reads("tokens", about=RULE)
def _count(run: PaperRun, what: str) -> Measured:
    tokens = run.results("tokens")
    value = float(tokens[what])
    detail = "" if value.is_integer() else f"exactly {fixed(value, 4)}"
    n = f"{int(tokens['inputs']):,} inputs"
    return Measured(value, n=n, detail=detail, exact=True)


COUNTS = (
    ("inputs", "Segments", 992),
    ("tokens", "Tokens of all segments", 121_134),
    ("separators", "[SEP] of a segment, mean", 2),
    ("punctuation_pairs", "Pairs of a token and a “.” or “,”, behind Table 2", 1_269_712),
    ("other_pairs", "Pairs of a token and another token, behind Table 2", 13_506_446),
)
DATA = ClaimGroup(
    "data",
    "The data",
    "992 segments of Wikipedia, those of Clark et al. (2019), with segment ids 0 and 1. Where all "
    "numbers are the same the text is, as far as this shows, the released one.",
    tuple(
        PaperClaim(f"data-{key}", "data", words, _count(key), (Published(f"{expected:,}", "code"),))
        for key, words, expected in COUNTS
    ),
)


@quantities.reads("norms")
def _at_head(run: PaperRun, variable: str, head: tuple[int, int], *, most: bool) -> Measured:
    """A number of the paper's head; in another model, of the one whose norms vary most or least."""
    spread = run.draws("norms", "value_norm_cv")[0]
    layer, head_at = quantities.paper_head(run, spread if most else -spread, head)
    number = quantities.stored(run.results("norms").isel(layer=layer, head=head_at), variable)
    return Measured(*number, run.counted, detail=f"of {run.names.head(layer, head_at)}")


@quantities.reads("norms")
def _over_heads(run: PaperRun, variable: str) -> Measured:
    over = LEAST_CV if variable == "value_norm_cv" else None
    return run.measured(run.draws("norms", variable).mean((1, 2)), over=over, bounds=POSITIVE)


def _table_1() -> tuple[PaperClaim, ...]:
    names = {"mean": "μ", "sd": "σ", "cv": "CV", "max": "largest", "min": "smallest"}
    rows = (  # key, words, the paper's head from 0 and whether its CV is the largest, values
        ("head-2-4", "head 2-4, of the largest CV", ((1, 3), True), "4.26 1.59 0.37 12.66 0.96"),
        ("head-2-7", "head 2-7, of the smallest CV", ((1, 6), False), "4.00 0.50 0.12 6.15 1.35"),
        ("mean", "mean over heads", None, "5.15 1.17 0.22"),
    )
    claims = []
    for key, words, head, values in rows:
        for (name, letter), text in zip(names.items(), values.split(), strict=False):
            variable, whole = f"value_norm_{name}", f"table1-{key}-{letter}"
            stated = whole == "table1-mean-CV"
            claims.append(
                PaperClaim(
                    whole,
                    "Table 1",
                    f"{letter} of ‖f(x)‖: {words}",
                    _at_head(variable, head[0], most=head[1]) if head else _over_heads(variable),
                    (Published(text, "read"),),
                    direction=f"the interval of the mean CV lies above {LEAST_CV}" * stated,
                )
            )
    return tuple(claims)


DISPERSION = ClaimGroup(
    "table1",
    "Dispersion of ‖f(x)‖",
    "The length of the vector that a head would add for a token varies from token to token, so "
    "weights alone do not say what is gathered.",
    _table_1(),
)


@quantities.reads("norms")
def _layer(run: PaperRun, variable: str, category: str, layer: int) -> Measured:
    """The mean over the heads of a layer (from 1; in another model, at the same depth)."""
    draws = run.draws("norms", variable, category=category)  # [replicate + 1, layer, head]
    at = quantities.layer_at(layer, draws.shape[1])
    detail = "" if at == layer - 1 else f"layer {at + 1}"
    return run.measured(draws[:, at].mean(1), bounds=POSITIVE, detail=detail)


def _curves(run: PaperRun, variable: str) -> dict[str, Float64]:
    """category → [replicate + 1, layer], the mean over heads."""
    return {c: run.draws("norms", variable, category=c).mean(2) for c in CATEGORIES}


@quantities.reads("norms")
def _peak(run: PaperRun, category: str, first: float, last: float) -> Measured:
    curve = _curves(run, "attention")[category]  # [replicate + 1, layer]
    return run.peak(curve, first, last, partial(fixed, digits=2))


@quantities.reads("norms")
def _other_above(run: PaperRun) -> Measured:
    """How far ‖αf‖ of other tokens stands above that of any other category, at its least."""
    curves = _curves(run, "weighted_norm")
    gap = curves["other"] - _largest_special(curves)  # [replicate + 1, layer]
    at = int(np.nanargmin(gap[0]))
    return run.measured(gap[:, at], over=0.0, detail=f"least in layer {at + 1}")


@quantities.reads("norms")
def _special_low(run: PaperRun) -> Measured:
    """The largest ‖αf‖ of special tokens and punctuation in any layer."""
    curves = _curves(run, "weighted_norm")
    top = _largest_special(curves)
    share = top / curves["other"]  # [replicate + 1, layer]
    at, most = int(np.nanargmax(top[0])), int(np.nanargmax(share[0]))
    detail = f"layer {at + 1}; at most {fixed(float(share[0, most]), 2)} of other tokens’"
    verdict = run.below(share[:, most], HALF)
    return run.measured(top[:, at], bounds=POSITIVE, verdict=verdict, detail=detail)


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
    "figure3a",
    "What weights say",
    "By attention weights alone, special tokens and punctuation draw most.",
    (
        *(
            PaperClaim(
                f"figure3a-{category}-{layer}",
                "Figure 3a",
                f"Attention to {CATEGORIES[category]} in layer {layer}, mean over heads",
                _layer("attention", category, layer),
                (Published(text, "read", FIGURE_3A),),
            )
            for category, layer, text in READ_3A
        ),
        *(
            PaperClaim(
                f"figure3a-{category}-peak",
                "Figure 3a",
                f"By weights, {claim}: layer of the most",
                _peak(category, first, last),
                direction=f"the layer of most attention is at the depth of {where}",
            )
            for category, claim, first, last, where in PEAKS
        ),
    ),
)
READ_3B = ((1, "3.4"), (8, "1.75"), (10, "2.35"), (12, "1.75"))
VECTORS = ClaimGroup(
    "figure3b",
    "What norms say",
    "Once the vectors are weighed in, the same tokens contribute little.",
    (
        *(
            PaperClaim(
                f"figure3b-other-{layer}",
                "Figure 3b",
                f"‖αf(x)‖ of other tokens in layer {layer}, mean over heads",
                _layer("weighted_norm", "other", layer),
                (Published(text, "read", FIGURE_3B),),
            )
            for layer, text in READ_3B
        ),
        PaperClaim(
            "figure3b-special",
            "Figure 3b",
            "‖αf(x)‖ of special tokens and punctuation stays low in all layers: the largest",
            _special_low(),
            (Published("≤ 0.4", "read", FIGURE_3B),),
            direction="in every layer below half of that of other tokens",
        ),
        PaperClaim(
            "figure3b-above",
            "Figure 3b",
            "By norms, other tokens contribute more than any of [CLS], [SEP], punctuation: least "
            "difference of a layer",
            _other_above(),
            direction="the difference is above 0 in the layer where it is least",
        ),
    ),
)


def _rho(run: PaperRun, category: str) -> tuple[float, float, float]:
    return run.stored("norms", "spearman_attention_value_norm", category=category)


@quantities.reads("norms")
def _cancellation(run: PaperRun, category: str) -> Measured:
    number = _rho(run, category)
    return Measured(*number, run.counted, verdict=below(*number))


@quantities.reads("norms")
def _strongest(run: PaperRun) -> Measured:
    numbers = {category: _rho(run, category) for category in CATEGORIES}
    order = sorted((one[0], c) for c, one in numbers.items() if np.isfinite(one[0]))
    if len(order) < len(numbers):
        raise Unmeasured("the correlation does not exist for every category")
    detail = ", ".join(f"{CATEGORIES[c]} {fixed(v, 2)}" for v, c in order)
    sep, other = numbers.pop("sep"), numbers["other"]
    gaps = [quantities.less(one, sep) for one in numbers.values()]
    gaps += [quantities.less(other, numbers[c]) for c in ("cls", "punctuation")]
    verdict = all_of(above(*gap) for gap in gaps)
    return Measured(n=run.counted, verdict=verdict, detail=detail)


def _check_ranks(run: PaperRun) -> None:
    """Raises Unmeasured unless the ranks of the run are those of a training corpus."""
    if not run.manifest.get("spec", {}).get("frequency"):
        raise Unmeasured(
            "needs frequency: ranks of this model’s own tokens, rank_count_ids.txt for BERT "
            "uncased; git clone https://github.com/gorokoba560/norm-analysis-of-transformer"
        )


@quantities.reads("norms")
def _frequency(run: PaperRun, quantity: str) -> Measured:
    _check_ranks(run)
    number = run.stored("norms", "spearman_frequency", quantity=quantity)
    verdict = None
    if quantity == "value_norm":
        other = run.stored("norms", "spearman_frequency", quantity="attention")
        verdict = all_of([above(*number), above(*quantities.less(number, other))])
    return Measured(*number, run.counted, verdict=verdict)


CANCELLING = (("cls", "−0.34"), ("sep", "−0.69"), ("punctuation", "−0.25"), ("other", "−0.06"))
CANCELLATION = ClaimGroup(
    "table2",
    "Why: weight and norm cancel",
    "Large weights fall on short vectors.",
    (
        *(
            PaperClaim(
                f"table2-{category}",
                "Table 2",
                f"Spearman’s ρ of α and ‖f(x)‖: {CATEGORIES[category]}",
                _cancellation(category),
                (Published(text, "read"),),
                direction="the interval lies below 0",
            )
            for category, text in CANCELLING
        ),
        PaperClaim(
            "table2-order",
            "Table 2",
            "Cancellation is strongest at [SEP] and weakest at other tokens",
            _strongest(),
            direction="[SEP] has the lowest ρ and other tokens the highest",
        ),
    ),
)
FREQUENCY = ClaimGroup(
    "frequency",
    "Frequency",
    "Frequent words have short vectors, whatever attention they draw.",
    (
        PaperClaim(
            "frequency-norm",
            "frequency",
            "Spearman’s ρ of ‖f(x)‖ with frequency rank",
            _frequency("value_norm"),
            (Published("0.75", "read"),),
            direction="the interval lies above 0, and above that of α",
        ),
        PaperClaim(
            "frequency-attention",
            "frequency",
            "Spearman’s ρ of α with frequency rank",
            _frequency("attention"),
            (Published("0.06", "read"),),
        ),
    ),
)


@quantities.reads("norms")
def _mixing(run: PaperRun, method: str, lies_below: str) -> Measured:
    ratios = run.draws("mixing", "ratio", variant=method).mean(1)
    verdict = None
    if lies_below:
        other = run.draws("mixing", "ratio", variant=lies_below).mean(1)
        verdict = run.below(ratios - other)
    return run.measured(ratios, bounds=SHARE, verdict=verdict)


@quantities.reads("norms")
def _rank_of_mixing(run: PaperRun, method: str) -> Measured:
    _check_ranks(run)
    number = run.stored("mixing", "spearman_frequency", variant=method)
    return Measured(*number, run.counted, verdict=below(*number))


METHODS = {
    "attn_w": "Attn-W",
    "attn_n": "Attn-N",
    "attnres_w": "AttnRes-W",
    "attnres_n": "AttnRes-N",
    "attnresln_n": "AttnResLn-N",
}
ORDERED = (  # method, the one that it lies below, values
    ("attn_w", "", (Published("97.1"), Published("96.41", "code", where="released notebook"))),
    ("attn_n", "attn_w", (Published("85.2"),)),
    ("attnres_w", "attn_n", (Published("48.6"),)),
    ("attnres_n", "attnres_w", (Published("22.3"),)),
    ("attnresln_n", "attnres_n", (Published("18.8"),)),
)
RANKED = (("res", "attnres_n", "−0.84"), ("resln", "attnresln_n", "−0.54"))
SEQUEL = ClaimGroup(
    "mixing",
    "Appendix: mixing ratios (2021)",
    f"The sequel adds the residual connection and layer normalisation ({KOBAYASHI21}): most of a "
    "token stays itself. There 12 % of the tokens were masked; here none are.",
    (
        *(
            PaperClaim(
                f"mixing-{method}",
                "2021, Wikipedia means",
                f"Mixing ratio by {METHODS[method]}",
                _mixing(method, upper),
                values,
                "%",
                f"surely below {METHODS[upper]}" if upper else "",
            )
            for method, upper, values in ORDERED
        ),
        *(
            PaperClaim(
                f"mixing-rank-{key}",
                "2021",
                f"Rank correlation of {METHODS[method]} with frequency rank",
                _rank_of_mixing(method),
                (Published(text),),
                direction="the interval lies below 0: frequent tokens take more from others",
            )
            for key, method, text in RANKED
        ),
    ),
    (PaperFigure("norms", "mixing"),),
)


PAPER = Paper(
    "kobayashi2020",
    "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms",
    SOURCES[KOBAYASHI20],
    BERT_UNCASED.id,
    (BERT_UNCASED,),
    (DATA, DISPERSION, WEIGHTS, VECTORS, CANCELLATION, FREQUENCY, ALIGNMENT, SEQUEL),
    plates=GALLERY,
)
