"""The few maps that show best what a head usually does, and shares of its classes, for its card.

The maps that the run kept as most typical of the head's map class (group `patterns`). Where it kept
none, the inputs of the group `examples` in which the head's attention is divided most nearly as in
the whole corpus: by its shares to TARGETS and its entropy, as a share of the largest there could
be.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from headscope.analyses.patterns.claims import NAMED
from headscope.claims.card_part import MAPS, CardPart, HeadMaps, TypicalMap, named_ends
from headscope.claims.head_attention import TARGETS, attention_to, map_entropy, map_shares, spread
from headscope.claims.reading import Reading
from headscope.core.display import printable
from headscope.core.results import Floats, at
from headscope.core.stored_maps import StoredInput, stored_inputs
from headscope.core.wording import percent

STORED = ("typical", "typical_token", "typical_token_count", "typical_class", "typical_score")


def head_maps(run: Reading) -> HeadMaps:
    """The typical maps of every head of a run."""
    tree, kept = run.tree, stored_inputs(run.tree)
    if run.there and "typical" in run.data:
        typical = run.data[list(STORED)].transpose("layer", "head", "rank", ...)
        special = {str(tree.attrs.get(f"{kind}_token", "")) for kind in ("cls", "sep")}
        words = (
            "of the classes that most maps of the head belong to, those that the classifier is "
            "surest of"
        )
        return HeadMaps("patterns", words, partial(_of_classes, typical, special))
    if kept:
        words = "of the inputs that the run kept, those nearest to the head’s means"
        return HeadMaps("examples", words, partial(_nearest, kept, _means(tree)))
    return HeadMaps("", "", lambda layer, head: [])


def _of_classes(typical: xr.Dataset, special: set[str], layer: int, head: int) -> list[TypicalMap]:
    stored = (typical[name].values[layer, head, :MAPS] for name in STORED)
    maps = []
    for map_, names, counts, kind, score in zip(*stored, strict=True):
        n = int((counts > 0).sum())
        weights = np.asarray(map_[:n, :n], np.float64)
        if n == 0 or not np.isfinite(weights).all():
            continue
        tokens = tuple(map(str, names[:n]))
        added = np.array([token in special for token in tokens])
        title = class_title(str(kind))
        maps.append(TypicalMap(tokens, added, weights, str(kind), title, float(score)))
    return maps


def _nearest(
    kept: list[StoredInput], means: dict[str, Floats], layer: int, head: int
) -> list[TypicalMap]:
    maps = [one.attention[layer, head].astype(np.float64) for one in kept]
    own = {name: mean[layer, head] for name, mean in means.items()}
    typical = [
        TypicalMap(one.tokens, one.special, weights, away=_away(one, weights, own))
        for one, weights in zip(kept, maps, strict=True)
    ]
    return sorted(typical, key=lambda one: one.away)[:MAPS]


def _means(tree: xr.DataTree) -> dict[str, Floats]:
    """Target, or "entropy" -> [layer, head] the corpus's share; only those that the run has."""
    shares = {name: attention_to(tree, name) for name in TARGETS}
    nats, uniform = spread(tree)
    means = {name: share.value for name, share in shares.items() if share is not None}
    return means if nats is None else means | {"entropy": nats.value / uniform}


def _away(kept: StoredInput, maps: Floats, means: dict[str, float]) -> float:
    """The largest difference between a head's shares in one input and in the corpus.

    0 where nothing is known of the corpus: then the inputs stay in order.
    """
    n = len(maps)
    kinds = {"cls": kept.cls, "sep": kept.sep, "punctuation": kept.punctuation}
    here = map_shares(maps, np.full(n, 1 / n), kinds)
    widest = np.log(n) if np.triu(maps, 1).any() else np.log(np.arange(1, n + 1)).mean()
    if widest > 0:
        here["entropy"] = map_entropy(maps, np.full(n, 1 / n)) / widest
    apart = [abs(here[name] - mean) for name, mean in means.items() if name in here]
    return float(np.nanmax(apart)) if np.isfinite(apart).any() else 0.0


def class_title(kind: str) -> str:
    """A class of maps in words."""
    return NAMED.get(kind, printable(kind))


def _classes(run: Reading, layer: int, head: int) -> dict[str, tuple[float, float, float]]:
    if not run.there or "share" not in run.data:
        return {}
    names = [str(name) for name in run.data["pattern"].values]
    return {name: at(run("share", pattern=name), layer, head) for name in names}


def _lines(run: Reading, layer: int, head: int) -> Iterator[str]:
    shares = _classes(run, layer, head)
    for name, ends in sorted(shares.items(), key=lambda item: -np.nan_to_num(item[1][0])):
        if np.isfinite(ends[0]):
            yield f"{class_title(name):<21}{percent(*ends)}"


def _data(run: Reading, layer: int, head: int) -> dict[str, Any]:
    shares = _classes(run, layer, head)
    return {"classes": {name: named_ends(ends) for name, ends in shares.items()}}


CARD = CardPart(place=20, title="Classes of its maps", lines=_lines, data=_data, maps=head_maps)
