"""What each head multiplies by: W_Q, W_K, W_V and W_O, with the norms before and after folded in.

The attention module itself is asked with unit vectors, one token each at position 0, so that any
family is read alike: one map for all three or one for each, grouped keys, quantised weights; and
without a rotation, which at position 0 is none. A norm before attention is folded into W_Q, W_K and
W_V, the last norm into the unembedding: its gains, and that it subtracts the mean, if it does. The
scale that a norm divides by depends on the input, is the same for all heads of a layer, and is left
out; so are biases.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import nn

from headscope.errors import ModelError
from headscope.model.attention import AttentionCall, listening
from headscope.model.families.sites import Site, find_sites
from headscope.model.model import Model, evaluating, forward

LINEAR = 1e-3  # of the largest entry: a map that errs by more than rounding is none


@dataclass(frozen=True)
class HeadMaps:
    """The matrices of one layer's heads, float64 on the host.

    query, key, value  [head, model, dim]  from the residual stream, the norm folded in; keys and
                       values of a group stand once for each of its heads
    output             [head, dim, model]  into the residual stream
    """

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    output: torch.Tensor


@dataclass(frozen=True)
class Unembedding:
    """What each token speaks for in the residual stream, less what the mean token does.

    matrix  [token, model] float32, the last norm folded in
    """

    matrix: torch.Tensor

    def of(self, ids: torch.Tensor) -> torch.Tensor:
        """[…, model] the rows of some tokens."""
        return self.matrix[ids.to(self.matrix.device)].to(ids.device)


class WeightMaps:
    """Reads the weights of a decoder with a language-model head, layer by layer.

    raises  ModelError where the head, or what the attention modules do, cannot be read
    """

    def __init__(self, model: Model) -> None:
        self.model, self.network = model, model.network
        self.sites = [s for s in find_sites(self.network) if s.stack == model.shape.stack]

    @cached_property
    def embedding(self) -> torch.Tensor:
        """[token, model] of the network's input, float32."""
        found: Any = self.network.get_input_embeddings()
        return _host(found.weight)

    @cached_property
    def unembedding(self) -> Unembedding:
        """See there; the norm before the head is found by what the head is given."""
        head: Any = self.network.get_output_embeddings()  # type: ignore[no-untyped-call]
        if head is None:
            raise ModelError(
                f"{type(self.network).__name__} does not say where its language-model head is; "
                "wanted one with output embeddings"
            )
        rows = _host(head.weight)
        fold = folding(self._norm_of(head), rows.shape[1])
        centred = rows - rows.mean(0)
        return Unembedding(centred if fold is None else fold(centred).float())

    def layers(self) -> Iterator[HeadMaps]:
        """The matrices of each layer that attends, in their order."""
        for site in self.sites:
            yield self._of(site)

    def first_feed_forward(self, ids: list[int]) -> torch.Tensor:
        """[token, model] what the first layer's feed-forward adds to each token's embedding.

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
            given = embed(tokens)
            args, kwargs = _with_hidden(args, kwargs, given)
            output = site.block(*args, **kwargs)
        hidden = output[0] if isinstance(output, tuple) else output
        return _host((hidden - given)[:, 0])

    def _of(self, site: Site) -> HeadMaps:
        projection = site.output_projection
        if projection is None:
            raise ModelError(
                f"the output projection of {type(site.attention).__name__} is unknown, or no "
                "linear map: its weights cannot be read as heads"
            )
        maps = self._asked(site)
        norm = site.residual if site.residual is not site.attention else None
        if norm is not None and is_norm(norm):
            fold = folding(norm, maps[0].shape[1])
            assert fold is not None
            maps = [fold(one.transpose(1, 2)).transpose(1, 2) for one in maps]
        query, key, value = maps
        return HeadMaps(query, key, value, projection.weight.detach().cpu().double())

    def _asked(self, site: Site) -> list[torch.Tensor]:
        """Queries, keys and values [head, model, dim] of unit vectors, less those of nothing."""
        hidden = self.embedding.shape[1]
        args, kwargs = self._given[site.attention]
        like = args[0] if args else kwargs["hidden_states"]
        units = torch.cat([torch.zeros(1, hidden), torch.eye(hidden), torch.ones(1, hidden)])
        args, kwargs = _with_hidden(args, kwargs, units[:, None].to(like))  # [row, 1, model]
        heard = _Heard(site.attention)
        with (
            evaluating(self.network), torch.inference_mode(),
            listening(self.network, heard, alone=True),
        ):  # fmt: skip
            site.attention.forward(*args, **kwargs)
        return [self._linear(site, part) for part in heard.parts]

    @cached_property
    def _given(self) -> dict[nn.Module, tuple[Any, Any]]:
        """What each attention module is given with one token."""
        kept = {site.attention: list[tuple[Any, Any]]() for site in self.sites}
        one = torch.zeros((1, 1), dtype=torch.long, device=self.model.device)
        with ExitStack() as stack:
            stack.enter_context(evaluating(self.network))
            for module, given in kept.items():
                stack.enter_context(keeping(module, given))
            forward(self.network, one, torch.ones_like(one), keep=False)
        return {module: given[-1] for module, given in kept.items()}

    def _linear(self, site: Site, answers: torch.Tensor) -> torch.Tensor:
        """[head, model, dim] of [row, head, 1, dim]; the last row says whether it is linear."""
        found = answers[:, :, 0].detach().cpu().double()
        found = found[1:] - found[:1]
        matrix, total = found[:-1], found[-1]
        error = (matrix.sum(0) - total).abs().max()
        if not error <= LINEAR * max(float(total.abs().max()), float(matrix.abs().max()), 1e-30):
            raise ModelError(
                f"{site.path} does more than multiply ({type(site.attention).__name__} norms its "
                "queries or keys, say): its weights say nothing by themselves"
            )
        return matrix.transpose(0, 1)  # [head, model, dim]

    def _norm_of(self, head: nn.Module) -> nn.Module | None:
        """The norm whose output the head is given; None where there is none."""
        given: list[torch.Tensor] = []
        made: list[tuple[nn.Module, torch.Tensor]] = []
        norms = [module for module in self.network.modules() if is_norm(module)]
        keep = [
            module.register_forward_hook(lambda m, _args, output: made.append((m, output)))
            for module in norms
        ]
        keep.append(head.register_forward_pre_hook(lambda _m, args: given.append(args[0])))
        one = torch.zeros((1, 1), dtype=torch.long, device=self.model.device)
        with evaluating(self.network):
            try:
                forward(self.network, one, torch.ones_like(one), keep=False)
            finally:
                for hook in keep:
                    hook.remove()
        alike = (m for m, out in reversed(made) if torch.equal(out.flatten(), given[-1].flatten()))
        return next(alike, None)


class _Heard:
    """A listener that keeps queries, keys and values of one attention module."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.parts: tuple[torch.Tensor, ...] = ()

    def before(self, call: AttentionCall) -> None:
        if call.module is self.module:
            self.parts = call.query, call.keys, call.values

    def after(self, call: AttentionCall, mixed: torch.Tensor) -> None: ...


def is_norm(module: nn.Module) -> bool:
    """Whether a module is called a norm, and is a leaf."""
    return "norm" in type(module).__name__.lower() and not list(module.children())


def folding(norm: nn.Module | None, size: int) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """rows [..., model] -> rows whose product with x is that of the given ones with norm(x), but
    for its scale and bias. None without a norm.

    The norm is asked: with a vector of +1 and −1 for its gains, and with ones for whether it
    subtracts the mean.
    """
    if norm is None:
        return None
    weight = next(iter(norm.parameters()), None)
    like = torch.zeros(1) if weight is None else weight
    signs = torch.ones(size)
    signs[1::2] = -1
    with torch.inference_mode():
        up, down = (norm((sign * signs)[None, None].to(like)).flatten() for sign in (1e3, -1e3))
        flat, other = (norm(torch.full((1, 1, size), v).to(like)).flatten() for v in (1e3, -1e3))
    gain = ((up - down) / 2).cpu().double() * signs  # [model]
    centres = float((flat - other).abs().max()) < 1e-2 * float((up - down).abs().max())

    def folded(rows: torch.Tensor) -> torch.Tensor:
        scaled: torch.Tensor = rows.double() * gain
        return scaled - scaled.mean(-1, keepdim=True) * centres

    return folded


@contextmanager
def silenced(module: nn.Module) -> Iterator[None]:
    """Inside the context a module gives zeros."""
    hook = module.register_forward_hook(lambda _m, _args, output: torch.zeros_like(output))
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def keeping(module: nn.Module, kept: list[tuple[Any, Any]]) -> Iterator[None]:
    """Inside the context what a module is given, (args, kwargs), is added to `kept`."""
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
