"""Splits what is linear in the residual stream into what each earlier part of the network wrote.

A pass is cut where something is written into the stream: at embeddings, at the output projections
of attention, and at feed-forward layers. A norm keeps the scale that the whole stream had, see
`FrozenNorm`. All that is left between a cut and a logit, or a query of a later layer, is linear
(Elhage et al. 2021), whether norms stand before or behind a layer. So one gradient gives the share
of every part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch import nn

from headscope.errors import ModelError
from headscope.experiments.circuits.readout import FrozenNorm
from headscope.model.attention import AttentionCall, visible
from headscope.model.batch import Batch
from headscope.model.families.sites import Site, find_sites
from headscope.model.instrument import Instrument
from headscope.model.layer import widened
from headscope.model.linears import is_map, rounding, used_matrix
from headscope.model.model import Model, evaluating, run_network

TOLERANCE = 1e-4  # of the sum of all sizes, in float32: what parts may miss of the whole
MLP, BIASES = "MLP {}", "biases"
EMBEDDINGS = {"pos": "position embedding", "wpe": "position embedding", "type": "type embedding"}
_NUMBERED = re.compile(r"\.[0-9]+\.")


class _ReachedError(Exception):
    """The layer's queries and keys are there: the rest of the pass is not needed."""


@dataclass(frozen=True)
class Addition:
    """A tensor on the way, and the parts that were added there.

    names   of the parts
    tensor  [example, token, …] in the graph
    share   from a gradient by the tensor, and the tokens that it is not 0 at, to [example, part]
    layer   whose heads these are, by its place; None: no heads
    """

    names: list[str]
    tensor: torch.Tensor
    share: Callable[[torch.Tensor, slice], torch.Tensor]
    layer: int | None = None


class Parts:
    """The parts of a network that reach some tensor, and their shares of numbers linear in it.

    names   embeddings, heads and feed-forward layers in order, then all biases
    pieces  where they were added
    """

    def __init__(self, path: str, pieces: Sequence[Addition], reached: torch.Tensor) -> None:
        self.path, self.pieces = path, _reaching(pieces, reached)
        if not self.pieces:
            raise unlike(path, "it does not follow from the stream")
        names = dict.fromkeys(name for one in self.pieces for name in one.names if name != BIASES)
        self.names = [*names, BIASES]

    def gradients(
        self, vectors: torch.Tensor, weights: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        """The gradient of Σ vectors · weights by each piece; None where it does not reach them."""
        return _gradients(self.pieces, vectors, weights)

    def shares(
        self, vectors: torch.Tensor, weights: torch.Tensor, at: slice = slice(None)
    ) -> torch.Tensor:
        """The share of each part in Σ vectors · weights.

        vectors  [example, …] in the graph
        weights  [example, …]
        at       the tokens that these are of
        returns  [example, part] float64, on the host
        raises   ModelError where the shares do not sum to the whole
        """
        out = torch.zeros(len(vectors), len(self.names), dtype=torch.float64)
        places = {name: place for place, name in enumerate(self.names)}
        for piece, grad in zip(self.pieces, self.gradients(vectors, weights), strict=True):
            if grad is not None:
                share = piece.share(grad, at).double().cpu()
                out.index_add_(1, torch.tensor([places[name] for name in piece.names]), share)
        pairs = zip(vectors.detach(), weights, strict=True)  # one at a time: vocabularies are large
        whole = torch.stack([(one.double() * weight.double()).sum() for one, weight in pairs]).cpu()
        allowed = TOLERANCE if vectors.dtype.itemsize >= 4 else rounding(vectors.dtype)
        miss = (out.sum(1) - whole).abs()
        if not bool((miss <= allowed * out.abs().sum(1)).all()):
            raise unlike(self.path, f"its parts differ from the whole by {float(miss.max()):.1e}")
        return out


def _gradients(
    pieces: Sequence[Addition], vectors: torch.Tensor, weights: torch.Tensor
) -> tuple[torch.Tensor | None, ...]:
    tensors = [one.tensor for one in pieces]
    return torch.autograd.grad(vectors, tensors, weights, retain_graph=True, allow_unused=True)


def _reaching(pieces: Sequence[Addition], tensor: torch.Tensor) -> list[Addition]:
    """The pieces that the tensor depends on: of a feed-forward layer only what it writes."""
    if not (pieces and tensor.requires_grad):
        return []
    grads = _gradients(pieces, tensor, torch.ones_like(tensor))
    return [one for one, grad in zip(pieces, grads, strict=True) if grad is not None]


class _Through(torch.autograd.Function):
    """A norm with the network's own output, and the gradient of a frozen norm: of its input, and
    of its shift by example.
    """

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, bias: torch.Tensor, *rest: Any) -> torch.Tensor:
        output: torch.Tensor = rest[0]
        ctx.norm, ctx.kind, ctx.examples = rest[1], inputs.dtype, len(bias)
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (grad,) = gradients
        norm: FrozenNorm = ctx.norm()
        back = norm.back(grad.flatten(0, -2)).view_as(grad)
        shift = (grad * norm.shift).reshape(ctx.examples, -1).sum(1)
        return back.to(ctx.kind), shift.to(ctx.kind), None, None


class SplitLayer:
    """Queries and keys of one layer for a batch, and the parts of the network before it.

    queries, keys  [example, head, token, dim]  rotated and normed, as they meet; keys of a group
                   stand once for each of its heads
    attention      [example, head, query, key]
    seen           [example or 1, query, key]  True where a query may attend to a key
    scaling        what q · k is multiplied by
    """

    def __init__(self, call: AttentionCall, pieces: Sequence[Addition]) -> None:
        self.queries, self.keys, self.scaling = call.query, call.keys, float(call.scaling)
        self.attention = call.attention.detach()
        self.seen = visible(call.mask, self.attention)[:, 0]
        self.softcap, self.position_bias = call.options.get("softcap"), call.position_bias
        self.parts = Parts(call.site.path, pieces, self.queries.sum() + self.keys.sum())

    def scores(self, head: int) -> torch.Tensor:
        """[example, query, key] float64: the head's scores as the network has them."""
        queries, keys = self.queries[:, head].detach(), self.keys[:, head].detach()
        return queries.double() @ keys.double().transpose(1, 2) * self.scaling


def split_layer(model: Model, batch: Batch, layer: int) -> SplitLayer:
    """Queries and keys of a layer, by its place among those that attend, with their parts.

    raises  ModelError for a family whose queries are not known, or whose layers write in a way that
            is not known
    """
    cut = Cut(model, len(batch.lengths), layer)
    network = model.network
    with (
        torch.enable_grad(),
        evaluating(network),
        cut.watching(),
        Instrument(network, interventions=[cut.reach]),
        suppress(_ReachedError),
    ):
        run_network(network, *batch.inputs, keep=False)
    if cut.call is None or not cut.pieces:
        raise unlike(type(network).__name__, "its queries and keys are not seen")
    split = SplitLayer(cut.call, cut.pieces)
    cut.pieces.clear()  # they know the cut: without this the graph would outlive the layer
    return split


class Cut:
    """Hooks that cut a pass into parts, up to the attention of one layer, or to its end.

    model     which runs
    examples  of the batch
    layer     by its place; None: to the end
    pieces    what was added, in order
    """

    def __init__(self, model: Model, examples: int, layer: int | None = None) -> None:
        self.model, self.layer, self.examples = model, layer, examples
        self.stack, self.names = model.shape.stack, model.shape.names
        sites = find_sites(model.network)
        self.sites = {
            site.projection: site
            for site in sites
            if site.projection is not None and site.stack in (self.stack, "cross")
        }
        self.blocks = [
            site.block for site in sites if site.stack == self.stack and site.block is not None
        ]
        self.inside = {part for block in self.blocks for part in block.modules()}
        self.attention = {part for site in sites for part in site.attention.modules()}
        self.now = -1  # place of the layer that runs
        self.pieces, self.kept = list[Addition](), 0
        self.call: AttentionCall | None = None

    def watching(self) -> ExitStack:
        """A context in which the pass is cut."""
        stack = ExitStack()
        for block in dict.fromkeys(self.blocks):
            stack.callback(block.register_forward_pre_hook(self._begin, with_kwargs=True).remove)
        for path, module in self.model.network.named_modules():
            if not any(module.children()) or module in self.sites or _multiplies(module):
                hook = module.register_forward_hook(partial(self._passed, path))
                stack.callback(hook.remove)
        return stack

    def reach(self, call: AttentionCall) -> None:
        """Ends the pass at the attention of the layer."""
        if (call.site.stack, call.layer) == (self.stack, self.layer):
            self.call = call
            raise _ReachedError

    def _begin(self, _block: Any, args: Any, kwargs: Any) -> None:
        stream = args[0] if args else kwargs["hidden_states"]
        self.pieces[self.kept :] = _reaching(self.pieces[self.kept :], stream)  # others go
        self.kept, self.now = len(self.pieces), self.now + 1

    def _passed(self, path: str, module: nn.Module, args: Any, output: Any) -> Any:
        """What takes the place of a module's output; None: it stays."""
        if not isinstance(output, torch.Tensor):
            return None
        if module in self.sites and module in self.inside:
            return self._wrote_heads(self.sites[module], module, args[0], output)
        if _multiplies(module):
            return self._multiplied(path, module, output)
        if args and isinstance(args[0], torch.Tensor) and args[0].shape == output.shape:
            return self._normed(path, module, args[0], output)
        return None

    def _multiplied(self, path: str, module: nn.Module, output: torch.Tensor) -> Any:
        within = module in self.attention
        if within and self.now != self.layer:
            return output.detach()  # its output projection is cut
        if not within and (_NUMBERED.search(path) or not is_map(module)):
            return self._wrote(self._named(path, module), output)
        # On the way to queries and keys, to the first layer, or behind the last one.
        _, bias = (used_matrix(module) if is_map(module) else None) or (None, None)
        self._add_bias(output, bias)
        return None

    def _wrote_heads(
        self, site: Site, module: nn.Module, mixed: torch.Tensor, output: torch.Tensor
    ) -> torch.Tensor:
        if site.stack != self.stack:
            return self._wrote(f"cross-attention {self.names.layer(self.now)}", output)
        projection = site.output_projection
        if projection is None:
            raise unlike(site.path, f"its output projection {type(module).__name__} is unknown")
        cut, weight = self._cut(output), projection.weight
        heads = mixed.detach().reshape(self.examples, -1, *weight.shape[:2])

        def share(grad: torch.Tensor, at: slice) -> torch.Tensor:
            back = widened(grad.reshape(self.examples, -1, grad.shape[-1])[:, at])
            reads = torch.einsum("btm,hdm->bthd", back, weight.to(back.dtype))
            return (heads[:, at] * reads).sum((1, 3))  # [example, head]

        names = [self.names.head(self.now, head) for head in range(len(weight))]
        self.pieces.append(Addition(names, cut, share, self.now))
        self._add_bias(cut, projection.bias)
        return cut

    def _wrote(self, name: str, output: torch.Tensor) -> torch.Tensor:
        cut = self._cut(output)
        self.pieces.append(Addition([name], cut, self._share(cut.detach())))
        return cut

    def _named(self, path: str, module: nn.Module) -> str:
        if module in self.inside:
            return MLP.format(self.names.layer(self.now))
        if not isinstance(module, nn.Embedding):
            return path
        own = path.rpartition(".")[2]
        return next((name for part, name in EMBEDDINGS.items() if part in own), "token embedding")

    def _normed(self, path: str, module: nn.Module, inputs: torch.Tensor, output: Any) -> Any:
        if not inputs.requires_grad or inputs.data_ptr() == output.data_ptr():
            return None  # nothing is on its way, or nothing is done
        flat = inputs.detach().flatten(0, -2), output.detach().flatten(0, -2)  # [row, model]

        @cache
        def norm() -> FrozenNorm:  # few of the norms are between a cut and what is split
            frozen_norm = FrozenNorm.of(module, *flat)
            if frozen_norm is None:
                raise unlike(path, f"{type(module).__name__} is no LayerNorm or RMSNorm")
            return frozen_norm

        bias = inputs.new_zeros(self.examples, requires_grad=True)
        self.pieces.append(Addition([BIASES], bias, lambda grad, _: grad[:, None]))
        return _Through.apply(inputs, bias, output.detach(), norm)  # type: ignore[no-untyped-call]

    def _cut(self, output: torch.Tensor) -> torch.Tensor:
        """[example, …] the output, from which no gradient goes on."""
        cut = output.detach()
        if output.shape[0] == 1 != self.examples:  # position embeddings are the same for all
            cut = cut.repeat(self.examples, *[1] * (cut.ndim - 1))
        return cut.requires_grad_()

    def _add_bias(self, output: torch.Tensor, bias: torch.Tensor | None) -> None:
        if bias is not None and output.requires_grad:
            self.pieces.append(Addition([BIASES], output, self._share(bias.detach())))

    def _share(self, value: torch.Tensor) -> Callable[[torch.Tensor, slice], torch.Tensor]:
        def share(grad: torch.Tensor, _at: slice) -> torch.Tensor:
            worth = widened(grad) * value.to(grad.device)
            return worth.reshape(self.examples, -1).sum(1, keepdim=True)

        return share


def _multiplies(module: nn.Module) -> bool:
    """Whether a module has a matrix of its own: experts have theirs in one tensor."""
    return is_map(module) or any(one.ndim > 1 for one in module.parameters(recurse=False))


def unlike(path: str, reason: str) -> ModelError:
    """The error for a network whose parts are unknown; `path`: where in it."""
    return ModelError(
        f"{path}: {reason}: what its parts write is unknown for this family; wanted layers that "
        "add attention and feed-forward layers to a residual stream, and norms of known form"
    )
