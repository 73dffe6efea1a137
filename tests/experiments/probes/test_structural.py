"""Does the structural probe measure trees as Hewitt and Manning do?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from experiments.probes.made import split_of, tiny, treebank
from headscope.experiments.probes.structural import (
    HiddenStates,
    Projection,
    finds_root,
    judged,
    loss_of,
    mean_spearman,
    squared_distances,
    structural_scores,
)
from headscope.experiments.probes.trees import tree_metric
from reference import probes as reference


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    path = treebank(folder / "t.conllu", 12, words=(3, 9))
    return split_of(tiny(folder), path).sentences


@pytest.mark.parametrize("heads", [[-1], [1, -1, 1], [-1, 0, 1, 2], [-1, -1, 1], [2, 2, -1, 4, 2]])
def test_distances_and_depths_are_those_of_walking(heads: list[int]) -> None:
    distance, depth = tree_metric(np.array(heads))
    assert distance.tolist() == reference.tree_distances(heads).tolist()
    assert (depth >= 0).all()
    assert (depth[np.array(heads) < 0] == 0).all()


def test_predicted_distances_are_their_definition() -> None:
    probe = Projection(6, 4)
    states = torch.randn(5, 6)
    wanted = reference.squared_distances(states.numpy(), probe.weight.detach().double().numpy())
    np.testing.assert_allclose(squared_distances(probe(states)).detach(), wanted, atol=1e-5)


def test_the_loss_of_a_sentence_is_divided_by_its_pairs(sentences) -> None:
    rng = np.random.default_rng(0)
    states = [rng.random((len(s), 6)).astype(np.float16) for s in sentences]
    probe, data = Projection(6, 6), HiddenStates(sentences, states.__getitem__)
    matrix = probe.weight.detach().double().numpy()
    wanted = []
    for sentence, state in zip(sentences[:3], states, strict=False):
        found = reference.squared_distances(state.astype(float), matrix)
        wanted.append(np.abs(found - sentence.distance).sum() / len(sentence) ** 2)
    assert loss_of(probe, data, "distance", [0, 1, 2]).item() == pytest.approx(
        np.mean(wanted), 1e-4
    )


def test_rank_correlations_are_scipys() -> None:
    rng = np.random.default_rng(0)
    found, gold = rng.random((4, 7)), rng.integers(0, 4, (4, 7))
    wanted = np.mean([spearmanr(a, b).statistic for a, b in zip(found, gold, strict=True)])
    assert mean_spearman(found, gold) == pytest.approx(wanted)
    assert np.isnan(mean_spearman(found[:, :1], gold[:, :1]))


def embedded(sentence) -> np.ndarray:
    """[word, 16] vectors whose squared distances are those of the tree, lengths its depths."""
    n = len(sentence)
    states = np.zeros((n, 16), np.float16)
    for word in range(n):
        at = word + 1
        while sentence.head[at - 1]:  # an arc is a dimension of its own
            states[word, at] = 1
            at = sentence.head[at - 1]
    return states


def test_states_that_hold_the_tree_give_all_of_it(sentences) -> None:
    probe = Projection(16, 16)
    torch.nn.init.eye_(probe.weight)
    data = HiddenStates(sentences, [embedded(s) for s in sentences].__getitem__)
    found = judged({"distance": probe, "depth": probe}, data)
    spanned = [bool(s.spanned.all()) for s in sentences]
    np.testing.assert_allclose(found["distance"], 1)
    np.testing.assert_allclose(found["depth"], 1)
    assert np.nanmin(found["root"]) == 1
    edges = [len(s) - 1 for s in sentences]
    assert [e for e, whole in zip(found["edges"], spanned, strict=True) if whole] == [
        e for e, whole in zip(edges, spanned, strict=True) if whole
    ]


def test_training_brings_the_tree_out_of_noise(sentences, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    states = [np.hstack([embedded(s), 2 * rng.random((len(s), 16))]) for s in sentences]
    data = HiddenStates(sentences, [state.astype(np.float16) for state in states].__getitem__)
    scores = [
        structural_scores(
            (data, data, data),
            rank=None,
            epochs=epochs,
            seed=0,
            state=tmp_path / str(epochs),
            key="k",
            progress=lambda count: None,
        )
        for epochs in (1, 80)
    ]
    before, after = (np.nanmean(found["distance"]) for found in scores)
    assert after > before + 0.05


def test_punctuation_is_no_root(sentences) -> None:
    sentence = next(s for s in sentences if s.spanned.any() and not s.spanned.all())
    depth = np.where(sentence.spanned, 1.0 + np.arange(len(sentence)), 0.0)
    roots = np.flatnonzero(sentence.spanned & (sentence.head == 0))
    first = int(np.flatnonzero(sentence.spanned)[0])
    wanted = np.nan if not len(roots) else float(first in roots)
    np.testing.assert_equal(finds_root(depth, sentence), wanted)
