"""The best head of each relation, and the sentences that show best what these heads do."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import xarray as xr

from headscope.claims.relation_names import frequent_relations
from headscope.core.intervals import Estimate
from headscope.core.results import Floats, best_places, estimate

DIRECTIONS = {"dependent_to_head": "d→h", "head_to_dependent": "h→d"}
RELATIONS = 6  # the number of distinguishable hues
SENTENCES = 4
WEAKEST = 0.1  # share of the scale: weaker attention is not drawn, unless it is a word's largest


@dataclass(frozen=True, slots=True)
class RelationHead:
    """The best head of one relation.

    relation   as the treebank calls it
    count      words that count
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


def relation_heads(
    dependency: xr.Dataset, among: Sequence[int] | None = None
) -> list[RelationHead]:
    """Every relation scored, or `among` positions: TOTALS, then labels, the most frequent first."""
    scored, count = list[RelationHead](), dependency["count"].values
    others = (dependency[f"best_{name}"].values for name in ("head", "direction", "offset"))
    where = np.stack([best_places(dependency), *others], 1)  # [relation, part of a place]
    names = ("held_out", "best_accuracy", "baseline", "advantage")
    numbers = [estimate(dependency, name) for name in names]  # [relation] each
    labels, directions = (dependency[name].values for name in ("relation", "direction"))
    for place in range(len(labels)) if among is None else among:
        if np.isfinite(where[place]).all() and count[place]:
            layer, head, direction, offset = map(int, where[place])
            scored.append(
                RelationHead(
                    str(labels[place]),
                    int(count[place]),
                    (layer, head),
                    str(directions[direction]),
                    offset,
                    *(one.map(itemgetter(place)) for one in numbers),
                )
            )
    return scored


def frequent_relation_heads(dependency: xr.Dataset) -> list[RelationHead]:
    """Those of frequent relations, without root and punctuation; see `frequent_relations`."""
    return relation_heads(dependency, frequent_relations(dependency))


def any_interval(heads: Sequence[RelationHead]) -> bool:
    """Whether the advantage of any has an interval."""
    return any(np.isfinite(best.advantage.low) for best in heads)


def chosen_relations(dependency: xr.Dataset) -> list[RelationHead]:
    """Those furthest ahead of their offset, beyond the interval where anything has one."""
    known = frequent_relation_heads(dependency)
    ahead = [best for best in known if best.beats]
    if not any_interval(known):
        ahead = [best for best in known if best.ahead > 0]
    return sorted(ahead, key=lambda best: -best.ahead)[:RELATIONS]


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
        maps = np.nan_to_num(self.attention[best.place])  # [word, word_other]
        np.fill_diagonal(maps, 0)
        from_dependent = best.direction == "dependent_to_head"
        arcs = []
        for arc in (arc for arc in self.arcs if arc.relation == best.relation):
            weights = maps[arc.dependent] if from_dependent else maps[:, arc.dependent]
            largest = int(weights.argmax())
            shown = (weights >= top * WEAKEST) | (np.arange(len(weights)) == largest)
            for word in np.flatnonzero(shown & (weights > 0)).tolist():
                pair = (arc.dependent, word) if from_dependent else (word, arc.dependent)
                weight, right = float(weights[word]), word == arc.head
                arcs.append(AttentionArc(*pair, weight, word == largest, right))
        return arcs


def parsed_sentences(examples: xr.Dataset) -> list[ParsedSentence]:
    """All sentences that have been seen, in the order of the data."""
    maps = examples["attention"].transpose("example", "layer", "head", "word", "word_other").values
    texts, relations, heads = (
        examples[name].transpose("example", "word").values
        for name in ("text", "relation", "head_word")
    )
    sentences = []
    for seen, words, labels, head in zip(maps, texts, relations, heads, strict=True):
        there = np.flatnonzero(head > -2).tolist()
        size = len(there)
        attention = seen[..., :size, :size].astype(np.float64)
        if np.isfinite(attention).any():
            arcs = [
                TreebankArc(word, int(head[word]), str(labels[word]))
                for word in there
                if 0 <= head[word] < size
            ]
            sentences.append(ParsedSentence([str(words[word]) for word in there], arcs, attention))
    return sentences


def chosen_sentences(
    sentences: list[ParsedSentence], relations: list[RelationHead]
) -> list[ParsedSentence]:
    """At most SENTENCES that together show most relations; how heads attend plays no part."""
    names = {best.relation for best in relations}
    marked = [[arc.relation for arc in each.arcs if arc.relation in names] for each in sentences]
    left = [place for place, labels in enumerate(marked) if labels]
    chosen: list[ParsedSentence] = []
    shown: set[str] = set()
    while left and len(chosen) < SENTENCES:
        best = max(left, key=lambda at: (len(set(marked[at]) - shown), len(set(marked[at])), -at))
        left.remove(best)
        chosen.append(sentences[best])
        shown |= set(marked[best])
    return chosen
