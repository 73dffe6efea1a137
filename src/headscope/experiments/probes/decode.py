"""Which tree do the scores of a probe make, as single arcs, undirected, or as one directed tree?"""

from __future__ import annotations

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import log_softmax

from headscope.experiments.probes.treebank import ROOT, Bools, Ints, Sentence

Floats = npt.NDArray[np.floating]


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


def gold_edges(sentence: Sentence) -> set[tuple[int, int]]:
    """The arcs between words that may be part of an undirected tree, the lesser word first."""
    found = set()
    for word, head in enumerate((sentence.head - 1).tolist()):
        if head >= 0 and sentence.spanned[word] and sentence.spanned[head]:
            found.add((min(word, head), max(word, head)))
    return found


def undirected_right(weights: Floats, sentence: Sentence) -> int:
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
