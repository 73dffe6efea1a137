"""Claims that a head is the best of all at something, shared by the linguistic questions.

A head is named for a relation or a kind of mention only if it is the best of all heads there, and
only if the best head beats the baseline beyond the interval on documents that it was not chosen on.
Effects (see `core.claim`) have the baseline as their reference, or what chance gives for frames.

Claims that a head looks for a kind of words, or from one kind to another.

Kovaleva et al. (2019), sections 4.4 and 4.5, give no threshold. Only the head of the largest value
is named, and only if it stands far out. The weighted norm has no ceiling, so that an effect would
be on no common scale: no claims are made by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.claim import Claim, effects
from headscope.core.dictionary import name
from headscope.core.relation_names import LEAST_WORDS
from headscope.core.results import Floats, at, documents, estimate, group, surely
from headscope.core.wording import percent

RELATION = "relation"
WEIGHTED = " (weighted norm)"
HELD_OUT = (
    "the head is the best of all for {what}, of 25 or more, and on documents that it was not "
    "chosen on it beats {rival}: the interval of the advantage lies above 0; effect above 0.05"
)
SENTENCES = {
    "feature": "looks for {kind}: the most attended takes {words} of the attention of all tokens, "
    "where {ordinary} is ordinary",
    "pair": "attends from {kind}, {words}, where {ordinary} is ordinary",
}


def best_head_claims(
    dataset: xr.Dataset,
    share: Estimate,
    reference: Floats,
    *,
    kind: str,
    cells: list[int],
    say: Callable[[int], tuple[str, str]],
    n: int,
    brief: str = "",
) -> Iterator[Claim]:
    """Claims about the best heads of some cells of one dimension."""
    size = effects(share, reference)
    for cell in cells:
        if not np.isfinite(size[cell]):
            continue
        layer, head = (int(dataset[name].values[cell]) for name in ("best_layer", "best_head"))
        value, low, high = (float(part[cell]) for part in (share.value, share.low, share.high))
        ordinary = float(reference[cell])
        dim = str(dataset["best_layer"].dims[0])
        about = str(dataset[dim].values[cell]) if dim == RELATION else ""
        name, sentence = say(cell)
        yield Claim(
            layer, head, kind, float(size[cell]), name, sentence, sentence,
            value, low, high, ordinary, n, kind, about, brief=brief,
        )  # fmt: skip


def percent_at(share: Estimate, at: int) -> str:
    """One cell as a share with its interval."""
    return percent(float(share.value[at]), float(share.low[at]), float(share.high[at]))


def by_norm(dataset: xr.Dataset) -> str:
    """What follows a number that is not by attention."""
    return WEIGHTED if dataset.attrs.get("measure") == "weighted_norm" else ""


def word_claims(
    tree: xr.DataTree,
    analysis: str,
    dim: str,
    choices: tuple[str, ...],
    *,
    least: float,
    times: float,
) -> Iterator[Claim]:
    """At most one claim per choice: of the head of the largest value.

    dim    `feature` or `pair`: the dimension of the choices, and the kind of the claims
    least  what the lower end of its interval must exceed
    times  and how many times the mean head
    """
    dataset = group(tree, analysis)
    if dataset is None or dataset.attrs.get("measure", "attention") != "attention":
        return
    n = documents(tree, dataset["attention"])
    for choice in choices:
        share = estimate(dataset, "attention", **{dim: choice})
        if choice not in dataset[dim].values or not np.isfinite(share.value).any():
            continue
        if int(dataset["count"].sel({dim: choice})) < LEAST_WORDS:
            continue
        reference = float(np.nanmean(share.value))
        layer, head = map(int, divmod(int(np.nanargmax(share.value)), share.value.shape[1]))
        if surely(share)[layer, head] > max(least, times * reference):
            size = float(effects(share, reference)[layer, head])
            ends = at(share, layer, head)
            words, ordinary = percent(*ends), percent(reference, np.nan, np.nan)
            goal = f"to {name(choice)}" if dim == "feature" else name(choice)
            yield Claim(
                layer, head, dim, size, goal, f"{goal}, {words}, mean head {ordinary}",
                SENTENCES[dim].format(kind=name(choice), words=words, ordinary=ordinary),
                *ends, reference, n, analysis, choice,
            )  # fmt: skip
