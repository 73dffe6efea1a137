"""The weight matrices of each head (W_Q, W_K, W_V, W_O), with the norms folded in.

The attention module itself is run on unit vectors, one token each at position 0, so that any
family is read alike: one map for all three or one for each, grouped keys, quantised weights; and
without a rotation, which at position 0 is none. A norm before attention is folded into W_Q, W_K and
W_V, the last norm into the unembedding: its gains, and that it subtracts the mean, if it does; then
W_O is centred too. The scale that a norm divides by depends on the input, is the same for all heads
of a layer, and is left out; so are biases.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import nn

from headscope.errors import ModelError
from headscope.experiments.circuits.readout import FrozenNorm, norm_before_head, output_head
from headscope.model.attention import AttentionCall, listening
from headscope.model.families.sites import Site, find_sites
from headscope.model.linears import used_matrix
from headscope.model.model import Model, evaluating, forward

ROUNDING = 1e-6  # of the sizes multiplied: what float32 weights leave
SOME = 4096  # ours: tokens that are looked at first, where few of all can matter
LITTLE = 0.1  # ours: of the embeddings' length
LINEAR = 1e-3  # of the largest entry: a map that errs by more than rounding is none


@dataclass(frozen=True)
class HeadMatrices:
    """The matrices of one layer's heads, float64 on the host.

    query, key, value  [head, model, dim]  from the residual stream, the norm folded in; keys and
                       values of a group stand once for each of its heads. NaN where a module
                       does more than multiply, as by a norm of queries and keys
    output             [head, dim, model]  into the residual stream
    """

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    output: torch.Tensor


class WeightMaps:
    """Reads the weights of a decoder with a language-model head, layer by layer.

    raises  ModelError where the head, or what the attention modules do, cannot be read
    """

    def __init__(self, model: Model) -> None:
        self.model, self.network = model, model.network
        self.sites = [s for s in find_sites(self.network) if s.stack == model.shape.stack]

    @cached_property
    def embedding(self) -> torch.Tensor:
        """[token, model] the input embeddings, float32."""
        layer: Any = self.network.get_input_embeddings()
        return _host(layer.weight)

    @cached_property
    def unembedding(self) -> torch.Tensor:
        """[token, model] the direction of each token's logit in the residual stream, minus the mean
        over tokens.

        Float32; the norm before the head, found by what the head is given, is folded in.
        """
        one = torch.zeros((1, 1), dtype=torch.long, device=self.model.device)
        blocks = [site.block for site in self.sites if site.block is not None]
        run = partial(forward, self.network, one, torch.ones_like(one), keep=False)
        with evaluating(self.network):
            last = norm_before_head(self.network, blocks, run)
        matrix, _ = used_matrix(output_head(self.network)) or (None, None)
        if matrix is None:
            raise ModelError(
                f"the language-model head of {type(self.network).__name__} is no linear map: the "
                "tokens that a token raises are unknown for this model"
            )
        rows = _host(matrix.T)
        rows = rows - rows.mean(0)
        norm = folded(last, rows.shape[1])
        if norm is not None:
            for some in torch.split(rows, SOME):  # never a second copy of all
                some.copy_(norm.back(some))
        return rows

    def layers(self) -> Iterator[HeadMatrices]:
        """The matrices of each layer that attends, in order."""
        for site in self.sites:
            yield self._of(site)

    def first_feed_forward(self, ids: list[int]) -> torch.Tensor:
        """[token, model] the first feed-forward's output for each embedding; where that is
        negligible, the embeddings themselves.

        The layer is run on the embeddings alone, without positions and without attention.
        """
        site, kept = self.sites[0], list[tuple[Any, Any]]()
        if site.block is None or site.projection is None:
            raise ModelError(f"{site.path}: its layer is unknown, and cannot be run by itself")
        tokens = torch.tensor(ids, device=self.model.device)[:, None]
        with evaluating(self.network), keeping(site.block, kept):
            forward(self.network, tokens, torch.ones_like(tokens), keep=False)
        args, kwargs = kept[-1]
        embed: Any = self.network.get_input_embeddings()
        with evaluating(self.network), torch.inference_mode(), silenced(site.projection):
            embedded = embed(tokens)
            args, kwargs = _with_hidden(args, kwargs, embedded)
            output = site.block(*args, **kwargs)
        hidden = output[0] if isinstance(output, tuple) else output
        added = hidden - embedded
        nothing = float(added.norm()) < LITTLE * float(embedded.norm())
        return _host((embedded if nothing else added)[:, 0])

    def _of(self, site: Site) -> HeadMatrices:
        projection = site.output_projection
        if projection is None:
            raise ModelError(
                f"the output projection of {type(site.attention).__name__} is unknown, or no "
                "linear map: its weights cannot be read as heads"
            )
        maps = self._asked(site)
        output = projection.weight.detach().cpu().double()
        norm = folded(site.residual, output.shape[2])
        if norm is not None:
            maps = [norm.back(one.transpose(1, 2)).transpose(1, 2) for one in maps]
            output = output - output.mean(-1, keepdim=True) * norm.centred
        query, key, value = maps
        return HeadMatrices(query, key, value, output)

    def _asked(self, site: Site) -> list[torch.Tensor]:
        """Queries, keys and values [head, model, dim] of unit vectors, minus those of zero."""
        hidden = self.embedding.shape[1]
        args, kwargs = self._given[site.attention]
        like = args[0] if args else kwargs["hidden_states"]
        units = torch.cat([torch.zeros(1, hidden), torch.eye(hidden), torch.ones(1, hidden)])
        args, kwargs = _with_hidden(args, kwargs, units[:, None].to(like))  # [row, 1, model]
        parts = list[torch.Tensor]()

        def keep(call: AttentionCall) -> None:
            if call.module is site.attention:
                parts[:] = call.query, call.keys, call.values

        with (
            evaluating(self.network),
            torch.inference_mode(),
            listening(self.network, keep, alone=True),
        ):
            site.attention.forward(*args, **kwargs)
        return [_linear(part) for part in parts]

    @cached_property
    def _given(self) -> dict[nn.Module, tuple[Any, Any]]:
        """The inputs of each attention module when the network reads one token."""
        kept = {site.attention: list[tuple[Any, Any]]() for site in self.sites}
        one = torch.zeros((1, 1), dtype=torch.long, device=self.model.device)
        with ExitStack() as stack:
            stack.enter_context(evaluating(self.network))
            for module, inputs in kept.items():
                stack.enter_context(keeping(module, inputs))
            forward(self.network, one, torch.ones_like(one), keep=False)
        return {module: inputs[-1] for module, inputs in kept.items()}


def folded(norm: nn.Module | None, size: int) -> FrozenNorm | None:
    """The norm at the scale of a vector of length √size and mean 0; None for any other module."""
    if norm is None or next(norm.children(), None) is not None:
        return None
    like = next(iter(norm.parameters()), torch.zeros(1))
    probe = torch.ones(1, size).to(like)
    probe[:, 1::2] = -1
    with torch.inference_mode():
        frozen = FrozenNorm.of(norm, probe, norm.forward(probe))
    return None if frozen is None else replace(frozen, gain=frozen.gain.detach().cpu())


def _linear(answers: torch.Tensor) -> torch.Tensor:
    """The linear map [head, model, dim] from outputs [row, head, 1, dim] for zero, unit vectors and
    their sum.
    """
    outputs = answers[:, :, 0].detach().cpu().double()
    outputs = outputs[1:] - outputs[:1]
    matrix, total = outputs[:-1], outputs[-1]
    error = float((matrix.sum(0) - total).abs().max())
    linear = error <= LINEAR * max(float(total.abs().max()), float(matrix.abs().max()))
    return (matrix if linear else matrix * torch.nan).transpose(0, 1)  # [head, model, dim]


@contextmanager
def silenced(module: nn.Module) -> Iterator[None]:
    """Inside the context a module returns zeros."""
    hook = module.register_forward_hook(lambda _m, _args, output: torch.zeros_like(output))
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def keeping(module: nn.Module, kept: list[tuple[Any, Any]]) -> Iterator[None]:
    """Inside the context a module's inputs, (args, kwargs), are appended to `kept`."""
    hook = module.register_forward_pre_hook(
        lambda _m, args, kwargs: kept.append((args, kwargs)), with_kwargs=True
    )
    try:
        yield
    finally:
        hook.remove()


def _with_hidden(args: Any, kwargs: Any, hidden: torch.Tensor) -> tuple[Any, Any]:
    """The same arguments with other hidden states."""
    return ((hidden, *args[1:]), kwargs) if args else ((), kwargs | {"hidden_states": hidden})


def _host(weight: torch.Tensor) -> torch.Tensor:
    return weight.detach().cpu().float()
