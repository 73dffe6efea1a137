"""Claims that a head is the best of all at something, shared by the linguistic questions.

A head is named for a relation or a kind of mention only if it is the best of all heads there, and
only if the best head beats the baseline beyond the interval on documents that it was not chosen on.
Effects (see `core.claim`) have the baseline as their reference, or what chance gives for frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.claim import Claim, effects
from headscope.core.results import Floats
from headscope.core.wording import percent

BEST, RELATION = "best_layer", "relation"
WEIGHTED = " (weighted norm)"
HELD_OUT = (
    "the head is the best of all for {what}, of 25 or more, and on documents that it was not "
    "chosen on it beats {rival}: the interval of the advantage lies above 0; effect above 0.05"
)


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
    for at in cells:
        if not np.isfinite(size[at]):
            continue
        layer, head = (int(dataset[name].values[at]) for name in ("best_layer", "best_head"))
        value, low, high = (float(part[at]) for part in (share.value, share.low, share.high))
        ordinary = float(reference[at])
        about = (
            str(dataset[dim].values[at]) if (dim := str(dataset[BEST].dims[0])) == RELATION else ""
        )
        name, sentence = say(at)
        yield Claim(
            layer, head, kind, float(size[at]), name, sentence, sentence,
            value, low, high, ordinary, n, kind, about, brief=brief,
        )  # fmt: skip


def percent_at(share: Estimate, at: int) -> str:
    """One cell as a share with its interval."""
    return percent(float(share.value[at]), float(share.low[at]), float(share.high[at]))


def by_norm(dataset: xr.Dataset) -> str:
    """What follows a number that is not by attention."""
    return WEIGHTED if dataset.attrs.get("measure") == "weighted_norm" else ""
