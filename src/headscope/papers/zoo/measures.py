"""What is the number of each claim in one run, with its interval and where it was found?

MEASURES[name](tree) gives what `claims` compares with its bound, or raises Unasked with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import xarray as xr

from headscope.analyses.divergence.layer_claim import p_words
from headscope.analyses.language.finders import Finder, finders
from headscope.core.accumulators import Estimate, Float64
from headscope.core.head_roles import POSITION
from headscope.core.relation_names import LEAST_WORDS
from headscope.core.results import estimate, shape, token_names
from headscope.core.wording import fixed, percent
from headscope.papers.zoo.claims import RELATIONS, Relation
from headscope.papers.zoo.numbers import (
    Unasked,
    attention_by_layer,
    depths,
    drawn,
    ends,
    entropy_by_layer,
    is_decoder,
    middle,
    needed,
    share_by_layer,
    token,
)

NEIGHBOURS = ("previous", "next")


@dataclass(frozen=True)
class Number:
    """One number of one model.

    value, low, high  NaN ends where there is no interval
    n                 what it was counted over: documents, or words of a relation
    detail            what stands below it in the table: which heads, how deep
    place             (layer, head) from 0 of the one head that it is of
    p                 against chance, where the claim asks for that
    """

    value: float
    low: float
    high: float
    n: int
    detail: str = ""
    place: tuple[int, int] | None = None
    p: float = math.nan


Measure = Callable[[xr.DataTree], Number]


def _number(tree: xr.DataTree, found: Estimate, detail: str = "", n: int = 0) -> Number:
    value, low, high = (float(part) for part in (found.value, found.low, found.high))
    return Number(value, low, high, n or int(tree.attrs["documents"]), detail)


def _drawn(tree: xr.DataTree, draws: Float64, detail: str = "") -> Number:
    """Of draws [replicate + 1]."""
    return _number(tree, ends(tree, draws), detail)


def head_words(tree: xr.DataTree, place: tuple[int, int]) -> str:
    """`L4·H7 (0.60)`: the head, and its depth."""
    layer, head = place
    return f"L{layer + 1}·H{head + 1} ({fixed(float(depths(shape(tree)[0])[layer]), 2)})"


# --- where attention rests ------------------------------------------------------------------


def _rest(tree: xr.DataTree, target: str, kind: str) -> Number:
    """Attention to a target in the middle layers; kind: of the token that there must be."""
    detail = token(tree, kind) if kind else token_names(tree)["cls"] or "the first word"
    return _drawn(tree, _middle(attention_by_layer(tree, target)), detail)


def _both(tree: xr.DataTree) -> Number:
    """The first token, [CLS] or not, and the separator, where there is one."""
    first = attention_by_layer(tree, "first")
    if not token_names(tree)["sep"]:
        return _drawn(tree, _middle(first), "no separator: the first token alone")
    return _drawn(tree, _middle(first + attention_by_layer(tree, "sep")))


def _middle(by_layer: Float64) -> Float64:
    """[replicate + 1] mean over the middle layers of [replicate + 1, layer]."""
    return np.asarray(by_layer[:, middle(by_layer.shape[1])].mean(1))


# --- position and breadth -------------------------------------------------------------------


def _position_heads(tree: xr.DataTree, target: str) -> Number:
    if target == "next" and is_decoder(tree):
        raise Unasked("a decoder does not see the next token")
    share = drawn(tree, "surface", "attention", target=target)  # [replicate + 1, layer, head]
    there = np.argwhere(share[0] > POSITION)
    layers, heads = shape(tree)
    words = f"of {layers * heads}"
    if len(there):
        deep = depths(layers)[there[:, 0]]
        first, last = (fixed(float(at), 2) for at in (deep.min(), deep.max()))
        words += f", depth {first}" + (f" to {last}" if first != last else "")
    return _drawn(tree, (share > POSITION).sum((1, 2)).astype(np.float64), words)


def _position_early(tree: xr.DataTree) -> Number:
    seen = NEIGHBOURS[:1] if is_decoder(tree) else NEIGHBOURS
    both = np.sum([attention_by_layer(tree, target) for target in seen], axis=0)
    return _drawn(tree, _first_half_less_second(both), "previous only" if len(seen) == 1 else "")


def _broad_early(tree: xr.DataTree) -> Number:
    return _drawn(tree, _first_half_less_second(entropy_by_layer(tree, "all")))


def _first_half_less_second(by_layer: Float64) -> Float64:
    """[replicate + 1] of [replicate + 1, layer]; the middle one of an odd number is in neither."""
    half = by_layer.shape[1] // 2
    if half == 0:
        raise Unasked("one layer has no halves")
    return np.asarray(by_layer[:, :half].mean(1) - by_layer[:, -half:].mean(1))


def _opening_last(tree: xr.DataTree) -> Number:
    name = token(tree, "cls")
    if is_decoder(tree):
        raise Unasked("a decoder’s first token sees only itself")
    cls, every = (
        drawn(tree, "entropy", "entropy", query=query)[:, -1].mean(-1) for query in ("cls", "all")
    )
    share = float(cls[0] / drawn(tree, "entropy", "uniform")[0])
    return _drawn(
        tree, cls - every,
        f"{name}: {fixed(float(cls[0]), 2)} nats, {percent(share, np.nan, np.nan)} of uniform",
    )  # fmt: skip


# --- norms ----------------------------------------------------------------------------------


def _separator_empty(tree: xr.DataTree) -> Number:
    token(tree, "sep")
    weight, norm = (
        _middle(share_by_layer(tree, name, "sep")) for name in ("attention", "weighted_norm")
    )
    shares = (percent(float(part[0]), np.nan, np.nan) for part in (norm, weight))
    return _drawn(tree, norm / weight, "norm {}, weight {}".format(*shares))


def _correlation(tree: xr.DataTree, variable: str, kind: str, **choice: str) -> Number:
    """One that has an interval of its own; kind: of the token that there must be."""
    if kind:
        token(tree, kind)
    norms = needed(tree, "norms")
    if variable not in norms:
        raise Unasked("no frequency ranks in its run")
    return _number(tree, estimate(norms, variable, **choice))


def _mixing(tree: xr.DataTree) -> Number:
    for method, words in (("attnresln_n", ""), ("attnres_n", "AttnRes-N: normalised first")):
        ratios = drawn(tree, "mixing", "ratio", method=method)  # [replicate + 1, layer]
        if np.isfinite(ratios[0]).all():
            return _drawn(tree, ratios.mean(1), words)
    raise Unasked("its residual cannot be read")


# --- language and layers --------------------------------------------------------------------


def _finder(tree: xr.DataTree, labels: tuple[str, ...]) -> Finder:
    found = {finder.relation: finder for finder in finders(needed(tree, "dependency"))}
    for name in labels:
        if name in found:
            finder = found[name]
            if finder.count < LEAST_WORDS:
                raise Unasked(f"only {finder.count} words")
            if not np.isfinite(finder.score.value):
                raise Unasked("too little to hold out")
            return finder
    raise Unasked("no such relation in this corpus")


def relation_finder(tree: xr.DataTree, relation: Relation) -> Finder | None:
    """The best head of a relation; None where it cannot be asked."""
    try:
        return _finder(tree, relation.labels)
    except Unasked:
        return None


def _relation(tree: xr.DataTree, labels: tuple[str, ...]) -> Number:
    finder = _finder(tree, labels)
    gain, score = finder.advantage, finder.score
    return Number(
        float(gain.value), float(gain.low), float(gain.high), finder.count,
        f"{fixed(100 * float(score.value), 1)} | {fixed(100 * float(finder.baseline.value), 1)} %, "
        f"{head_words(tree, finder.place)}", finder.place,
    )  # fmt: skip


def _overall(tree: xr.DataTree) -> Number:
    finder = _finder(tree, ("all",))
    found = _number(tree, finder.score, head_words(tree, finder.place), finder.count)
    return replace(found, place=finder.place)


def _layers_alike(tree: xr.DataTree) -> Number:
    js = drawn(tree, "divergence", "layer_js")  # [replicate + 1, pairs]
    divergence = needed(tree, "divergence")
    p = float(divergence["layer_js_p"]) if "layer_js_p" in divergence else math.nan
    if not np.isfinite(js[0]).all():
        raise Unasked("fewer than two layers of two heads")
    less = 1 - js[:, 0] / js[:, 1]
    return replace(_drawn(tree, less, p_words(p)), p=p)


MEASURES: dict[str, Measure] = {
    "separator_middle": partial(_rest, target="sep", kind="sep"),
    "first_middle": partial(_rest, target="first", kind=""),
    "both_middle": _both,
    "separator_itself": partial(_rest, target="sep_from_sep", kind="sep"),
    "previous_heads": partial(_position_heads, target="previous"),
    "next_heads": partial(_position_heads, target="next"),
    "position_early": _position_early,
    "broad_early": _broad_early,
    "opening_last": _opening_last,
    "separator_empty": _separator_empty,
    **{
        f"cancel_{name}": partial(
            _correlation, variable="spearman_attention_value_norm", kind=kind,
            category=kind or name,
        )
        for name, kind in (("separator", "sep"), ("opening", "cls"), ("punctuation", ""),
                           ("other", ""))
    },
    "frequency_norm": partial(
        _correlation, variable="spearman_frequency", kind="", quantity="value_norm"
    ),
    "frequency_weight": partial(
        _correlation, variable="spearman_frequency", kind="", quantity="attention"
    ),
    "mixing": _mixing,
    **{
        f"relation_{relation.labels[0]}": partial(_relation, labels=relation.labels)
        for relation in RELATIONS
    },
    "overall_syntax": _overall,
    "layers_alike": _layers_alike,
}  # fmt: skip
