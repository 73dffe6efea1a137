"""Clark et al. (2019): what they published of attention itself, §3 and §6, and all sections."""

from dataclasses import replace

import numpy as np
from scipy.stats import spearmanr

from headscope.claims.bibliography import SOURCES
from headscope.claims.head_attention import NEXT, OFFSETS, PREVIOUS, SELF
from headscope.claims.terms import CLARK
from headscope.claims.verdict import above, below, beyond_chance, some_above
from headscope.core.accumulators import Float64, finite_mean, ratio
from headscope.core.intervals import CORRELATION, POSITIVE, SHARE
from headscope.core.results import largest_first, token_names
from headscope.core.wording import fixed
from headscope.papers import clark2019_language as language
from headscope.papers import quantities
from headscope.papers.claim_engine import ClaimGroup, Paper, PaperClaim, PaperFigure
from headscope.papers.clark2019_gallery import GALLERY
from headscope.papers.own_models import BERT_CASED, BERT_UNCASED
from headscope.papers.published import Published
from headscope.papers.quantities import Measured, PaperRun, Unmeasured

HALF = 0.5
LEAST_LAYERS = 4  # for a rank correlation over them
LITTLE = 0.1  # ours: of attention
THIRD = 1 / 3
MIDDLE = range(6, 11)  # layers 6 to 10
EARLY_LAYERS = range(1, 5)  # before the gradients of [SEP] fall, Figure 3


@quantities.reads("surface")
def _example(run: PaperRun, target: str, head: tuple[int, int]) -> Measured:
    """Attention of the paper's head to a target; in another model, of the head with most of it."""
    draws = run.attention(target)
    at = quantities.paper_head(run, draws[0], head)
    return run.measured(draws[:, at[0], at[1]], over=HALF, bounds=SHARE, detail=run.names.head(*at))


@quantities.reads("surface")
def _broad(run: PaperRun) -> Measured:
    """Entropy of head 1-1, of uniform attention's; in another model, the broadest of layer 1."""
    every = run.entropies("all")  # [replicate + 1, layer, head]
    head = 0 if run.beside.own else int(np.nanargmax(every[0, 0]))
    share = every[:, 0, head] / run.draws("entropy", "uniform")
    return run.measured(share, over=0.8, bounds=SHARE, detail=run.names.head(0, head))


@quantities.reads("surface")
def _many(run: PaperRun, target: str) -> Measured:
    draws = run.attention(target)
    there = [at for at in largest_first(draws[0]) if draws[0][at] > HALF]
    detail = ", ".join(run.names.head(*at) for at in sorted(there)[:8])
    return run.jumping(
        draws,
        lambda drawn: (drawn > HALF).sum((1, 2)) * 1.0,
        detail=detail,
        verdict=some_above(run.interval(draws, SHARE), HALF),
    )


@quantities.reads("surface")
def _little_on_self(run: PaperRun) -> Measured:
    draws = run.attention(SELF)
    number = run.jumping(draws, lambda drawn: np.asarray((drawn < LITTLE).mean((1, 2))))
    return replace(number, verdict=above(number.value, *number.ends, HALF))


SAME_HEAD = "the head, or in another model one that does it most, gives it more than half"
SOME_HEAD = "at least one head does"
NEIGHBOURS = ClaimGroup(
    "neighbours",
    "Relative position (§3.1)",
    "Most heads attend little to the token itself; some look at a neighbour.",
    (
        PaperClaim(
            "example-1-1",
            "Figure 1",
            "A head attends broadly (1-1): entropy, of uniform attention’s",
            _broad(),
            (),
            "%",
            "above 80 % of the entropy of uniform attention",
        ),
        PaperClaim(
            "example-3-1",
            "Figure 1",
            "A head attends to the next token (3-1)",
            _example(NEXT, (2, 0)),
            (),
            "%",
            SAME_HEAD,
        ),
        PaperClaim(
            "example-8-7",
            "Figure 1",
            "A head attends to [SEP] (8-7)",
            _example("sep", (7, 6)),
            (),
            "%",
            SAME_HEAD,
        ),
        PaperClaim(
            "example-11-6",
            "Figure 1",
            "A head attends to periods (11-6)",
            _example("punctuation", (10, 5)),
            (),
            "%",
            SAME_HEAD,
        ),
        PaperClaim(
            "self",
            "§3.1",
            "Most heads put little on the token itself: heads that give it below 10 %",
            _little_on_self(),
            (Published("> 50"),),
            "%",
            "more than half of the heads",
        ),
        PaperClaim(
            "previous",
            "§3.1",
            "Heads with more than half of their attention on the previous token (layers 2, 4, 7, "
            "8)",
            _many(PREVIOUS),
            (Published("4"),),
            "",
            SOME_HEAD,
        ),
        PaperClaim(
            "next",
            "§3.1",
            "Heads with more than half of their attention on the next token (layers 1, 2, 2, 3, 6)",
            _many(NEXT),
            (Published("5"),),
            "",
            SOME_HEAD,
        ),
    ),
)


@quantities.reads("surface")
def _middle(run: PaperRun, target: str, bound: float) -> Measured:
    draws = run.attention(target)
    at = sorted({quantities.layer_at(number, draws.shape[1]) for number in MIDDLE})
    detail = f"layers {at[0] + 1} to {at[-1] + 1}"
    mean = finite_mean(draws[:, at], (1, 2))
    return run.measured(mean, over=bound, bounds=SHARE, detail=detail)


@quantities.reads("surface")
def _depth(run: PaperRun, target: str, first: float, last: float) -> Measured:
    curve = run.attention(target).mean(2)  # [replicate + 1, layer]
    return run.peak(curve, first, last, quantities.percent_text)


@quantities.reads("gradients")
def _gradients_fall(run: PaperRun) -> Measured:
    """Gradients of edges to [SEP] in layers 5 and up, over those below."""
    magnitude = _separator_gradients(run, "magnitude")
    cut = quantities.layer_at(EARLY_LAYERS[-1], magnitude.shape[1]) + 1
    share = ratio(magnitude[:, cut:].mean(1), magnitude[:, :cut].mean(1))
    detail = f"layers {cut + 1} and up"
    return run.measured(share, bounds=POSITIVE, verdict=run.below(share, HALF), detail=detail)


@quantities.reads("gradients")
def _gradients_mirror(run: PaperRun) -> Measured:
    """Rank correlation over layers of gradients of [SEP] and attention to it."""
    curves = [_separator_gradients(run, name) for name in ("magnitude", "attention")]
    layers = curves[0].shape[1]
    if layers < LEAST_LAYERS:
        raise Unmeasured(f"needs a model of at least {LEAST_LAYERS} layers for a rank correlation")
    rho = np.array([spearmanr(*pair).statistic for pair in zip(*curves, strict=True)])
    detail = f"over {layers} layers"
    return run.measured(rho, bounds=CORRELATION, verdict=run.below(rho), detail=detail)


def _separator_gradients(run: PaperRun, name: str) -> Float64:
    """[replicate + 1, layer]"""
    return run.draws("gradients", f"layer_{name}", category="sep")


SEPARATORS = ClaimGroup(
    "separators",
    "Attending to separator tokens (§3.2)",
    "In the middle layers attention rests on [SEP], where it does little to the output.",
    (
        PaperClaim(
            "sep-middle",
            "§3.2",
            "More than half of attention goes to [SEP] in layers 6-10 (chance about 1/64)",
            _middle("sep", HALF),
            (Published("> 50"),),
            "%",
            "the interval lies above 50 %",
        ),
        PaperClaim(
            "sep-from-sep",
            "§3.2",
            "[SEP] attends to itself and the other [SEP], layers 6-10",
            _middle("sep_from_sep", 0.9),
            (Published("> 90"),),
            "%",
            "the interval lies above 90 %",
        ),
        PaperClaim(
            "early-cls",
            "§3.2",
            "Early layers attend to [CLS]: layer of the most",
            _depth("cls", 0.0, 0.4),
            direction="at the depth of layers 1 to 5 of 12",
        ),
        PaperClaim(
            "middle-sep",
            "§3.2",
            "Middle layers attend to [SEP]: layer of the most",
            _depth("sep", 0.3, 0.85),
            direction="at the depth of layers 5 to 10 of 12",
        ),
        PaperClaim(
            "deep-punctuation",
            "§3.2",
            "Deep layers attend to periods and commas: layer of the most",
            _depth("punctuation", 0.7, 1.0),
            direction="at the depth of layers 9 to 12 of 12",
        ),
        PaperClaim(
            "gradients-fall",
            "Figure 3",
            "From layer 5 on, attention to [SEP] hardly changes the loss: gradients there over "
            "those below",
            _gradients_fall(),
            direction="the interval lies below 0.5",
        ),
        PaperClaim(
            "gradients-mirror",
            "Figure 3",
            "Gradients of [SEP] are small where attention to it is high: rank correlation over "
            "layers",
            _gradients_mirror(),
            direction="the interval lies below 0",
        ),
    ),
)


@quantities.reads("surface")
def _last_cls(run: PaperRun) -> Measured:
    cls, every = (run.entropies(query)[:, -1].mean(1) for query in ("cls", "all"))
    uniform = fixed(float(run.draws("entropy", "uniform")[0]), 2)
    detail = f"uniform attention: {uniform} nats"
    return run.measured(cls, bounds=POSITIVE, verdict=run.above(cls - every), detail=detail)


@quantities.reads("surface")
def _lower_broad(run: PaperRun) -> Measured:
    """How much broader the broadest heads of the lower third are than those above."""
    every = run.entropies("all")
    cut = max(1, round(every.shape[1] * THIRD))
    gap = every[:, :cut].max((1, 2)) - every[:, cut:].max((1, 2))
    return run.measured(gap, over=0.0, detail=f"layers 1 to {cut}")


@quantities.reads("surface")
def _on_one_word(run: PaperRun) -> Measured:
    """The most that the broadest head of the lower third gives to any place that is measured."""
    every = run.entropies("all")[0]
    layer, head = largest_first(every[: max(1, round(len(every) * THIRD))])[0]
    targets = (*OFFSETS, "first", "cls")
    shares = {t: run.attention(t)[:, layer, head] for t in targets}
    top = max(targets, key=lambda t: float(np.nan_to_num(shares[t][0])))
    words = {"cls": token_names(run.tree)["cls"], "self": "itself"}
    named = words.get(top, f"the {top} token")
    detail = f"{run.names.head(layer, head)}, most on {named}; of the places measured"
    verdict = run.below(shares[top], LITTLE)
    return run.measured(shares[top], bounds=SHARE, verdict=verdict, detail=detail)


BREADTH = ClaimGroup(
    "entropy",
    "Focused and broad attention (§3.3)",
    "Some heads of the lower layers attend very broadly, and so does [CLS] in the last.",
    (
        PaperClaim(
            "entropy-low",
            "Figure 4",
            "The broadest heads are in the lower layers: their entropy above that of the broadest "
            "further up",
            _lower_broad(),
            (),
            "nats",
            "the interval lies above 0",
        ),
        PaperClaim(
            "entropy-one-word",
            "§3.3",
            "Such a head gives at most 10 % to any one word",
            _on_one_word(),
            (Published("≤ 10"),),
            "%",
            "of itself, its neighbours and [CLS], none gets more than 10 %",
        ),
        PaperClaim(
            "entropy-cls",
            "§3.3",
            "In the last layer, [CLS] attends broadly: mean entropy over heads",
            _last_cls(),
            (Published("3.89"),),
            "nats",
            "surely above that of all tokens in that layer",
        ),
    ),
)


@quantities.reads("surface")
def _same_layer(run: PaperRun) -> Measured:
    value, low, high = run.stored("divergence", "layer_js_ratio")
    p = run.stored("divergence", "layer_js_p")[0]
    if not np.isfinite(value):
        raise Unmeasured("needs heads of two layers or more")
    detail = f"p = {fixed(p, 3)}" if np.isfinite(p) else ""
    verdict = beyond_chance(below(value, low, high, 1.0), p)
    return Measured(value, low, high, run.counted, verdict=verdict, detail=detail)


@quantities.reads("surface")
def _nearest(run: PaperRun) -> Measured:
    value, (chance, *_), (p, *_) = (
        run.stored("divergence", f"nearest_{what}", where="same_layer")
        for what in ("layer", "chance", "p")
    )
    detail = f"chance {quantities.percent_text(chance)}, p = {fixed(p, 3)}"
    verdict = beyond_chance(above(*value, chance), p)
    return Measured(*value, run.counted, verdict=verdict, detail=detail)


CLUSTERS = ClaimGroup(
    "clusters",
    "Clustering heads (§6)",
    "Heads form groups that attend alike, often within a layer.",
    (
        PaperClaim(
            "clusters-layer",
            "§6",
            "Heads of a layer tend to be alike: divergence within layers over that between them",
            _same_layer(),
            direction="below 1, p < 0.05 when layers are dealt out anew",
        ),
        PaperClaim(
            "clusters-nearest",
            "§6",
            "Heads of a layer tend to be alike: heads whose nearest head is of their own layer",
            _nearest(),
            (),
            "%",
            "more than chance, p < 0.05",
        ),
    ),
    (PaperFigure("surface", "layers_alike"),),
)


PAPER = Paper(
    "clark2019",
    "What Does BERT Look At? An Analysis of BERT’s Attention",
    SOURCES[CLARK],
    BERT_UNCASED.id,
    (BERT_UNCASED, BERT_CASED),
    (
        NEIGHBOURS,
        SEPARATORS,
        BREADTH,
        language.TREEBANK,
        language.SYNTAX,
        language.COREFERENCE,
        language.PROBES,
        CLUSTERS,
    ),
    doubt="the paper hints at the cased model for its main figures, its released code at the "
    "uncased one; either is taken for its own",
    plates=GALLERY,
)
