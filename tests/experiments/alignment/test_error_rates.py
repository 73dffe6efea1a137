"""Are error rates, their relation to norms, and their resamples what plain counting gives?"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from headscope.core.accumulators import halves, left_out
from headscope.core.intervals import spearman_over_units
from headscope.experiments.alignment.result import error_rate, pearson_over_units, scores_of

PAIRS, LAYERS, HEADS, REPLICATES, SEED = 12, 3, 4, 6, 5
IDS = [str(number) for number in range(PAIRS)]


@pytest.fixture(scope="module")
def drawn():
    """Random links and gold links as sets, [pair] each; and the counts of them."""
    rng = np.random.default_rng(2)

    def some(count):
        return {tuple(x) for x in rng.integers(0, 4, (count, 2)).tolist()}

    sure = [some(3) for _ in IDS]
    possible = [s | some(4) for s in sure]
    shape = (PAIRS, LAYERS, HEADS + 1, 2, 2)
    links = np.empty(shape, object)
    counts = np.zeros((*shape, 3), np.int32)
    for at in np.ndindex(*shape):
        found = links[at] = some(int(rng.integers(1, 6)))
        counts[at] = len(found), len(found & possible[at[0]]), len(found & sure[at[0]])
    state = {
        "head": counts[:, :, :-1],
        "layer": counts[:, :, -1],
        "norm": rng.random((PAIRS, LAYERS, HEADS)) * 30,
        "cells": rng.integers(4, 20, PAIRS),
        "wanted": np.array([len(s) for s in sure]),
    }
    return sure, possible, links, state


@pytest.fixture(scope="module")
def scores(drawn):
    return scores_of(drawn[3], IDS, replicates=REPLICATES, seed=SEED)


def rate(sure, possible, links, times):
    """1 − (|A∩P| + |A∩S|) / (|A| + |S|) of sets, of pairs that are left in, in whole numbers."""
    right = total = 0
    for s, p, a, n in zip(sure, possible, links, times, strict=True):
        right += int(n) * (len(a & p) + len(a & s))
        total += int(n) * (len(a) + len(s))
    return float(1 - Fraction(right, total))


def test_error_rates_are_pooled_over_all_pairs_that_are_left_in(drawn, scores):
    sure, possible, links, _ = drawn
    times = left_out(IDS, replicates=REPLICATES)  # [pair, replicate + 1]
    for at in np.ndindex(LAYERS, HEADS + 1, 2, 2):
        layer, head, setting, measure = at
        found = scores.layer[:, layer] if head == HEADS else scores.head[:, layer, head]
        for replicate in range(REPLICATES + 1):
            wanted = rate(sure, possible, links[(slice(None), *at)], times[:, replicate])
            assert found[replicate, setting, measure] == pytest.approx(wanted, abs=1e-12)


def test_perfect_links_have_no_error_and_links_without_gold_are_all_wrong():
    weights = np.ones((2, 1))
    counts = np.array([[[3, 3, 3], [3, 0, 0]], [[2, 2, 2], [2, 0, 0]]], np.int32)
    assert error_rate(counts, np.array([3, 2]), weights).tolist() == [[0, 1]]
    nothing = np.zeros((2, 1, 3), np.int32)
    assert np.isnan(error_rate(nothing, np.zeros(2, np.int64), weights)).all()


def test_possible_links_cost_nothing_and_missed_sure_ones_do():
    """A = {s, p}, S = {s, t}, P = {s, t, p}: 1 − (2 + 1) / (2 + 2)."""
    assert error_rate(np.array([[2, 2, 1]], np.int32), np.array([2]), np.ones((1, 1))) == 0.25


def test_mean_norms_are_pooled_over_queries_and_keys(drawn, scores):
    state = drawn[3]
    wanted = state["norm"].sum(0) / state["cells"].sum()
    np.testing.assert_allclose(scores.norm[0], wanted, rtol=1e-12)


def test_correlations_are_scipys_over_all_heads_and_without_each(scores):
    norm = scores.norm[0].ravel()
    for setting in range(2):
        aer = scores.head[0, :, :, setting, 1].ravel()
        for over, function in ((spearman_over_units, spearmanr), (pearson_over_units, pearsonr)):
            found = scores.correlation(over)[:, setting]
            assert found[0] == pytest.approx(function(aer, norm).statistic, abs=1e-12)
            for head in range(len(norm)):
                rest = function(np.delete(aer, head), np.delete(norm, head)).statistic
                assert found[1 + head] == pytest.approx(rest, abs=1e-12)


def test_the_highest_norms_are_chosen_in_every_draw(scores):
    for replicate in range(REPLICATES + 1):
        norm = scores.norm[replicate]
        layer = max(range(LAYERS), key=lambda at: norm[at].mean())
        head = max(np.ndindex(LAYERS, HEADS), key=lambda at: norm[at])
        assert (scores.highest_norm_layer[replicate] == scores.layer[replicate, layer, :, 1]).all()
        assert (scores.highest_norm_head[replicate] == scores.head[replicate][head][:, 1]).all()


def test_a_held_out_layer_is_chosen_on_one_half_and_scored_on_the_other(drawn, scores):
    sure, possible, links, _ = drawn
    half = halves(IDS, seed=SEED)
    for setting, measure in np.ndindex(2, 2):
        by_half = [
            [
                rate(sure, possible, links[:, layer, HEADS, setting, measure], half == which)
                for layer in range(LAYERS)
            ]
            for which in (0, 1)
        ]
        chosen = [int(np.argmin(rates)) for rates in by_half]
        wanted = (by_half[1][chosen[0]] + by_half[0][chosen[1]]) / 2
        assert scores.held_out[0, setting, measure] == pytest.approx(wanted, abs=1e-12)
        assert scores.best[0, setting, measure] <= wanted + 1e-12
        assert (
            scores.layer[0, scores.best_layer[setting, measure], setting, measure]
            == scores.best[0, setting, measure]
        )
