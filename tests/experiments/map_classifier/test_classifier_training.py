"""Does the classifier learn what can be seen, and is its score what it says?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from headscope.analyses.patterns.classes import NAMES
from headscope.analyses.patterns.measure_network import LAYERS, SIDE, Classifier, seen_bytes
from headscope.core.accumulators import generator
from headscope.experiments.map_classifier import classifier_training
from headscope.experiments.map_classifier.classifier_training import (
    cross_validated,
    features,
    folds_over_maps,
    folds_over_models,
    network_on,
    rules_on,
    score,
    taught,
    train,
    varied,
)
from headscope.experiments.map_classifier.made_maps import made_map


def planted(kind, n, seed):
    """A map of a class that leaves no doubt."""
    rng = np.random.default_rng(seed)
    kept = rng.random((n, n)) * 0.02
    if "vertical" in kind:
        kept[:, rng.choice(n, 2, replace=False)] += 0.8
    if "diagonal" in kind:
        kept += np.eye(n, k=int(rng.integers(-1, 2)))
    if kind == "block":
        cut = int(rng.integers(n // 3, 2 * n // 3))
        kept[:cut, :cut] += 0.5
        kept[cut:, cut:] += 0.5
    if kind == "heterogeneous":
        kept = rng.random((n, n)) ** 3
    return seen_bytes(kept[None])[0]


@pytest.fixture(scope="module")
def maps():
    """(seen, labels) of 20 planted maps of each class."""
    made = [
        (planted(kind, 20 + 3 * at, at), NAMES.index(kind)) for kind in NAMES for at in range(20)
    ]
    return np.stack([one for one, _ in made]), np.array([label for _, label in made])


def test_the_network_has_eight_convolutional_layers():
    layers = [m for m in Classifier().modules() if isinstance(m, torch.nn.Conv2d)]
    assert len(layers) == len(LAYERS) == 8
    assert sum(p.numel() for p in Classifier().parameters()) < 150_000


def test_plain_classes_are_learned_and_told_of_maps_that_were_held_out(maps):
    seen, labels = maps
    folds = folds_over_maps(labels, ["one"] * len(labels), count=2, seed=0)
    found = cross_validated(
        labels, folds, network_on(seen, labels, start=None, seed=0, epochs=40), seed=0
    )
    assert found.macro_f1 > 0.75  # of 50 maps; chance is 0.2
    assert found.low <= found.macro_f1 <= found.high
    rules = rules_on(features(seen), labels, seed=0)
    assert cross_validated(labels, folds, rules, seed=0).macro_f1 > 0.7


def test_made_maps_are_attention_and_their_classes_can_be_learned():
    rng = np.random.default_rng(0)
    for name in NAMES:
        for _ in range(20):
            made = made_map(name, rng)
            np.testing.assert_allclose(made.sum(1), 1)
            assert (made >= 0).all()
    network = taught(maps=600, epochs=3)
    labels = np.arange(100) % len(NAMES)
    seen = np.concatenate([seen_bytes(made_map(NAMES[at], rng)[None]) for at in labels])
    told = network(torch.from_numpy(seen).float() / 255).argmax(-1).numpy()
    assert (told == labels).mean() > 0.6  # chance is 0.2


def test_what_learning_starts_from_stays_as_it_was(maps):
    seen, labels = maps
    start = Classifier().eval()
    before = [p.clone() for p in start.parameters()]
    train(seen[::4], labels[::4], epochs=1, start=start)
    for one, other in zip(start.parameters(), before, strict=True):
        assert torch.equal(one, other)


def test_the_same_seed_gives_the_same_classifier(maps):
    seen, labels = maps
    first, second = (train(seen[::4], labels[::4], seed=3, epochs=2) for _ in range(2))
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_score_is_that_of_its_definition(monkeypatch):
    monkeypatch.setattr(classifier_training, "REPLICATES", 40)
    rng = np.random.default_rng(0)
    labels, predicted = rng.integers(0, 5, (2, 200))
    found = score(labels, predicted, seed=0)
    confusion = np.zeros((5, 5), int)
    np.add.at(confusion, (labels, predicted), 1)
    np.testing.assert_array_equal(found.confusion, confusion)
    hits = np.diag(confusion)
    by_class = 2 * hits / (confusion.sum(0) + confusion.sum(1))
    np.testing.assert_allclose(found.f1, by_class)
    assert found.macro_f1 == pytest.approx(by_class.mean())
    draw = generator(0, "macro-F1")
    drawn = [draw.integers(0, 200, 200) for _ in range(40)]
    each = [f1_score(labels[at], predicted[at], average="macro") for at in drawn]
    assert (found.low, found.high) == pytest.approx(np.quantile(each, [0.025, 0.975]))
    assert found.low < found.macro_f1 < found.high


def test_a_class_that_no_map_has_does_not_count():
    labels = np.array([0, 0, 1, 1])
    predicted = np.array([0, 1, 1, 1])
    both = f1_score(labels, predicted, average="macro")
    assert score(labels, predicted, seed=0).macro_f1 == pytest.approx(both)


def test_folds_hold_out_every_map_once_and_leave_out_whole_models():
    labels, models = np.arange(60) % 5, [f"m{place % 4}" for place in range(60)]
    for folds in (folds_over_maps(labels, models, count=5, seed=0), folds_over_models(models)):
        held = np.concatenate([fold[1] for fold in folds])
        assert sorted(held.tolist()) == list(range(60))
        for fitted, out in folds:
            assert not set(fitted.tolist()) & set(out.tolist())
    for fitted, out in folds_over_models(models):
        assert not {models[p] for p in fitted} & {models[p] for p in out}


def test_variation_keeps_columns_columns_and_the_diagonal_the_diagonal():
    random = torch.Generator().manual_seed(0)
    column, line = torch.zeros(1, 2, SIDE, SIDE), torch.eye(SIDE).expand(1, 2, SIDE, SIDE)
    column[..., 10] = 1
    for _ in range(20):
        turned = varied(column, random)[0, 0]
        assert (turned.std(0) < 1e-6).all()  # every row is the same
        away = (varied(line, random)[0, 0] > 0.01).nonzero()
        assert (away[:, 0] - away[:, 1]).abs().max() <= 1


def test_the_features_of_a_diagonal_and_of_one_column():
    line, column = np.zeros((2, 2, SIDE, SIDE), np.uint8)
    line[:] = 255 * np.eye(SIDE, dtype=np.uint8)
    column[:, :, 0] = 255
    on_diagonal, _, _, _, _, largest_column, *_ = features(np.stack([line, column])).T
    np.testing.assert_allclose(on_diagonal, [1, 1 / SIDE])
    np.testing.assert_allclose(largest_column, [1 / SIDE, 1])
