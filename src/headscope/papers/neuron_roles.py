"""Numbers of Vig's claims: where a head looks, and which neurons of query and key make it look.

A head is chosen by where it looks, never by the number of its neurons, so that the latter needs no
wider interval. A head chosen by the number itself is held to one that holds for all heads at once.
"""

from dataclasses import replace

import numpy as np

from headscope.claims.head_attention import NEXT
from headscope.claims.verdict import above, below, some_above
from headscope.core.accumulators import Float64, ratio
from headscope.core.intervals import ANY, DIFFERENCE, POSITIVE, SHARE, Bounds
from headscope.core.results import largest_first, shape, token_names
from headscope.core.wording import fixed, percent
from headscope.papers.quantities import Measured, PaperRun, Unmeasured

HALF = 0.5
QUARTER = 0.25  # ours: of a head's neurons; random products of queries and keys have four tenths
FEW = 5.0  # of two to four neurons there are fewer
BAG = "own_segment"  # how the neurons name words of the own sentence
KINDS = {
    NEXT: "a head with more than half of its attention on the next token",
    "sep": "a head with more than half of its attention on the separator",
    BAG: "a head that is more than half a bag of words of its own sentence",
}
SOURCES = ("word", "position", "segment")


def looking(run: PaperRun, target: str) -> Float64:
    """[replicate + 1, layer, head] attention to a target; for BAG, how far a bag of words.

    raises  Unmeasured where the inputs have no such token, or one sentence only
    """
    if target == NEXT and run.tree.attrs.get("stack") == "decoder":
        raise Unmeasured("a decoder does not see the next token")
    if target == "sep" and not token_names(run.tree)["sep"]:
        raise Unmeasured("needs a model whose tokenizer adds a separator", "no separator")
    if target in ("same_token", "other_segment"):
        draws = run.draws("surface", "word_attention", word_kind=target)
    elif target == BAG:
        draws = run.draws("neurons", "bag_of_words")
    else:
        draws = run.attention(target)
    if not np.isfinite(draws[0]).any():
        needs = "needs inputs of two sentences, with a separator between them"
        raise Unmeasured(needs, "one sentence in each input")
    if target == "sep" and not draws[0].any():
        raise Unmeasured("needs inputs with a separator", "no separator in the inputs")
    return draws


def strongest(run: PaperRun, target: str) -> tuple[int, int]:
    """The head that looks at a target most; Unmeasured where that is less than half."""
    share = looking(run, target)[0]
    place = largest_first(share)[0]
    if share[place] <= HALF:
        name, number = run.names.head(*place), fixed(float(share[place]), 2)
        raise Unmeasured(f"needs {KINDS[target]}; the most is {number}, in {name}", "no such head")
    return place


def most(run: PaperRun, target: str, over: float = HALF) -> Measured:
    """The number of the head that looks at a target most; some head must surely be above."""
    draws, bounds = looking(run, target), DIFFERENCE if target == BAG else SHARE
    place = largest_first(draws[0])[0]
    verdict = some_above(run.interval(draws, bounds), over)
    detail = run.names.head(*place)
    number = draws[(slice(None), *place)]
    return run.measured(number, bounds=bounds, verdict=verdict, detail=detail, head=place)


def over_heads(run: PaperRun, quantity: str, target: str, sign: int) -> Measured:
    """Rank correlation over heads of looking at a target and a quantity of their neurons."""
    looking(run, target)
    layers, heads = shape(run.tree)
    number = run.stored("neurons", "rank_correlation", quantity=quantity, target=target)
    verdict = above(*number) if sign > 0 else below(*number)
    return Measured(*number, n=f"{layers * heads} heads", verdict=verdict)


def same_everywhere(run: PaperRun, target: str) -> Measured:
    """Overlap between positions of the head that looks at a target most, at least a half."""
    return _of_strongest(run, "position_overlap", target, SHARE, over=HALF)


def few(run: PaperRun, contrast: str) -> Measured:
    """Neurons that tell the keys of a kind from others, in the head that looks at them most."""
    number = _of_strongest(run, "separation_effective", contrast, POSITIVE, contrast=contrast)
    width = run.results("neurons").sizes["neuron"]
    bound = FEW if contrast == BAG else QUARTER * width
    verdict = below(number.value, *number.ends, bound)
    return replace(number, verdict=verdict, detail=f"{number.detail}, of {width} neurons")


def separates(run: PaperRun, contrast: str) -> Measured:
    """Score of keys of a kind above that of others, in the head that looks at them most."""
    return _of_strongest(run, "separation_score", contrast, ANY, over=0.0, contrast=contrast)


def apart(run: PaperRun, variable: str, sign: int) -> Measured:
    """A number of the head of the next token, less that of the head of the separator."""
    heads = [strongest(run, target) for target in (NEXT, "sep")]
    draws = run.draws("neurons", variable)  # [replicate + 1, layer, head]
    next_, sep = (draws[(slice(None), *head)] for head in heads)
    detail = " less ".join(run.names.head(*head) for head in heads)
    verdict = run.above(next_ - sep) if sign > 0 else run.below(next_ - sep)
    return run.measured(next_ - sep, verdict=verdict, detail=detail)


def source(run: PaperRun, contrast: str, part: str) -> Measured:
    """Share of a part of the embedding in what tells keys of a kind apart in the first layer."""
    results = run.results("neurons")
    draws = run.draws("neurons", "embedding_separation", contrast=contrast).sum(2)
    parts = [str(name) for name in results["part_other"].values]
    size = np.abs(draws[..., [parts.index(name) for name in SOURCES]]).sum(1)
    shares = ratio(size, size.sum(-1, keepdims=True))  # [replicate + 1, source]
    if not np.isfinite(shares[0]).all():
        raise Unmeasured(
            "needs inputs with such keys, and a family whose embeddings can be split: BERT, "
            "RoBERTa, DistilBERT, ALBERT, ELECTRA or GPT-2",
            "no such keys, or embeddings that cannot be split",
        )
    named = zip(SOURCES, shares[0].tolist(), strict=True)
    detail = ", ".join(f"{name} {percent(share)}" for name, share in named)
    number = shares[:, SOURCES.index(part)]
    return run.measured(number, over=HALF, bounds=SHARE, detail=detail)


def _of_strongest(
    run: PaperRun,
    variable: str,
    target: str,
    bounds: Bounds,
    *,
    over: float | None = None,
    **choice: str,
) -> Measured:
    place = strongest(run, target)
    draws = run.draws("neurons", variable, **choice)[(slice(None), *place)]
    detail = run.names.head(*place)
    return run.measured(draws, over=over, bounds=bounds, detail=detail, head=place)
