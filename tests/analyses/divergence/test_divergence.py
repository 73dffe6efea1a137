"""Does `divergence` tell heads that behave alike from heads that do not?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from analyses.running import planted, run
from headscope.analyses.divergence.measure import head_map
from headscope.run.contract_bench import tiny_examples, tiny_network
from reference import divergence
from reference.extraction import Blocks

LN2 = np.log(2)
LONGER = [e for e in tiny_examples() if len(e) > 1]


def _units(reference: list[Blocks]) -> list[np.ndarray]:
    return [divergence.units(block["attention"]) for block in reference]


@pytest.mark.parametrize("smoothing", [0.0, 1e-3, 0.5])
@pytest.mark.parametrize("size", [1, 7])
def test_float64_agrees_with_the_reference(
    reference: list[Blocks], smoothing: float, size: int
) -> None:
    found = run({"divergence": {"smoothing": smoothing}}, size=size)["divergence"].js
    expected = divergence.divergence_means(_units(reference), smoothing=smoothing)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_sums_over_tokens_agree_with_the_reference(reference: list[Blocks]) -> None:
    options = {"smoothing": 1e-3, "reduction": "sum"}
    found = run({"divergence": options})["divergence"].js
    expected = divergence.divergence_sums(_units(reference), smoothing=1e-3)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert found.attrs["units"] == "nats·tokens"


@pytest.mark.parametrize("smoothing", [0.0, 1e-3])
def test_float32_agrees_with_the_reference(reference: list[Blocks], smoothing: float) -> None:
    network = tiny_network(torch.float32)
    found = run({"divergence": {"smoothing": smoothing}}, network=network)["divergence"].js
    expected = divergence.divergence_means(_units(reference), smoothing=smoothing)
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_symmetric_with_a_zero_diagonal_between_zero_and_ln_2(dtype: torch.dtype) -> None:
    result = run({"divergence": {}}, network=tiny_network(dtype))["divergence"]
    for name in ("js", "js_ci_low", "js_ci_high"):
        values = result[name].values
        assert (values == values.T).all()
        assert (np.diag(values) == 0).all()
        assert ((values >= 0) & (values <= LN2)).all()
    assert (result.js_ci_low <= result.js).all()
    assert (result.js <= result.js_ci_high).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_heads_have_zero_and_disjoint_heads_ln_2(dtype: torch.dtype) -> None:
    """Units 0 and 5 look back, 1 and 3 ahead; of one token alone nobody can differ."""
    plant = planted(("previous", "next", "uniform"), ("next", "sep", "previous"))
    network = tiny_network(dtype)
    js = run({"divergence": {}}, network=network, examples=LONGER, plant=plant)["divergence"].js
    for one, other in ((0, 5), (1, 3)):
        assert float(js[one, other]) == pytest.approx(0, abs=1e-6)
    for one, other in ((0, 1), (0, 3), (5, 1), (5, 3)):
        assert float(js[one, other]) == pytest.approx(LN2, abs=1e-6)


def test_smoothing_brings_disjoint_heads_nearer() -> None:
    plant = planted(*[("previous", "next", "uniform")] * 2)
    js = run({"divergence": {"smoothing": 0.1}}, examples=LONGER, plant=plant)["divergence"].js
    assert 0.3 < float(js[0, 1]) < LN2 - 0.01


def test_an_example_of_one_token_cannot_differ() -> None:
    one = [e for e in tiny_examples() if len(e) == 1]
    network = tiny_network(torch.float32)
    js = run({"divergence": {}}, examples=one, network=network)["divergence"].js
    np.testing.assert_allclose(js, 0, atol=1e-6)


# --- the map --------------------------------------------------------------------------------


def test_the_map_of_points_in_a_plane_has_their_distances() -> None:
    points = np.random.default_rng(0).normal(size=(20, 2)) * [3, 1]
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    places, stress = head_map(distances)
    found = np.linalg.norm(places[:, None] - places[None], axis=-1)
    np.testing.assert_allclose(found, distances, atol=1e-3)
    assert stress < 1e-3
    assert places[:, 0].var() > places[:, 1].var()  # turned to its main axes


def test_the_map_is_the_same_every_time() -> None:
    distances = np.abs(np.subtract.outer(np.arange(9.0) ** 2, np.arange(9.0)))
    distances = np.triu(distances, 1) + np.triu(distances, 1).T
    first, second = head_map(distances), head_map(distances)
    assert (first[0] == second[0]).all()
    assert first[1] == second[1]


@pytest.mark.parametrize("distances", [np.zeros((2, 2)), np.zeros((5, 5)), np.full((5, 5), np.nan)])
def test_too_few_equal_or_absent_heads_have_no_map(distances: np.ndarray) -> None:
    places, stress = head_map(distances)
    assert places.shape == (len(distances), 2)
    assert np.isnan(places).all()
    assert np.isnan(stress)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoothing": 1}, "wanted 0 ≤ smoothing < 1"),
        ({"reduction": "max"}, "wanted one of mean, sum"),
    ],
)
def test_impossible_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run({"divergence": options})
