"""Answers of a model with heads switched off, without computing anything twice.

A variant that changes layer l is, below l, the whole model. So each batch runs once, keeping what
every layer gave and every head's mixture; then, for the variants of a layer together, the model's
own forward pass runs again, in which the layers below l hand on what was kept, layer l gets its
mixtures ready-made (its queries, keys and values are not computed), and the layers above run as
they are, with all that the model gives them. Nothing here knows a family: what is asked of it is
one attention call in each layer's module, in order. `sweep` holds the outcome against `naive`
before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from transformers import PreTrainedModel

from headscope.core.reversible import Reversible
from headscope.errors import ModelError
from headscope.experiments.ablation.passes import Again, Kept, Pass, Watch, instead_of
from headscope.experiments.ablation.replace import StandIn
from headscope.experiments.ablation.variants import Variant
from headscope.model.attention import AttentionCall, listening
from headscope.model.batch import Batch
from headscope.model.families import find_sites
from headscope.model.model import forward


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
        self._pass: Pass | None = None

    def _open(self, stack: ExitStack) -> None:
        """Listen to the attention function and take hold of the layers' modules."""
        stack.enter_context(listening(self.network, self, alone=True))
        for block in self.blocks:
            stack.enter_context(instead_of(block, self._of_block(block.forward)))

    def _forget(self) -> None:
        self._pass = None

    def whole(self, batch: Batch) -> Kept:
        """Run a batch through the whole model and keep what its variants need.

        raises  ModelError unless each layer's module ran its attention once, in order
        """
        watch = Watch(Kept(), self.stand_in)
        self._pass = watch
        with watch.projections_of(self.attentions):
            answer = forward(self.network, batch.input_ids, batch.mask, batch.segment_ids)
        kept = watch.kept
        if not (watch.regular and len(kept.outputs) == len(kept.mixtures) > 0):
            raise ModelError(
                f"{type(self.network).__name__} ran {len(kept.mixtures)} attentions in "
                f"{len(kept.outputs)} layers; wanted one in each, in order"
            )
        kept.logits = answer.logits
        self.projections = watch.projections
        return kept

    def variants(
        self, batch: Batch, kept: Kept, start: int, variants: Sequence[Variant]
    ) -> torch.Tensor:
        """[variant, example, output] the logits of variants whose lowest layer is `start`."""
        copies = len(variants)
        projections = self.projections[start] if self.skip else []
        self._pass = Again(kept, self.stand_in, start, variants, projections)
        inputs = (batch.input_ids, batch.mask, batch.segment_ids)
        answer = forward(self.network, *(t.repeat(copies, 1) for t in inputs))
        logits: torch.Tensor = answer.logits
        return logits.view(copies, len(kept.logits), -1)  # [variant, example, output]

    def _of_block(self, own: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            assert self._pass is not None
            return self._pass.layer(lambda: own(*args, **kwargs))

        return forward

    def before(self, call: AttentionCall) -> None:
        """Mix the values as this pass has it."""
        assert self._pass is not None
        call.mixed = self._pass.mixture(call).transpose(1, 2)  # [example, head, query, dim]

    def after(self, call: AttentionCall, mixed: torch.Tensor) -> None:
        """Nothing is left to do."""
