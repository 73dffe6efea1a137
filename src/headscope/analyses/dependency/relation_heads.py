"""The best head of each relation, and the sentences that show best what these heads do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.relation_names import frequent_relations
from headscope.core.results import Floats, estimate

DIRECTIONS = {"dependent_to_head": "d→h", "head_to_dependent": "h→d"}
RELATIONS = 6  # as many as there are hues that can be told apart
SENTENCES = 4
WEAKEST = 0.1  # share of the scale: weaker attention is not drawn, unless it is a word's largest


@dataclass(frozen=True, slots=True)
class RelationHead:
    """The best head of one relation.

    relation   as the treebank calls it
    count      words asked about
    place      (layer, head), from 0
    direction  a key of DIRECTIONS
    offset     the best fixed offset, in words
    score      accuracy on documents that the head was not chosen on
    chosen     accuracy on the data that it was chosen on
    baseline   accuracy of the best fixed offset
    advantage  score less the baseline
    """

    relation: str
    count: int
    place: tuple[int, int]
    direction: str
    offset: int
    score: Estimate
    chosen: Estimate
    baseline: Estimate
    advantage: Estimate

    @property
    def beats(self) -> bool:
        """Whether the interval of the advantage lies above 0; False where there is none."""
        return bool(self.advantage.low > 0)

    @property
    def ahead(self) -> float:
        """How far the head is ahead of the offset; where nothing was held out, on the same data."""
        held_out = float(self.advantage.value)
        return held_out if np.isfinite(held_out) else float(self.chosen.value - self.baseline.value)

    @property
    def accuracy(self) -> Estimate:
        """The score; where nothing could be held out, the accuracy on the same data."""
        return self.score if np.isfinite(self.score.value) else self.chosen

    @property
    def head_name(self) -> str:
        """As papers name it."""
        return f"L{self.place[0] + 1}·H{self.place[1] + 1}"


def relation_heads(dependency: xr.Dataset) -> list[RelationHead]:
    """One for every relation that was scored: TOTALS, then the labels, the most frequent first."""
    heads = (_relation_head(dependency, at) for at in range(dependency.sizes["relation"]))
    return [best for best in heads if best is not None]


def frequent_relation_heads(dependency: xr.Dataset) -> list[RelationHead]:
    """Those of frequent relations, without root and punctuation; see `frequent_relations`."""
    heads = (_relation_head(dependency, at) for at in frequent_relations(dependency))
    return [best for best in heads if best is not None]


def chosen_where(heads: Sequence[RelationHead]) -> str:
    """On what the best heads were chosen and scored, in words for a caption."""
    if any(np.isfinite(best.score.value) for best in heads):
        return "chosen on one half of the documents and scored on the other, both ways"
    return "chosen and scored on the same data"


def _relation_head(dependency: xr.Dataset, at: int) -> RelationHead | None:
    here = dependency.isel(relation=at)
    where = [float(here[f"best_{name}"]) for name in ("layer", "head", "direction", "offset")]
    if not np.isfinite(where).all() or int(here["count"]) == 0:
        return None
    layer, head, direction, offset = (int(number) for number in where)
    return RelationHead(
        str(dependency["relation"].values[at]),
        int(here["count"]),
        (layer, head),
        str(dependency["direction"].values[direction]),
        offset,
        *(estimate(here, name) for name in ("held_out", "best_accuracy", "baseline", "advantage")),
    )


@dataclass(frozen=True, slots=True)
class TreebankArc:
    """One relation of the treebank between two words."""

    dependent: int
    head: int
    relation: str


@dataclass(frozen=True, slots=True)
class AttentionArc:
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
class ParsedSentence:
    """One sentence of the group `examples`.

    words      as in the corpus
    arcs       its relations, the root's left out
    attention  [layer, head, word, word_other]
    """

    words: list[str]
    arcs: list[TreebankArc]
    attention: Floats

    def attention_arcs(self, best: RelationHead, *, top: float) -> list[AttentionArc]:
        """The attention by which the best head answers for the words of its relation.

        top  the scale's end; weights below WEAKEST of it are left out, but not the largest
        """
        maps = self.attention[best.place].copy()  # [word, word_other]
        np.fill_diagonal(maps, 0)
        from_dependent = best.direction == "dependent_to_head"
        arcs = []
        for arc in self.arcs:
            if arc.relation == best.relation:
                weights = maps[arc.dependent] if from_dependent else maps[:, arc.dependent]
                arcs += _arcs(weights, arc, from_dependent=from_dependent, least=top * WEAKEST)
        return arcs


def chosen_relations(dependency: xr.Dataset) -> list[RelationHead]:
    """The relations whose best heads are furthest ahead of their offset, beyond the interval.

    Where nothing has an interval, those furthest ahead.
    """
    known = frequent_relation_heads(dependency)
    ahead = [best for best in known if best.beats]
    if not any(np.isfinite(best.advantage.low) for best in known):
        ahead = [best for best in known if best.ahead > 0]
    return sorted(ahead, key=lambda best: -best.ahead)[:RELATIONS]


def parsed_sentences(examples: xr.Dataset) -> list[ParsedSentence]:
    """All sentences that have been seen, in the order of the data."""
    maps = examples["attention"].transpose("example", "layer", "head", "word", "word_other").values
    texts, relations, heads = (
        examples[name].transpose("example", "word").values
        for name in ("text", "relation", "head_word")
    )
    sentences = []
    for at in range(len(maps)):
        there = np.flatnonzero(heads[at] > -2)
        arcs = [
            TreebankArc(int(word), int(heads[at, word]), str(relations[at, word]))
            for word in there
            if 0 <= heads[at, word] < len(there)
        ]
        attention = maps[at][..., : len(there), : len(there)].astype(np.float64)
        if np.isfinite(attention).any():
            sentences.append(
                ParsedSentence([str(word) for word in texts[at, there]], arcs, attention)
            )
    return sentences


def chosen_sentences(
    sentences: list[ParsedSentence], relations: list[RelationHead]
) -> list[ParsedSentence]:
    """At most SENTENCES that together show most relations; how heads attend plays no part."""
    names = {best.relation for best in relations}
    marked = [[arc.relation for arc in each.arcs if arc.relation in names] for each in sentences]
    left = [at for at, labels in enumerate(marked) if labels]
    chosen: list[int] = []
    shown: set[str] = set()
    while left and len(chosen) < SENTENCES:
        best = max(left, key=lambda at: (len(set(marked[at]) - shown), len(set(marked[at])), -at))
        left.remove(best)
        chosen.append(best)
        shown |= set(marked[best])
    return [sentences[at] for at in chosen]


def _arcs(
    weights: Floats, arc: TreebankArc, *, from_dependent: bool, least: float
) -> list[AttentionArc]:
    """The attention of (or to) one dependent, from its weights [word]."""
    weights = np.nan_to_num(weights)
    best = int(weights.argmax())
    arcs = []
    for word in np.flatnonzero((weights >= least) | (np.arange(len(weights)) == best)).tolist():
        if weights[word] > 0:
            pair = (arc.dependent, word) if from_dependent else (word, arc.dependent)
            arcs.append(AttentionArc(*pair, float(weights[word]), word == best, word == arc.head))
    return arcs
