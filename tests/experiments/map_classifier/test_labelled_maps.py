"""Is the bundled labelled set what it says: real maps, two annotators, labels that follow?"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from headscope.analyses.patterns.classes import NAMES
from headscope.experiments.map_classifier.annotation_session import agreement
from headscope.experiments.map_classifier.labelled_maps import bundled_labels

KAPPA, KAPPA_DRAWN_EVENLY = 0.902, 0.920  # as the page says


@pytest.fixture(scope="module")
def labelled():
    return bundled_labels()


def test_there_are_enough_maps_of_enough_models_and_texts(labelled):
    assert len(labelled) == len(labelled.seen) == 1469
    assert len(set(labelled.models)) == 6
    assert len({row["text"] for row in labelled.provenance}) >= 3
    assert set(labelled.labels.tolist()) == set(range(len(NAMES)))
    assert min(Counter(labelled.models).values()) >= 100


def test_layers_are_shown_about_equally_often(labelled):
    drawn = [row for row in labelled.provenance if row["drawn"] == "evenly"]
    for model in set(labelled.models):
        times = Counter(row["layer"] for row in drawn if row["model"] == model)
        assert max(times.values()) - min(times.values()) <= 5


def test_two_annotators_agree_far_beyond_chance(labelled):
    first, second = (
        {number: row[name] for number, row in enumerate(labelled.provenance) if row[name]}
        for name in ("first", "second")
    )
    both = agreement(first, second)
    assert both.count == len(labelled)
    assert both.kappa == pytest.approx(KAPPA, abs=0.005)
    evenly = {n: said for n, said in first.items() if labelled.provenance[n]["drawn"] == "evenly"}
    assert agreement(evenly, second).kappa == pytest.approx(KAPPA_DRAWN_EVENLY, abs=0.005)


def test_the_third_look_decides_where_the_two_differ(labelled):
    for row in labelled.provenance:
        differ = row["first"] != row["second"]
        assert bool(row["third"]) == differ
        assert row["label"] == (row["third"] if differ else row["first"])


def test_pictures_fill_the_scale(labelled):
    assert labelled.seen.dtype == np.uint8
    assert (labelled.seen[:, 0].max((1, 2)) == 255).all()  # the largest weight of each map
    assert (labelled.seen[:, 1] <= labelled.seen[:, 0]).all()  # a mean is no larger
