"""What did Clark et al. (2019) see on the surface of attention, §3 and §6, and how is it read?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headscope.core.accumulators import Float64, ratio
from headscope.core.wording import fixed
from headscope.papers.reproduce.line import Answer, Line, NotRun, Published, Results
from headscope.papers.reproduce.reading import (
    answer,
    counted,
    drawn,
    ends,
    layer_at,
    layers_at,
    named,
    over_heads,
    paper_head,
    percent,
    places_of,
    surely_above,
)

SURFACE = ("surface",)
HALF = 0.5
LEAST_LAYERS = 4  # for a rank correlation over them
LITTLE = 0.1  # ours: of attention
THIRD = 1 / 3
MIDDLE = range(6, 11)  # layers 6 to 10
EARLY_LAYERS = range(1, 5)  # before the gradients of [SEP] fall, Figure 3
Measure = Callable[[Results], Answer]


def _heads(results: Results, target: str) -> Float64:
    """[replicate + 1, layer, head] attention to a target."""
    return drawn(results.group("surface", "surface"), "attention", target=target)


# --- §3.1: neighbours ------------------------------------------------------------------------


def _example(target: str, head: tuple[int, int]) -> Measure:
    """Attention of the paper's head to a target; in another model, of the head with most of it."""

    def measure(results: Results) -> Answer:
        run, draws = results.run("surface"), _heads(results, target)
        at = paper_head(results, draws[0], head)
        share = draws[:, at[0], at[1]]
        return answer(share, run, holds=surely_above(share, run, HALF), shown=named(*at))

    return measure


def _broad(results: Results) -> Answer:
    """Entropy of head 1-1, of uniform attention's; in another model, the broadest of layer 1."""
    run, entropy = results.run("surface"), results.group("surface", "entropy")
    every = drawn(entropy, "entropy", query="all")  # [replicate + 1, layer, head]
    uniform = drawn(entropy, "uniform")
    head = 0 if results.own else int(np.nanargmax(every[0, 0]))
    ratio = every[:, 0, head] / uniform
    return answer(ratio, run, holds=surely_above(ratio, run, 0.8), shown=named(0, head))


def _many(target: str) -> Measure:
    """How many heads put more than half of their attention on a target, and where they are."""

    def measure(results: Results) -> Answer:
        run, draws = results.run("surface"), _heads(results, target)
        count = (draws > HALF).sum((1, 2)).astype(np.float64)  # [replicate + 1]
        there = [at for at in places_of(draws[0]) if draws[0][at] > HALF]
        shown = ", ".join(named(*at) for at in sorted(there)[:8])
        return answer(count, run, holds=bool(count[0] >= 1), shown=shown)

    return measure


def _little_on_self(results: Results) -> Answer:
    run, draws = results.run("surface"), _heads(results, "self")
    share = (draws < LITTLE).mean((1, 2))
    return answer(share, run, holds=surely_above(share, run, HALF))


def neighbours() -> tuple[Line, ...]:
    """Figure 1 and §3.1."""
    head = "the head, or in another model one that does it most, gives it more than half"
    many = "at least one head does"
    return (
        Line("example-1-1", "Figure 1", "A head attends broadly (1-1): entropy, of uniform "
             "attention’s", SURFACE, _broad, unit="%",
             direction="above 80 % of the entropy of uniform attention"),
        Line("example-3-1", "Figure 1", "A head attends to the next token (3-1)", SURFACE,
             _example("next", (2, 0)), unit="%", direction=head),
        Line("example-8-7", "Figure 1", "A head attends to [SEP] (8-7)", SURFACE,
             _example("sep", (7, 6)), unit="%", direction=head),
        Line("example-11-6", "Figure 1", "A head attends to periods (11-6)", SURFACE,
             _example("punctuation", (10, 5)), unit="%", direction=head),
        Line("self", "§3.1", "Most heads put little on the token itself: heads that give it below "
             "10 %", SURFACE, _little_on_self, (Published("> 50"),), unit="%",
             direction="more than half of the heads"),
        Line("previous", "§3.1", "Heads with more than half of their attention on the previous "
             "token (layers 2, 4, 7, 8)", SURFACE, _many("previous"), (Published("4"),),
             direction=many),
        Line("next", "§3.1", "Heads with more than half of their attention on the next token "
             "(layers 1, 2, 2, 3, 6)", SURFACE, _many("next"), (Published("5"),), direction=many),
    )  # fmt: skip


# --- §3.2: separators ------------------------------------------------------------------------


def _middle(target: str, bound: float) -> Measure:
    """Mean over the heads of layers 6 to 10."""

    def measure(results: Results) -> Answer:
        run, draws = results.run("surface"), _heads(results, target)
        at = layers_at(MIDDLE, draws.shape[1])
        share = over_heads(draws[:, at])  # [replicate + 1]
        return answer(share, run, holds=surely_above(share, run, bound),
                      shown=f"layers {at[0] + 1} to {at[-1] + 1}")  # fmt: skip

    return measure


def _depth(target: str, first: float, last: float) -> Measure:
    """The layer that gives a target most, and whether it lies between two shares of depth."""

    def measure(results: Results) -> Answer:
        curve = _heads(results, target)[0].mean(1)  # [layer]
        at = int(np.nanargmax(curve))
        depth = at / max(len(curve) - 1, 1)
        shown = f"most in layer {at + 1} of {len(curve)}, {percent(float(curve[at]))}"
        n = counted(results.run("surface"))
        return Answer(at + 1, n=n, holds=first <= depth <= last, shown=shown)

    return measure


def _gradients_fall(results: Results) -> Answer:
    """Gradients of edges to [SEP] in layers 5 and up, over those below."""
    run, found = results.run("gradients"), results.group("gradients", "gradients")
    magnitude = drawn(found, "layer_magnitude", category="sep")  # [replicate + 1, layer]
    cut = layer_at(EARLY_LAYERS[-1], magnitude.shape[1]) + 1
    share = ratio(magnitude[:, cut:].mean(1), magnitude[:, :cut].mean(1))
    return answer(share, run, holds=surely_above(-share, run, -HALF),
                  shown=f"layers {cut + 1} and up")  # fmt: skip


def _gradients_mirror(results: Results) -> Answer:
    """Rank correlation over layers of gradients of [SEP] and attention to it."""
    from scipy.stats import spearmanr

    run, found = results.run("gradients"), results.group("gradients", "gradients")
    curves = [drawn(found, f"layer_{name}", category="sep") for name in ("magnitude", "attention")]
    layers = curves[0].shape[1]
    if layers < LEAST_LAYERS:
        raise NotRun(f"needs a model of at least {LEAST_LAYERS} layers for a rank correlation")
    rho = np.array([spearmanr(*pair).statistic for pair in zip(*curves, strict=True)])
    return answer(rho, run, holds=surely_above(-rho, run), shown=f"over {layers} layers")


def separators() -> tuple[Line, ...]:
    """§3.2 and Figure 3."""
    return (
        Line("sep-middle", "§3.2", "More than half of attention goes to [SEP] in layers 6-10 "
             "(chance about 1/64)", SURFACE, _middle("sep", HALF), (Published("> 50"),), unit="%",
             direction="the interval lies above 50 %"),
        Line("sep-from-sep", "§3.2", "[SEP] attends to itself and the other [SEP], layers 6-10",
             SURFACE, _middle("sep_from_sep", 0.9), (Published("> 90"),), unit="%",
             direction="the interval lies above 90 %"),
        Line("early-cls", "§3.2", "Early layers attend to [CLS]: layer of the most", SURFACE,
             _depth("cls", 0.0, 0.4), direction="at the depth of layers 1 to 5 of 12"),
        Line("middle-sep", "§3.2", "Middle layers attend to [SEP]: layer of the most", SURFACE,
             _depth("sep", 0.3, 0.85), direction="at the depth of layers 5 to 10 of 12"),
        Line("deep-punctuation", "§3.2", "Deep layers attend to periods and commas: layer of the "
             "most", SURFACE, _depth("punctuation", 0.7, 1.0),
             direction="at the depth of layers 9 to 12 of 12"),
        Line("gradients-fall", "Figure 3", "From layer 5 on, attention to [SEP] hardly changes the "
             "loss: gradients there over those below", ("gradients",), _gradients_fall,
             direction="the interval lies below 0.5"),
        Line("gradients-mirror", "Figure 3", "Gradients of [SEP] are small where attention to it "
             "is high: rank correlation over layers", ("gradients",), _gradients_mirror,
             direction="the interval lies below 0"),
    )  # fmt: skip


# --- §3.3: entropy ---------------------------------------------------------------------------


def _entropy(results: Results, query: str) -> Float64:
    return drawn(results.group("surface", "entropy"), "entropy", query=query)


def _last_cls(results: Results) -> Answer:
    run, cls = results.run("surface"), _entropy(results, "cls")[:, -1].mean(1)
    gap = cls - _entropy(results, "all")[:, -1].mean(1)
    uniform = float(drawn(results.group("surface", "entropy"), "uniform")[0])
    shown = f"uniform attention: {fixed(uniform, 2)} nats"
    return answer(cls, run, holds=surely_above(gap, run), shown=shown)


def _lower_broad(results: Results) -> Answer:
    """How much broader the broadest heads of the lower third are than those above."""
    run, every = results.run("surface"), _entropy(results, "all")
    cut = max(1, round(every.shape[1] * THIRD))
    gap = every[:, :cut].max((1, 2)) - every[:, cut:].max((1, 2))
    return answer(gap, run, holds=surely_above(gap, run), shown=f"layers 1 to {cut}")


def _on_one_word(results: Results) -> Answer:
    """The most that the broadest head of the lower third gives to any place that is measured."""
    run, every = results.run("surface"), _entropy(results, "all")[0]
    cut = max(1, round(len(every) * THIRD))
    layer, head = places_of(every[:cut])[0]
    targets = ("self", "previous", "next", "first", "cls")
    shares = {t: _heads(results, t)[:, layer, head] for t in targets}
    top = max(targets, key=lambda t: float(np.nan_to_num(shares[t][0])))
    value = answer(shares[top], run)
    high = value.high if np.isfinite(value.high) else value.value
    return answer(shares[top], run, holds=bool(high <= LITTLE),
                  shown=f"{named(layer, head)}, most on {top}; of the places measured")  # fmt: skip


def entropies() -> tuple[Line, ...]:
    """§3.3."""
    return (
        Line("entropy-low", "Figure 4", "The broadest heads are in the lower layers: their entropy "
             "above that of the broadest further up", SURFACE, _lower_broad, unit="nats",
             direction="the interval lies above 0"),
        Line("entropy-one-word", "§3.3", "Such a head gives at most 10 % to any one word", SURFACE,
             _on_one_word, (Published("≤ 10"),), unit="%",
             direction="of itself, its neighbours and [CLS], none gets more than 10 %"),
        Line("entropy-cls", "§3.3", "In the last layer, [CLS] attends broadly: mean entropy over "
             "heads", SURFACE, _last_cls, (Published("3.89"),), unit="nats",
             direction="surely above that of all tokens in that layer"),
    )  # fmt: skip


# --- §6: clusters ----------------------------------------------------------------------------


def _same_layer(results: Results) -> Answer:
    divergence = results.group("surface", "divergence")
    value, low, high = ends(divergence, "layer_js_ratio")
    p = ends(divergence, "layer_js_p")[0]
    if not np.isfinite(value):
        raise NotRun("needs heads of two layers or more")
    shown = f"p = {fixed(p, 3)}" if np.isfinite(p) else ""
    n = counted(results.run("surface"))
    return Answer(value, low, high, n, holds=bool(value < 1 and p < 0.05), shown=shown)


def _nearest(results: Results) -> Answer:
    divergence = results.group("surface", "divergence")
    value = ends(divergence, "nearest_layer", where="same_layer")
    chance = ends(divergence, "nearest_chance", where="same_layer")[0]
    p = ends(divergence, "nearest_p", where="same_layer")[0]
    shown = f"chance {percent(chance)}, p = {fixed(p, 3)}"
    n = counted(results.run("surface"))
    return Answer(*value, n=n, holds=bool(value[0] > chance and p < 0.05), shown=shown)


def clustering() -> tuple[Line, ...]:
    """§6."""
    return (
        Line("clusters-layer", "§6", "Heads of a layer tend to be alike: divergence within layers "
             "over that between them", SURFACE, _same_layer,
             direction="below 1, p < 0.05 when layers are dealt out anew"),
        Line("clusters-nearest", "§6", "Heads of a layer tend to be alike: heads whose nearest "
             "head is of their own layer", SURFACE, _nearest, unit="%",
             direction="more than chance, p < 0.05"),
    )  # fmt: skip
