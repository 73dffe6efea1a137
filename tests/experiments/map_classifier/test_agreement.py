"""Is the kappa of two annotators the one worked out by hand?"""

import math

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from headscope.analyses.patterns.classes import NAMES
from headscope.experiments.map_classifier.annotation_session import agreement


def test_kappa_by_hand():
    # Of 10 maps labelled by both:        b: vertical  block
    #                        a: vertical          4       1
    #                        a: block             2       3
    # They agree on 0.7; by chance on 0.5 * 0.6 + 0.5 * 0.4 = 0.5. Kappa: 0.2 / 0.5 = 0.4.
    ours = ["vertical"] * 5 + ["block"] * 5
    theirs = ["vertical"] * 4 + ["block"] + ["vertical"] * 2 + ["block"] * 3
    first = {**dict(enumerate(ours)), 70: "diagonal"}  # labelled by one of them only
    found = agreement(first, {**dict(enumerate(theirs)), 71: "diagonal"})
    assert (found.count, found.same) == (10, 7)
    assert found.kappa == pytest.approx(0.4, abs=1e-15)
    expected = np.zeros((5, 5), int)
    expected[0, 0], expected[0, 3], expected[3, 0], expected[3, 3] = 4, 1, 2, 3
    np.testing.assert_array_equal(found.confusion, expected)


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    ours = rng.choice(NAMES, 200)
    theirs = np.where(rng.random(200) < 0.6, ours, rng.choice(NAMES, 200))
    found = agreement(dict(enumerate(ours.tolist())), dict(enumerate(theirs.tolist())))
    assert found.kappa == pytest.approx(cohen_kappa_score(ours, theirs), abs=1e-12)


def test_full_agreement_is_1_and_less_than_chance_is_negative():
    names = dict(enumerate(["vertical", "block"] * 3))
    assert agreement(names, names).kappa == 1
    turned = {n: "block" if name == "vertical" else "vertical" for n, name in names.items()}
    assert agreement(names, turned).kappa == -1


@pytest.mark.parametrize("both", [{}, {0: "block"}, {0: "block", 1: "block"}])
def test_where_chance_agrees_everywhere_there_is_no_kappa(both):
    found = agreement(both, both)
    assert math.isnan(found.kappa)
    assert found.count == found.same == len(both)


def test_one_map_labelled_differently_is_no_better_than_chance():
    assert agreement({0: "block"}, {0: "vertical"}).kappa == 0
