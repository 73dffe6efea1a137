"""Is what a layer view works out what the definitions say, on every path and in every precision?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from headscope.errors import ModelError
from headscope.model import layer, row_sums
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.kernels import compiled
from headscope.model.layer import LayerView
from headscope.model.linears import OutputProjection
from headscope.run.contract_bench import VOCABULARY, tiny_examples, tiny_network, tiny_views

DERIVED = {
    "entropy": lambda view, batch: view.entropy(batch),
    "column sums": lambda view, batch: view.column_sums(batch),
    "word sums": lambda view, batch: view.row_sums(batch, row_sums.WORDS),
    "value norms": lambda view, batch: view.value_norm * batch.mask[:, None],
    "summed norms": lambda view, batch: view.summed_norm(batch).sum(1),
}


@pytest.fixture(scope="module")
def batch() -> Batch:
    return Batch.of(tiny_examples(), VOCABULARY, replicates=0)


@pytest.fixture(scope="module")
def wide(batch: Batch) -> list[LayerView]:
    return tiny_views(batch, dtype=torch.float64)


def _vectors(view: LayerView) -> np.ndarray:
    """[example, head, key, model] f_h(x_j), plainly."""
    assert view.values is not None
    weight = view.projection.weight.double()
    return torch.einsum("bhkd,hdm->bhkm", view.values.double(), weight).numpy()


def test_rows_of_real_queries_sum_to_one(batch: Batch, wide: list[LayerView]) -> None:
    for view in wide:
        sums = view.attention.sum(-1).transpose(1, 2)[batch.mask]
        torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-13)


def test_entropies_and_column_sums_are_the_definitions(batch: Batch, wide: list[LayerView]) -> None:
    view = wide[1]
    for row, n in enumerate(batch.lengths):
        a = view.attention[row, :, :n, :n].numpy()
        expected = -(a * np.log(np.where(a > 0, a, 1))).sum(-1)
        np.testing.assert_allclose(view.entropy(batch)[row, :, :n], expected, atol=1e-13)
        sep = batch.is_sep[row, :n].numpy()
        columns = view.column_sums(batch)[row]
        np.testing.assert_allclose(columns[:, 0, :n], a[:, ~sep].sum(1), atol=1e-13)
        np.testing.assert_allclose(columns[:, 1, :n], a[:, sep].sum(1), atol=1e-13)


def test_word_sums_are_the_definitions(batch: Batch) -> None:
    view = tiny_views(batch, dtype=torch.float32)[1]
    runs, ids = batch.word_runs.numpy(), batch.input_ids.numpy()
    for row, n in enumerate(batch.lengths):
        a = view.attention[row, :, :n, :n].double().numpy()
        run, token = runs[row, :n], ids[row, :n]
        word = (run[:, None] > 0) & (run > 0)
        own, alike = run[:, None] == run, token[:, None] == token
        nats = -a * np.log(np.where(a > 0, a, 1))
        kinds = (a, own), (a, ~own), (a, alike & ~np.eye(n, dtype=bool)), (nats, own)
        expected = np.stack([(of * (kind & word)).sum(-1) for of, kind in kinds], -1)
        np.testing.assert_allclose(
            view.row_sums(batch, row_sums.WORDS)[row, :, :n], expected, atol=2e-6
        )


def test_of_rows_only_what_is_asked_is_read_and_then_of_each_layer_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Alone and together are equal to the bit."""
    readings: list[set[str]] = []

    def counted(attention: torch.Tensor, of: Batch, wanted: set[str]) -> dict[str, torch.Tensor]:
        readings.append(set(wanted))
        return row_sums.row_sums(attention, of, wanted)

    monkeypatch.setattr(layer, "row_sums", counted)
    batch = Batch.of(tiny_examples(), VOCABULARY, replicates=0)
    views = tiny_views(batch, dtype=torch.float32)
    names = [row_sums.ENTROPY, row_sums.WORDS]
    for view in views:
        together = [view.row_sums(batch, name) for name in names]
        for name, sums in zip(names, together, strict=True):
            alone = row_sums.row_sums(view.attention, batch, {name})
            assert alone.keys() == {name}
            assert torch.equal(sums, alone[name])
    assert readings == [{names[0]}, {names[1]}, *[set(names)] * (len(views) - 1)]


def test_norms_and_inner_products_are_those_of_the_vectors(
    batch: Batch, wide: list[LayerView]
) -> None:
    for view in wide:
        f = _vectors(view)
        np.testing.assert_allclose(view.value_norm, np.linalg.norm(f, axis=-1), rtol=1e-12)
        lower = np.tril(np.ones((3, 3), bool))[None, :, :, None]
        gram = np.where(lower, np.einsum("bgkm,bhkm->bghk", f, f), 0)
        np.testing.assert_allclose(view.gram, gram, atol=1e-11)


def test_value_norms_are_the_same_when_the_inner_products_are_there(wide: list[LayerView]) -> None:
    for view in wide:
        other = replace(view, _row_sums={})
        _ = other.gram
        torch.testing.assert_close(other.value_norm, view.value_norm, rtol=1e-12, atol=1e-12)


def test_summed_norms_are_those_of_the_summed_vectors(batch: Batch, wide: list[LayerView]) -> None:
    view = wide[0]
    weighted = np.einsum("bhqk,bhkm->bqkm", view.attention.numpy(), _vectors(view))
    norms = np.linalg.norm(weighted, axis=-1) * batch.mask.numpy()[:, :, None]
    np.testing.assert_allclose(view.summed_norm(batch).sum(1), norms.sum(1), atol=1e-7)


@pytest.mark.parametrize("what", DERIVED)
def test_the_compiled_path_gives_what_torch_gives_in_float64(batch: Batch, what: str) -> None:
    for view in tiny_views(batch, dtype=torch.float32):
        assert compiled(view.attention)
        double = replace(
            view,
            attention=view.attention.double(),
            values=view.values.double(),
            site=_site(OutputProjection(view.projection.weight.double(), None)),
            _row_sums={},
        )
        assert not compiled(double.attention)
        found, expected = (DERIVED[what](v, batch) for v in (view, double))
        torch.testing.assert_close(found.double(), expected, rtol=2e-6, atol=2e-6)


def _site(projection: OutputProjection):
    class Site:
        output_projection = projection
        attention = torch.nn.Identity()

    return Site()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_weight_rounded_above_one_has_no_negative_entropy(dtype: torch.dtype) -> None:
    one = Batch.of([e for e in tiny_examples() if len(e) == 1], VOCABULARY, replicates=0)
    view = tiny_views(one, dtype=dtype)[0]
    above = replace(view, attention=torch.full_like(view.attention, 1 + 1e-6), _row_sums={})
    assert (above.entropy(one) == 0).all()


@pytest.mark.parametrize("what", DERIVED)
def test_maps_in_any_memory_layout_give_the_same(batch: Batch, what: str) -> None:
    """Slices and transposes of larger tensors are not contiguous."""
    view = tiny_views(batch, dtype=torch.float32)[0]
    strided = replace(
        view,
        attention=view.attention.permute(3, 0, 1, 2).contiguous().permute(1, 2, 3, 0),
        values=torch.cat([view.values, view.values], -1)[..., : view.values.shape[-1]],
        _row_sums={},
    )
    assert not strided.attention.is_contiguous()
    assert torch.equal(DERIVED[what](strided, batch), DERIVED[what](view, batch))


def test_a_batch_of_equal_lengths_has_no_padding_and_gives_the_same() -> None:
    twelve = [e for e in tiny_examples() if len(e) == 12]
    alone = Batch.of(twelve, VOCABULARY, replicates=0)
    among = Batch.of(tiny_examples(), VOCABULARY, replicates=0)
    assert not alone.padded
    assert among.padded
    rows = [i for i, e in enumerate(tiny_examples()) if len(e) == 12]
    for one, other in zip(
        tiny_views(alone, dtype=torch.float64), tiny_views(among, dtype=torch.float64), strict=True
    ):
        for what, of in DERIVED.items():
            torch.testing.assert_close(
                of(one, alone), of(other, among)[rows], rtol=1e-9, atol=1e-9, msg=what
            )


@pytest.mark.parametrize("what", DERIVED)
def test_bfloat16_is_summed_in_float32(batch: Batch, what: str) -> None:
    """Summing in bfloat16 left three digits; now only the model's own rounding is left."""
    view = tiny_views(batch, dtype=torch.bfloat16)[0]
    found = DERIVED[what](view, batch)
    assert found.dtype == torch.float32
    projection = OutputProjection(view.projection.weight.double(), None)
    double = replace(
        view,
        attention=view.attention.double(),
        values=view.values.double(),
        site=_site(projection),
        _row_sums={},
    )
    torch.testing.assert_close(found.double(), DERIVED[what](double, batch), rtol=1e-5, atol=1e-5)


def test_projecting_values_in_bfloat16_fits_the_weights(batch: Batch) -> None:
    view = tiny_views(batch, dtype=torch.bfloat16)[0]
    moved = view.project(view.values)
    expected = torch.from_numpy(_vectors(view)).sum(1) + view.projection.bias.double()
    torch.testing.assert_close(moved.double(), expected, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("dim", [4, 40])
def test_the_factor_keeps_lengths_for_wide_and_narrow_heads(dim: int) -> None:
    """A head may be wider than the model."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(3, dim, 24, generator=generator, dtype=torch.float64)
    values = torch.randn(5, 3, 7, dim, generator=generator, dtype=torch.float64)
    short = torch.linalg.vector_norm(values @ OutputProjection(weight, None).factor, dim=-1)
    long = torch.linalg.vector_norm(values @ weight, dim=-1)
    torch.testing.assert_close(short, long, rtol=1e-12, atol=1e-12)


def test_projecting_is_the_module_without_its_hooks(batch: Batch) -> None:
    """A hook on the projection would be taken for the next layer."""
    network = tiny_network(torch.float64)
    views: list[LayerView] = []
    moved: list[torch.Tensor] = []

    def look(view: LayerView) -> None:
        views.append(view)
        moved.append(view.project(view.values))

    with torch.no_grad(), Instrument(network, observers=[look]):
        network(batch.input_ids, attention_mask=batch.mask.long())
    assert [view.index for view in views] == [0, 1]
    for view, out in zip(views, moved, strict=True):
        expected = _vectors(view).sum(1) + view.projection.bias.numpy()
        np.testing.assert_allclose(out, expected, atol=1e-12)


def test_a_layer_without_readable_values_says_that_norms_are_not_available(batch: Batch) -> None:
    view = replace(tiny_views(batch, dtype=torch.float32)[0], values=None)
    with pytest.raises(ModelError, match="norms are not available"):
        _ = view.value_norm


def test_a_layer_without_a_known_projection_says_so(batch: Batch) -> None:
    view = tiny_views(batch, dtype=torch.float32)[0]
    with pytest.raises(ModelError, match="output projection of Identity is unknown"):
        _ = replace(view, site=_site(None)).projection
    with pytest.raises(ModelError, match="another module between the values"):
        _ = replace(view, plain_projection=False).projection
