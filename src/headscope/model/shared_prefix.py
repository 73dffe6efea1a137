"""Computes a model's answers without some heads, reusing the layers below them.

A variant that changes layer l is, below l, the whole model. So each batch runs once, keeping what
every layer gave and every head's mixture; then, for the variants of a layer together, the model's
own forward pass runs again, in which the layers below l hand on what was kept, layer l gets its
mixtures ready-made (its queries, keys and values are not computed), and the layers above run as
they are, with all that the model gives them. Nothing here knows a family: each layer's module must
make one attention call, in order. `variant_answers` compares the outcome with `naive` before it is
used.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from headscope.errors import ModelError
from headscope.model.attention import AttentionCall, listening, visible
from headscope.model.batch import Batch
from headscope.model.families.sites import find_sites
from headscope.model.instrument import Reversible
from headscope.model.model import run_network
from headscope.model.variants import StandIn, Variant, heads_in


class WholePass:
    """A pass of the whole model that caches what its variants reuse from one batch.

    logits       [example, output]
    outputs      by layer, what its module returned: the hidden states [example, token, model], or a
                 tuple that begins with them
    mixtures     by layer [example, query, head, dim] Σ_j α_ij v_j
    stand_ins    by layer [example, query, head, dim] what may stand in for each head
    projections  by layer, the linear maps inside attention that ran before its function was called
    regular      whether attention k was called while layer k ran, so far
    """

    logits: torch.Tensor

    def __init__(self, stand_in: StandIn) -> None:
        self.stand_in, self.regular, self._inside = stand_in, True, False
        self.outputs: list[Any] = []
        self.mixtures: list[torch.Tensor] = []
        self.stand_ins: list[torch.Tensor] = []
        self.projections: list[list[nn.Linear | Conv1D]] = [[]]

    def layer(self, run: Callable[[], Any]) -> Any:
        """What the module of the next layer returns; `run` runs it."""
        self._inside = True
        self.outputs.append(run())
        self._inside = False
        return self.outputs[-1]

    def mixture(self, call: AttentionCall) -> torch.Tensor:
        """[example, query, head, dim] the output of the attention function in this layer."""
        layer = len(self.mixtures)
        self.regular &= self._inside and layer == len(self.outputs)
        self.projections.append([])
        mask = visible(call.mask, call.attention)
        instead = self.stand_in.mixture(layer, slice(None), call.values, mask)
        self.stand_ins.append(instead.transpose(1, 2))  # [example, query, head, dim]
        self.mixtures.append(call.mix().transpose(1, 2).contiguous())
        return self.mixtures[-1]

    @contextmanager
    def projections_of(self, attentions: set[nn.Module]) -> Iterator[None]:
        """Inside the context the linear maps that run in these modules are recorded."""

        def note(module: Any, _args: Any, _output: Any) -> None:
            if self._inside and len(self.mixtures) == len(self.outputs):
                self.projections[-1].append(module)

        inside = {m for a in attentions for m in a.modules() if isinstance(m, nn.Linear | Conv1D)}
        with ExitStack() as stack:
            for module in inside:
                stack.callback(module.register_forward_hook(note).remove)
            yield


@dataclass
class CopiedPass:
    """A pass of several copies of a batch, [copy * example] rows, from layer `start` up.

    ready  [row, query, head, dim] the mixtures of layer `start`
    """

    kept: WholePass
    start: int
    ready: torch.Tensor
    projections: Sequence[nn.Linear | Conv1D]
    at: int = field(default=-1, init=False)

    @property
    def copies(self) -> int:
        """Number of copies of the batch."""
        return len(self.ready) // len(self.kept.mixtures[self.start])

    def layer(self, run: Callable[[], Any]) -> Any:
        """Reuse cached outputs below the changed layer, skip its projections, run the layers above
        normally.
        """
        self.at += 1
        if self.at < self.start:
            return self._repeated(self.kept.outputs[self.start - 1])
        with ExitStack() as stack:
            for module in self.projections if self.at == self.start else ():
                stack.enter_context(instead_of(module, _nothing(module)))
            return run()

    def mixture(self, call: AttentionCall) -> torch.Tensor:
        """[row, query, head, dim] prepared mixtures in the changed layer, computed ones above."""
        return self.ready if self.at == self.start else call.mix().transpose(1, 2)

    def _repeated(self, output: Any) -> Any:
        if isinstance(output, tuple):
            return (self._repeated(output[0]), *output[1:])
        hidden: torch.Tensor = output
        return hidden.repeat(self.copies, 1, 1)  # [row, token, model]


@dataclass
class VariantPass(CopiedPass):
    """As `CopiedPass`, for variants that may switch off heads in the layers above too."""

    stand_in: StandIn
    variants: Sequence[Variant]

    def mixture(self, call: AttentionCall) -> torch.Tensor:
        """[row, query, head, dim] as in `CopiedPass`, with the heads that are off replaced."""
        if self.at == self.start:
            return self.ready
        mixed = call.mix().transpose(1, 2).contiguous()  # [row, query, head, dim]
        mask = visible(call.mask, call.attention)
        rows = mixed.view(len(self.variants), -1, *mixed.shape[1:])  # [variant, example, …]
        by_variant = call.values.view(len(self.variants), -1, *call.values.shape[1:])
        masks = mask.expand(len(mixed), -1, -1, -1).view(*rows.shape[:2], *mask.shape[1:])
        for at, variant in enumerate(self.variants):
            if heads := heads_in(variant, self.at):
                own, seen = by_variant[at][:, heads], masks[at]
                instead = self.stand_in.mixture(self.at, heads, own, seen)
                rows[at][:, :, heads] = instead.transpose(1, 2)  # [example, query, head, dim]
        return mixed


def replaced(
    mixtures: torch.Tensor,
    instead: torch.Tensor,
    heads: Sequence[Sequence[int]],
    queries: Sequence[slice] | None = None,
) -> torch.Tensor:
    """[copy * example, query, head, dim] a layer's mixtures, with some heads replaced in each copy.

    mixtures, instead  [example, query, head, dim]
    heads              [copy] the heads that are replaced
    queries            [copy] and at which positions; None: all
    """
    rows = mixtures.repeat(len(heads), 1, 1, 1, 1)  # [copy, example, …]
    for row, some, at in zip(rows, heads, queries or [slice(None)] * len(heads), strict=True):
        row[:, at, some] = instead[:, at, some]
    return rows.flatten(0, 1)


@contextmanager
def instead_of(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Inside the context this function runs in place of the module."""
    state = vars(module)
    before = {"forward": state["forward"]} if "forward" in state else {}
    state["forward"] = forward
    try:
        yield
    finally:
        del state["forward"]
        state.update(before)


def _nothing(module: nn.Linear | Conv1D) -> Callable[[torch.Tensor], torch.Tensor]:
    """Stands in for a linear map: zeros of the right shape that take no memory or time."""
    size = int(module.weight.shape[1 if isinstance(module, Conv1D) else 0])

    def forward(inputs: torch.Tensor) -> torch.Tensor:
        return inputs.new_zeros(()).expand(*inputs.shape[:-1], size)

    return forward


class SharedPrefix(Reversible):
    """Runs the variants of a network while the context is open.

    skip_projections  whether the maps to queries, keys and values of a changed layer are left out
    raises            ModelError if the network's layers are not as they must be
    """

    def __init__(
        self, network: PreTrainedModel, stand_in: StandIn, *, skip_projections: bool = True
    ) -> None:
        self.network, self.stand_in, self.skip = network, stand_in, skip_projections
        sites = find_sites(network)
        if not sites or any(site.block is None for site in sites):
            raise ModelError("the modules of whole layers are not known")
        self.blocks = list(dict.fromkeys(site.block for site in sites if site.block is not None))
        self.attentions = {site.attention for site in sites}
        self._pass: WholePass | CopiedPass | None = None

    def _open(self, stack: ExitStack) -> None:
        stack.enter_context(listening(self.network, self.before, alone=True))
        for block in self.blocks:
            stack.enter_context(instead_of(block, partial(self._layer, block.forward)))

    def _forget(self) -> None:
        self._pass = None

    def whole(self, batch: Batch) -> WholePass:
        """Run a batch through the whole model, and cache what its variants need.

        raises  ModelError unless each layer's module ran its attention once, in order
        """
        self._pass = kept = WholePass(self.stand_in)
        with torch.inference_mode(), kept.projections_of(self.attentions):
            logits = self.told(batch, 1)
        if not (kept.regular and len(kept.outputs) == len(kept.mixtures) > 0):
            raise ModelError(
                f"{type(self.network).__name__} ran {len(kept.mixtures)} attentions in "
                f"{len(kept.outputs)} layers; wanted one in each, in order"
            )
        kept.logits = logits
        return kept

    def variants(
        self, batch: Batch, kept: WholePass, start: int, variants: Sequence[Variant]
    ) -> torch.Tensor:
        """[variant, example, output] the logits of variants whose lowest layer is `start`."""
        heads = [heads_in(variant, start) for variant in variants]
        ready = replaced(kept.mixtures[start], kept.stand_ins[start], heads)
        projections = kept.projections[start] if self.skip else []
        copied = VariantPass(kept, start, ready, projections, self.stand_in, variants)
        with torch.inference_mode():
            logits = self.run(batch, copied)
        return logits.view(len(variants), len(kept.logits), -1)  # [variant, example, output]

    def given(
        self, batch: Batch, kept: WholePass, start: int, mixtures: torch.Tensor
    ) -> torch.Tensor:
        """[row, output] the logits with these mixtures in one layer, with gradients on request.

        mixtures  [copy * example, query, head, dim]
        """
        projections = kept.projections[start] if self.skip else []
        return self.run(batch, CopiedPass(kept, start, mixtures, projections))

    def run(self, batch: Batch, copied: CopiedPass) -> torch.Tensor:
        """[row, output] the logits of a pass over copies of the batch."""
        self._pass = copied
        return self.told(batch, copied.copies)

    def told(self, batch: Batch, copies: int) -> torch.Tensor:
        """[row, output] the logits of several copies of a batch, in this pass."""
        inputs = (tensor.repeat(copies, 1) for tensor in batch.inputs)
        logits: torch.Tensor = run_network(self.network, *inputs).logits
        return logits

    def _layer(self, own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        assert self._pass is not None
        return self._pass.layer(partial(own, *args, **kwargs))

    def before(self, call: AttentionCall) -> None:
        """Mix the values as this pass prescribes."""
        assert self._pass is not None
        call.mixed = self._pass.mixture(call).transpose(1, 2)  # [example, head, query, dim]
