"""The few maps that show best what a head usually does.

Those that the run kept as most typical of the head's map class (group `patterns`). Where it kept
none, the inputs of the group `examples` in which the head's attention is divided most nearly as in
the whole corpus: by its shares to TARGETS and its entropy, as a share of the largest there could
be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core.head_attention import OFFSETS, TARGETS, attention_to, spread
from headscope.core.results import Floats, group, shape
from headscope.core.stored_maps import PUNCTUATION, Bools, StoredInput, stored_inputs

MAPS = 3  # of a head
LINKS = 5


@dataclass(frozen=True)
class TypicalMap:
    """One map of one head.

    tokens   [place] as the vocabulary has them; a place may stand for several
    special  [place] whether the tokenizer added it
    weights  [query, key]
    kind     the class of the map; '' where it is not known
    score    the classifier's probability of the class; NaN where it is not known
    away     from examples: the largest difference of a share from the head's mean; else NaN
    """

    tokens: tuple[str, ...]
    special: Bools
    weights: Floats
    kind: str = ""
    score: float = float("nan")
    away: float = float("nan")

    def links(self, *, most: int = LINKS) -> list[tuple[int, int, float]]:
        """(query, key, weight) of the strongest links, one per query at most, strongest first.

        Between tokens that the tokenizer did not add, where there are any; `rests` tells of those.
        """
        ordinary = np.flatnonzero(~self.special)
        places = ordinary if len(ordinary) else np.arange(len(self.tokens))
        keys = places[self.weights[np.ix_(places, places)].argmax(1)]
        strongest = [
            (int(query), int(key), float(self.weights[query, key]))
            for query, key in zip(places, keys, strict=True)
        ]
        return sorted(strongest, key=lambda link: (-link[2], link[0]))[:most]

    @property
    def rests(self) -> list[tuple[str, float]]:
        """Each kind of token that the tokenizer added, and its share of all attention."""
        shares: dict[str, float] = {}
        for at in np.flatnonzero(self.special).tolist():
            given = float(self.weights[:, at].mean())
            shares[self.tokens[at]] = shares.get(self.tokens[at], 0.0) + given
        return sorted(shares.items(), key=lambda item: -item[1])


class TypicalMaps:
    """The maps of every head of a run, read from it once."""

    def __init__(self, tree: xr.DataTree) -> None:
        patterns = group(tree, "patterns")
        self._typical = _arrays(patterns) if patterns is not None else {}
        self._special = {str(tree.attrs.get(f"{kind}_token", "")) for kind in ("cls", "sep")}
        self._kept = [] if self._typical else stored_inputs(tree)
        self._means = _means(tree)

    @property
    def source(self) -> str:
        """`patterns`, `examples`, or '' where there are no maps."""
        return "patterns" if self._typical else "examples" if self._kept else ""

    def of(self, layer: int, head: int) -> list[TypicalMap]:
        """The maps of one head, the most typical first; MAPS at most."""
        return (
            self._from_patterns(layer, head) if self._typical else self._from_examples(layer, head)
        )

    def _from_patterns(self, layer: int, head: int) -> list[TypicalMap]:
        stored = (array[layer, head, :MAPS] for array in self._typical.values())
        typical = []
        for map_, names, counts, kind, score in zip(*stored, strict=True):
            n = int((counts > 0).sum())
            weights = np.asarray(map_[:n, :n], np.float64)
            if n == 0 or not np.isfinite(weights).all():
                continue
            tokens = tuple(map(str, names[:n]))
            special = np.array([token in self._special for token in tokens])
            typical.append(TypicalMap(tokens, special, weights, str(kind), float(score)))
        return typical

    def _from_examples(self, layer: int, head: int) -> list[TypicalMap]:
        candidates = [
            TypicalMap(
                one.tokens, one.special, one.attention[layer, head].astype(np.float64),
                away=_away(one, one.attention[layer, head], self._means[:, layer, head]),
            )
            for one in self._kept
        ]  # fmt: skip
        order = sorted(range(len(candidates)), key=lambda at: (candidates[at].away, at))
        return [candidates[at] for at in order[:MAPS]]


def _arrays(patterns: xr.Dataset) -> dict[str, npt.NDArray[Any]]:
    """Of each map [layer, head, rank]: weights, tokens, their counts, class and score; or none."""
    names = ("typical", "typical_token", "typical_token_count", "typical_class", "typical_score")
    if "typical" not in patterns:
        return {}
    return {name: patterns[name].transpose("layer", "head", "rank", ...).values for name in names}


def _means(tree: xr.DataTree) -> Floats:
    """[quantity, layer, head] the corpus's shares of TARGETS and entropy; NaN where not known."""
    nats, uniform = spread(tree)
    parts = [attention_to(tree, target) for target in TARGETS]
    shares = [None if part is None else part.value for part in (*parts, nats)]
    means = [np.full(shape(tree), np.nan) if share is None else share for share in shares]
    return np.stack([*means[:-1], means[-1] / uniform])  # [quantity, layer, head]


def _away(kept: StoredInput, maps: Floats, means: Floats) -> float:
    """The largest difference between a head's shares in one input and in the corpus.

    0 where nothing is known of the corpus: then the inputs stay in order.
    """
    here = _shares(kept.tokens, kept.cls, kept.sep, maps.astype(np.float64))
    apart = np.abs(here - means)
    return float(np.nanmax(apart)) if np.isfinite(apart).any() else 0.0


def _shares(tokens: Sequence[str], cls: Bools, sep: Bools, maps: Floats) -> Floats:
    """[quantity] of one map, over all its queries; maps [query, key]."""
    n = len(tokens)
    columns = maps.mean(0)  # [key]
    logs = np.log(maps, out=np.zeros_like(maps), where=maps > 0)
    widest = np.log(n) if np.triu(maps, 1).any() else np.log(np.arange(1, n + 1)).mean()
    shares = [float(maps.diagonal(step).sum()) / n for step in OFFSETS.values()]
    shares += [float(columns[0]), float(columns[cls].sum()), float(columns[sep].sum())]
    shares += [float(columns[np.isin(tokens, PUNCTUATION)].sum())]
    shares += [float(-(maps * logs).sum(1).mean() / widest) if widest > 0 else np.nan]
    return np.array(shares)
