"""Which few maps show best what a head usually does?

Those that the run kept as most typical of the head's map class (group `patterns`). Where it kept
none, the inputs of the group `examples` in which the head's attention is divided most nearly as in
the whole corpus: by its shares to TARGETS and its entropy, as a share of the largest there could
be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
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
        found = [
            (int(query), int(key), float(self.weights[query, key]))
            for query, key in zip(places, keys, strict=True)
        ]
        return sorted(found, key=lambda link: (-link[2], link[0]))[:most]

    @property
    def rests(self) -> list[tuple[str, float]]:
        """Each kind of token that the tokenizer added, and its share of all attention."""
        found: dict[str, float] = {}
        for at in np.flatnonzero(self.special).tolist():
            given = float(self.weights[:, at].mean())
            found[self.tokens[at]] = found.get(self.tokens[at], 0.0) + given
        return sorted(found.items(), key=lambda item: -item[1])


class TypicalMaps:
    """The maps of every head of a run, read from it once."""

    def __init__(self, tree: xr.DataTree) -> None:
        patterns = group(tree, "patterns")
        self._typical = patterns if patterns is not None and "typical" in patterns else None
        self._special = {str(tree.attrs.get(f"{kind}_token", "")) for kind in ("cls", "sep")}
        self._kept = [] if self._typical is not None else stored_inputs(tree)
        self._means = _means(tree)

    @property
    def source(self) -> str:
        """`patterns`, `examples`, or '' where there are no maps."""
        return "patterns" if self._typical is not None else "examples" if self._kept else ""

    def of(self, layer: int, head: int) -> list[TypicalMap]:
        """The maps of one head, the most typical first; MAPS at most."""
        if self._typical is not None:
            return self._from_patterns(self._typical.isel(layer=layer, head=head))
        return self._from_examples(layer, head)

    def _from_patterns(self, here: xr.Dataset) -> list[TypicalMap]:
        maps = here["typical"].transpose("rank", "query", "key").values
        names = here["typical_token"].transpose("rank", "query").values
        counts = here["typical_token_count"].transpose("rank", "query").values
        found = []
        for at in range(min(len(maps), MAPS)):
            n = int((counts[at] > 0).sum())
            weights = np.asarray(maps[at, :n, :n], np.float64)
            if n == 0 or not np.isfinite(weights).all():
                continue
            tokens = tuple(map(str, names[at, :n]))
            special = np.array([token in self._special for token in tokens])
            kind, score = str(here["typical_class"].values[at]), float(here["typical_score"][at])
            found.append(TypicalMap(tokens, special, weights, kind, score))
        return found

    def _from_examples(self, layer: int, head: int) -> list[TypicalMap]:
        found = [
            TypicalMap(
                one.tokens, one.special, one.attention[layer, head].astype(np.float64),
                away=_away(one, one.attention[layer, head], self._means[:, layer, head]),
            )
            for one in self._kept
        ]  # fmt: skip
        order = sorted(range(len(found)), key=lambda at: (found[at].away, at))
        return [found[at] for at in order[:MAPS]]


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
