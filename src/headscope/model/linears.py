"""Choose the fastest matrix product on this machine, and project the output of heads."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard
from weakref import WeakSet

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from headscope.errors import InputError
from headscope.model.placement import NUMBERS, held, plain, split
from headscope.model.threads import threads_of_torch

KINDS = ("onednn", "stock")
CHOICES = ("auto", *KINDS)
TOLERANCE = 1e-4  # of the largest output; float32 rounding through 24 layers stays below it
_ROUNDS, _SECONDS = 5, 1.0  # ours: rounds at most, and until they took so long
_PROBES = 4  # vectors that show what a layer multiplies by
_HALF = (torch.float16, torch.bfloat16)
_CLEARLY = 1.2  # packed maps that are this much faster are so in any noise: no more is timed
_LARGE = 1 << 26  # ours: numbers of a map, as of an output head's, of which no third copy is held
_PACKED: WeakSet[nn.Module] = WeakSet()  # the maps that run packed now


@contextmanager
def linears(network: nn.Module, kind: str) -> Iterator[None]:
    """Inside the context the network's linear maps run as `kind`: "onednn" or "stock"."""
    packed: list[nn.Linear] = []
    try:
        if kind == "onednn":
            for module in network.modules():
                if _packable(module):
                    packed.append(module)
                    _PACKED.add(module)
                    module.forward = _packed_forward(module)  # type: ignore[method-assign, assignment]
        yield
    finally:
        for module in packed:
            _PACKED.discard(module)
            del module.forward  # uncovers the class's own


def choose(network: nn.Module, run: Callable[[], torch.Tensor], *, requested: str = "auto") -> str:
    """The kind to use: "onednn" or "stock".

    run     one typical forward pass; returns the output to compare
    requested  "auto" times both, stock ones before and after; the others are taken as they are
               where they are possible
    raises  InputError if "onednn" is requested and not available or not right here
    """
    if requested not in CHOICES:
        raise InputError(f"no kind of linears called {requested!r}; there are {', '.join(CHOICES)}")
    if requested == "stock" or (requested == "auto" and not _available(network)):
        return "stock"
    if not _available(network):
        raise InputError(
            "linears 'onednn' need float32 weights on a CPU and a torch with oneDNN; use 'auto'"
        )
    rounds = _ROUNDS if requested == "auto" else 0  # what is taken as it is need not be timed
    with torch.inference_mode():
        stock, stock_seconds = _timed(run, rounds)
        with linears(network, "onednn"):
            packed, packed_seconds = _timed(run, rounds, enough=stock_seconds / _CLEARLY)
        error = float((packed - stock).abs().max() / stock.abs().max().clamp_min(1e-30))
        if not error <= TOLERANCE:
            if requested == "auto":
                return "stock"
            raise InputError(
                f"linears 'onednn' differ from the stock output by {error:.1e} of its largest "
                f"value (allowed {TOLERANCE:.0e}); use 'stock'"
            )
        if requested == "auto" and packed_seconds * _CLEARLY > stock_seconds:
            stock_seconds = min(stock_seconds, _timed(run, rounds, enough=packed_seconds)[1])
    return "onednn" if requested == "onednn" or packed_seconds < stock_seconds else "stock"


def map_sizes(network: nn.Module) -> list[str]:
    """What tells which kind is faster: `number x in x out` of all maps that could run packed; none
    where nothing is to be chosen.
    """
    if not _available(network):
        return []
    sizes = Counter(
        (one.in_features, one.out_features) for one in network.modules() if _packable(one)
    )
    return [f"{count} x {a} x {b}" for (a, b), count in sorted(sizes.items())]


def is_map(module: nn.Module | None) -> TypeGuard[nn.Module]:
    """Whether a module may be a linear map: transformers' and torch's, and quantised ones."""
    sizes = (getattr(module, name, None) for name in ("in_features", "out_features"))
    return isinstance(module, nn.Linear | Conv1D) or all(isinstance(size, int) for size in sizes)


def used_matrix(module: nn.Module) -> tuple[torch.Tensor, torch.Tensor | None] | None:
    """What a layer multiplies by [in, out] and what it adds [out]; None if it is no linear map.

    A subclass may store another weight than it uses, as quantised layers do. So it is tested with a
    few vectors; where the stored weight does not give its answers, the matrix is what it makes of
    unit vectors. Offloaded weights are read, and those that processes share are gathered.
    """
    if module in _REFUSED:
        return None
    weight, bias = held(module, "weight"), held(module, "bias")
    bias = None if bias is None or not plain(bias) else bias
    stored = None
    if weight is not None and plain(weight) and weight.ndim == 2:
        stored = weight if isinstance(module, Conv1D) else weight.T
        if type(module) in (nn.Linear, Conv1D) and "forward" not in vars(module):
            return stored, bias
    there = [t.device for t in (weight, bias, *module.buffers()) if t is not None]
    where = there[0] if there else torch.device("cpu")
    size = stored.shape[0] if isinstance(module, Conv1D) and stored is not None else None
    size = int(module.in_features) if size is None else size  # type: ignore[arg-type]
    own = [t.dtype for t in (weight, bias) if t is not None and t.dtype in NUMBERS]
    for kind in dict.fromkeys(own or [torch.float32, torch.bfloat16]):
        try:
            with torch.no_grad():
                return _asked(module, stored, bias, torch.zeros(size, dtype=kind, device=where))
        except torch.OutOfMemoryError:
            raise
        except (
            AttributeError,
            RuntimeError,
            TypeError,
            ValueError,
        ):  # of a layer for numbers of another type
            continue
    return None


def used_weight(network: nn.Module, name: str) -> torch.Tensor:
    """The tensor of this name in a state dict, as its module uses it: of no quantised type.

    raises  ValueError for one that is not there, or whose layer is no linear map
    """
    path, _, own = name.rpartition(".")
    module = network.get_submodule(path)
    there = held(module, own)
    if there is not None and plain(there):
        return there
    matrix, bias = (used_matrix(module) if is_map(module) else None) or (None, None)
    used = {"weight": matrix if matrix is None or isinstance(module, Conv1D) else matrix.T}
    if (part := (used | {"bias": bias}).get(own)) is None:
        raise ValueError(f"{name} cannot be read as numbers")
    return part


_REFUSED: WeakSet[nn.Module] = WeakSet()


def refuse(module: nn.Module) -> None:
    """Say that a module is not the linear map that it seems: from now on it has no matrix."""
    _REFUSED.add(module)


def _asked(
    module: nn.Module, stored: torch.Tensor | None, bias: torch.Tensor | None, none: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor | None] | None:
    """What a layer does with a few vectors, and with unit vectors; `none` [in] is 0."""
    size = len(none)
    probes = torch.randn(_PROBES, size, generator=torch.Generator().manual_seed(0)).to(none)
    answers = module.forward(probes)
    share = rounding(answers.dtype, quantised=stored is None)
    if stored is not None:
        shift = 0 if bias is None else bias
        fits = stored.dtype == probes.dtype and stored.shape == (size, answers.shape[-1])
        if fits and _alike(probes @ stored + shift, answers, share):
            return stored, bias
    added = module.forward(none[None])[0]
    if not bool(added.isfinite().all()):  # inputs are scaled by the largest, and that is 0
        added = torch.zeros_like(added) if bias is None else bias.to(added)
    used = module.forward(torch.eye(size).to(none)) - added
    return (used, added) if _alike(probes @ used + added, answers, share) else None


def rounding(kind: torch.dtype, *, quantised: bool = False) -> float:
    """What a layer's output may differ by from the same in other steps, of its largest number.

    quantised  its inputs may be rounded too, to 8 bits or fewer
    """
    if quantised:
        return 5e-2  # ours: of bitsandbytes, torchao and torch at most 2.5e-2 was seen, on a CPU
    return 2e-2 if kind in _HALF else 1e-3


def equal_but_for_rounding(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same, computed in other steps: see `rounding`."""
    return one.shape == other.shape and _alike(one, other, rounding(other.dtype))


def _alike(estimate: torch.Tensor, answers: torch.Tensor, share: float) -> bool:
    return bool((estimate - answers).abs().max() <= share * answers.abs().max())


def _timed(
    run: Callable[[], torch.Tensor], rounds: int, *, enough: float = 0.0
) -> tuple[torch.Tensor, float]:
    """The output, and the seconds of the fastest round; none follows one within `enough`."""
    output = run()
    seconds = list[float]()
    while len(seconds) < rounds and sum(seconds) < _SECONDS:
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
        if seconds[-1] < enough:
            break
    return output, min(seconds, default=0.0)


def _available(network: nn.Module) -> bool:
    return (
        torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and not split(network)  # timings differ from process to process: all must run the same
        and any(_packable(module) for module in network.modules())
    )


def _packable(module: nn.Module) -> TypeGuard[nn.Linear]:
    return (
        type(module) is nn.Linear
        and plain(module.weight)
        and module.weight.dtype == torch.float32
        and module.weight.device.type == "cpu"
        and "forward" not in vars(module)
    )


def _packed_forward(linear: nn.Linear) -> Callable[[torch.Tensor], torch.Tensor]:
    weight, bias = _pack(linear.weight), linear.bias
    backward: list[torch.Tensor] = []  # the weights turned around, packed when first needed

    def back(gradients: torch.Tensor) -> torch.Tensor:
        if linear.weight.numel() > _LARGE:
            return gradients @ linear.weight
        if not backward:
            backward.append(_pack(linear.weight.T))
        return _multiply(gradients.contiguous(), backward[0], None)

    def forward(inputs: torch.Tensor) -> torch.Tensor:
        if not torch.is_grad_enabled():
            return _multiply(inputs, weight, bias)
        if linear.weight.requires_grad:
            return nn.functional.linear(inputs, linear.weight, bias)
        if not inputs.requires_grad:
            return _multiply(inputs, weight, bias)
        product: torch.Tensor = _Packed.apply(inputs, weight, back, bias)  # type: ignore[no-untyped-call]
        return product

    return forward


class _Packed(torch.autograd.Function):
    """A packed linear map whose gradient goes back to its inputs, and to nothing else."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: torch.Tensor,
        weight: torch.Tensor,
        back: Callable[[torch.Tensor], torch.Tensor],
        bias: torch.Tensor | None,
    ) -> torch.Tensor:
        ctx.back = back
        return _multiply(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return ctx.back(gradients[0]), None, None, None


class Product:
    """Multiplication by a fixed matrix [in, out], packed while a linear map is: `source`."""

    def __init__(self, matrix: torch.Tensor, source: nn.Module | None) -> None:
        self.matrix, self.source = matrix, source
        self._packed: torch.Tensor | None = None

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        """[row, in] -> [row, out]."""
        on_host = inputs.device.type == "cpu" and inputs.dtype == torch.float32
        if self.source not in _PACKED or not on_host:
            return inputs @ self.matrix
        if self._packed is None:
            self._packed = _pack(self.matrix.T)
        return _multiply(inputs, self._packed, None)


def _pack(weight: torch.Tensor) -> torch.Tensor:
    packed: torch.Tensor = torch.ops.mkldnn._reorder_linear_weight(
        weight.detach().contiguous(), None
    )
    return packed


def _multiply(
    inputs: torch.Tensor, packed: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """inputs [..., in] times packed weights, plus bias: [..., out]."""
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(inputs, packed, bias, "none", [], "")
    return product


@dataclass(frozen=True)
class Norm:
    """A LayerNorm after a sum; scale γ [model], variance offset, shift β [model] or None."""

    scale: torch.Tensor
    epsilon: float
    shift: torch.Tensor | None = None

    def of_part(self, vectors: torch.Tensor) -> torch.Tensor:
        """[…, model] γ ⊙ (v - mean(v)): a part of the sum, but for the sum's standard deviation."""
        scale = self.scale.to(vectors.dtype)
        return (vectors - vectors.mean(-1, keepdim=True)) * scale


class OutputProjection:
    """W_O of one layer, cut into heads.

    weight  [head, dim, model]  float; f_h(x) = value_h @ weight[h]
    bias    [model] or None
    source  the linear map that it was read off
    """

    def __init__(
        self, weight: torch.Tensor, bias: torch.Tensor | None, source: nn.Module | None = None
    ) -> None:
        self.weight, self.bias, self.source = weight, bias, source
        self._dtype = torch.promote_types(weight.dtype, torch.float32)

    def through(self, norm: Norm) -> OutputProjection:
        """W_O, then what a LayerNorm does to a part of its input; see `Norm.of_part`."""
        weight = norm.of_part(self.weight.double()).to(self._dtype)
        return OutputProjection(weight, None, self.source)

    @cached_property
    def factor(self) -> torch.Tensor:
        """[head, dim, dim] R with ‖v @ weight[h]‖ = ‖v @ R[h]‖: Wᵀ = QRᵀ, so lengths are kept."""
        with threads_of_torch(1):  # LAPACK's last bits depend on how many
            _, upper = torch.linalg.qr(self.weight.double().transpose(1, 2))  # [head, dim, dim]
        factor: torch.Tensor = upper.transpose(1, 2).to(self._dtype)
        return factor

    @cached_property
    def products(self) -> list[Product]:
        """For each head g, v -> v @ [W_g W_0ᵀ, …, W_g W_gᵀ]: [row, dim] -> [row, (g+1)·dim]."""
        blocks = torch.einsum("gdm,hem->ghde", self.weight.double(), self.weight.double())
        return [
            Product(block[: g + 1].permute(1, 0, 2).flatten(1).to(self._dtype), self.source)
            for g, block in enumerate(blocks)  # [dim, h·dim] each
        ]
