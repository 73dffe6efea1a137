"""Are undirected and directed trees the best ones?"""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from experiments.probes.made import rows, split_of, tiny
from headscope.experiments.probes.trees import (
    arborescence,
    gold_edges,
    spanning_edges,
    undirected_right,
    undirected_weights,
)


def by_networkx(weights: np.ndarray, kept: np.ndarray) -> list[tuple[int, int]]:
    graph = nx.Graph()
    words = np.flatnonzero(kept).tolist()
    graph.add_nodes_from(words)
    for i, j in product(words, words):
        if i < j:
            graph.add_edge(i, j, weight=weights[i, j])
    return sorted((min(e), max(e)) for e in nx.maximum_spanning_tree(graph).edges)


@pytest.mark.parametrize("seed", range(5))
def test_the_undirected_tree_is_networkx_maximum_spanning_tree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    scores = rng.normal(size=(n, n + 1))
    kept = rng.random(n) < 0.8
    weights = undirected_weights(scores)
    assert spanning_edges(weights, kept) == by_networkx(weights, kept)


def test_the_weight_of_an_edge_is_the_probability_of_either_arc() -> None:
    scores = np.random.default_rng(0).normal(size=(4, 5))
    p = softmax(scores, axis=1)
    assert np.exp(undirected_weights(scores)[1, 3]) == pytest.approx(p[1, 4] + p[3, 2])


def test_one_word_has_no_edges() -> None:
    assert spanning_edges(np.zeros((3, 3)), np.array([False, True, False])) == []


def test_the_directed_tree_is_the_best_of_all() -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        scores = 3 * rng.normal(size=(4, 5))
        log = log_softmax(scores, axis=1)
        best = max(
            (heads for heads in product(range(5), repeat=4) if is_tree(heads)),
            key=lambda heads: sum(log[at, head] for at, head in enumerate(heads)),
        )
        assert arborescence(scores).tolist() == list(best)


def is_tree(heads: tuple[int, ...]) -> bool:
    for word in range(1, len(heads) + 1):
        seen, at = set(), word
        while at:
            if at in seen:
                return False
            seen.add(at)
            at = heads[at - 1]
    return True


def test_punctuation_is_in_no_undirected_tree(tmp_path) -> None:
    text = rows(["the", "cat", ",", "b"], [2, 0, 2, 2], ["det", "root", "punct", "dep"])
    (tmp_path / "one.conllu").write_text(text, "utf-8")
    (sentence,) = split_of(tiny(tmp_path), tmp_path / "one.conllu").sentences
    assert gold_edges(sentence) == {(0, 1), (1, 3)}
    chain = -np.abs(np.arange(4)[:, None] - np.arange(4)[None]).astype(float)
    assert spanning_edges(chain, sentence.spanned) == [(0, 1), (1, 3)]
    assert undirected_right(chain, sentence) == 2
