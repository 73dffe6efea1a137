"""Is the bundled labelled set what it says: real maps, two annotators, labels that follow?"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from headscope.patterns.agreement import agreement
from headscope.patterns.classes import NAMES
from headscope.patterns.labelled import bundled_labels


@pytest.fixture(scope="module")
def labelled():
    return bundled_labels()


def test_there_are_enough_maps_of_enough_models_and_texts(labelled):
    assert len(labelled) == len(labelled.seen) == 840
    assert len(set(labelled.models)) == 6
    assert len({row["text"] for row in labelled.provenance}) >= 3
    assert set(labelled.labels.tolist()) == set(range(len(NAMES)))
    assert min(Counter(labelled.models).values()) >= 100


def test_layers_are_shown_about_equally_often(labelled):
    drawn = [row for row in labelled.provenance if "chosen" not in row["text"]]
    for model in set(labelled.models):
        times = Counter(row["layer"] for row in drawn if row["model"] == model)
        assert max(times.values()) - min(times.values()) <= 5


def test_two_annotators_agree_far_beyond_chance(labelled):
    both = agreement(labelled.said("first"), labelled.said("second"))
    assert both.count == 320
    assert both.kappa == pytest.approx(0.90, abs=0.005)


def test_the_last_look_decides_and_no_dispute_is_without_one(labelled):
    for row in labelled.provenance:
        said = {row["first"], row["second"]} - {""}
        assert row["third"] or len(said) == 1
        assert row["label"] == (row["third"] or said.pop())


def test_pictures_fill_the_scale(labelled):
    assert labelled.seen.dtype == np.uint8
    assert (labelled.seen[:, 0].max((1, 2)) == 255).all()  # the largest weight of each map
    assert (labelled.seen[:, 1] <= labelled.seen[:, 0]).all()  # a mean is no larger
