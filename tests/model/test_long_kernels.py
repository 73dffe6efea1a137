"""Long inputs on a GPU: the kernels against float64 maps, and what the host must not wait for."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import MistralConfig, MistralModel

from headscope.corpus.document import Example
from headscope.model import long_fused, long_kernels
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.long_attention import LongAttention
from headscope.model.long_mask import LongMask
from headscope.model.long_sums import Asked
from headscope.model.vocabulary import Vocabulary
from model.other_device import HERE, THERE, Elsewhere, elsewhere, place

# Interpreted (TRITON_INTERPRET=1, set in conftest.py) unless a GPU is asked for by =0.
DEVICE = "cpu" if os.environ["TRITON_INTERPRET"] == "1" else "cuda"
HEADS, SHARED, TOKENS, DIM, SCALING = 4, 2, 70, 24, 0.35
KINDS = {"causal": lambda _b, _h, i, j: j <= i, "every": lambda _b, _h, i, j: (i == i) | (j == j)}


def layer(kind, *, dtype=torch.float32, lengths=(TOKENS,), device=DEVICE, **options):
    """Queries strided as a network gives them, and key-value heads that query heads share."""
    random = torch.Generator().manual_seed(0)
    size = (len(lengths), TOKENS)
    query = 2 * torch.randn(*size, HEADS, DIM, generator=random).transpose(1, 2)
    key, value = torch.randn(2, len(lengths), SHARED, TOKENS, DIM, generator=random)
    mask = LongMask(KINDS[kind], lengths, kind, TOKENS, TOKENS, torch.device(device))
    parts = (t.to(device, dtype) for t in (query, key, value))
    return LongAttention(*parts, mask, scaling=SCALING, **options)


def separator():
    return (torch.arange(TOKENS) % 3 == 0).to(DEVICE)


def classes():
    return torch.stack([~separator(), separator()]).float()


def of_maps(long):
    """Entropies and columns of the only input from whole maps in float64."""
    (n,) = long.mask.lengths
    query, key = (t[0, :, :n].double() for t in (long.query, long.key))
    scores = SCALING * query @ key.repeat_interleave(HEADS // SHARED, 0).mT
    if long.softcap is not None:
        scores = long.softcap * torch.tanh(scores / long.softcap)
    if long.mask.kind == "causal":
        scores.masked_fill_(torch.ones(n, n, dtype=torch.bool).triu(1).to(DEVICE), -torch.inf)
    if long.s_aux is not None:  # one more key, left out of the sums
        beside = long.s_aux.double()[:, None, None].expand(-1, n, 1)
        scores = torch.cat([scores, beside], -1)
    maps = scores.softmax(-1)[..., :n]
    return torch.special.entr(maps).sum(-1), classes()[:, :n].double() @ maps


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        (torch.float32, {}),
        (torch.float16, {"softcap": 3.0}),
        (torch.float32, {"s_aux": torch.tensor([0.5, -1.0, 2.0, 4.0], device=DEVICE)}),
    ],
)
def test_the_kernels_give_the_sums_of_float64_maps(monkeypatch, kind, dtype, options):
    """And those that blocks give."""
    # The host's kernel for half precision gives log-sum-exps that are 5e-5 off.
    monkeypatch.setattr(LongAttention, "_fused", lambda *_: None)
    long = layer(kind, dtype=dtype, **options)
    monkeypatch.setattr(LongAttention, "_compiled", False)
    blocks = long.sums(0, Asked(separator()[None]))
    monkeypatch.setattr(LongAttention, "_compiled", True)
    found = long.sums(0, Asked(separator()[None]))
    entropy, columns = found.entropy, found.columns
    nats, sums = of_maps(long)
    torch.testing.assert_close(entropy.double(), nats, atol=3e-5, rtol=0)
    torch.testing.assert_close(columns.double(), sums, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(entropy, blocks.entropy, atol=1e-5, rtol=0)
    torch.testing.assert_close(columns, blocks.columns, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("of", [classes()[:1], torch.cat([classes(), 0 * classes()[:1]])])
def test_any_number_of_classes_is_summed_alike(of):
    long = layer("causal", lengths=(33,))
    wanted = of_maps(long)[1]
    vectors = long.query[0, :, :33], long.key[0, :, :33]
    _, found = long_kernels.sums(
        *vectors, long.log_sums[0], of[:, :33], causal=True, scaling=SCALING, softcap=None
    )
    assert found.shape == (HEADS, len(of), 33)
    torch.testing.assert_close(found[:, 0].double(), wanted[:, 0], atol=1e-5, rtol=1e-5)
    if len(of) > 1:
        torch.testing.assert_close(found[:, 1].double(), wanted[:, 1], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(found[:, 2], 0 * found[:, 0], atol=0, rtol=0)


COMPILE = """
import importlib.util, sys, triton
from triton.backends.compiler import GPUTarget

place = importlib.util.spec_from_file_location("long_kernels", sys.argv[1])  # without headscope
long_kernels = importlib.util.module_from_spec(place)
place.loader.exec_module(long_kernels)

fixed = {"CAPPED": True, "CAUSAL": True, "WIDE": 128, "SIZE": 64, "CLASSES": 2}
pointers = {"entropy": "fp32", "columns": "fp32", "classes": "fp32", "log_sums": "fp32"}
for name in ("_entropies", "_columns"):
    kernel = getattr(long_kernels, name)
    kinds = {n: "constexpr" if n in fixed else "i32" for n in kernel.arg_names}
    kinds |= {n: f"*{kind}" for n, kind in pointers.items() if n in kinds}
    kinds |= {"query": "*bf16", "key": "*bf16", "scaling": "fp32", "cap": "fp32"}
    given = {n: fixed[n] for n in kinds if n in fixed}
    source = triton.compiler.ASTSource(kernel, kinds, constexprs=given)
    made = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_stages": 2})
    print(name, made.metadata.shared, "bf16.bf16.f32" in made.asm["ptx"])
"""


def test_the_kernels_compile_for_a_gpu_that_is_not_there(tmp_path):
    """With float32 accumulators, in the memory that any GPU since 2017 has."""
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, long_kernels.__file__],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == ["_entropies", "_columns"]
    assert all(0 < int(shared) <= 48 << 10 and wide == "True" for _, shared, wide in lines)


class Calls(TorchDispatchMode):
    """Records what fused kernels are given."""

    def __init__(self):
        super().__init__()
        self.given = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "attention" in (name := function._schema.name):
            self.given[name.removeprefix("aten::_scaled_dot_product_")] = args, kwargs
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("kernel", ["flash", "efficient"])
def test_a_gpu_takes_a_fused_kernel_and_repeats_no_key(monkeypatch, kernel):
    """Shapes and types alone: nothing is computed."""
    for name in ("flash", "efficient"):
        monkeypatch.setattr(
            long_fused, f"can_use_{name}_attention", lambda _, asked=name: asked == kernel
        )
    query = torch.empty(HEADS, TOKENS, DIM, device="meta", dtype=torch.float16)
    key, value = (torch.empty(SHARED, TOKENS, DIM, device="meta").half() for _ in range(2))
    with Calls() as calls:
        mixed, log_sums = long_fused._on_gpu(query, key, value, True, SCALING)
    assert (mixed.shape, mixed.dtype) == (query.shape, torch.float16)
    assert (log_sums.shape, log_sums.dtype) == (query.shape[:2], torch.float32)
    ((name, (args, kwargs)),) = calls.given.items()
    assert name == f"{kernel}_attention"
    assert kwargs == {"scale": SCALING}
    group = HEADS // SHARED
    for repeated, once in zip(args[1:3], (key, value), strict=True):
        assert repeated.shape == (SHARED, group, TOKENS, DIM)
        assert repeated.stride() == (TOKENS * DIM, 0, DIM, 1)
        assert repeated.untyped_storage()._cdata == once.untyped_storage()._cdata


def test_what_no_fused_kernel_takes_is_left_to_blocks(monkeypatch):
    for name in ("flash", "efficient"):
        monkeypatch.setattr(long_fused, f"can_use_{name}_attention", lambda _: False)
    query = torch.empty(HEADS, TOKENS, 7, device="meta")
    assert long_fused._on_gpu(query, query, query, False, SCALING) is None
    for value in (query, query[..., :4]):  # a device that has none; other sizes of values
        assert long_fused.fused(query, query, value, causal=False, scaling=SCALING) is None


class Waits(TorchDispatchMode):
    """Records each operation on tensors elsewhere for which the host waits."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name, kwargs = function._schema.name.removeprefix("aten::"), kwargs or {}
        given = tree_leaves((args, kwargs))
        away = any(isinstance(one, Elsewhere) for one in given)
        chosen = name.startswith("index") and any(
            isinstance(one, Elsewhere) and one.dtype == torch.bool for one in given
        )
        home = name == "_to_copy" and kwargs.get("device") == HERE
        if away and (chosen or home or name in {"_local_scalar_dense", "nonzero", "equal"}):
            self.found.append(name)
        return function(*args, **kwargs)


def everything(view, given):
    """What analyses ask of a layer, but for pairs and words."""
    chosen = torch.arange(6).view(2, 3).to(given.mask.device)
    return (
        view.entropy(given),
        view.entropy(given, smoothing=0.1),
        view.column_sums(given),
        view.neighbour(-1),
        view.neighbour(1),
        view.rows(chosen),
        view.rest,
        view.own,
        view.summed_norm_received(given),
        view.summed_norm_own(given),
        view.leading(8).attention,
    )


@pytest.mark.parametrize("window", [None, 19])
def test_the_host_waits_for_no_layer_elsewhere(monkeypatch, window):
    """It looks at padding, and at a window, once for all layers; the numbers are the host's."""
    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=SHARED,
        sliding_window=window,
    )
    network = MistralModel(config).eval()
    examples = [
        Example(str(n), str(n), np.arange(n) % 64, *np.zeros((2, n), np.int64)) for n in (70, 41)
    ]

    def read(device):
        batch = Batch.of(examples, Vocabulary(1, 2, (3,)), replicates=0, device=device)
        waited, seen = [], []

        def look(view):
            waited.append(list(waits.found))
            view.projection  # noqa: B018  # W_O is looked at once
            waits.found.clear()
            seen.append(everything(view, batch))
            waited.append(list(waits.found))

        with torch.no_grad(), Waits() as waits, Instrument(network, observers=[look], whole=32):
            network(input_ids=batch.input_ids, attention_mask=batch.mask.long())
        return seen, waited

    here, _ = read("cpu")
    with elsewhere(monkeypatch):
        place(network, THERE)
        there, (first, *later) = read(THERE)
    looks = 1 if window is None else 3  # at padding; and for each input, through the window
    assert first == looks * ["_to_copy"]
    assert later == [[], [], []]
    for one, other in zip(here, there, strict=True):
        for left, right in zip(one, other, strict=True):
            torch.testing.assert_close(right.held, left, atol=1e-6, rtol=1e-5)
