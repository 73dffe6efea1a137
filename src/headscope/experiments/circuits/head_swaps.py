"""Runs prompts with the output of one head after another replaced, batched by layer.

Patching, function vectors and knockouts differ only in what stands instead of z_h = Σ_j α_ij v_j.
The layers below run once (`ablation.shared_prefix`), and the language-model head computes the row
after each prompt alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from headscope.core.accumulators import Ints
from headscope.corpus.document import Example
from headscope.corpus.packing import batches
from headscope.errors import ModelError
from headscope.experiments.circuits.prompts import PromptSet
from headscope.model.batch import Batch
from headscope.model.key_value_cache import cache_of, going_on
from headscope.model.language_model import TokenLoss, last_logits
from headscope.model.model import Model, run_network
from headscope.model.shared_prefix import SharedPrefix, WholePass, replaced
from headscope.model.variant_answers import TOLERANCE
from headscope.model.variants import StandIn


@dataclass(frozen=True)
class AskedBatch:
    """A batch of prompts whose answers are predicted.

    places  [example] which of the prompts they are
    common  how many first tokens nothing is replaced at: their keys and values are computed once
    past    these, where they are ready
    """

    batch: Batch
    places: Sequence[int]
    common: int = 0
    past: Any = None


class AfterCommon(SharedPrefix):
    """As `SharedPrefix`, of the tokens after the common prefix of two prompts.

    What is replaced lies behind them, and a decoder does not look ahead; so they run once, and the
    other passes read their keys and values from the network's own cache.
    """

    def __init__(self, network: PreTrainedModel, *args: Any, **options: Any) -> None:
        super().__init__(network, *args, **options)
        self.prompts: AskedBatch | None = None

    def read(self, prompts: AskedBatch) -> None:
        """Run the common prefix of two prompts."""
        self._pass = WholePass(self.stand_in)
        with torch.inference_mode():
            self.prompts = prefix_read(self.network, prompts)

    def told(self, batch: Batch, copies: int) -> torch.Tensor:
        """As before; mixtures and logits are those of the tokens after the common prefix."""
        if self.prompts is None or not self.prompts.common:
            return super().told(batch, copies)
        return logits_after(self.network, replace(self.prompts, batch=batch), copies)


def prefix_read(network: PreTrainedModel, prompts: AskedBatch) -> AskedBatch:
    """The same with the keys and values of the common prefix, if there is one."""
    if not prompts.common:
        return prompts
    ids, mask = (t[:, : prompts.common] for t in prompts.batch.inputs[:2])
    with last_logits(network):
        answer = run_network(network, ids, mask, use_cache=True)
    return replace(prompts, past=cache_of(answer))


def logits_after(network: PreTrainedModel, prompts: AskedBatch, copies: int) -> torch.Tensor:
    """[copy * example, …] the logits of copies of a batch, of the tokens after its prefix."""
    if not prompts.common:
        inputs = (tensor.repeat(copies, 1) for tensor in prompts.batch.inputs)
        whole: torch.Tensor = run_network(network, *inputs).logits
        return whole
    ids, mask = prompts.batch.input_ids[:, prompts.common :], prompts.batch.mask
    past = deepcopy(prompts.past)
    past.reorder_cache(torch.arange(len(mask), device=mask.device).repeat(copies))
    more = going_on(network, past) | {"use_cache": True}
    rows = (tensor.repeat(copies, 1) for tensor in (ids, mask))
    logits: torch.Tensor = run_network(network, *rows, **more).logits
    return logits


def asking_after(
    objective: TokenLoss, network: PreTrainedModel, prompts: AskedBatch, copies: int
) -> AbstractContextManager[None]:
    """A context in which the output head computes only the row after each prompt."""
    places = [at - prompts.common for at in objective.asked]
    return replace(objective, asked=places).asking(network, list(prompts.places) * copies)


class HeadSwaps:
    """Runs batches of a network with some mixtures replaced.

    objective     asks for the row after each prompt
    batch_tokens  of one forward pass, copies included
    """

    def __init__(self, prefix: SharedPrefix, objective: TokenLoss, *, batch_tokens: int) -> None:
        self.prefix, self.objective, self.batch_tokens = prefix, objective, batch_tokens

    def whole(self, prompts: AskedBatch) -> WholePass:
        """The pass of the whole network; its logits are [example, vocabulary]."""
        with self.asking(prompts, 1):
            return self.prefix.whole(prompts.batch)

    def asking(self, prompts: AskedBatch, copies: int) -> AbstractContextManager[None]:
        """As `asking_after`."""
        return asking_after(self.objective, self.prefix.network, prompts, copies)

    def given(
        self, prompts: AskedBatch, kept: WholePass, layer: int, ready: torch.Tensor
    ) -> torch.Tensor:
        """[copy, example, vocabulary] the logits with these mixtures in a layer.

        ready  [copy * example, query, head, dim]
        """
        size = len(prompts.places)
        with torch.inference_mode(), self.asking(prompts, len(ready) // size):
            logits = self.prefix.given(prompts.batch, kept, layer, ready)
        return logits.view(-1, size, logits.shape[-1])  # [copy, example, vocabulary]

    def swapped(
        self,
        prompts: AskedBatch,
        kept: WholePass,
        layer: int,
        instead: torch.Tensor,
        cells: Sequence[tuple[int, slice]],
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """Yields the index of a first cell, and [cell, example, vocabulary] logits.

        instead  [example, query, head, dim] what stands in for a head's mixture
        cells    which head, at which positions, each in a copy of its own
        """
        rows, tokens = prompts.batch.input_ids.shape
        at_once = max(1, self.batch_tokens // (rows * (tokens - prompts.common)))
        for start in range(0, len(cells), at_once):
            some = cells[start : start + at_once]
            heads, queries = [[head] for head, _ in some], [at for _, at in some]
            ready = replaced(kept.mixtures[layer], instead, heads, queries)
            yield start, self.given(prompts, kept, layer, ready)

    def checked(self, prompts: AskedBatch) -> bool:
        """Whether replacing a layer's mixtures by themselves changes nothing, in the first and a
        middle layer.
        """
        plain = self.whole(self.read(replace(prompts, common=0)))
        size = max(float(plain.logits.abs().max()), 1.0)
        allowed = max(TOLERANCE, 8 * torch.finfo(plain.logits.dtype).eps) * size
        kept = self.whole(self.read(prompts))
        layers = {0, len(kept.mixtures) // 2}
        again = [self.given(prompts, kept, at, kept.mixtures[at])[0] for at in layers]
        return all(
            bool((one - plain.logits).abs().max() <= allowed) for one in (kept.logits, *again)
        )

    def read(self, prompts: AskedBatch) -> AskedBatch:
        """Run the common prefix of two prompts before the other passes; return their batch."""
        if isinstance(self.prefix, AfterCommon):
            self.prefix.read(prompts)
            return prompts
        return replace(prompts, common=0)


@contextmanager
def head_swaps(
    network: PreTrainedModel,
    objective: TokenLoss,
    first: AskedBatch,
    *,
    batch_tokens: int,
    how: str = "zero",
    kind: Callable[..., SharedPrefix] = SharedPrefix,
) -> Iterator[HeadSwaps]:
    """A context in which mixtures of the network can be replaced; checked on a batch first.

    how     what is kept to stand in for heads, as `StandIn`
    kind    makes the `SharedPrefix`
    raises  ModelError for a network whose layers cannot be run so
    """
    reason = "its layers, run again, do not give what the whole network gives"
    ways = [(AfterCommon, True)] * (first.common > 0) + [(kind, True), (kind, False)]
    for made, skip in ways:
        with made(network, StandIn(how), skip_projections=skip) as prefix:
            swaps = HeadSwaps(prefix, objective, batch_tokens=batch_tokens)
            try:
                good = swaps.checked(swaps.read(first))
            except (RuntimeError, TypeError, ValueError, LookupError, AttributeError) as error:
                good, reason = False, (str(error).splitlines() or [type(error).__name__])[0]
            if good:
                yield swaps
                return
    raise ModelError(
        f"heads of {type(network).__name__} cannot be replaced: {reason}; wanted a decoder with "
        "one attention in each layer"
    )


def asked_batches(
    model: Model, examples: Sequence[Example], *, batch_tokens: int, heads: int = 1
) -> list[AskedBatch]:
    """The examples in batches, small enough that one copy per head fits in a pass."""
    return [
        AskedBatch(model.batch([examples[at] for at in places]), places)
        for places in batches(examples, budget=max(1, batch_tokens // heads))
    ]


def in_common(one: AskedBatch, other: AskedBatch) -> tuple[AskedBatch, AskedBatch]:
    """Two batches of prompts, with the length of the prefix that each shares with its pair."""
    ids = one.batch.input_ids
    same = (ids == other.batch.input_ids).int().cumprod(1).sum(1)  # [example]
    common = min(int(same.min()), int(one.batch.lengths.min()) - 1)
    return replace(one, common=common), replace(other, common=common)


def differences(prompts: PromptSet, places: Sequence[int], logits: torch.Tensor) -> torch.Tensor:
    """[copy, example] mean logit of the right tokens minus that of the wrong ones.

    logits  [copy, example, vocabulary]
    """
    wide = torch.promote_types(logits.dtype, torch.float32)

    def means(side: Sequence[Ints]) -> torch.Tensor:  # [copy, example]
        # Taken at once: backwards, each look at the logits makes a tensor as large as they are.
        counts = [len(side[at]) for at in places]
        rows = np.repeat(np.arange(len(places)), counts)
        some = logits[:, rows, np.concatenate([side[at] for at in places])].to(wide)
        return torch.stack([one.mean(1) for one in torch.split(some, counts, 1)], 1)

    return means(prompts.right) - means(prompts.wrong)
