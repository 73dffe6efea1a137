"""Does `mixing` say how much of a token's output comes from other tokens, and of which tokens?

The axis `method` needs the dict form of xarray's `sel`, which has an argument of that name.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

from analyses.running import RANK, flags, planted, run
from headscope.analyses.mixing.measure import METHODS
from headscope.draw.figures import draw, pictures
from headscope.model.instrument import AttentionCall
from headscope.run.contract_bench import tiny_examples, tiny_network
from model.families.tiny import tiny
from reference import mixing
from reference.extraction import Blocks

LENGTHS = np.array([len(e) for e in tiny_examples()])
BINNING = 4e-3  # of binned ranks on so few tokens, as in test_norms


@pytest.mark.parametrize(
    ("dtype", "size", "tolerance"),
    [(torch.float64, 1, 1e-10), (torch.float64, 7, 1e-10), (torch.float32, 3, 5e-5)],
)
def test_all_five_methods_agree_with_the_reference(
    reference: list[Blocks], dtype: torch.dtype, size: int, tolerance: float
) -> None:
    found = run({"mixing": {}}, network=tiny_network(dtype), size=size)["mixing"].ratio
    expected = mixing.mixing_means([mixing.mixing_example(b) for b in reference])
    for method in METHODS:
        np.testing.assert_allclose(
            found.sel({"variant": method}), expected[method], rtol=0, atol=tolerance
        )


@pytest.mark.parametrize(
    ("dtype", "size", "tolerance"), [(torch.float64, 7, 1e-10), (torch.float32, 3, 5e-6)]
)
def test_the_shares_of_categories_agree_with_the_reference(
    reference: list[Blocks], dtype: torch.dtype, size: int, tolerance: float
) -> None:
    found = run({"mixing": {}}, network=tiny_network(dtype), size=size)["mixing"].taken_share
    expected = mixing.taken_share(reference, flags(tiny_examples()))
    assert found.category.values.tolist() == list(expected)
    for category, share in expected.items():
        np.testing.assert_allclose(found.sel(category=category), share, rtol=0, atol=tolerance)


def test_the_first_token_of_a_decoder_is_a_category_and_one_without_separators_has_none() -> None:
    found = run({"mixing": {}}, special={}, first_token=True)["mixing"].taken_share
    there = {c: float(found.sel(category=c).isnull().sum()) for c in found.category.values}
    assert there == {"cls": 2, "sep": 2, "punctuation": 0, "other": 0, "first": 0}
    plant = planted(*[["previous"] * 3] * 2)
    examples = [one for one in tiny_examples() if len(one) == 2]
    found = run({"mixing": {}}, first_token=True, plant=plant, examples=examples)["mixing"]
    np.testing.assert_allclose(found.taken_share.sel(category="first"), 1)  # there is no other


@pytest.mark.parametrize("size", [1, 7])
def test_the_frequency_effect_agrees_with_the_reference(reference: list[Blocks], size: int) -> None:
    found = run({"mixing": {}}, size=size)["mixing"].spearman_frequency
    expected = mixing.spearman_frequency(
        [mixing.mixing_example(b) for b in reference],
        [RANK[e.input_ids] * 1.0 for e in tiny_examples()],
    )
    for method, value in expected.items():
        assert float(found.sel({"variant": method})) == pytest.approx(value, abs=BINNING)


def test_without_ranks_there_is_no_frequency_effect() -> None:
    assert "spearman_frequency" not in run({"mixing": {}}, rank=None)["mixing"]


def test_a_method_that_a_model_does_not_have_has_no_frequency_effect() -> None:
    found = run({"mixing": {}}, network=tiny("Gemma2"))["mixing"].spearman_frequency
    absent = np.isnan(found.sel({"variant": list(METHODS)})).values.tolist()
    assert absent == [False, False, True, True, True]


def test_tokens_that_attend_to_themselves_mix_nothing() -> None:
    found = run({"mixing": {}}, plant=planted(*[["self"] * 3] * 2))["mixing"].ratio
    np.testing.assert_allclose(found, 0, atol=1e-12)


def test_tokens_that_attend_elsewhere_take_all_from_there_but_for_the_residual() -> None:
    """The first token of an example has no previous one and stays itself."""
    found = run({"mixing": {}}, plant=planted(*[["previous"] * 3] * 2))["mixing"].ratio
    moved = (LENGTHS - 1).sum() / LENGTHS.sum()
    np.testing.assert_allclose(found.sel({"variant": ["attn_w", "attn_n"]}), moved, atol=1e-7)
    np.testing.assert_allclose(found.sel({"variant": "attnres_w"}), moved / 2, atol=1e-7)
    for method in ("attnres_n", "attnresln_n"):
        ratio = found.sel({"variant": method})
        assert ((ratio > 0) & (ratio < moved)).all()


def test_an_example_of_one_token_mixes_nothing() -> None:
    one = [e for e in tiny_examples() if len(e) == 1]
    network = tiny_network(torch.float32)
    found = run({"mixing": {}}, network=network, examples=one)["mixing"].ratio
    np.testing.assert_allclose(found, 0, atol=1e-6)


def test_a_token_that_nothing_reaches_has_no_ratio_and_spoils_no_mean() -> None:
    """0/0 used to make the layer's mean, and every draw of it, NaN."""

    def silence(call: AttentionCall) -> None:
        call.values = call.values.clone()
        call.values[0] = 0  # all of the first example of each batch

    found = run({"mixing": {}}, size=7, change=silence)["mixing"]
    assert not np.isnan(found.ratio).any()
    assert not np.isnan(found.ratio_ci_low).any()

    def silence_all(call: AttentionCall) -> None:
        call.values = torch.zeros_like(call.values)

    nothing = run({"mixing": {}}, change=silence_all)["mixing"].ratio
    assert np.isnan(nothing.sel({"variant": "attn_n"})).all()
    assert (nothing.sel({"variant": "attnres_n"}) == 0).all()


def test_models_that_normalise_before_attention_have_no_ratio_after_it() -> None:
    found = run({"mixing": {}}, network=tiny("Llama"))["mixing"].ratio
    assert np.isnan(found.sel({"variant": "attnresln_n"})).all()
    assert not np.isnan(found.sel({"variant": list(METHODS[:4])})).any()


def test_models_that_change_attention_before_adding_it_have_no_ratio_with_the_residual() -> None:
    found = run({"mixing": {}}, network=tiny("Gemma2"))["mixing"].ratio
    assert np.isnan(found.sel({"variant": ["attnres_w", "attnres_n", "attnresln_n"]})).all()
    assert not np.isnan(found.sel({"variant": ["attn_w", "attn_n"]})).any()


def test_every_ratio_is_a_share() -> None:
    result = run({"mixing": {}}, network=tiny_network(torch.float32))["mixing"]
    for name in ("ratio", "ratio_ci_low", "ratio_ci_high"):
        assert ((result[name] >= 0) & (result[name] <= 1)).all()


def test_the_figure_shows_of_which_tokens_and_of_an_old_run_the_ratio_alone() -> None:
    dataset = run({"mixing": {}}, network=tiny_network(torch.float32))["mixing"]
    tree = xr.DataTree.from_dict({"mixing": dataset})
    lines = draw(tree, "mixing").axes[1].lines
    for line, category in zip(lines, dataset.category.values, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), dataset.taken_share.sel(category=category))
    old = xr.DataTree.from_dict({"mixing": dataset.drop_vars("taken_share")})
    assert [panel.title for panel in pictures()["mixing"].panels(old)] == [
        "Share from other tokens"
    ]
