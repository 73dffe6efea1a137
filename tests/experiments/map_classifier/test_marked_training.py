"""Are the scores of the classifier of marked columns over maps that nothing had seen?"""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest
from sklearn.metrics import f1_score

from headscope.analyses.patterns.classes import NAMES
from headscope.analyses.patterns.measure_marked import FILES
from headscope.experiments.map_classifier.labelled_maps import bundled_labels
from headscope.experiments.map_classifier.marked_training import (
    calibration_error,
    held_out,
    threshold,
    train,
)


@pytest.fixture(scope="module")
def kept():
    """What was told of the bundled maps when they were held out."""
    folder = resources.files("headscope.experiments.map_classifier") / "data"
    with (folder / "held_out.npz").open("rb") as file, np.load(file) as arrays:
        return dict(arrays)


def test_the_card_says_what_the_kept_predictions_say(kept):
    labels = bundled_labels().labels
    np.testing.assert_array_equal(kept["labels"], labels)
    for name, key in (("Held-out maps", "held_out_maps"), ("Held-out models", "held_out_models")):
        card, told = FILES.bundled_card()["scores"]["network"][name], kept[key]
        macro = f1_score(labels, told.argmax(1), average="macro")
        assert card["macro_f1"] == pytest.approx(macro, abs=1e-4)
        sure, right = told.max(1), told.argmax(1) == labels
        error = 0.0
        for low in np.arange(10) / 10:
            here = (sure >= low) & (sure < low + 0.1 + (low == 0.9) * 1e-6)
            error += abs(right[here].sum() - sure[here].sum()) / len(labels)
        assert card["calibration_error"] == pytest.approx(error, abs=1e-4)
        assert card["calibration_error"] <= 0.05


def test_the_calibration_error_of_a_closed_case():
    told = np.tile([0.8, 0.2, 0, 0, 0], (10, 1))
    labels = np.array([0] * 6 + [1] * 4)
    assert calibration_error(told, labels) == pytest.approx(0.2)


def test_the_threshold_is_where_told_classes_are_right_nine_times_in_ten():
    sure = np.linspace(0.99, 0.4, 20)
    told = np.stack([sure, 1 - sure], 1)
    labels = np.array([0] * 9 + [1] + [1] * 10)  # the ten surest: nine right
    told = np.pad(told, ((0, 0), (0, 3)))
    told[sure < 0.5] = told[sure < 0.5][:, [1, 0, 2, 3, 4]]
    assert threshold(told, labels) == pytest.approx(sure[9])


def made(count=60):
    rng = np.random.default_rng(0)
    labels = np.arange(count) % len(NAMES)
    features = rng.normal(size=(2, count, 91)).astype(np.float32)
    for place, label in enumerate(labels):
        features[:, place, 15 * label : 15 * label + 15] += 3
    return features, labels


def test_what_a_fold_leaves_out_changes_nothing_of_what_is_told_of_it():
    given, labels = made()
    folds = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    told, sure = held_out(given, labels, folds, steps=120)
    others = labels.copy()
    others[40:] = (others[40:] + 1) % len(NAMES)  # labels of the first fold's test
    again, still = held_out(given, others, folds[:1], steps=120)
    np.testing.assert_array_equal(again[40:], told[40:])
    np.testing.assert_array_equal(still[40:], sure[40:])
    assert (told.argmax(1) == labels).mean() > 0.6


def test_a_seed_gives_the_same_classifier():
    given, labels = made()
    first, second = (train(given, labels, seed=3, steps=5).classify(given[0]) for _ in range(2))
    np.testing.assert_array_equal(first, second)
