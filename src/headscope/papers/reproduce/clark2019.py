"""Clark et al. (2019): what they published of attention itself, §3 and §6, and all sections."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import spearmanr

from headscope.core.accumulators import Float64, ratio
from headscope.core.terms import CLARK
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
    DIVERGENCE,
    ENTROPY,
    SURFACE,
    Measured,
    PaperRuns,
    Unmeasured,
    attention,
    counted,
    draws_of,
    entropies,
    largest_first,
    layer_at,
    layers_at,
    measured,
    over_heads,
    paper_head,
    percent_text,
    place_name,
    stored,
    surely_above,
    uniform_entropy,
)
from headscope.papers.reproduce import clark2019_language as language

TEXT = (SURFACE,)  # the run on texts
GRADIENTS = ("gradients",)
HALF = 0.5
LEAST_LAYERS = 4  # for a rank correlation over them
LITTLE = 0.1  # ours: of attention
THIRD = 1 / 3
MIDDLE = range(6, 11)  # layers 6 to 10
EARLY_LAYERS = range(1, 5)  # before the gradients of [SEP] fall, Figure 3


# --- §3.1: neighbours ------------------------------------------------------------------------


@claim_measure
def _example(runs: PaperRuns, target: str, head: tuple[int, int]) -> Measured:
    """Attention of the paper's head to a target; in another model, of the head with most of it."""
    run = runs.run(SURFACE)
    draws = attention(run, target)
    at = paper_head(runs, draws[0], head)
    return measured(draws[:, at[0], at[1]], run, above=HALF, detail=place_name(*at))


def _broad(runs: PaperRuns) -> Measured:
    """Entropy of head 1-1, of uniform attention's; in another model, the broadest of layer 1."""
    run = runs.run(SURFACE)
    every = entropies(run, "all")  # [replicate + 1, layer, head]
    head = 0 if runs.own else int(np.nanargmax(every[0, 0]))
    share = every[:, 0, head] / uniform_entropy(run)
    return measured(share, run, above=0.8, detail=place_name(0, head))


@claim_measure
def _many(runs: PaperRuns, target: str) -> Measured:
    """How many heads put more than half of their attention on a target, and where they are."""
    run = runs.run(SURFACE)
    draws = attention(run, target)
    count = (draws > HALF).sum((1, 2)).astype(np.float64)  # [replicate + 1]
    there = [at for at in largest_first(draws[0]) if draws[0][at] > HALF]
    detail = ", ".join(place_name(*at) for at in sorted(there)[:8])
    return measured(count, run, holds=bool(count[0] >= 1), detail=detail)


def _little_on_self(runs: PaperRuns) -> Measured:
    run = runs.run(SURFACE)
    draws = attention(run, "self")
    return measured((draws < LITTLE).mean((1, 2)), run, above=HALF)


SAME_HEAD = "the head, or in another model one that does it most, gives it more than half"
SOME_HEAD = "at least one head does"
NEIGHBOURS = ClaimGroup(
    "neighbours", "Relative position (§3.1)",
    "Most heads attend little to the token itself; some look at a neighbour.", (
        PaperClaim("example-1-1", "Figure 1", "A head attends broadly (1-1): entropy, of uniform "
                   "attention’s", TEXT, _broad, unit="%", direction="above 80 % of the entropy of "
                   "uniform attention"),
        PaperClaim("example-3-1", "Figure 1", "A head attends to the next token (3-1)", TEXT,
                   _example("next", (2, 0)), unit="%", direction=SAME_HEAD),
        PaperClaim("example-8-7", "Figure 1", "A head attends to [SEP] (8-7)", TEXT,
                   _example("sep", (7, 6)), unit="%", direction=SAME_HEAD),
        PaperClaim("example-11-6", "Figure 1", "A head attends to periods (11-6)", TEXT,
                   _example("punctuation", (10, 5)), unit="%", direction=SAME_HEAD),
        PaperClaim("self", "§3.1", "Most heads put little on the token itself: heads that give it "
                   "below 10 %", TEXT, _little_on_self, (Published("> 50"),), unit="%",
                   direction="more than half of the heads"),
        PaperClaim("previous", "§3.1", "Heads with more than half of their attention on the "
                   "previous token (layers 2, 4, 7, 8)", TEXT, _many("previous"), (Published("4"),),
                   direction=SOME_HEAD),
        PaperClaim("next", "§3.1", "Heads with more than half of their attention on the next token "
                   "(layers 1, 2, 2, 3, 6)", TEXT, _many("next"), (Published("5"),),
                   direction=SOME_HEAD),
    ),
)  # fmt: skip


# --- §3.2: separators ------------------------------------------------------------------------


@claim_measure
def _middle(runs: PaperRuns, target: str, bound: float) -> Measured:
    """Mean over the heads of layers 6 to 10."""
    run = runs.run(SURFACE)
    draws = attention(run, target)
    at = layers_at(MIDDLE, draws.shape[1])
    detail = f"layers {at[0] + 1} to {at[-1] + 1}"
    return measured(over_heads(draws[:, at]), run, above=bound, detail=detail)


@claim_measure
def _depth(runs: PaperRuns, target: str, first: float, last: float) -> Measured:
    """The layer that gives a target most, and whether it lies between two shares of depth."""
    curve = attention(runs.run(SURFACE), target)[0].mean(1)  # [layer]
    at = int(np.nanargmax(curve))
    depth = at / max(len(curve) - 1, 1)
    detail = f"most in layer {at + 1} of {len(curve)}, {percent_text(float(curve[at]))}"
    n = counted(runs.run(SURFACE))
    return Measured(at + 1, n=n, holds=first <= depth <= last, detail=detail)


def _gradients_fall(runs: PaperRuns) -> Measured:
    """Gradients of edges to [SEP] in layers 5 and up, over those below."""
    run = runs.run("gradients")
    magnitude = _separator_gradients(runs, "magnitude")
    cut = layer_at(EARLY_LAYERS[-1], magnitude.shape[1]) + 1
    share = ratio(magnitude[:, cut:].mean(1), magnitude[:, :cut].mean(1))
    below = surely_above(-share, run, -HALF)
    return measured(share, run, holds=below, detail=f"layers {cut + 1} and up")


def _gradients_mirror(runs: PaperRuns) -> Measured:
    """Rank correlation over layers of gradients of [SEP] and attention to it."""
    run = runs.run("gradients")
    curves = [_separator_gradients(runs, name) for name in ("magnitude", "attention")]
    layers = curves[0].shape[1]
    if layers < LEAST_LAYERS:
        raise Unmeasured(f"needs a model of at least {LEAST_LAYERS} layers for a rank correlation")
    rho = np.array([spearmanr(*pair).statistic for pair in zip(*curves, strict=True)])
    return measured(rho, run, holds=surely_above(-rho, run), detail=f"over {layers} layers")


def _separator_gradients(runs: PaperRuns, name: str) -> Float64:
    """[replicate + 1, layer]"""
    return draws_of(runs.results("gradients", "gradients"), f"layer_{name}", category="sep")


SEPARATORS = ClaimGroup(
    "separators", "Attending to separator tokens (§3.2)",
    "In the middle layers attention rests on [SEP], where it does little to the output.", (
        PaperClaim("sep-middle", "§3.2", "More than half of attention goes to [SEP] in layers 6-10 "
                   "(chance about 1/64)", TEXT, _middle("sep", HALF), (Published("> 50"),),
                   unit="%", direction="the interval lies above 50 %"),
        PaperClaim("sep-from-sep", "§3.2", "[SEP] attends to itself and the other [SEP], layers "
                   "6-10", TEXT, _middle("sep_from_sep", 0.9), (Published("> 90"),), unit="%",
                   direction="the interval lies above 90 %"),
        PaperClaim("early-cls", "§3.2", "Early layers attend to [CLS]: layer of the most", TEXT,
                   _depth("cls", 0.0, 0.4), direction="at the depth of layers 1 to 5 of 12"),
        PaperClaim("middle-sep", "§3.2", "Middle layers attend to [SEP]: layer of the most", TEXT,
                   _depth("sep", 0.3, 0.85), direction="at the depth of layers 5 to 10 of 12"),
        PaperClaim("deep-punctuation", "§3.2", "Deep layers attend to periods and commas: layer of "
                   "the most", TEXT, _depth("punctuation", 0.7, 1.0), direction="at the depth of "
                   "layers 9 to 12 of 12"),
        PaperClaim("gradients-fall", "Figure 3", "From layer 5 on, attention to [SEP] hardly "
                   "changes the loss: gradients there over those below", ("gradients",),
                   _gradients_fall, direction="the interval lies below 0.5"),
        PaperClaim("gradients-mirror", "Figure 3", "Gradients of [SEP] are small where attention "
                   "to it is high: rank correlation over layers", GRADIENTS, _gradients_mirror,
                   direction="the interval lies below 0"),
    ),
    (
        PaperFigure(SURFACE, "surface_by_layer", "Figure 2"),
        PaperFigure("gradients", "gradients", "Figure 3"),
    ),
)  # fmt: skip


# --- §3.3: entropy ---------------------------------------------------------------------------


def _last_cls(runs: PaperRuns) -> Measured:
    run = runs.run(SURFACE)
    cls, every = (entropies(run, query)[:, -1].mean(1) for query in ("cls", "all"))
    detail = f"uniform attention: {fixed(float(uniform_entropy(run)[0]), 2)} nats"
    return measured(cls, run, holds=surely_above(cls - every, run), detail=detail)


def _lower_broad(runs: PaperRuns) -> Measured:
    """How much broader the broadest heads of the lower third are than those above."""
    run = runs.run(SURFACE)
    every = entropies(run, "all")
    cut = max(1, round(every.shape[1] * THIRD))
    gap = every[:, :cut].max((1, 2)) - every[:, cut:].max((1, 2))
    return measured(gap, run, above=0.0, detail=f"layers 1 to {cut}")


def _on_one_word(runs: PaperRuns) -> Measured:
    """The most that the broadest head of the lower third gives to any place that is measured."""
    run = runs.run(SURFACE)
    every = entropies(run, "all")[0]
    cut = max(1, round(len(every) * THIRD))
    layer, head = largest_first(every[:cut])[0]
    targets = ("self", "previous", "next", "first", "cls")
    shares = {t: attention(run, t)[:, layer, head] for t in targets}
    top = max(targets, key=lambda t: float(np.nan_to_num(shares[t][0])))
    detail = f"{place_name(layer, head)}, most on {top}; of the places measured"
    number = measured(shares[top], run, detail=detail)
    most = number.high if np.isfinite(number.high) else number.value
    return replace(number, holds=bool(most <= LITTLE))


BREADTH = ClaimGroup(
    ENTROPY, "Focused and broad attention (§3.3)",
    "Some heads of the lower layers attend very broadly, and so does [CLS] in the last.", (
        PaperClaim("entropy-low", "Figure 4", "The broadest heads are in the lower layers: their "
                   "entropy above that of the broadest further up", TEXT, _lower_broad, unit="nats",
                   direction="the interval lies above 0"),
        PaperClaim("entropy-one-word", "§3.3", "Such a head gives at most 10 % to any one word",
                   TEXT, _on_one_word, (Published("≤ 10"),), unit="%", direction="of itself, its "
                   "neighbours and [CLS], none gets more than 10 %"),
        PaperClaim("entropy-cls", "§3.3", "In the last layer, [CLS] attends broadly: mean entropy "
                   "over heads", TEXT, _last_cls, (Published("3.89"),), unit="nats",
                   direction="surely above that of all tokens in that layer"),
    ),
    (PaperFigure(SURFACE, "entropy_by_layer", "Figure 4"),),
)  # fmt: skip


# --- §6: clusters ----------------------------------------------------------------------------


def _same_layer(runs: PaperRuns) -> Measured:
    divergence = runs.results(SURFACE, DIVERGENCE)
    value, low, high = stored(divergence, "layer_js_ratio")
    p = stored(divergence, "layer_js_p")[0]
    if not np.isfinite(value):
        raise Unmeasured("needs heads of two layers or more")
    detail = f"p = {fixed(p, 3)}" if np.isfinite(p) else ""
    n = counted(runs.run(SURFACE))
    return Measured(value, low, high, n, holds=bool(value < 1 and p < 0.05), detail=detail)


def _nearest(runs: PaperRuns) -> Measured:
    divergence = runs.results(SURFACE, DIVERGENCE)
    value = stored(divergence, "nearest_layer", where="same_layer")
    chance = stored(divergence, "nearest_chance", where="same_layer")[0]
    p = stored(divergence, "nearest_p", where="same_layer")[0]
    detail = f"chance {percent_text(chance)}, p = {fixed(p, 3)}"
    n = counted(runs.run(SURFACE))
    return Measured(*value, n=n, holds=bool(value[0] > chance and p < 0.05), detail=detail)


CLUSTERS = ClaimGroup(
    "clusters", "Clustering heads (§6)",
    "Heads form groups that attend alike, often within a layer.", (
        PaperClaim("clusters-layer", "§6", "Heads of a layer tend to be alike: divergence within "
                   "layers over that between them", TEXT, _same_layer,
                   direction="below 1, p < 0.05 when layers are dealt out anew"),
        PaperClaim("clusters-nearest", "§6", "Heads of a layer tend to be alike: heads whose "
                   "nearest head is of their own layer", TEXT, _nearest, unit="%",
                   direction="more than chance, p < 0.05"),
    ),
    (PaperFigure(SURFACE, "divergence_map"), PaperFigure(SURFACE, "layers_alike")),
)  # fmt: skip


PAPER = Paper(
    "clark2019",
    "What Does BERT Look At? An Analysis of BERT’s Attention",
    CLARK,
    "google-bert/bert-base-uncased",
    ("bert-base-uncased", "bert-base-cased"),
    (
        NEIGHBOURS, SEPARATORS, BREADTH, language.TREEBANK, language.SYNTAX, language.COREFERENCE,
        language.PROBES, CLUSTERS,
    ),
    doubt="the paper hints at the cased model for its main figures, its released code at the "
    "uncased one; either is taken for its own",
)  # fmt: skip
