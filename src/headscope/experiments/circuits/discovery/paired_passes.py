"""Passes of prompts beside corrupted ones: what nodes give in both, and answers in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from headscope.experiments.circuits.discovery.node_names import Nodes
from headscope.experiments.circuits.discovery.nodes import (
    NodeOutputs,
    NodePass,
    NodePasses,
)
from headscope.experiments.circuits.head_swaps import (
    AskedBatch,
    asked_batches,
    asking_after,
    differences,
    in_common,
    logits_after,
    prefix_read,
)
from headscope.experiments.circuits.prompts import PromptSet
from headscope.experiments.circuits.readout import asking_last
from headscope.model.language_model import LanguageModel, TokenLoss
from headscope.model.linears import equal_but_for_rounding
from headscope.model.model import evaluating


@dataclass(frozen=True)
class Pair:
    """A batch of prompts, that of their corrupted ones, and what every node gives in each.

    Without the tokens that all of them begin with, unless the whole prompts were asked for.
    """

    clean: AskedBatch
    corrupted: AskedBatch
    clean_gave: NodeOutputs
    corrupted_gave: NodeOutputs

    @property
    def real(self) -> torch.Tensor:
        """[example, token] which tokens are no padding."""
        return self.clean.batch.mask[:, self.clean.common :]


@dataclass(frozen=True)
class PairedPasses:
    """Runs the network on prompts and corrupted ones, with nodes as a pass has them.

    batch_tokens  of one forward pass, copies included
    shares        whether the tokens that two prompts begin with are read once
    """

    language: LanguageModel
    prompts: PromptSet
    objective: TokenLoss
    passes: NodePasses
    batch_tokens: int
    shares: bool = True

    @property
    def nodes(self) -> Nodes:
        """The nodes of the network."""
        shape = self.language.model.shape
        return Nodes(shape.layers, shape.heads)

    @property
    def beside(self) -> bool:
        """Whether feed-forward layers read what the heads of their layer read."""
        both = zip(self.passes.parts, self.passes.blocks, strict=True)
        return any(part.feed_forward is not None and part.reads is block for part, block in both)

    def of(self, places: Iterable[int]) -> PairedPasses:
        """The same of some of the prompts."""
        some = self.prompts.part(places)
        return replace(self, prompts=some, objective=asking_last(some.clean, some.right))

    def pairs(self, *, copies: int = 1, whole: bool = False) -> Iterator[Pair]:
        """All prompts, in batches of which `copies` copies make one pass.

        whole  whether nodes may be replaced in the tokens that two prompts begin with, too
        """
        model, size = self.language.model, self.batch_tokens
        sides = [
            asked_batches(model, side, batch_tokens=size, heads=copies)
            for side in (self.prompts.clean, self.prompts.corrupted)
        ]
        for clean, corrupted in zip(*sides, strict=True):
            pair = [clean, corrupted]
            if self.shares and not whole:
                one, other = in_common(clean, corrupted)
                with torch.no_grad():
                    one = prefix_read(model.network, one)
                pair = [one, replace(other, past=one.past)]
            yield Pair(*pair, *map(self._gave, pair))

    def answers(self, side: AskedBatch, how: NodePass, *, copies: int = 1) -> torch.Tensor:
        """[copy, example] the logit differences of copies of a batch in such a pass."""
        network, size = self.language.model.network, len(side.places)
        with asking_after(self.objective, network, side, copies):
            logits = self.passes.run(how, partial(logits_after, network, side, copies))
        return differences(self.prompts, side.places, logits.view(copies, size, -1))

    def _gave(self, side: AskedBatch) -> NodeOutputs:
        how = NodePass()
        with torch.no_grad():
            self.answers(side, how)
        assert how.gave is not None
        return how.gave

    def can_share(self) -> bool:
        """Whether prompts read so give what they give as a whole: tried on one."""
        both = zip(self.prompts.clean, self.prompts.corrupted, strict=True)
        alike = [np.cumprod(one.input_ids == other.input_ids).sum() for one, other in both]
        most = self.of([int(np.argmax(alike))])
        try:
            pairs = [next(most.pairs(whole=whole)) for whole in (True, False)]
        except (RuntimeError, TypeError, ValueError, LookupError, AttributeError):
            return False
        one, other = (list(pair.corrupted_gave.tensors())[-1][:, -1] for pair in pairs)
        return equal_but_for_rounding(other, one)


@contextmanager
def paired_passes(
    language: LanguageModel, prompts: PromptSet, *, batch_tokens: int
) -> Iterator[PairedPasses]:
    """A context in which prompts and their corrupted ones are run; they are of equal length."""
    network = language.model.network
    objective = asking_last(prompts.clean, prompts.right)
    first = asked_batches(language.model, prompts.clean[:1], batch_tokens=batch_tokens)[0]
    with (
        evaluating(network),
        NodePasses(network, partial(logits_after, network, first, 1)) as passes,
    ):
        paired = PairedPasses(language, prompts, objective, passes, batch_tokens)
        yield replace(paired, shares=paired.can_share())
