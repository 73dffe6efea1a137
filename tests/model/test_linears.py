"""Do packed linear maps compute what the stock ones do, and leave the network as it was?"""

import pytest
import torch
from torch import nn

from headscope.errors import InputError
from headscope.model import linears as module
from headscope.model.linears import Product, choose, linears


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 32, bias=False)).eval()


@pytest.fixture
def inputs():
    return torch.randn(5, 7, 48, generator=torch.Generator().manual_seed(1))


needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="needs a torch with oneDNN"
)


def changed(network):
    return [m for m in network.modules() if "forward" in vars(m)]


@needs_onednn
def test_packed_maps_give_the_stock_output(network, inputs):
    with torch.inference_mode():
        stock = network(inputs)
        with linears(network, "onednn"):
            assert len(changed(network)) == 2
            packed = network(inputs)
    torch.testing.assert_close(packed, stock, rtol=1e-5, atol=1e-6)


@needs_onednn
def test_the_network_is_as_before_afterwards_even_after_an_error(network, inputs):
    before = {name: value.clone() for name, value in network.state_dict().items()}
    network.train()

    def fail():
        with linears(network, "onednn"):
            assert changed(network)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not changed(network)
    assert network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    network(inputs).sum().backward()
    assert all(p.grad is not None for p in network.parameters())


def test_stock_changes_nothing(network):
    with linears(network, "stock"):
        assert not changed(network)


@needs_onednn
def test_a_map_that_somebody_has_changed_is_left_alone(network, inputs):
    network[0].forward = lambda x: torch.zeros(*x.shape[:-1], 96)
    with torch.inference_mode(), linears(network, "onednn"):
        assert not network(inputs).any()
    assert changed(network) == [network[0]]


@needs_onednn
def test_a_kernel_that_is_wrong_is_never_used(network, inputs, monkeypatch):
    right = module._multiply
    monkeypatch.setattr(module, "_multiply", lambda x, w, b: right(x, w, b) * 1.001)
    assert choose(network, lambda: network(inputs)) == "stock"
    with pytest.raises(
        InputError, match=r"differ from the stock output by .* of its largest .*use 'stock'"
    ):
        choose(network, lambda: network(inputs), requested="onednn")
    assert not changed(network)


@needs_onednn
def test_a_kernel_that_gives_nan_is_never_used(network, inputs, monkeypatch):
    monkeypatch.setattr(
        module, "_multiply", lambda x, w, b: x.new_full((*x.shape[:-1], 96), torch.nan)
    )
    head = network[0]
    assert choose(head, lambda: head(inputs)) == "stock"


@needs_onednn
@pytest.mark.parametrize(("packed_is_faster", "kind"), [(True, "onednn"), (False, "stock")])
def test_auto_takes_what_the_timing_says(network, inputs, monkeypatch, packed_is_faster, kind):
    def timed(run, rounds, *, enough=0.0):
        packed = bool(changed(network))
        return run(), 1.0 if packed == packed_is_faster else 2.0

    monkeypatch.setattr(module, "_timed", timed)
    assert choose(network, lambda: network(inputs)) == kind


@needs_onednn
@pytest.mark.parametrize(
    ("seconds", "kind"), [([2.0, 1.0], "onednn"), ([1.0, 0.95, 0.9], "stock")], ids=["far", "near"]
)
def test_where_both_are_about_as_fast_stock_maps_are_timed_again(
    network, inputs, monkeypatch, seconds, kind
):
    left = list(seconds)
    monkeypatch.setattr(module, "_timed", lambda run, *_, **__: (run(), left.pop(0)))
    assert choose(network, lambda: network(inputs)) == kind
    assert not left


@needs_onednn
def test_what_is_taken_as_it_is_runs_once_of_each_kind(network, inputs):
    ran = []
    run = lambda: ran.append(len(changed(network))) or network(inputs)  # noqa: E731
    assert choose(network, run, requested="onednn") == "onednn"
    assert ran == [0, 2]


@needs_onednn
@pytest.mark.parametrize(("large", "copies"), [(1 << 26, 4), (48 * 96 - 1, 3)])
def test_slopes_through_packed_maps_are_stock_ones_and_a_large_map_has_no_third_copy(
    network, inputs, monkeypatch, large, copies
):
    monkeypatch.setattr(module, "_LARGE", large)
    pack, packed = module._pack, []
    monkeypatch.setattr(module, "_pack", lambda weight: packed.append(1) or pack(weight))
    network.requires_grad_(False)
    one, other = (inputs.clone().requires_grad_() for _ in range(2))
    network(one).square().sum().backward()
    with linears(network, "onednn"):
        network(other).square().sum().backward()
    torch.testing.assert_close(other.grad, one.grad, rtol=1e-4, atol=1e-5)
    assert len(packed) == copies


def test_what_is_asked_for_is_taken(network, inputs):
    assert choose(network, lambda: network(inputs), requested="stock") == "stock"
    with pytest.raises(InputError, match="no kind of linears called 'fast'; there are auto"):
        choose(network, lambda: network(inputs), requested="fast")


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_stay_with_the_stock_maps(network, inputs, dtype):
    network, inputs = network.to(dtype), inputs.to(dtype)
    assert choose(network, lambda: network(inputs)) == "stock"
    with pytest.raises(InputError, match="need float32 weights on a CPU"):
        choose(network, lambda: network(inputs), requested="onednn")
    with linears(network, "onednn"):
        assert not changed(network)


def test_a_product_by_a_fixed_matrix_is_packed_while_its_linear_map_is(network, monkeypatch):
    source = next(iter(network))
    matrix, packed = torch.randn(48, 20), []
    product, rows = Product(matrix, source), torch.randn(11, 48)
    multiply = module._multiply
    monkeypatch.setattr(module, "_multiply", lambda *parts: packed.append(kind) or multiply(*parts))
    for kind in ("stock", "onednn", "stock"):
        with linears(network, kind):
            torch.testing.assert_close(product(rows), rows @ matrix, rtol=1e-5, atol=1e-5)
    assert packed == ["onednn"]
    with linears(network, "onednn"):
        wide = Product(matrix.double(), source)(rows.double())
    assert wide.dtype == torch.float64
