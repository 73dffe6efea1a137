"""Are layer matrices what their papers define, in any batch and for every family that has them?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from analyses.flow.layers import families_layers
from analyses.running import blocks, observe, planted
from headscope.analyses.flow import METHODS, check_methods, why_not
from headscope.analyses.flow.measure_matrices import layer_matrix
from headscope.errors import InputError, ModelError
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.run.contract_bench import VOCABULARY, tiny_examples, tiny_network, tiny_views
from model.families.tiny import FAMILIES, inputs, tiny
from reference import flow as reference
from reference.mixing import layer_norm_vectors
from reference.norms import summed_vectors

POST_NORM = [name for name, family in FAMILIES.items() if family.post_norm]
PRE_NORM = [n for n, f in FAMILIES.items() if f.residual and not f.post_norm]


@pytest.fixture(scope="module")
def batch() -> Batch:
    return Batch.of(tiny_examples(), VOCABULARY, replicates=0)


@pytest.fixture(scope="module")
def expected() -> dict[str, list[np.ndarray]]:
    """method -> one [layer, query, key] per example."""
    network = tiny_network(torch.float64)
    closing = [reference.bert_closing(network, e.input_ids, e.segment_ids) for e in tiny_examples()]
    pairs = list(zip(blocks(tiny_examples()), closing, strict=True))
    return {m: [reference.layer_matrices(b, c, m) for b, c in pairs] for m in METHODS}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 5e-5)])
def test_a_method_is_its_reference(
    batch: Batch, expected: Any, method: str, dtype: torch.dtype, tolerance: float
) -> None:
    for view in tiny_views(batch, dtype=dtype):
        found = layer_matrix(view, batch, method)
        for row, n in enumerate(batch.lengths):
            wanted = expected[method][row][view.index]
            np.testing.assert_allclose(found[row, :n, :n], wanted, rtol=0, atol=tolerance)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rows_sum_to_one_and_padding_stays_itself(
    batch: Batch, method: str, dtype: torch.dtype
) -> None:
    for view in tiny_views(batch, dtype=dtype):
        found = layer_matrix(view, batch, method)
        assert (found >= 0).all()
        torch.testing.assert_close(found.sum(-1), torch.ones_like(found[..., 0]), rtol=0, atol=1e-6)
        for row, n in enumerate(batch.lengths):
            assert not found[row, :n, n:].any()
            assert torch.equal(found[row, n:], torch.eye(found.shape[-1], dtype=dtype)[n:])


@pytest.mark.parametrize("method", METHODS)
def test_padding_and_company_change_nothing(batch: Batch, method: str) -> None:
    together = tiny_views(batch, dtype=torch.float64)
    for row, example in enumerate(batch.examples):
        alone = Batch.of([example], VOCABULARY, replicates=0)
        n = len(example)
        for one, many in zip(tiny_views(alone, dtype=torch.float64), together, strict=True):
            found = layer_matrix(many, batch, method)[row, :n, :n]
            single = layer_matrix(one, alone, method)[0, :n, :n]
            torch.testing.assert_close(found, single, rtol=0, atol=1e-10)


# --- closed cases ---------------------------------------------------------------------------


def whole(kind: str, method: str, *, layers: int = 2) -> list[torch.Tensor]:
    """Matrices of the tiny model with all heads planted alike, for an example of 12 tokens."""
    one = Batch.of(tiny_examples()[:1], VOCABULARY, replicates=0)
    plant = planted(*[[kind] * 3] * layers)
    views = observe(tiny_network(torch.float64), one, plant=plant)
    return [layer_matrix(view, one, method) for view in views]


@pytest.mark.parametrize("method", METHODS)
def test_tokens_that_attend_to_themselves_stay_themselves(method: str) -> None:
    for matrix in whole("self", method):
        torch.testing.assert_close(matrix[0], torch.eye(12).double(), rtol=0, atol=1e-12)


def test_uniform_attention_is_half_oneself_and_half_everyone() -> None:
    for matrix in whole("uniform", "rollout"):
        everyone = torch.full((12, 12), 1 / 24).double()
        torch.testing.assert_close(matrix[0], everyone + torch.eye(12) / 2)


@pytest.mark.parametrize("method", METHODS)
def test_a_token_that_is_not_attended_to_gives_nothing(method: str) -> None:
    """Exactly nothing, so that no decoder sees what comes later."""
    for matrix in whole("causal", method):
        assert not matrix[0].triu(1).any()


def test_without_any_vector_a_token_stays_itself() -> None:
    one = Batch.of(tiny_examples()[:1], VOCABULARY, replicates=0)

    def silence(call: Any) -> None:
        call.values = torch.zeros_like(call.values)

    for view in observe(tiny_network(torch.float64), one, change=silence):
        for method in METHODS:
            if method != "rollout":
                found = layer_matrix(view, one, method)[0]
                torch.testing.assert_close(found, torch.eye(12).double(), rtol=0, atol=1e-12)


def test_vectors_add_up_to_what_leaves_the_norm() -> None:
    """The parts behind globenc and alti, and b_O's, are the LayerNorm's output without β."""
    examples = tiny_examples()
    network = tiny_network(torch.float64)
    for example, block in zip(examples, blocks(examples), strict=True):
        closing = reference.bert_closing(network, example.input_ids, example.segment_ids)
        for at, pre in enumerate(block["pre_norm"]):
            parts = summed_vectors(block["attention"][at], block["f"][at])
            n = len(parts)
            parts[np.arange(n), np.arange(n)] += block["x"][at]
            bias = np.broadcast_to(block["output_bias"][at], (n, 1, parts.shape[-1]))
            every = np.concatenate([parts, bias], axis=1)
            normed = layer_norm_vectors(every, pre, block["gamma"][at], block["eps"]).sum(1)
            total = reference.normed_whole(block, closing, at)
            np.testing.assert_allclose(normed + closing["beta"][at], total, atol=1e-10)


@pytest.mark.parametrize("name", POST_NORM)
def test_the_same_parts_add_up_in_every_family(name: str) -> None:
    """γ ⊙ (t - mean(t)) over all tokens, s apart, gives what the family's own norm gives."""
    given, mask = inputs(name)
    for view, after in normed(name, given):
        assert view.values is not None
        assert view.site.post_norm is not None
        assert view.site.post_norm.shift is not None
        assert view.site.normed_projection is not None
        weight = view.site.normed_projection.weight
        vectors = torch.einsum("bhqk,bhkd,hdm->bqkm", view.attention, view.values, weight)
        rows = range(vectors.shape[1])
        assert view.residual is not None
        vectors[:, rows, rows] += view.site.post_norm.of_part(view.residual)
        bias = view.projection.bias
        total = vectors.sum(2) + (0 if bias is None else view.site.post_norm.of_part(bias))
        deviation = (view.residual + view.output).var(-1, correction=0, keepdim=True)
        scaled = (
            total / (deviation + view.site.post_norm.epsilon).sqrt() + view.site.post_norm.shift
        )
        torch.testing.assert_close(scaled[mask], after[mask], atol=2e-5, rtol=2e-5)


def normed(name: str, given: dict[str, torch.Tensor]) -> list[tuple[LayerView, torch.Tensor]]:
    """The encoder's (or only) layers, each with what leaves the norm after its attention."""
    views: list[LayerView] = []
    after: list[torch.Tensor] = []
    network = tiny(name)
    stack = "decoder" if "encoder" not in FAMILIES[name].stacks else "encoder"
    with torch.no_grad(), Instrument(network, observers=[views.append], stacks=[stack]) as seen:
        norms = {s.norm for s in seen.sites if s.norm is not None and s.stack == stack}
        hooks = [n.register_forward_hook(lambda _m, _a, out: after.append(out)) for n in norms]
        network(**given)
    for hook in hooks:
        hook.remove()
    return list(zip(views, after, strict=True))


# --- families -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_the_methods_that_have_a_meaning_for_it(name: str) -> None:
    views, batch = families_layers(name)
    missing = {method for method in METHODS if why_not(views[0], method)}
    wanted = set()
    if name in PRE_NORM:
        wanted = {"globenc"}
    if not FAMILIES[name].residual:
        wanted = {"globenc", "alti", "weighted_norm_residual"}
    if not FAMILIES[name].on_registry:
        wanted |= {"value_zeroing"}
    assert missing == wanted
    for view in views:
        for method in METHODS:
            if method in missing:
                with pytest.raises(ModelError, match=f"{method} is not there for"):
                    layer_matrix(view, batch, method)
            else:
                sums = layer_matrix(view, batch, method).sum(-1)
                torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", PRE_NORM)
def test_before_a_norm_the_stream_itself_is_taken_apart(name: str) -> None:
    """Norms and L1 distances of the plain vectors, against the formulas spelt out."""
    views, batch = families_layers(name)
    for view in views:
        v, a = (t.double().numpy() for t in (view.values, view.attention))
        f = np.einsum("bhkd,hdm->bhkm", v, view.projection.weight.double().numpy())
        x = view.residual.double().numpy()
        stream = x + view.output.double().numpy()
        norms = layer_matrix(view, batch, "weighted_norm_residual")
        alti = layer_matrix(view, batch, "alti")
        for row, n in enumerate(batch.lengths):
            parts = summed_vectors(a[row, :, :n, :n], f[row, :, :n])
            parts[np.arange(n), np.arange(n)] += x[row, :n]
            size = np.linalg.norm(parts, axis=-1)
            np.testing.assert_allclose(
                norms[row, :n, :n], size / size.sum(-1, keepdims=True), atol=2e-5
            )
            y = stream[row, :n]
            near = np.abs(y).sum(-1)[:, None] - np.abs(y[:, None] - parts).sum(-1)
            near = np.maximum(near, 0)
            np.testing.assert_allclose(
                alti[row, :n, :n], near / near.sum(-1, keepdims=True), atol=2e-5
            )


# --- asking ---------------------------------------------------------------------------------


def test_methods_are_checked() -> None:
    assert check_methods(["alti", " rollout ", "alti"]) == ("alti", "rollout")
    with pytest.raises(InputError, match="found 'rolout'; wanted methods among rollout, weighted"):
        check_methods(["rolout"])
    with pytest.raises(InputError, match="found no method"):
        check_methods([""])


def test_cross_attention_has_no_layer_matrix() -> None:
    views: list[LayerView] = []
    with torch.no_grad(), Instrument(tiny("BART"), observers=[views.append], stacks=["cross"]):
        tiny("BART")(**inputs("BART")[0])
    assert "not of the same tokens" in why_not(views[0], "rollout")
