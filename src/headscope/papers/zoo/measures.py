"""Numbers of the zoo's claims: each is read off one model's run, with its interval.

Depth runs from 0, the first layer, to 1, the last, so that models of 3 and of 30 layers compare.
The middle layers are those at the depth of layers 6 to 10 of BERT-base, of which Clark et al.
(2019) speak.
"""

import math

import numpy as np

from headscope.analyses.dependency.relation_heads import RelationHead, relation_heads
from headscope.claims.head_attention import NEIGHBOURS, OFFSETS, POSITION
from headscope.claims.relation_names import LEAST_WORDS
from headscope.core.accumulators import Float64, ratio
from headscope.core.intervals import DIFFERENCE, SHARE, Estimate
from headscope.core.results import at, documents, shape, token_names
from headscope.core.wording import fixed, p_words, percent
from headscope.papers import neuron_roles
from headscope.papers.quantities import Measured, PaperRun, Unmeasured, reads

MODEL_RUN = "model"  # the one run that a claim of the zoo reads
MIDDLE = (5 / 11, 9 / 11)  # Clark et al. 2019, §3.2: layers 6 to 10 of 12
ROUNDING = 1e-9


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


def is_decoder(run: PaperRun) -> bool:
    """Whether a token attends only to itself and earlier tokens."""
    return str(run.tree.attrs.get("stack", "")) == "decoder"


def added_token(run: PaperRun, kind: str) -> str:
    """The token that the tokenizer adds as `cls` or `sep`; raises Unmeasured where it adds none."""
    name = token_names(run.tree)[kind]
    if not name:
        raise Unmeasured({"cls": "no opening token", "sep": "no separator"}[kind])
    return name


def attention_by_layer(run: PaperRun, target: str) -> Float64:
    """[replicate + 1, layer] attention to a target, mean over heads."""
    return np.asarray(run.attention(target).mean(-1))


def entropy_by_layer(run: PaperRun, query: str) -> Float64:
    """[replicate + 1, layer] mean entropy of heads as a share of that of uniform attention."""
    return ratio(run.entropies(query).mean(-1), run.draws("entropy", "uniform")[:, None])


def share_by_layer(run: PaperRun, variable: str, category: str) -> Float64:
    """[replicate + 1, layer] the share of a category in a variable of `norms`, all heads."""
    every = np.nansum(run.draws("norms", variable), axis=(2, 3))
    return ratio(run.draws("norms", variable, category=category).sum(-1), every)


def depth_curves(run: PaperRun) -> dict[str, Estimate]:
    """[layer] of every number that figures show over depth, of those that a model has.

    sep, cls or first, punctuation, other   attention
    entropy, entropy_cls                    share of the uniform entropy
    weight_…, norm_… of sep, cls, punctuation, other   shares of α and of ‖αf(x)‖
    """
    curves: dict[str, Float64] = {}
    has = {kind: bool(name) for kind, name in token_names(run.tree).items()}
    opening = "cls" if has["cls"] else "first"
    if "surface" in run:
        for target in (*(["sep"] if has["sep"] else []), opening, "punctuation"):
            curves[target] = attention_by_layer(run, target)
        curves["other"] = 1 - np.sum(list(curves.values()), axis=0)
    if "entropy" in run:
        curves["entropy"] = entropy_by_layer(run, "all")
        if has["cls"] and not is_decoder(run):  # there the first token sees nothing but itself
            curves["entropy_cls"] = entropy_by_layer(run, "cls")
    if "norms" in run:
        for category in ("sep", "cls", "punctuation", "other"):
            if has.get(category, True):
                curves[f"weight_{category}"] = share_by_layer(run, "attention", category)
                curves[f"norm_{category}"] = share_by_layer(run, "weighted_norm", category)
    return {name: run.interval(draws, SHARE) for name, draws in curves.items()}


@reads(MODEL_RUN)
def middle_attention(run: PaperRun, target: str, kind: str = "") -> Measured:
    """Attention to a target in the middle layers; kind: of the token that the model must add."""
    detail = added_token(run, kind) if kind else token_names(run.tree)["cls"] or "the first word"
    share = _middle(attention_by_layer(run, target))
    return run.measured(share, bounds=SHARE, detail=detail)


@reads(MODEL_RUN)
def first_and_separator(run: PaperRun) -> Measured:
    """Attention to the first token, [CLS] or not, and to the separator, where there is one."""
    first = attention_by_layer(run, "first")
    if not token_names(run.tree)["sep"]:
        detail = "no separator: the first token alone"
        return run.measured(_middle(first), bounds=SHARE, detail=detail)
    return run.measured(_middle(first + attention_by_layer(run, "sep")), bounds=SHARE)


def _middle(by_layer: Float64) -> Float64:
    """[replicate + 1] mean over the middle layers of [replicate + 1, layer]."""
    return np.asarray(by_layer[:, middle(by_layer.shape[1])].mean(1))


@reads(MODEL_RUN)
def position_heads(run: PaperRun, offset: int) -> Measured:
    """Number of heads that give a neighbour more than half of their attention."""
    if offset > 0 and is_decoder(run):
        raise Unmeasured("a decoder does not see the next token")
    target = next(name for name, at in OFFSETS.items() if at == offset)
    share = run.attention(target)  # [replicate + 1, layer, head]
    there = np.argwhere(share[0] > POSITION)
    layers, heads = shape(run.tree)
    words = f"of {layers * heads}"
    if len(there):
        deep = depths(layers)[there[:, 0]]
        first, last = (fixed(float(at), 2) for at in (deep.min(), deep.max()))
        words += f", depth {first}" + (f" to {last}" if first != last else "")
    return run.jumping(
        share, lambda drawn: (drawn > POSITION).sum((1, 2)).astype(np.float64), detail=words
    )


@reads(MODEL_RUN)
def neighbours_early(run: PaperRun) -> Measured:
    """Attention to both neighbours in the first half of the layers, less the second."""
    seen = NEIGHBOURS[:1] if is_decoder(run) else NEIGHBOURS
    both = np.sum([attention_by_layer(run, target) for target in seen], axis=0)
    detail = "previous only" if len(seen) == 1 else ""
    return run.measured(_halves(both), bounds=DIFFERENCE, detail=detail)


@reads(MODEL_RUN)
def broad_early(run: PaperRun) -> Measured:
    """Entropy in the first half of the layers, less the second."""
    return run.measured(_halves(entropy_by_layer(run, "all")), bounds=DIFFERENCE)


def _halves(by_layer: Float64) -> Float64:
    """[replicate + 1] first less second half of [replicate + 1, layer], without a middle layer."""
    half = by_layer.shape[1] // 2
    if half == 0:
        raise Unmeasured("one layer has no halves")
    return np.asarray(by_layer[:, :half].mean(1) - by_layer[:, -half:].mean(1))


@reads(MODEL_RUN)
def opening_last(run: PaperRun) -> Measured:
    """Entropy of the opening token in the last layer, less that of all tokens."""
    name = added_token(run, "cls")
    if is_decoder(run):
        raise Unmeasured("a decoder’s first token sees only itself")
    cls, every = (run.entropies(query)[:, -1].mean(-1) for query in ("cls", "all"))
    share = percent(float(cls[0] / run.draws("entropy", "uniform")[0]))
    detail = f"{name}: {fixed(float(cls[0]), 2)} nats, {share} of uniform"
    return run.measured(cls - every, detail=detail)


@reads(MODEL_RUN)
def separator_empty(run: PaperRun) -> Measured:
    """The separator's share of the norm over its share of the weight, in the middle layers."""
    added_token(run, "sep")
    weight, norm = (
        _middle(share_by_layer(run, name, "sep")) for name in ("attention", "weighted_norm")
    )
    if not weight[0]:
        raise Unmeasured("no separator in the inputs")
    shares = (percent(float(part[0])) for part in (norm, weight))
    return run.measured(ratio(norm, weight), detail="norm {}, weight {}".format(*shares))


@reads(MODEL_RUN)
def cancellation(run: PaperRun, category: str) -> Measured:
    """Rank correlation of weight and norm over pairs whose second token is of a category."""
    if category in ("cls", "sep"):
        added_token(run, category)
    return _correlation(run, "spearman_attention_value_norm", category=category)


@reads(MODEL_RUN)
def frequency(run: PaperRun, quantity: str) -> Measured:
    """Rank correlation of a token's frequency rank with a quantity."""
    return _correlation(run, "spearman_frequency", quantity=quantity)


def _correlation(run: PaperRun, variable: str, **choice: str) -> Measured:
    if variable not in run.results("norms"):
        raise Unmeasured("no frequency ranks in its run")
    return Measured(*run.stored("norms", variable, **choice), count=documents(run.tree))


over_heads = reads(MODEL_RUN)(neuron_roles.over_heads)


@reads(MODEL_RUN)
def mixing(run: PaperRun) -> Measured:
    """The mixing ratio with residual and LayerNorm; without, where a model normalises first."""
    for method, words in (("attnresln_n", ""), ("attnres_n", "AttnRes-N: normalised first")):
        ratios = run.draws("mixing", "ratio", variant=method)
        if np.isfinite(ratios[0]).all():
            return run.measured(ratios.mean(1), bounds=SHARE, detail=words)
    raise Unmeasured("its residual cannot be read")


def best_relation_head(run: PaperRun, labels: tuple[str, ...]) -> RelationHead:
    """The best head of a relation; of its labels the first that the treebank has counts.

    raises  Unmeasured where the relation is missing or too rare
    """
    dependency = run.results("dependency")
    known = [str(name) for name in dependency["relation"].values]
    for name in labels:
        if name in known and (best_heads := relation_heads(dependency, [known.index(name)])):
            (best,) = best_heads
            if best.count < LEAST_WORDS:
                raise Unmeasured(f"only {best.count} words")
            if not np.isfinite(best.score.value):
                raise Unmeasured("too little to hold out")
            return best
    raise Unmeasured("no such relation in this corpus")


@reads(MODEL_RUN)
def relation(run: PaperRun, labels: tuple[str, ...]) -> Measured:
    """By how much the best head of a relation beats the best fixed offset, held out."""
    best = best_relation_head(run, labels)
    score, offset = (fixed(100 * float(x.value), 1) for x in (best.score, best.baseline))
    return _of_relation_head(run, best, best.advantage, f"{score} | {offset} %, ")


@reads(MODEL_RUN)
def overall_syntax(run: PaperRun) -> Measured:
    """Held-out accuracy of the best head over all words."""
    best = best_relation_head(run, ("all",))
    return _of_relation_head(run, best, best.score)


def _of_relation_head(
    run: PaperRun, best: RelationHead, number: Estimate, before: str = ""
) -> Measured:
    depth = fixed(float(depths(shape(run.tree)[0])[best.place[0]]), 2)
    detail = f"{before}{run.names.head(*best.place)} ({depth})"
    return Measured(*at(number), count=best.count, detail=detail, head=best.place)


@reads(MODEL_RUN)
def layers_alike(run: PaperRun) -> Measured:
    """By how much heads of one layer differ less than heads of different layers."""
    results = run.results("divergence")
    js = run.draws("divergence", "layer_js")  # [replicate + 1, pairs]
    p = float(results["layer_js_p"]) if "layer_js_p" in results else math.nan
    if not np.isfinite(js[0]).all():
        raise Unmeasured("fewer than two layers of two heads")
    return run.measured(1 - js[:, 0] / js[:, 1], detail=p_words(p), p=p)
