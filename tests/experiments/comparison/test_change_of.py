"""Are differences paired, and is a head called changed only where all heads together allow it?"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from headscope.core.accumulators import left_out
from headscope.core.intervals import estimate
from headscope.core.results import Variable, labelled
from headscope.experiments.comparison.change import change_of, simultaneous

DOCUMENTS, SHAPE = 60, (2, 3)
WEIGHTS = left_out([str(at) for at in range(DOCUMENTS)], replicates=99)  # [document, replicate]


def means(values: np.ndarray) -> np.ndarray:
    """[replicate, …] means of values [document, …], of all and without each."""
    totals = np.tensordot(WEIGHTS.T, values, 1)  # [replicate, …]
    return totals / WEIGHTS.sum(0).reshape(-1, *[1] * (values.ndim - 1))


def results(values: np.ndarray) -> dict[str, xr.Dataset]:
    """As an analysis gives them; values [document, layer, head]."""
    found = estimate(means(values))
    variable = Variable(found, ("layer", "head"), "made", "probability", "ours")
    return {"made": labelled({"number": variable})}


def change(before: np.ndarray, after: np.ndarray) -> xr.Dataset:
    found = change_of(results(before), results(after), shape=SHAPE, documents=DOCUMENTS)
    assert found is not None
    return found


@pytest.fixture
def before() -> np.ndarray:
    """Documents differ far more than models do."""
    rng = np.random.default_rng(1)
    return rng.normal(0.5, 0.2, (DOCUMENTS, 1, 1)) + rng.normal(0, 0.01, (DOCUMENTS, *SHAPE))


def test_what_two_models_share_does_not_widen_the_interval_of_their_difference(before) -> None:
    after = before + 0.02 + np.random.default_rng(2).normal(0, 0.01, before.shape)
    found = change(before, after)
    wide = [
        (found[f"{side}_ci_high"] - found[f"{side}_ci_low"]).values for side in ("before", "after")
    ]
    unpaired = np.hypot(*wide)
    paired = (found["difference_ci_high"] - found["difference_ci_low"]).values
    assert (paired < unpaired / 5).all()
    truth = (after - before).mean(0)
    np.testing.assert_allclose(found["difference"].values[0], truth, rtol=1e-12)
    spread = (after - before).std(0, ddof=1) / np.sqrt(DOCUMENTS)
    np.testing.assert_allclose(paired[0], 2 * 1.96 * spread, rtol=0.25)


def test_a_rise_and_a_fall_are_told_and_nothing_else(before) -> None:
    noise = np.random.default_rng(3).normal(0, 0.01, before.shape)
    shift = np.zeros(SHAPE)
    shift[0, 1], shift[1, 2] = 0.05, -0.05
    found = change(before, before + shift + noise)
    assert found["sure"].values[0].tolist() == [[0, 1, 0], [0, 0, -1]]
    assert (int(found["rose"][0]), int(found["fell"][0])) == (1, 1)
    low, high = found["simultaneous_low"].values, found["simultaneous_high"].values
    assert (low < found["difference_ci_low"].values).all()
    assert (high > found["difference_ci_high"].values).all()


def test_layers_and_the_model_are_means_over_heads(before) -> None:
    after = before * np.linspace(0.9, 1.2, 6).reshape(SHAPE)
    found = change(before, after)
    for side in ("before", "after", "difference"):
        heads = found[side].values
        np.testing.assert_allclose(found[f"layer_{side}"].values, heads.mean(-1), rtol=1e-12)
        np.testing.assert_allclose(found[f"model_{side}"].values, heads.mean((1, 2)), rtol=1e-12)


def test_a_model_held_against_itself_has_no_change_at_all(before) -> None:
    found = change(before, before)
    for name in ("difference", "difference_ci_low", "difference_ci_high", "sure"):
        assert (found[name].values == 0).all(), name


def test_heads_without_a_number_stay_without_one(before) -> None:
    before = before.copy()
    before[:, 1, 0] = np.nan
    noise = np.random.default_rng(4).normal(0, 0.01, before.shape)
    found = change(before, before + 0.1 + noise)
    assert np.isnan(found["sure"].values[0, 1, 0])
    assert np.isfinite(found["layer_difference"].values).all()
    assert int(found["rose"][0]) == 5


def test_one_document_gives_no_interval_and_nothing_sure() -> None:
    draws = np.random.default_rng(0).normal(size=(2, 3))
    low, high = simultaneous(draws)
    assert np.isnan([low, high]).all()


def test_of_many_heads_that_do_not_change_few_are_called_changed() -> None:
    """Each by itself at 95 %, some of 100 heads nearly always is; held together, rarely."""
    alone = together = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        draws = means(rng.normal(0, 1, (DOCUMENTS, 100)))
        parts = estimate(draws)
        alone += bool(((parts.low > 0) | (parts.high < 0)).any())
        low, high = simultaneous(draws)
        together += bool(((low > 0) | (high < 0)).any())
    assert alone >= 55
    assert together <= 9  # 3 are expected


def test_intervals_of_many_heads_hold_all_in_unequal_documents_with_long_tails() -> None:
    """With all the degrees of freedom that 30 documents tell, they hold in 75 of 100 corpora."""
    held = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        size = rng.lognormal(0, 0.7, (30, 1))
        value = np.exp(rng.normal(-(0.7**2) / 2, 0.7, (30, 72)))  # of mean 1
        total, sizes = (
            np.concatenate([v.sum(0)[None], v.sum(0) - v]) for v in (value * size, size)
        )
        low, high = simultaneous(total / sizes, sizes)
        held += bool(((low <= 1) & (high >= 1)).all())
    assert held >= 53


def test_numbers_that_only_one_model_has_are_left_out(before) -> None:
    more = {**results(before), "other": results(before)["made"].rename(number="odd")}
    found = change_of(results(before), more, shape=SHAPE, documents=DOCUMENTS)
    assert found is not None
    assert found["quantity"].values.tolist() == ["made.number"]
