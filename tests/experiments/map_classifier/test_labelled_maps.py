"""Is the bundled labelled set what it says: real maps, two annotators, labels that follow?"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from headscope.analyses.patterns.classes import NAMES
from headscope.experiments.map_classifier.annotation_session import agreement
from headscope.experiments.map_classifier.labelled_maps import bundled_labels

KAPPA = {"special": 0.886, "any": 0.907}  # as the page says


@pytest.fixture(scope="module", params=["special", "any"])
def columns(request):
    return request.param


@pytest.fixture(scope="module")
def labelled(columns):
    return bundled_labels(columns)


def test_there_are_enough_maps_of_enough_models_and_texts(labelled, columns):
    special = columns == "special"
    assert len(labelled) == len(labelled.seen) == (1218 if special else 688)
    assert len(set(labelled.origins)) == (6 if special else 5)
    assert len({row["text"] for row in labelled.provenance}) >= 3
    assert set(labelled.labels.tolist()) == set(range(len(NAMES)))
    assert min(Counter(labelled.origins).values()) >= 60


def test_layers_are_shown_about_equally_often(labelled):
    drawn = [row for row in labelled.provenance if row["drawn"] == "evenly"]
    for model in set(labelled.models):
        times = Counter(row["layer"] for row in drawn if row["model"] == model)
        assert max(times.values()) - min(times.values()) <= 15


def test_two_annotators_agree_far_beyond_chance(labelled, columns):
    first, second = (
        {number: row[name] for number, row in enumerate(labelled.provenance) if row[name]}
        for name in ("first", "second")
    )
    both = agreement(first, second)
    assert both.count == len(labelled)
    assert both.kappa == pytest.approx(KAPPA[columns], abs=0.005)


def test_the_third_look_decides_where_the_two_differ(labelled):
    for row in labelled.provenance:
        differ = row["first"] != row["second"]
        assert bool(row["third"]) == differ
        assert row["label"] == (row["third"] if differ else row["first"])


def test_pictures_fill_the_scale(labelled):
    assert labelled.seen.dtype == np.uint8
    assert (labelled.seen[:, 0].max((1, 2)) == 255).all()  # the largest weight of each map
    assert (labelled.seen[:, 1] <= labelled.seen[:, 0]).all()  # a mean is no larger
