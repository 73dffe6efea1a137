"""Does `entropy` say in nats how widely heads attend?"""

from __future__ import annotations

from math import lgamma

import numpy as np
import pytest
import torch

from analyses.running import planted, run
from headscope.model.vocabulary import Vocabulary
from headscope.run.contract_bench import tiny_examples, tiny_network
from model.families.tiny import FAMILIES
from reference import entropy
from reference.extraction import Blocks

LENGTHS = [len(e) for e in tiny_examples()]


@pytest.mark.parametrize("smoothing", [0.0, 1e-4, 0.3])
@pytest.mark.parametrize("size", [1, 7])
def test_float64_agrees_with_the_reference(
    reference: list[Blocks], smoothing: float, size: int
) -> None:
    found = run({"entropy": {"smoothing": smoothing}}, size=size)["entropy"]
    expected = entropy.entropy_means([b["attention"] for b in reference], smoothing=smoothing)
    for query, values in expected.items():
        np.testing.assert_allclose(found.entropy.sel(query=query), values, rtol=0, atol=1e-10)
    assert float(found.uniform) == pytest.approx(entropy.uniform_entropy(LENGTHS), abs=1e-13)


@pytest.mark.parametrize("smoothing", [0.0, 1e-4])
def test_float32_agrees_with_the_reference(reference: list[Blocks], smoothing: float) -> None:
    network = tiny_network(torch.float32)
    found = run({"entropy": {"smoothing": smoothing}}, network=network)["entropy"].entropy
    expected = entropy.entropy_means([b["attention"] for b in reference], smoothing=smoothing)
    for query, values in expected.items():
        np.testing.assert_allclose(found.sel(query=query), values, rtol=0, atol=5e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("smoothing", [0.0, 1e-4])
def test_uniform_attention_has_log_n_nats(dtype: torch.dtype, smoothing: float) -> None:
    plant = planted(*[["uniform"] * 3] * 2)
    found = run({"entropy": {"smoothing": smoothing}}, network=tiny_network(dtype), plant=plant)
    expected = np.log(LENGTHS).mean()
    np.testing.assert_allclose(found["entropy"].entropy, expected, atol=1e-6)
    assert float(found["entropy"].uniform) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_to_one_token_has_no_entropy(dtype: torch.dtype) -> None:
    plant = planted(("previous", "next", "self"), ("next", "self", "previous"))
    found = run({"entropy": {}}, network=tiny_network(dtype), plant=plant)["entropy"]
    assert (found.entropy == 0).all()


def test_an_example_of_one_token_has_no_entropy() -> None:
    one = [e for e in tiny_examples() if len(e) == 1]
    found = run({"entropy": {}}, examples=one, network=tiny_network(torch.float32))["entropy"]
    np.testing.assert_allclose(found.entropy, 0, atol=1e-6)
    assert float(found.uniform) == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_uniform_causal_attention_has_the_log_of_n_factorial_over_n(dtype: torch.dtype) -> None:
    """The i-th token sees i tokens: mean of ln i."""
    network = FAMILIES["BERT decoder"].build().to(dtype)
    plant = planted(*[["causal"] * 4] * 2)
    found = run({"entropy": {}}, network=network, plant=plant)["entropy"]
    expected = np.mean([lgamma(n + 1) / n for n in LENGTHS])
    np.testing.assert_allclose(found.entropy.sel(query="all"), expected, atol=1e-6)
    assert (found.entropy.sel(query="cls") == 0).all()
    assert float(found.uniform) == pytest.approx(expected, abs=1e-12)


def test_a_model_without_cls_has_no_entropy_of_it() -> None:
    """Its first row is a word like any other; for a decoder the entropy there is always 0."""
    plain = Vocabulary(cls=None, sep=3, punctuation=())
    found = run({"entropy": {}}, vocabulary=plain, special={"sep": "[SEP]"})["entropy"]
    for name in ("entropy", "entropy_ci_low", "entropy_ci_high"):
        assert np.isnan(found[name].sel(query="cls")).all()
        assert not np.isnan(found[name].sel(query="all")).any()


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_an_impossible_smoothing_is_refused(smoothing: float) -> None:
    with pytest.raises(ValueError, match="wanted 0 ≤ smoothing < 1"):
        run({"entropy": {"smoothing": smoothing}})
