"""Claims that a head is the best of all at something, shared by the linguistic questions.

A head is named for a relation or a kind of mention only if it is the best of all heads there, and
only if the best head beats the baseline beyond the interval on documents that it was not chosen on.
Effects (see `core.claim`) have the baseline as their reference, or what chance gives for frames.
"""

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from headscope.core.accumulators import Bools
from headscope.core.claim import LEAST_EFFECT, Claim, effects
from headscope.core.results import Floats, at, best_places, documents, estimate, needed
from headscope.core.wording import percent

HELD_OUT = (
    "the head is the best of all for {what}, of {least} or more, and on documents that it was not "
    "chosen on it beats {rival}: the interval of the advantage{corrected} lies above 0; effect "
    "above 0.05"
)


def best_head_claims(
    tree: xr.DataTree, analysis: str, cells: Sequence[int],
    say: Callable[[int, str, str], tuple[str, str]], *, baseline: Floats, ahead: Bools,
    about: Sequence[str] = (), brief: str = "",
) -> list[Claim]:  # fmt: skip
    """Claims about the best heads of those cells of one dimension where they beat their baseline,
    with the share of heads on documents that they were not chosen on.

    say       cell, its share and the baseline in words -> the claim's name, and its sentence
    baseline  [cell] share without a model
    ahead     [cell] whether heads are surely above it where they were not chosen
    about     what the claims are about, by cell
    """
    dataset = needed(tree, analysis)
    share = estimate(dataset, "held_out")
    size, n = effects(share, baseline), documents(tree, dataset["accuracy"])
    claims = []
    for cell in cells:
        known = np.isfinite(dataset["best_head"].values[cell])
        if ahead[cell] and known and size[cell] > LEAST_EFFECT:
            layer, head = int(best_places(dataset)[cell]), int(dataset["best_head"][cell])
            ends, ordinary = at(share, cell), float(baseline[cell])
            what, sentence = say(cell, percent(*ends), percent(ordinary))
            claims.append(
                Claim(
                    layer, head, analysis, float(size[cell]), what, sentence, sentence, *ends,
                    ordinary, n, analysis, about[cell] if about else "", brief=brief,
                )
            )  # fmt: skip
    return claims


def by_norm(dataset: xr.Dataset) -> str:
    """What follows a number that is not by attention."""
    return " (weighted norm)" if dataset.attrs.get("measure") == "weighted_norm" else ""
