"""Runs prompts with the mixture of one head after another replaced, all of a layer at once.

Patching, function vectors and knockouts differ only in what stands instead of z_h = Σ_j α_ij v_j.
The layers below run once (`ablation.shared_prefix`), and the language-model head computes the row
after each prompt alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from headscope.core.accumulators import Ints
from headscope.errors import ModelError
from headscope.experiments.ablation.shared_prefix import SharedPrefix, WholePass, replaced
from headscope.experiments.ablation.variant_answers import TOLERANCE
from headscope.experiments.ablation.variants import StandIn
from headscope.experiments.importance.objectives import TokenLoss
from headscope.model.batch import Batch


@dataclass(frozen=True)
class AskedBatch:
    """Some prompts as a batch.

    places  [example] which of the prompts they are
    """

    batch: Batch
    places: Sequence[int]


class HeadSwaps:
    """Runs batches of a network with some mixtures replaced.

    objective     asks for the row after each prompt
    batch_tokens  of one forward pass, copies included
    """

    def __init__(self, prefix: SharedPrefix, objective: TokenLoss, *, batch_tokens: int) -> None:
        self.prefix, self.objective, self.batch_tokens = prefix, objective, batch_tokens

    def whole(self, asked: AskedBatch) -> WholePass:
        """The pass of the whole network; its logits are [example, vocabulary]."""
        with self.objective.asking(self.prefix.network, asked.places):
            return self.prefix.whole(asked.batch)

    def given(
        self, asked: AskedBatch, kept: WholePass, layer: int, ready: torch.Tensor
    ) -> torch.Tensor:
        """[copy, example, vocabulary] the logits with these mixtures in a layer.

        ready  [copy * example, query, head, dim]
        """
        size = len(asked.places)
        copied = list(asked.places) * (len(ready) // size)
        with torch.inference_mode(), self.objective.asking(self.prefix.network, copied):
            logits = self.prefix.given(asked.batch, kept, layer, ready)
        return logits.view(-1, size, logits.shape[-1])  # [copy, example, vocabulary]

    def swapped(
        self, asked: AskedBatch, kept: WholePass, layer: int, instead: torch.Tensor,
        cells: Sequence[tuple[int, slice]],
    ) -> Iterator[tuple[int, torch.Tensor]]:  # fmt: skip
        """In turn, the place of a first cell, and [cell, example, vocabulary] logits.

        instead  [example, query, head, dim] what stands in for a head's mixture
        cells    which head, at which positions, each in a copy of its own
        """
        at_once = max(1, self.batch_tokens // asked.batch.input_ids.numel())
        for start in range(0, len(cells), at_once):
            some = cells[start : start + at_once]
            heads, queries = [[head] for head, _ in some], [at for _, at in some]
            ready = replaced(kept.mixtures[layer], instead, heads, queries)
            yield start, self.given(asked, kept, layer, ready)

    def checked(self, asked: AskedBatch) -> bool:
        """Whether nothing replaced in the first, a middle and the last layer changes nothing."""
        kept = self.whole(asked)
        layers = len(kept.mixtures)
        size = max(float(kept.logits.abs().max()), 1.0)
        allowed = max(TOLERANCE, 8 * torch.finfo(kept.logits.dtype).eps) * size
        again = (self.given(asked, kept, at, kept.mixtures[at]) for at in {0, layers // 2})
        return all(bool((one - kept.logits).abs().max() <= allowed) for one in again)


@contextmanager
def head_swaps(
    network: PreTrainedModel, objective: TokenLoss, first: AskedBatch, *, batch_tokens: int,
    how: str = "zero", kind: Callable[..., SharedPrefix] = SharedPrefix,
) -> Iterator[HeadSwaps]:  # fmt: skip
    """A context in which the network runs so; checked on a batch first.

    how     what is kept to stand in for heads, as `StandIn`
    kind    makes the `SharedPrefix`
    raises  ModelError for a network whose layers cannot be run so
    """
    reason = "its layers, run again, do not give what the whole network gives"
    for skip in (True, False):
        with kind(network, StandIn(how), skip_projections=skip) as prefix:
            swaps = HeadSwaps(prefix, objective, batch_tokens=batch_tokens)
            try:
                good = swaps.checked(first)
            except (RuntimeError, TypeError, ValueError, LookupError, AttributeError) as error:
                good, reason = False, (str(error).splitlines() or [type(error).__name__])[0]
            if good:
                yield swaps
                return
    raise ModelError(
        f"heads of {type(network).__name__} cannot be replaced: {reason}; wanted a decoder with "
        "one attention in each layer"
    )


def differences(logits: torch.Tensor, right: Sequence[Ints], wrong: Sequence[Ints]) -> torch.Tensor:
    """[copy, example] mean logit of the right tokens less that of the wrong ones.

    logits  [copy, example, vocabulary]
    """
    wide = torch.promote_types(logits.dtype, torch.float32)
    return torch.stack([
        logits[:, at, one].to(wide).mean(1) - logits[:, at, other].to(wide).mean(1)
        for at, (one, other) in enumerate(zip(right, wrong, strict=True))
    ], 1)  # fmt: skip
