"""Claims that a head looks for a kind of words, or from one kind to another.

Kovaleva et al. (2019), sections 4.4 and 4.5, give no threshold. Only the head of the largest value
is named, and only if it stands far out. The weighted norm has no ceiling, so that an effect would
be on no common scale: no claims are made by it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from headscope.core.claim import Claim, effects
from headscope.core.dictionary import name
from headscope.core.relation_names import LEAST_WORDS
from headscope.core.results import at, documents, estimate, group, surely
from headscope.core.wording import percent

SENTENCES = {
    "feature": "looks for {kind}: the most attended takes {words} of the attention of all tokens, "
    "where {ordinary} is ordinary",
    "pair": "attends from {kind}, {words}, where {ordinary} is ordinary",
}


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
