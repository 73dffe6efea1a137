"""What does a head know of language: which relations, mentions and frames does it find?

A head is told for a relation or a kind of mention only if it is the best of all heads there, and
only if the best head beats the baseline beyond the interval on documents that it was not chosen on.
Effects (see `claim`) have the baseline as their reference, or what chance gives for frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.claim import LEAST_EFFECT, Claim, effects
from headscope.core.relation_names import arrow
from headscope.core.results import (
    LEAST_WORDS,
    Floats,
    documents,
    estimate,
    group,
    printable,
    shown_relations,
)
from headscope.core.wording import percent

FUNCTIONS = ("dependency", "coreference", "frames")  # the kinds of these claims
CERTAIN = 0.05  # p of a frame head, corrected for looking at all heads
WEIGHTED = " (weighted norm)"
MENTIONS = {
    "all": "mentions",
    "pronoun": "pronouns",
    "proper": "proper names",
    "nominal": "common noun phrases",
}
NEAREST = "nearest"


def function_claims(tree: xr.DataTree) -> list[Claim]:
    """Every claim about language of an effect above LEAST_EFFECT, in no meant order."""
    made = [*_relations(tree), *_mentions(tree), *_frames(tree)]
    return [claim for claim in made if claim.effect > LEAST_EFFECT]


def _relations(tree: xr.DataTree) -> Iterator[Claim]:
    """One claim per relation that is beaten: `direct object → verb, 86 % [84, 88], …`."""
    dataset = group(tree, "dependency")
    if dataset is None:
        return
    share, baseline = estimate(dataset, "best_accuracy"), dataset["baseline"].values
    ahead = estimate(dataset, "advantage").low > 0
    way = dataset["best_direction"].values

    def say(at: int) -> tuple[str, str]:
        direction = str(dataset["direction"].values[int(way[at])])
        words = arrow(printable(dataset["relation"].values[at]), direction)
        ordinary = percent(float(baseline[at]), np.nan, np.nan)
        return words, f"{words}, {_percent(share, at)}{_by(dataset)}, baseline {ordinary}"

    cells = [at for at in shown_relations(dataset) if ahead[at]]
    n = documents(tree, dataset["accuracy"])
    yield from _claims(dataset, share, baseline, kind="dependency", cells=cells, say=say, n=n)


def _mentions(tree: xr.DataTree) -> Iterator[Claim]:
    """One claim per kind of mention at which the nearest mention is beaten."""
    dataset = group(tree, "coreference")
    if dataset is None:
        return
    share = estimate(dataset, "best_accuracy")
    baseline = estimate(dataset, "baseline", system=NEAREST).value
    ahead = estimate(dataset, "advantage", system=NEAREST).low > 0
    kinds = dataset["mention_type"].values.tolist()

    def say(at: int) -> tuple[str, str]:
        ordinary = percent(float(baseline[at]), np.nan, np.nan)
        kind = MENTIONS.get(kinds[at], printable(kinds[at]))
        return f"coreference of {kind}", (
            f"coreference: antecedent found for {_percent(share, at)} of {kind}{_by(dataset)}, "
            f"nearest mention {ordinary}"
        )

    cells = np.flatnonzero(ahead & (dataset["count"].values >= LEAST_WORDS)).tolist()
    n = documents(tree, dataset["accuracy"])
    yield from _claims(dataset, share, baseline, kind="coreference", cells=cells, say=say, n=n)


def _frames(tree: xr.DataTree) -> Iterator[Claim]:
    """One claim per head and direction of a score that chance does not give.

    None by weighted norm: it has no ceiling, so an effect would be on no common scale.
    """
    dataset = group(tree, "frames")
    if dataset is None or _by(dataset):
        return
    for end, words in (("", "frame element → target"), ("_reversed", "target → frame element")):
        score = estimate(dataset, f"score{end}")
        chance = dataset[f"chance{end}"].values
        sure = dataset[f"p_value{end}"].values <= CERTAIN
        size = effects(score, chance)
        for layer, head in np.argwhere(sure & np.isfinite(size)).tolist():
            value, low, high = (float(p[layer, head]) for p in (score.value, score.low, score.high))
            ordinary = float(chance[layer, head])
            sentence = (
                f"{words}, {percent(value, low, high)} of its attention, "
                f"chance {percent(ordinary, np.nan, np.nan)}"
            )
            n = documents(tree, dataset["score"])
            yield Claim(
                layer, head, "frames", float(size[layer, head]), words, sentence, sentence,
                value, low, high, ordinary, n, "frames",
            )  # fmt: skip


def _claims(
    dataset: xr.Dataset,
    share: Estimate,
    reference: Floats,
    *,
    kind: str,
    cells: list[int],
    say: Callable[[int], tuple[str, str]],
    n: int,
) -> Iterator[Claim]:
    """Claims about the best heads of some cells of one dimension."""
    size = effects(share, reference)
    for at in cells:
        if not np.isfinite(size[at]):
            continue
        layer, head = (int(dataset[name].values[at]) for name in ("best_layer", "best_head"))
        value, low, high = (float(part[at]) for part in (share.value, share.low, share.high))
        ordinary = float(reference[at])
        about = str(dataset["relation"].values[at]) if kind == "dependency" else ""
        name, sentence = say(at)
        yield Claim(
            layer, head, kind, float(size[at]), name, sentence, sentence,
            value, low, high, ordinary, n, kind, about,
        )  # fmt: skip


def _percent(share: Estimate, at: int) -> str:
    return percent(float(share.value[at]), float(share.low[at]), float(share.high[at]))


def _by(dataset: xr.Dataset) -> str:
    """What follows a number that is not by attention."""
    return WEIGHTED if dataset.attrs.get("measure") == "weighted_norm" else ""
