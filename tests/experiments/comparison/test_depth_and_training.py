"""Is it told rightly whether the last layers change most, and whether those that learned do?"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from headscope.errors import ModelError
from headscope.experiments.comparison.similarity import (
    beside_training,
    by_depth,
    chance_of,
    rank_correlation,
    read_training,
)


def draws(*layers: float, noise: float = 0.01) -> np.ndarray:
    """[replicate + 1, layer] 1 − cosine: these values, and moved a little without each document."""
    rng = np.random.default_rng(0)
    drawn = np.array(layers) + noise / 200**0.5 * rng.normal(size=(201, len(layers)))
    drawn[0] = layers
    return drawn


# --- depth ----------------------------------------------------------------------------------


def test_last_layers_that_change_most_do_so_in_all_corpora_drawn_anew() -> None:
    found = by_depth(draws(0.1, 0.2, 0.15, 0.5, 0.4))
    assert float(found["last_change"].value.value) == pytest.approx(0.45)
    assert float(found["other_change"].value.value) == pytest.approx(0.15)
    assert float(found["last_minus_other"].value.low) > 0.25
    assert found["last_are_first"].value == 1
    assert float(found["depth_correlation"].value.value) == pytest.approx(0.8)


def test_one_earlier_layer_that_changes_more_is_enough_to_say_no() -> None:
    assert by_depth(draws(0.1, 0.6, 0.5, 0.4))["last_are_first"].value == 0


def test_two_layers_have_no_layers_before_the_last() -> None:
    assert by_depth(draws(0.1, 0.2)) == {}


def test_equal_layers_have_no_rank_correlation() -> None:
    found = by_depth(np.full((201, 4), 0.25))
    assert np.isnan(found["depth_correlation"].value.value)


# --- ranks ----------------------------------------------------------------------------------


def test_the_rank_correlation_is_spearmans_ties_included() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 5, 12).astype(float), rng.normal(size=12)
    assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic, rel=1e-12)


def test_chance_is_the_share_of_all_orders_that_go_together_as_closely() -> None:
    x, y = np.array([1.0, 2.0, 3.0, 5.0]), np.array([2.0, 1.0, 4.0, 8.0])
    seen = abs(spearmanr(x, y).statistic)
    orders = [abs(spearmanr(order, y).statistic) for order in itertools.permutations(x)]
    expected = np.mean([rho >= seen - 1e-12 for rho in orders])
    assert chance_of(x, y) == pytest.approx(expected)


def test_chance_is_unknown_where_nothing_differs() -> None:
    assert np.isnan(chance_of(np.ones(5), np.arange(5.0)))


# --- what finetune wrote --------------------------------------------------------------------


def record(folder: Path, *layers: int | None, **changes: object) -> Path:
    rows = [
        {
            "part": "layer",
            "layer": at,
            "rate": 2e-5,
            "gradient_norm": 3.0 - (at or 0),
            "relative_change": 0.01 * (1 + (at or 0)),
        }
        for at in layers
    ]
    (folder / "finetuned.json").write_text(json.dumps({"layers": rows} | changes))
    return folder


def test_gradients_and_moves_are_read_by_layer(tmp_path: Path) -> None:
    found = read_training(record(tmp_path, None, 0, 1, 2), layers=3)
    assert found is not None
    assert found["gradient_norm"].tolist() == [3, 2, 1]
    assert found["relative_change"].tolist() == pytest.approx([0.01, 0.02, 0.03])


def test_a_checkpoint_without_record_is_no_error(tmp_path: Path) -> None:
    assert read_training(tmp_path, layers=3) is None
    assert read_training("bert-base-uncased", layers=3) is None


@pytest.mark.parametrize(
    "text", ["", "[]", '{"layers": 5}', '{"layers": [{"layer": "x"}]}', '{"layers": [[1]]}', "\x00"]
)
def test_a_damaged_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "finetuned.json").write_text(text)
    with pytest.raises(ModelError, match="no record of a training"):
        read_training(tmp_path, layers=3)


def test_a_record_of_other_layers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="lists 2 layers, and the checkpoint has 3"):
        read_training(record(tmp_path, 0, 1), layers=3)


def test_larger_gradients_below_and_more_change_above_go_against_each_other(
    tmp_path: Path,
) -> None:
    training = read_training(record(tmp_path, 0, 1, 2, 3, 4), layers=5)
    assert training is not None
    found = beside_training(draws(0.1, 0.2, 0.3, 0.4, 0.5), training)
    assert float(found["gradient_norm_correlation"].value.value) == pytest.approx(-1)
    assert float(found["relative_change_correlation"].value.value) == pytest.approx(1)
    assert found["gradient_norm_depth_correlation"].value == pytest.approx(-1)
    assert found["gradient_norm_p"].value == pytest.approx(2 / 120)
    assert found["learning_rate"].value.tolist() == [2e-5] * 5


def test_a_correlation_over_layers_has_its_interval_over_them(tmp_path: Path) -> None:
    """Over documents it was [−1.00, −1.00]: documents do not change the ranks of layers."""
    layers = np.random.default_rng(1).permutation(12) / 20
    training = read_training(record(tmp_path, *range(12)), layers=12)
    assert training is not None
    calm, wild = (
        beside_training(draws(*layers, noise=noise), training)["gradient_norm_correlation"]
        for noise in (0.001, 0.2)
    )
    assert calm.over == "layers"
    values = training["gradient_norm"]
    left_out = [
        spearmanr(np.delete(layers, at), np.delete(values, at)).statistic for at in range(12)
    ]
    error = np.sqrt(11 / 12 * np.square(left_out - spearmanr(layers, values).statistic).sum())
    for found in (calm.value, wild.value):
        assert found.value == pytest.approx(spearmanr(layers, values).statistic)
        assert found.high - found.low > 2 * error  # at least ± one standard error of the jackknife
        assert (found.low, found.high) == (calm.value.low, calm.value.high)
    assert np.isnan(by_depth(draws(0.1, 0.2, 0.15, 0.5, 0.4))["depth_correlation"].value.low)


def test_a_gradient_that_overflowed_is_left_out(tmp_path: Path) -> None:
    folder = record(tmp_path, 0, 1, 2)
    text = (
        (folder / "finetuned.json")
        .read_text()
        .replace('"gradient_norm": 2.0', '"gradient_norm": null')
    )
    (folder / "finetuned.json").write_text(text)
    training = read_training(folder, layers=3)
    assert training is not None
    found = beside_training(draws(0.1, 0.2, 0.3), training)
    assert "gradient_norm" not in found
    assert "relative_change_p" in found
