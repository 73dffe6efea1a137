"""Does `divergence` tell heads that behave alike from heads that do not?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headscope as hs
from analyses.running import planted, run
from headscope.analyses.divergence.measure import head_map
from headscope.corpus.document import Example
from headscope.errors import RunStopped
from headscope.model.model import Model
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


# --- drawn queries --------------------------------------------------------------------------


def many(example: Example, count: int) -> list[Example]:
    """The same input in so many documents, each with its own draw."""
    return [replace(example, document=f"document {n}") for n in range(count)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("options", [{}, {"smoothing": 0.1}])
def test_drawn_queries_are_right_in_the_mean_and_within_their_interval(
    dtype: torch.dtype, options: dict
) -> None:
    """Documents differ in the draw alone: without it the interval would have no width."""
    examples = many(max(LONGER, key=len), 150)
    network, upper = tiny_network(dtype), np.triu_indices(4, 1)
    every, drawn = (
        run(
            {"divergence": {"queries": queries, **options}}, network=network, examples=some, size=50
        )["divergence"]
        for queries, some in (("all", examples[:2]), (3, examples))
    )
    value, low, high = (drawn[f"js{end}"].values[upper] for end in ("", "_ci_low", "_ci_high"))
    error = (high - low) / 2 / 1.96
    assert (error > 0).all()
    assert (np.abs(value - every.js.values[upper]) < 4 * error).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_where_every_query_is_drawn_all_queries_are_compared(dtype: torch.dtype) -> None:
    network = tiny_network(dtype)
    drawn, every = (
        run({"divergence": {"queries": queries}}, network=network)["divergence"]
        for queries in (100, "all")
    )
    np.testing.assert_allclose(drawn.js, every.js, rtol=0, atol=1e-6)
    assert (int(drawn["queries"]), np.isnan(every["queries"])) == (100, True)


def test_the_draw_is_the_same_in_any_batch() -> None:
    one, other = (run({"divergence": {"queries": 2}}, size=size)["divergence"] for size in (1, 7))
    np.testing.assert_allclose(one.js, other.js, rtol=0, atol=1e-12)


def test_shards_of_two_processes_and_a_run_that_was_stopped_give_the_same_bits(
    tiny: Model, tmp_path: Path
) -> None:
    texts = [f"The cat saw {n} dogs, and {n * n} birds." for n in range(7)]

    def bits(name: str, **how: Any) -> bytes:
        run = hs.atlas(
            tiny,
            hs.corpus.MemoryCorpus(texts),
            output=tmp_path / name,
            analyses=["divergence"],
            options={"divergence": {"queries": 3}},
            shard_tokens=1,  # a document is a shard
            control="none",
            execution=hs.Execution(linears="stock", threads=1, **how),
        )
        assert run.manifest["spec"]["settings"]["options"]["divergence"]["queries"] == 3
        return (tmp_path / name / "atlas.nc").read_bytes()

    def stop(done: int, _total: int) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    alone = bits("alone")
    for share in ((1, 2), (2, 2)):
        with pytest.raises(RunStopped):
            bits("shared", shard=share, progress=stop)
    assert bits("shared", shard=(2, 2)) == alone


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
        *(
            (
                {"queries": wrong},
                f"queries is {wrong!r}; wanted a whole number, 1 or more, or 'all'",
            )
            for wrong in (0, -4, 2.5, True, "many")
        ),
    ],
)
def test_impossible_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run({"divergence": options})
