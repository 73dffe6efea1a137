"""Makes trees of a probe's scores and counts right words, arcs and sentences, with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import log_softmax

from headscope.core.accumulators import Estimate, Float64, bootstrap_weights, estimate, ratio
from headscope.experiments.probes.treebank_splits import ROOT, Bools, Ints, TreeSentence

Floats = npt.NDArray[np.floating]
LENGTHS = range(5, 51)  # of sentences whose rank correlations are averaged (Hewitt and Manning)


# --- trees ------------------------------------------------------------------------------------


def undirected_weights(scores: Floats) -> Floats:
    """[word, word] log of p(j | i) + p(i | j), from scores [dependent, candidate]; ROOT is no word.

    How likely there is an arc between two words, whichever is the head (ours; Clark et al. make no
    trees).
    """
    log = log_softmax(np.asarray(scores, np.float64), axis=1)[:, 1:]  # [dependent, word]
    return np.asarray(np.logaddexp(log, log.T))


def spanning_edges(weights: Floats, kept: Bools) -> list[tuple[int, int]]:
    """The edges of the maximum spanning tree over the words that are kept, the lesser word first.

    weights  [word, word] symmetric, finite
    """
    words = np.flatnonzero(kept)
    if len(words) < 2:
        return []
    inner = np.asarray(weights, np.float64)[np.ix_(words, words)]
    cost = inner.max() - inner + 1  # scipy takes 0 for no edge; a constant changes no tree
    tree = minimum_spanning_tree(cost).tocoo()
    pairs = zip(words[tree.row].tolist(), words[tree.col].tolist(), strict=True)
    return sorted((min(pair), max(pair)) for pair in pairs)


def gold_edges(sentence: TreeSentence) -> set[tuple[int, int]]:
    """The arcs between words that may be part of an undirected tree, the lesser word first."""
    found = set()
    for word, head in enumerate((sentence.head - 1).tolist()):
        if head >= 0 and sentence.spanned[word] and sentence.spanned[head]:
            found.add((min(word, head), max(word, head)))
    return found


def undirected_right(weights: Floats, sentence: TreeSentence) -> int:
    """How many arcs of the gold tree are in the maximum spanning tree."""
    return len(gold_edges(sentence) & set(spanning_edges(weights, sentence.spanned)))


def arborescence(scores: Floats) -> Ints:
    """[word] heads of the most likely directed tree from ROOT (Chu and Liu; Edmonds); 0: ROOT.

    scores  [dependent, candidate]; several words may hang from ROOT
    """
    log = log_softmax(np.asarray(scores, np.float64), axis=1)
    graph = nx.DiGraph()
    words = range(len(log))
    for dependent in words:
        graph.add_edge(ROOT, dependent + 1, weight=float(log[dependent, ROOT]))
        for head in words:
            if head != dependent:
                weight = float(log[dependent, head + 1])
                graph.add_edge(head + 1, dependent + 1, weight=weight)
    tree = nx.maximum_spanning_arborescence(graph)
    found = np.zeros(len(log), np.int64)
    for head, dependent in tree.edges:
        found[dependent - 1] = head
    return found


# --- shares -----------------------------------------------------------------------------------


class TreeAccuracy:
    """Counts right words, arcs and sentences of the test set.

    head      [word] as `TreeSentence.head`
    scored    [word] whether it counts without punctuation
    relation  [word] index into `relations`
    """

    def __init__(self, sentences: Sequence[TreeSentence], *, replicates: int, seed: int) -> None:
        self.sentences = sentences
        self.replicates, self.seed = replicates, seed
        self.head: Ints = np.concatenate([s.head for s in sentences])
        self.scored: Bools = np.concatenate([s.scored for s in sentences])
        self.lengths = np.array([len(s) for s in sentences])
        counts = Counter(r for s in sentences for r in s.relations)
        self.relations = sorted(counts, key=lambda name: (-counts[name], name))
        number = {name: at for at, name in enumerate(self.relations)}
        self.relation = np.array([number[r] for s in sentences for r in s.relations])
        self.edges = np.array([len(gold_edges(s)) for s in sentences], np.float64)  # [sentence]
        units = list(dict.fromkeys(s.example.document for s in sentences))
        at = {name: place for place, name in enumerate(units)}
        self.units = units
        self.unit = np.array([at[s.example.document] for s in sentences])  # [sentence]

    @cached_property
    def weights(self) -> Float64:
        """[unit, replicate + 1] how often each sentence of the treebank is drawn."""
        return bootstrap_weights(self.units, replicates=self.replicates, seed=self.seed)

    @property
    def asked(self) -> Bools:
        """[word] whether its head can be asked for."""
        return self.head >= 0

    def estimate(self, draws: Float64) -> Estimate:
        """The value and its interval from [replicate + 1, …]."""
        return estimate(draws, documents=len(self.units))

    # --- draws: [replicate + 1, …], 0 the data -------------------------------------------------

    def of_words(self, right: npt.NDArray[Any], *, punctuation: bool = False) -> Float64:
        """The share of words whose head is right: UAS.

        right        [word] whether, or by how many of several probes
        punctuation  whether it counts as well
        """
        counted = self.asked & (punctuation | self.scored)
        unit = np.repeat(self.unit, self.lengths)  # [word]
        return self._share(*(self._sums(unit, part) for part in (right * counted, counted)))

    def of_relations(self, right: npt.NDArray[Any]) -> Float64:
        """[replicate + 1, relation] the same of each relation."""
        size = len(self.relations)
        cell = np.repeat(self.unit, self.lengths) * size + self.relation  # [word]
        parts = [
            self._sums(cell, part, size).reshape(-1, size)  # [unit, relation]
            for part in (right * self.asked, self.asked)
        ]
        return self._share(*parts)

    def of_edges(self, right: npt.NDArray[Any]) -> Float64:
        """The share of undirected arcs: UUAS, from how many are right in each sentence."""
        return self._share(self._sum(right), self._sum(self.edges))

    def of_sentences(self, values: Float64) -> Float64:
        """The mean over sentences; NaN ones do not count."""
        there = ~np.isnan(values)
        return self._share(self._sum(np.where(there, values, 0)), self._sum(there))

    def by_length(self, values: Float64) -> Float64:
        """The mean over LENGTHS of the means over sentences of that length."""
        means = []
        for length in LENGTHS:
            some = self.lengths == length
            if some.any():
                means.append(self.of_sentences(np.where(some, values, np.nan)))
        if not means:
            return np.full(self.replicates + 1, np.nan)
        table = np.stack(means)  # [length, replicate + 1]
        there = ~np.isnan(table)
        return ratio(np.where(there, table, 0).sum(0), there.sum(0).astype(np.float64))

    def _sum(self, values: npt.NDArray[Any]) -> Float64:
        """[unit] from [sentence]."""
        return self._sums(self.unit, values)

    def _sums(self, cell: Ints, values: npt.NDArray[Any], cells: int = 1) -> Float64:
        """[unit·cells] sums of the values by cell."""
        found = np.bincount(cell, values.astype(np.float64), len(self.units) * cells)
        return np.asarray(found, np.float64)

    def _share(self, part: Float64, whole: Float64) -> Float64:
        return ratio(self.weights.T @ part, self.weights.T @ whole)

    @property
    def count(self) -> Ints:
        """[relation] words asked for."""
        return np.bincount(self.relation[self.asked], minlength=len(self.relations))
