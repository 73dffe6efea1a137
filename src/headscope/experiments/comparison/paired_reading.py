"""Runs two models on the same batches and compares the maps of each layer.

The first model runs, and its maps are kept for the length of one batch; then the second runs, and
each of its layers is compared and let go. So memory holds both networks and the maps of one batch
of one model, however long the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from headscope.corpus import Example, batches
from headscope.experiments.comparison.similarity import Similarity
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.linears import linears
from headscope.model.model import Model, evaluating, forward
from headscope.run.analysis import Analysis, Scope, known_analyses
from headscope.run.engine.compute import threads_of
from headscope.run.store import State

BEFORE, AFTER = "before", "after"
ROOM = 2**26  # weights of one batch that are kept: 256 MiB; a single example may need more


@dataclass(frozen=True)
class ComparisonPlan:
    """All that decides what is computed of a shard, beside the models.

    names      analyses that both models run
    padded_to  tokens that every batch is padded to; None: to its longest example
    linears    "onednn" or "stock", for both
    """

    scope: Scope
    names: tuple[str, ...]
    stack: str
    batch_tokens: int
    linears: str = "stock"
    threads: int = 1
    padded_to: int | None = None
    options: dict[str, dict[str, Any]] = field(default_factory=dict)

    def analyses(self) -> list[Analysis]:
        """Fresh ones, nothing seen yet."""
        known = known_analyses()
        return [known[name](self.scope, **self.options.get(name, {})) for name in self.names]


class PairState:
    """What is known so far of both models and of how alike they are; adds and merges."""

    def __init__(self, work: ComparisonPlan) -> None:
        self.similarity = Similarity(work.scope, padded_to=work.padded_to)
        self.analyses = {BEFORE: work.analyses(), AFTER: work.analyses()}

    @property
    def _parts(self) -> dict[str, Analysis]:
        """Everything that has a state, by name."""
        found: dict[str, Analysis] = {self.similarity.name: self.similarity}
        for side, analyses in self.analyses.items():
            found |= {f"{side}.{analysis.name}": analysis for analysis in analyses}
        return found

    def state(self) -> State:
        """The whole state as named arrays."""
        return {f"{n}/{k}": a for n, part in self._parts.items() for k, a in part.state().items()}

    def load(self, state: State) -> None:
        """Replace the state by one that `state` gave."""
        for name, part in self._parts.items():
            start = f"{name}/"
            part.load({k.removeprefix(start): v for k, v in state.items() if k.startswith(start)})

    def reset(self) -> None:
        """Forget all that was seen."""
        for part in self._parts.values():
            part.reset()

    def merge(self, other: PairState) -> None:
        """Add what another has seen."""
        theirs = other._parts
        for name, part in self._parts.items():
            part.merge(theirs[name])


class PairReader:
    """Two loaded models that read shards side by side."""

    def __init__(self, base: Model, tuned: Model, work: ComparisonPlan) -> None:
        self.models = {BEFORE: base, AFTER: tuned}
        self.work = work
        self.sides = PairState(work)
        self.instruments = {
            side: Instrument(
                model.network, observers=[partial(self._look, side)], stacks=[work.stack]
            )
            for side, model in self.models.items()
        }
        self._batch: Batch | None = None
        self._kept: list[torch.Tensor | None] = []  # maps of the first model, by layer

    def read(self, number: int, examples: Sequence[Example]) -> State:
        """The state after one shard; the arrays are overwritten by the next."""
        self.sides.reset()
        with reading(self.models.values(), self.work):
            for rows in reversed(list(self._batches(examples))):
                batch = self._padded([examples[row] for row in rows])
                self._show(BEFORE, batch)
                self._show(AFTER, batch)
                self._kept, self._batch = [], None
                self.sides.similarity.finish_batch(batch, shard=number, rows=rows)
        return self.sides.state()

    def _batches(self, examples: Sequence[Example]) -> Iterator[list[int]]:
        """Rows of each batch, so few that the maps of one model fit into ROOM."""
        scope, longest = self.work.scope, max(map(len, examples), default=1)
        tokens = self.work.padded_to or longest
        budget = max(ROOM // (tokens * scope.layers * scope.heads), 1)
        if self.work.padded_to is None:
            return batches(examples, budget=min(budget, self.work.batch_tokens))
        each = max(min(budget, self.work.batch_tokens) // tokens, 1)
        order = sorted(range(len(examples)), key=lambda row: len(examples[row]))
        return (order[start : start + each] for start in range(0, len(order), each))

    def _padded(self, examples: Sequence[Example]) -> Batch:
        scope, model = self.work.scope, self.models[BEFORE]
        batch = Batch.of(
            examples, model.vocabulary, replicates=scope.replicates, seed=scope.seed,
            device=model.device,
        )  # fmt: skip
        return batch if self.work.padded_to is None else widened(batch, self.work.padded_to)

    def _show(self, side: str, batch: Batch) -> None:
        """Run one model on the batch and let its analyses look; the second is compared too."""
        self._batch = batch
        with self.instruments[side]:
            network = self.models[side].network
            forward(network, batch.input_ids, batch.mask, batch.segment_ids)
        for analysis in self.sides.analyses[side]:
            analysis.finish(batch)

    def _look(self, side: str, layer: LayerView) -> None:
        batch = self._batch
        assert batch is not None
        for analysis in self.sides.analyses[side]:
            analysis.observe(layer, batch)
        if side == BEFORE:
            self._kept.append(layer.attention)
            return
        before, self._kept[layer.index] = self._kept[layer.index], None
        assert before is not None
        self.sides.similarity.observe_pair(layer.index, before, layer.attention, batch)


@contextmanager
def reading(models: Any, work: ComparisonPlan) -> Iterator[None]:
    """Inside the context the models are fit to be read: nothing drops out, linear maps chosen."""
    with ExitStack() as stack:
        stack.enter_context(threads_of(work.threads))
        stack.enter_context(torch.inference_mode())
        for model in models:
            stack.enter_context(evaluating(model.network))
            stack.enter_context(linears(model.network, work.linears))
        yield


def widened(batch: Batch, tokens: int) -> Batch:
    """The batch with so much padding that every example stands in so many tokens."""
    more = tokens - batch.input_ids.shape[1]

    def padded(tensor: torch.Tensor, value: int | bool) -> torch.Tensor:
        return torch.nn.functional.pad(tensor, (0, more), value=value)  # [example, token]

    if more <= 0:  # the longest is cut below what padding to a multiple of 8 makes of it
        cut = np.s_[:, :tokens]
        return replace(
            batch, input_ids=batch.input_ids[cut], segment_ids=batch.segment_ids[cut],
            mask=batch.mask[cut],
        )  # fmt: skip
    return replace(
        batch,
        input_ids=padded(batch.input_ids, batch.vocabulary.pad),
        segment_ids=padded(batch.segment_ids, 0),
        mask=padded(batch.mask, False),
    )
