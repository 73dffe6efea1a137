"""Does `surface` say how much heads attend to themselves, neighbours and special tokens?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

from analyses.running import flags, planted, run
from headscope.analyses.surface import query_bands
from headscope.analyses.surface.measure import TARGETS
from headscope.analyses.surface.query_bands import CARD, GOALS, by_place
from headscope.claims.length_bands import NAMES
from headscope.model.vocabulary import Vocabulary
from headscope.run.contract_bench import COMMA, STOP, tiny_examples, tiny_network
from recorded import reading
from reference import surface
from reference.extraction import Blocks

LENGTHS = np.array([len(e) for e in tiny_examples()])


def _expected(reference: list[Blocks]) -> dict[str, np.ndarray]:
    kinds = flags(tiny_examples())
    maps = [block["attention"] for block in reference]
    return surface.surface_means(maps, kinds["cls"], kinds["sep"], kinds["punctuation"])


@pytest.mark.parametrize("size", [1, 3, 7])
def test_float64_agrees_with_the_reference(reference: list[Blocks], size: int) -> None:
    found = run({"surface": {}}, size=size)["surface"].attention
    expected = _expected(reference)
    for target in TARGETS:
        np.testing.assert_allclose(found.sel(target=target), expected[target], rtol=0, atol=1e-10)


def test_float32_agrees_with_the_reference(reference: list[Blocks]) -> None:
    found = run({"surface": {}}, network=tiny_network(torch.float32))["surface"].attention
    expected = _expected(reference)
    for target in TARGETS:
        np.testing.assert_allclose(found.sel(target=target), expected[target], rtol=0, atol=5e-5)


def test_planted_heads_come_out_as_such_and_in_the_right_direction() -> None:
    """Edge tokens have no neighbour and count in the mean, as Clark et al. do: (n - 1) / n."""
    plant = planted(("previous", "next", "sep"), ("self", "uniform", "previous"))
    found = run({"surface": {}}, plant=plant)["surface"].attention
    share, one = (1 - 1 / LENGTHS).mean(), (1 / LENGTHS).mean()

    def at(layer: int, head: int, target: str) -> float:
        return float(found.sel(layer=layer, head=head, target=target))

    for layer, head, there, back in (
        (0, 0, "previous", "next"),
        (0, 1, "next", "previous"),
        (1, 2, "previous", "next"),
    ):
        assert at(layer, head, there) == pytest.approx(share, abs=1e-12)
        assert at(layer, head, back) == 0
        assert at(layer, head, "self") == pytest.approx(one, abs=1e-12)
    with_sep = np.array([kind.any() for kind in flags(tiny_examples())["sep"]])
    assert at(0, 2, "sep") == pytest.approx(with_sep.mean(), abs=1e-12)
    assert at(0, 2, "sep_from_other") == pytest.approx(with_sep.mean(), abs=1e-12)
    assert at(0, 2, "sep_from_sep") == pytest.approx(1, abs=1e-12)
    assert at(0, 2, "cls") == 0
    assert at(1, 0, "self") == 1
    assert at(1, 0, "previous") == at(1, 0, "next") == 0
    assert at(1, 0, "sep_from_other") == 0


def test_queries_without_a_neighbour_can_be_left_out() -> None:
    """A one-token example then has no query at all and is left out too."""
    plant = planted(("previous", "next", "sep"), ("self", "uniform", "previous"))
    found = run({"surface": {"edge_tokens": "leave_out"}}, plant=plant)["surface"].attention
    assert float(found.sel(layer=0, head=0, target="previous")) == pytest.approx(1, abs=1e-12)
    assert float(found.sel(layer=0, head=1, target="next")) == pytest.approx(1, abs=1e-12)
    expected = (1 / LENGTHS[LENGTHS > 1]).mean()
    assert float(found.sel(layer=1, head=1, target="next")) == pytest.approx(expected, abs=1e-12)


def test_uniform_attention_gives_every_token_one_nth() -> None:
    plant = planted(*[["uniform"] * 3] * 2)
    found = run({"surface": {}}, plant=plant)["surface"].attention
    kinds = flags(tiny_examples())
    for target in ("cls", "sep", "punctuation"):
        expected = np.mean([kind.mean() for kind in kinds[target]])
        np.testing.assert_allclose(found.sel(target=target), expected, atol=1e-12)
    for target in ("self", "first"):
        np.testing.assert_allclose(found.sel(target=target), (1 / LENGTHS).mean(), atol=1e-12)
    for target in ("previous", "next"):
        expected = ((LENGTHS - 1) / LENGTHS**2).mean()
        np.testing.assert_allclose(found.sel(target=target), expected, atol=1e-12)


def test_a_model_without_special_tokens_has_no_attention_to_them() -> None:
    plain = Vocabulary(cls=None, sep=None, punctuation=(4, 5))
    found = run({"surface": {}}, vocabulary=plain, special={})["surface"]
    absent = [t for t in TARGETS if t.startswith(("cls", "sep"))]
    for name in ("attention", "attention_ci_low", "attention_ci_high"):
        assert np.isnan(found[name].sel(target=absent)).all()
        assert not np.isnan(found[name].sel(target=["self", "first", "punctuation"])).any()


def test_a_special_token_that_never_occurs_is_attended_by_nobody() -> None:
    """Attention to it is 0; attention from it does not exist."""
    words = [e for e in tiny_examples() if len(e) in (1, 7)]
    found = run({"surface": {}}, examples=words)["surface"].attention
    for target in ("cls", "sep", "sep_from_other"):
        assert (found.sel(target=target) == 0).all()
    assert np.isnan(found.sel(target="sep_from_sep")).all()


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ValueError, match="wanted one of count, leave_out"):
        run({"surface": {"edge_tokens": "drop"}})


def test_the_rest_is_what_queries_give_beside_the_first_token(reference: list[Blocks]) -> None:
    plain = Vocabulary(cls=None, sep=None, punctuation=(STOP, COMMA))
    found = run({"surface": {}}, vocabulary=plain, special={}, first_token=True)["surface"]
    to, left = dict.fromkeys(("self", "previous", "punctuation"), 0.0), 0.0
    for example, block in zip(tiny_examples(), reference, strict=True):
        maps, n = block["attention"], len(example)  # [layer, head, query, key]
        beside = maps.copy()
        beside[..., 0] = 0
        left = left + beside.sum((-1, -2)) / n
        for query in range(n):
            for kind, keys in (
                ("self", [query]),
                ("previous", [query - 1] if query else []),
                ("punctuation", np.flatnonzero(np.isin(example.input_ids, (STOP, COMMA)))),
            ):
                to[kind] = to[kind] + beside[..., query, :][..., keys].sum(-1) / n
    for kind, total in to.items():
        np.testing.assert_allclose(
            found.rest_attention.sel(rest_target=kind), total / left, atol=1e-10
        )
    assert "rest_attention" not in run({"surface": {}})["surface"]


# --- by the place of the query ---------------------------------------------------------------


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> tuple[int, ...]:
    """Bands so narrow that short inputs have queries in all of them."""
    ends = (1, 2, 4, 6, 8, 11)
    monkeypatch.setattr("headscope.analyses.surface.measure.LAST_TOKENS", ends)
    return ends


@pytest.mark.parametrize("size", [1, 7])
def test_queries_at_each_place_agree_with_the_reference(
    reference: list[Blocks], narrow: tuple[int, ...], size: int
) -> None:
    """Row by row: each of an input of n tokens counts 1/n."""
    found = run({"surface": {}}, size=size)["surface"].attention_by_place
    bands, goals = len(narrow) + 1, {"self": 0, "previous": -1, "next": 1}
    total, count = np.zeros((*found.shape[:2], 4, bands)), np.zeros(bands)
    for block in reference:
        maps = np.asarray(block["attention"])  # [layer, head, query, key]
        n = maps.shape[-1]
        for query in range(n):
            band = sum(query + 1 > end for end in narrow)
            count[band] += 1 / n
            total[..., 3, band] += maps[:, :, query, 0] / n
            for at, step in enumerate(goals.values()):
                if 0 <= query + step < n:
                    total[..., at, band] += maps[:, :, query, query + step] / n
    assert found.goal.values.tolist() == [*goals, "first"]
    np.testing.assert_allclose(found, total / count, rtol=0, atol=1e-10)


def test_the_mean_over_places_is_the_attention_of_all(narrow: tuple[int, ...]) -> None:
    found = run({"surface": {}}, size=3)["surface"]
    assert float(found.query_weight.sum()) == pytest.approx(1)
    mean = (found.attention_by_place * found.query_weight).sum("query_band")
    for goal in found.goal.values:
        np.testing.assert_allclose(
            mean.sel(goal=goal), found.attention.sel(target=goal), rtol=0, atol=1e-12
        )
    short = run({"surface": {}}, examples=tiny_examples()[1:2])["surface"]
    assert short.query_weight.values.tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert np.isnan(short.attention_by_place[..., 1:]).all()


def test_a_head_that_looks_elsewhere_from_far_is_said_to(monkeypatch) -> None:
    """Half of its attention from the first 16 tokens, a tenth from the next; the other head all."""
    shares = np.full((1, 2, 4, 7), np.nan)
    shares[..., :2] = 0.3
    shares[0, 0, 3, :2] = 0.5, 0.1
    ends = {
        f"attention_by_place_ci_{end}": shares + by for end, by in (("low", -0.1), ("high", 0.1))
    }
    dims = ("layer", "head", "goal", "query_band")
    dataset = xr.Dataset(
        {name: (dims, values) for name, values in ({"attention_by_place": shares} | ends).items()}
    ).assign_coords(goal=list(GOALS), query_band=list(NAMES))
    dataset["attention"] = (("layer", "head", "target"), np.full((1, 2, 1), np.nan))
    dataset = dataset.assign_coords(target=["cls"])
    tree = xr.DataTree.from_dict({"surface": dataset})
    run = reading(tree, "surface")
    assert list(CARD.lines(run, 0, 0)) == [
        "the first token: 50 % [40, 60] from tokens up to 16, 10 % [0, 20] from tokens 17 to 32"
    ]
    assert not list(CARD.lines(run, 0, 1))
    assert len(CARD.data(run, 0, 1)["by_place"]) == 4 * 2
    labelled = np.ones((1, 2), bool)
    monkeypatch.setattr(query_bands, "with_label", lambda *_: labelled)
    assert by_place(tree) == (
        "1 labelled head gives the first token another share from tokens near the start than from "
        "those far from it: L1·H1 50 % from tokens up to 16 and 10 % from tokens 17 to 32."
    )
    labelled[0, 0] = False  # it does what a head without training does
    assert not by_place(tree)
    labelled[0, 0] = True
    decoder = xr.DataTree.from_dict({"surface": dataset})
    decoder.attrs["stack"] = "decoder"
    assert not by_place(decoder)  # its first tokens see so few that it says nothing
    old = xr.DataTree.from_dict({"surface": dataset[["attention"]]})
    assert not by_place(old)
    assert not list(CARD.lines(reading(old, "surface"), 0, 0))
