"""Which sentences and relations are worth drawing, and how do their best heads attend there?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.analyses.language.finders import Finder, shown_finders
from headscope.core.results import Floats

RELATIONS = 6  # as many as there are hues that can be told apart
SENTENCES = 4
WEAKEST = 0.1  # share of the scale: weaker attention is not drawn, unless it is a word's largest


@dataclass(frozen=True, slots=True)
class Gold:
    """One relation of the treebank between two words."""

    dependent: int
    head: int
    relation: str


@dataclass(frozen=True, slots=True)
class Look:
    """How much one word attends to another.

    source, target  who attends to whom
    weight          as measured
    largest         whether it is the answer that is scored
    right           whether the two words do stand in the relation
    """

    source: int
    target: int
    weight: float
    largest: bool
    right: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the group `examples`.

    words      as in the corpus
    gold       its relations, the root's left out
    attention  [layer, head, word, word_other]
    """

    words: list[str]
    gold: list[Gold]
    attention: Floats

    def looks(self, finder: Finder, *, top: float) -> list[Look]:
        """The attention by which the best head answers for the words of its relation.

        top  the scale's end; weights below WEAKEST of it are left out, but not the largest
        """
        maps = self.attention[finder.place].copy()  # [word, word_other]
        np.fill_diagonal(maps, 0)
        from_dependent = finder.direction == "dependent_to_head"
        found = []
        for gold in self.gold:
            if gold.relation == finder.relation:
                weights = maps[gold.dependent] if from_dependent else maps[:, gold.dependent]
                found += _looks(weights, gold, from_dependent=from_dependent, least=top * WEAKEST)
        return found


def chosen_relations(dependency: xr.Dataset) -> list[Finder]:
    """The relations whose best heads are furthest ahead of their offset, beyond the interval.

    Where nothing has an interval, those furthest ahead.
    """
    known = shown_finders(dependency)
    ahead = [finder for finder in known if finder.beats]
    if not any(np.isfinite(finder.advantage.low) for finder in known):
        ahead = [finder for finder in known if finder.ahead > 0]
    return sorted(ahead, key=lambda finder: -finder.ahead)[:RELATIONS]


def sentences(examples: xr.Dataset) -> list[Sentence]:
    """All sentences that have been seen, in the order of the data."""
    maps = examples["attention"].transpose("example", "layer", "head", "word", "word_other").values
    texts, relations, heads = (
        examples[name].transpose("example", "word").values
        for name in ("text", "relation", "head_word")
    )
    found = []
    for at in range(len(maps)):
        there = np.flatnonzero(heads[at] > -2)
        gold = [
            Gold(int(word), int(heads[at, word]), str(relations[at, word]))
            for word in there
            if 0 <= heads[at, word] < len(there)
        ]
        attention = maps[at][..., : len(there), : len(there)].astype(np.float64)
        if np.isfinite(attention).any():
            found.append(Sentence([str(word) for word in texts[at, there]], gold, attention))
    return found


def chosen_sentences(found: list[Sentence], relations: list[Finder]) -> list[Sentence]:
    """At most SENTENCES that together show most relations; how heads attend plays no part."""
    names = {finder.relation for finder in relations}
    marked = [[gold.relation for gold in each.gold if gold.relation in names] for each in found]
    left = [at for at, labels in enumerate(marked) if labels]
    chosen: list[int] = []
    shown: set[str] = set()
    while left and len(chosen) < SENTENCES:
        best = max(left, key=lambda at: (len(set(marked[at]) - shown), len(set(marked[at])), -at))
        left.remove(best)
        chosen.append(best)
        shown |= set(marked[best])
    return [found[at] for at in chosen]


def _looks(weights: Floats, gold: Gold, *, from_dependent: bool, least: float) -> list[Look]:
    """The attention of (or to) one dependent, from its weights [word]."""
    weights = np.nan_to_num(weights)
    best = int(weights.argmax())
    found = []
    for word in np.flatnonzero((weights >= least) | (np.arange(len(weights)) == best)).tolist():
        if weights[word] > 0:
            pair = (gold.dependent, word) if from_dependent else (word, gold.dependent)
            found.append(Look(*pair, float(weights[word]), word == best, word == gold.head))
    return found
