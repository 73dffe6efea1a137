"""Passes of prompts beside corrupted ones: what nodes give in both, and answers in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import torch

from headscope.experiments.circuits.discovery.node_names import Nodes
from headscope.experiments.circuits.discovery.nodes import (
    NodeOutputs,
    NodePass,
    NodePasses,
)
from headscope.experiments.circuits.head_swaps import AskedBatch, asked_batches, differences
from headscope.experiments.circuits.prompts import PromptSet
from headscope.experiments.circuits.readout import asking_last
from headscope.model.language_model import LanguageModel, TokenLoss
from headscope.model.model import evaluating, run_network


@dataclass(frozen=True)
class Pair:
    """A batch of prompts, that of their corrupted ones, and what every node gives in each."""

    clean: AskedBatch
    corrupted: AskedBatch
    clean_gave: NodeOutputs
    corrupted_gave: NodeOutputs

    @property
    def real(self) -> torch.Tensor:
        """[example, token] which tokens are no padding."""
        return self.clean.batch.mask


@dataclass(frozen=True)
class PairedPasses:
    """Runs the network on prompts and corrupted ones, with nodes as a pass has them.

    batch_tokens  of one forward pass, copies included
    """

    language: LanguageModel
    prompts: PromptSet
    objective: TokenLoss
    passes: NodePasses
    batch_tokens: int

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

    def pairs(self, *, copies: int = 1) -> Iterator[Pair]:
        """All prompts, in batches of which `copies` copies make one pass."""
        model, size = self.language.model, self.batch_tokens
        sides = [
            asked_batches(model, side, batch_tokens=size, heads=copies)
            for side in (self.prompts.clean, self.prompts.corrupted)
        ]
        for clean, corrupted in zip(*sides, strict=True):
            yield Pair(clean, corrupted, self._gave(clean), self._gave(corrupted))

    def answers(self, side: AskedBatch, how: NodePass, *, copies: int = 1) -> torch.Tensor:
        """[copy, example] the logit differences of copies of a batch in such a pass."""
        run = partial(_logits, self.language, self.objective, side, copies)
        logits, size = self.passes.run(how, run), len(side.places)
        return differences(self.prompts, side.places, logits.view(copies, size, -1))

    def _gave(self, side: AskedBatch) -> NodeOutputs:
        how = NodePass()
        with torch.no_grad():
            self.answers(side, how)
        assert how.gave is not None
        return how.gave


@contextmanager
def paired_passes(
    language: LanguageModel, prompts: PromptSet, *, batch_tokens: int
) -> Iterator[PairedPasses]:
    """A context in which prompts and their corrupted ones are run; they are of equal length."""
    network = language.model.network
    objective = asking_last(prompts.clean, prompts.right)
    first = asked_batches(language.model, prompts.clean[:1], batch_tokens=batch_tokens)[0]
    run = partial(_logits, language, objective, first, 1)
    with evaluating(network), NodePasses(network, run) as passes:
        yield PairedPasses(language, prompts, objective, passes, batch_tokens)


def _logits(
    language: LanguageModel, objective: TokenLoss, side: AskedBatch, copies: int
) -> torch.Tensor:
    network = language.model.network
    with objective.asking(network, list(side.places) * copies):
        rows = (tensor.repeat(copies, 1) for tensor in side.batch.inputs)
        logits: torch.Tensor = run_network(network, *rows).logits
    return logits
