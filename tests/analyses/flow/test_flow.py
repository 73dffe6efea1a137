"""Does `flow` say from which input tokens representations come?

The axis `method` needs the dict form of xarray's `sel`, which has an argument of that name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from analyses.running import flags, planted, run
from headscope.analyses.flow import METHODS
from headscope.analyses.flow.measure import DEFAULT, TARGETS, Flow
from headscope.errors import InputError
from headscope.model.vocabulary import Vocabulary
from headscope.run.check_analysis import check_analysis
from headscope.run.contract_bench import CLS, VOCABULARY, tiny_examples, tiny_network
from model.families.tiny import tiny
from reference import flow as plainly
from reference.extraction import Blocks

ALL = {"flow": {"methods": ",".join(METHODS)}}
LENGTHS = np.array([len(e) for e in tiny_examples()])


@pytest.fixture(scope="module")
def expected(reference_flows: dict[str, list[np.ndarray]]) -> dict[str, dict[str, np.ndarray]]:
    """method -> {variable: value over the examples, averaged as the analysis says}."""
    kinds = flags(tiny_examples())
    found = {}
    for method, products in reference_flows.items():
        rows: dict[str, list[Any]] = {"share": [], "cls_share": [], "effective_tokens": []}
        for at, product in enumerate(products):
            named = [kinds[name][at] for name in ("cls", "sep", "punctuation")]
            shares = [plainly.shares(layer, *named) for layer in product]
            table = np.array([[s[t] for t in TARGETS] for s in shares])  # [layer, target, query]
            rows["share"].append(table.mean(-1))
            if named[0].any():
                rows["cls_share"].append(table[..., int(named[0].argmax())])
            rows["effective_tokens"].append((1 / (product**2).sum(-1)).mean(-1))
        found[method] = {name: np.mean(values, axis=0) for name, values in rows.items()}
    return found


@pytest.fixture(scope="module")
def reference_flows(reference: list[Blocks]) -> dict[str, list[np.ndarray]]:
    """method -> one [layer, query, key] rollout per example."""
    network = tiny_network(torch.float64)
    closing = [plainly.bert_closing(network, e.input_ids, e.segment_ids) for e in tiny_examples()]
    pairs = list(zip(reference, closing, strict=True))
    return {
        method: [plainly.rollout(plainly.layer_matrices(b, c, method)) for b, c in pairs]
        for method in METHODS
    }


@pytest.mark.parametrize(
    ("dtype", "size", "tolerance"),
    [(torch.float64, 1, 1e-9), (torch.float64, 7, 1e-9), (torch.float32, 3, 1e-4)],
)
def test_every_method_agrees_with_the_reference(
    expected: dict[str, dict[str, np.ndarray]], dtype: torch.dtype, size: int, tolerance: float
) -> None:
    found = run(ALL, network=tiny_network(dtype), size=size)["flow"]
    for method in METHODS:
        for name, wanted in expected[method].items():
            np.testing.assert_allclose(
                found[name].sel({"variant": method}), wanted, rtol=tolerance, atol=tolerance
            )


def test_the_shares_of_a_representation_add_up_to_one() -> None:
    found = run(ALL)["flow"]
    np.testing.assert_allclose(found.share.sum("target"), 1, rtol=1e-12)
    np.testing.assert_allclose(found.cls_share.sum("target"), 1, rtol=1e-12)
    assert (found.effective_tokens >= 1 - 1e-12).all()


def shares(kind: str) -> xr.DataArray:
    found: xr.DataArray = run(ALL, plant=planted(*[[kind] * 3] * 2))["flow"].share
    return found


def test_tokens_that_attend_to_themselves_stay_themselves() -> None:
    np.testing.assert_allclose(shares("self").sel(target="self"), 1, rtol=1e-12)


def test_attention_to_the_previous_token_reaches_two_back_in_two_layers() -> None:
    """By halves: of the second layer ¼ is itself, ½ the previous token, ¼ the one before that;
    at the beginning, where there is none, the first token keeps what would go there."""
    found = shares("previous").sel({"variant": "rollout"})
    weights = np.array([_two_back(n) for n in LENGTHS])
    np.testing.assert_allclose(found[1].sel(target="self"), weights[:, 0].mean(), rtol=1e-12)
    np.testing.assert_allclose(found[1].sel(target="previous"), weights[:, 1].mean(), rtol=1e-12)
    np.testing.assert_allclose(found[0].sel(target="next"), 0, atol=1e-12)


def _two_back(n: int) -> tuple[float, float]:
    """The means of itself and previous over the queries 0, 1, 2, … of one example."""
    itself = [1.0, 0.25] + [0.25] * (n - 2)
    previous = [0.0, 0.75] + [0.5] * (n - 2)
    return float(np.mean(itself[:n])), float(np.mean(previous[:n]))


def test_uniform_attention_has_as_many_sources_as_there_are_tokens_and_the_residual() -> None:
    found = run({"flow": {"methods": "rollout"}}, plant=planted(*[["uniform"] * 3] * 2))["flow"]
    # A row holds 1/2n everywhere and ½ more on itself.
    square = (LENGTHS - 1) / (2 * LENGTHS) ** 2 + (0.5 + 0.5 / LENGTHS) ** 2
    np.testing.assert_allclose(found.effective_tokens[0, 0], np.mean(1 / square), rtol=1e-12)


# --- what a model does not have -----------------------------------------------------------------


def family(name: str, methods: str = "") -> xr.Dataset:
    options = {"methods": methods} if methods else {}
    return run({"flow": options}, network=tiny(name))["flow"]


def test_what_a_family_lacks_is_nan_and_the_rest_is_there() -> None:
    found = family("Llama").share
    assert np.isnan(found.sel({"variant": "globenc"})).all()
    assert np.isfinite(found.sel({"variant": ["rollout", "weighted_norm_residual"]})).all()
    found = family("Gemma2").share
    assert np.isfinite(found.sel({"variant": "rollout"})).all()
    assert np.isnan(found.sel({"variant": ["weighted_norm_residual", "globenc"]})).all()


def test_without_special_tokens_their_shares_are_nan() -> None:
    none = Vocabulary(cls=None, sep=None, punctuation=VOCABULARY.punctuation)
    found = run({"flow": {}}, vocabulary=none, special={})["flow"]
    assert np.isnan(found.share.sel(target=["cls", "sep"])).all()
    assert np.isfinite(found.share.sel(target=["self", "other"])).all()
    assert np.isnan(found.cls_share).all()


def test_only_the_first_opening_token_of_an_input_is_asked() -> None:
    example = next(e for e in tiny_examples() if len(e) == 9)
    ids = example.input_ids.copy()
    alone = run({"flow": {}}, examples=[example])["flow"].cls_share
    assert ids[0] == CLS
    with_two = ids.copy()
    with_two[4] = CLS
    found = run({"flow": {}}, examples=[replace(example, input_ids=with_two)])["flow"].cls_share
    np.testing.assert_allclose(found.sum("target"), 1, rtol=1e-12)
    assert alone.shape == found.shape


# --- asking -------------------------------------------------------------------------------------


def test_all_methods_keep_the_contract() -> None:
    check_analysis(Flow, methods=",".join(METHODS))


def test_methods_that_are_asked_for_need_what_they_need() -> None:
    always = {"attention", "whole_rows", "every_layer"}
    assert Flow.needs_with({}) == always
    assert Flow.needs_with({"methods": "rollout"}) == always
    more = {"values", "projection", "residual"}
    assert Flow.needs_with({"methods": "alti,rollout"}) == always | more


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InputError, match="found 'rolout'; wanted methods among rollout"):
        run({"flow": {"methods": "rolout"}})


def test_the_usual_methods_cost_no_second_pass() -> None:
    assert set(DEFAULT) <= set(METHODS) - {"value_zeroing", "alti"}
