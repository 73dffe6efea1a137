"""Numbers of the zoo's claims: each is read off one model's run, with its interval.

Depth runs from 0, the first layer, to 1, the last, so that models of 3 and of 30 layers compare.
The middle layers are those at the depth of layers 6 to 10 of BERT-base, of which Clark et al.
(2019) speak.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from headscope.analyses.dependency.relation_heads import RelationHead, relation_heads
from headscope.analyses.divergence.layers_alike import p_words
from headscope.core.accumulators import Estimate, Float64, ratio
from headscope.core.head_attention import POSITION
from headscope.core.relation_names import LEAST_WORDS
from headscope.core.results import documents, shape, token_names
from headscope.core.wording import fixed, percent
from headscope.papers.quantities import (
    DEPENDENCY,
    DIVERGENCE,
    ENTROPY,
    NORMS,
    SURFACE,
    Measured,
    Unmeasured,
    attention,
    draws_of,
    entropies,
    interval,
    measured,
    mixing_ratio,
    norms,
    place_name,
    results_of,
    stored,
    uniform_entropy,
)
from headscope.run.finished_run import Run

NEIGHBOURS = ("previous", "next")
MIDDLE = (5 / 11, 9 / 11)  # Clark et al. 2019, §3.2: layers 6 to 10 of 12
ROUNDING = 1e-9


# --- over depth -----------------------------------------------------------------------------


def depths(layers: int) -> Float64:
    """[layer] from 0, the first, to 1, the last."""
    return np.linspace(0, 1, layers)


def middle(layers: int) -> list[int]:
    """The middle layers, from 0; raises Unmeasured where there are none."""
    low, high = MIDDLE[0] - ROUNDING, MIDDLE[1] + ROUNDING
    inside = [at for at, depth in enumerate(depths(layers)) if low <= depth <= high]
    if not inside:
        raise Unmeasured("too few layers to have middle ones")
    return inside


def is_decoder(run: Run) -> bool:
    """Whether a token sees only itself and what stands before it."""
    return str(run.tree.attrs.get("stack", "")) == "decoder"


def added_token(run: Run, kind: str) -> str:
    """The token that the tokenizer adds as `cls` or `sep`; raises Unmeasured where it adds none."""
    name = token_names(run.tree)[kind]
    if not name:
        raise Unmeasured({"cls": "no opening token", "sep": "no separator"}[kind])
    return name


def attention_by_layer(run: Run, target: str) -> Float64:
    """[replicate + 1, layer] attention to a target, mean over heads."""
    return np.asarray(attention(run, target).mean(-1))


def entropy_by_layer(run: Run, query: str) -> Float64:
    """[replicate + 1, layer] mean entropy of heads as a share of that of uniform attention."""
    return ratio(entropies(run, query).mean(-1), uniform_entropy(run)[:, None])


def share_by_layer(run: Run, variable: str, category: str) -> Float64:
    """[replicate + 1, layer] the share of a category in a variable of `norms`, all heads."""
    every = np.nansum(norms(run, variable), axis=(2, 3))
    return ratio(norms(run, variable, category=category).sum(-1), every)


def depth_curves(run: Run) -> dict[str, Estimate]:
    """[layer] of every number that figures show over depth, of those that a model has.

    sep, cls or first, punctuation, other   attention
    entropy, entropy_cls                    share of the uniform entropy
    weight_…, norm_… of sep, cls, punctuation, other   shares of α and of ‖αf(x)‖
    """
    curves: dict[str, Float64] = {}
    has = {kind: bool(name) for kind, name in token_names(run.tree).items()}
    opening = "cls" if has["cls"] else "first"
    if SURFACE in run:
        for target in (*(["sep"] if has["sep"] else []), opening, "punctuation"):
            curves[target] = attention_by_layer(run, target)
        curves["other"] = 1 - np.sum(list(curves.values()), axis=0)
    if ENTROPY in run:
        curves[ENTROPY] = entropy_by_layer(run, "all")
        if has["cls"] and not is_decoder(run):  # there the first token sees nothing but itself
            curves["entropy_cls"] = entropy_by_layer(run, "cls")
    if NORMS in run:
        for category in ("sep", "cls", "punctuation", "other"):
            if has.get(category, True):
                curves[f"weight_{category}"] = share_by_layer(run, "attention", category)
                curves[f"norm_{category}"] = share_by_layer(run, "weighted_norm", category)
    return {name: interval(draws, run) for name, draws in curves.items()}


# --- where attention rests ------------------------------------------------------------------


def middle_attention(run: Run, target: str, kind: str = "") -> Measured:
    """Attention to a target in the middle layers; kind: of the token that the model must add."""
    detail = added_token(run, kind) if kind else token_names(run.tree)["cls"] or "the first word"
    return measured(_middle(attention_by_layer(run, target)), run, detail=detail)


def first_and_separator(run: Run) -> Measured:
    """Attention to the first token, [CLS] or not, and to the separator, where there is one."""
    first = attention_by_layer(run, "first")
    if not token_names(run.tree)["sep"]:
        return measured(_middle(first), run, detail="no separator: the first token alone")
    return measured(_middle(first + attention_by_layer(run, "sep")), run)


def _middle(by_layer: Float64) -> Float64:
    """[replicate + 1] mean over the middle layers of [replicate + 1, layer]."""
    return np.asarray(by_layer[:, middle(by_layer.shape[1])].mean(1))


# --- position and breadth -------------------------------------------------------------------


def position_heads(run: Run, target: str) -> Measured:
    """How many heads give a neighbour more than half of their attention."""
    if target == "next" and is_decoder(run):
        raise Unmeasured("a decoder does not see the next token")
    share = attention(run, target)  # [replicate + 1, layer, head]
    there = np.argwhere(share[0] > POSITION)
    layers, heads = shape(run.tree)
    words = f"of {layers * heads}"
    if len(there):
        deep = depths(layers)[there[:, 0]]
        first, last = (fixed(float(at), 2) for at in (deep.min(), deep.max()))
        words += f", depth {first}" + (f" to {last}" if first != last else "")
    return measured((share > POSITION).sum((1, 2)).astype(np.float64), run, detail=words)


def neighbours_early(run: Run) -> Measured:
    """Attention to both neighbours in the first half of the layers, less the second."""
    seen = NEIGHBOURS[:1] if is_decoder(run) else NEIGHBOURS
    both = np.sum([attention_by_layer(run, target) for target in seen], axis=0)
    return measured(_halves(both), run, detail="previous only" if len(seen) == 1 else "")


def broad_early(run: Run) -> Measured:
    """Entropy in the first half of the layers, less the second."""
    return measured(_halves(entropy_by_layer(run, "all")), run)


def _halves(by_layer: Float64) -> Float64:
    """[replicate + 1] first less second half of [replicate + 1, layer], without a middle layer."""
    half = by_layer.shape[1] // 2
    if half == 0:
        raise Unmeasured("one layer has no halves")
    return np.asarray(by_layer[:, :half].mean(1) - by_layer[:, -half:].mean(1))


def opening_last(run: Run) -> Measured:
    """Entropy of the opening token in the last layer, less that of all tokens."""
    name = added_token(run, "cls")
    if is_decoder(run):
        raise Unmeasured("a decoder’s first token sees only itself")
    cls, every = (entropies(run, query)[:, -1].mean(-1) for query in ("cls", "all"))
    share = _share_text(float(cls[0] / uniform_entropy(run)[0]))
    detail = f"{name}: {fixed(float(cls[0]), 2)} nats, {share} of uniform"
    return measured(cls - every, run, detail=detail)


# --- norms ----------------------------------------------------------------------------------


def separator_empty(run: Run) -> Measured:
    """The separator's share of the norm over its share of the weight, in the middle layers."""
    added_token(run, "sep")
    weight, norm = (
        _middle(share_by_layer(run, name, "sep")) for name in ("attention", "weighted_norm")
    )
    shares = (_share_text(float(part[0])) for part in (norm, weight))
    return measured(norm / weight, run, detail="norm {}, weight {}".format(*shares))


def cancellation(run: Run, category: str) -> Measured:
    """Rank correlation of weight and norm over pairs whose second token is of a category."""
    if category in ("cls", "sep"):
        added_token(run, category)
    return _correlation(run, "spearman_attention_value_norm", category=category)


def frequency(run: Run, quantity: str) -> Measured:
    """Rank correlation of a token's frequency rank with a quantity."""
    return _correlation(run, "spearman_frequency", quantity=quantity)


def _correlation(run: Run, variable: str, **choice: str) -> Measured:
    results = results_of(run, NORMS)
    if variable not in results:
        raise Unmeasured("no frequency ranks in its run")
    return Measured(*stored(results, variable, **choice), count=documents(run.tree))


def mixing(run: Run) -> Measured:
    """The mixing ratio with residual and LayerNorm; without, where a model normalises first."""
    for method, words in (("attnresln_n", ""), ("attnres_n", "AttnRes-N: normalised first")):
        ratios = mixing_ratio(run, method)
        if np.isfinite(ratios[0]).all():
            return measured(ratios.mean(1), run, detail=words)
    raise Unmeasured("its residual cannot be read")


def _share_text(share: float) -> str:
    return percent(share, math.nan, math.nan)


# --- language and layers --------------------------------------------------------------------


def best_relation_head(run: Run, labels: tuple[str, ...]) -> RelationHead:
    """The best head of a relation; of its labels the first that the treebank has counts.

    raises  Unmeasured where the relation is missing or too rare
    """
    by_label = {best.relation: best for best in relation_heads(results_of(run, DEPENDENCY))}
    for name in labels:
        if name in by_label:
            best = by_label[name]
            if best.count < LEAST_WORDS:
                raise Unmeasured(f"only {best.count} words")
            if not np.isfinite(best.score.value):
                raise Unmeasured("too little to hold out")
            return best
    raise Unmeasured("no such relation in this corpus")


def relation(run: Run, labels: tuple[str, ...]) -> Measured:
    """By how much the best head of a relation beats the best fixed offset, held out."""
    best = best_relation_head(run, labels)
    score, offset = (fixed(100 * float(x.value), 1) for x in (best.score, best.baseline))
    return _of_relation_head(run, best, best.advantage, f"{score} | {offset} %, ")


def overall_syntax(run: Run) -> Measured:
    """Held-out accuracy of the best head over all words."""
    best = best_relation_head(run, ("all",))
    return _of_relation_head(run, best, best.score)


def _of_relation_head(run: Run, best: RelationHead, number: Estimate, before: str = "") -> Measured:
    layer, head = best.place
    depth = fixed(float(depths(shape(run.tree)[0])[layer]), 2)
    return Measured(
        float(number.value), float(number.low), float(number.high), count=best.count,
        detail=f"{before}{place_name(layer, head)} ({depth})", head=best.place,
    )  # fmt: skip


def layers_alike(run: Run) -> Measured:
    """By how much heads of one layer differ less than heads of different layers."""
    results = results_of(run, DIVERGENCE)
    js = draws_of(results, "layer_js")  # [replicate + 1, pairs]
    p = float(results["layer_js_p"]) if "layer_js_p" in results else math.nan
    if not np.isfinite(js[0]).all():
        raise Unmeasured("fewer than two layers of two heads")
    return replace(measured(1 - js[:, 0] / js[:, 1], run, detail=p_words(p)), p=p)
