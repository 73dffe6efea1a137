"""Runs two models on the same batches and compares the maps of each layer.

Of inputs that are read without whole maps it keeps queries and keys, and compares blocks of rows.

The first model runs, and its maps are kept for the length of one batch; then the second runs, and
each of its layers is compared and let go. So memory holds both networks and the maps of one batch
of one model, however long the corpus.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import torch
from torch.nn.functional import pad

from headscope.core.progress import Advance, unheard
from headscope.corpus import Example, batches
from headscope.experiments.comparison.similarity import Similarity, Training
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.linears import linears
from headscope.model.long_attention import LongAttention
from headscope.model.long_layer import LongLayerView
from headscope.model.model import Model, evaluating
from headscope.model.threads import threads_of
from headscope.run.analysis import Analysis
from headscope.run.compute import ShardJob, Showing
from headscope.run.plan import Plan
from headscope.run.shard_files import State

BEFORE, AFTER = "before", "after"
ROOM = 2**26  # weights of one batch that are kept: 256 MiB; a single example may need more


@dataclass(frozen=True, kw_only=True)
class ComparisonJob(ShardJob):
    """A planned comparison.

    reader     the model whose tokenizer and limit decide what is read
    training   how the second model came from the first, if that is known
    padded_to  tokens that every batch is padded to; None: to its longest example
    told       how inputs without whole maps are read, in words
    """

    base: Model
    tuned: Model
    reader: Model
    plan: Plan
    training: Training | None = None
    padded_to: int | None = None
    told: str = ""

    @property
    def models(self) -> dict[str, Model]:
        """Both models, by side."""
        return {BEFORE: self.base, AFTER: self.tuned}


@dataclass
class PairState:
    """The accumulated state of both models, by side, and of their similarity."""

    similarity: Similarity
    analyses: dict[str, list[Analysis]]

    @classmethod
    def new(cls, job: ComparisonJob) -> Self:
        """Nothing seen yet."""
        analyses = {side: job.new_analyses() for side in job.models}
        return cls(Similarity(job.scope, job.tuned.shape.names, padded_to=job.padded_to), analyses)

    @property
    def parts(self) -> dict[str, Analysis]:
        """Everything with a state, by its name in the state of a shard."""
        sides = {f"{side}.{a.name}": a for side, some in self.analyses.items() for a in some}
        return {self.similarity.name: self.similarity, **sides}


class PairReader:
    """Two loaded models that read shards side by side."""

    def __init__(self, job: ComparisonJob) -> None:
        self.job, self.sides = job, PairState.new(job)
        whole = job.settings.whole_maps if job.long else None
        self.instruments = {
            side: Instrument(model.network, observers=[look], stacks=[job.stack], whole=whole)
            for side, model in job.models.items()
            for look in (partial(self._look, side),)
        }
        self._showing: Showing | None = None
        self._pairing = True  # whether the maps of both models are compared
        # Maps of the first model, by layer, or what makes blocks of them.
        self._kept: list[torch.Tensor | LongAttention | None] = []

    def read(self, number: int, examples: Sequence[Example], advance: Advance = unheard) -> State:
        """The state after one shard; the arrays are overwritten by the next.

        advance  gets the number of finished inputs
        """
        parts = self.sides.parts
        for part in parts.values():
            part.reset()
        every = [*self.sides.analyses[BEFORE], self.sides.similarity]
        with reading(self.job.models.values(), self.job):
            for _, places, shown in self.job.by_reading(examples, every):
                names = {analysis.name for analysis in shown}
                for rows in reversed(list(self._batches([examples[at] for at in places]))):
                    self._read_batch(examples, number, [places[row] for row in rows], names)
                    advance(len(rows))
        return {f"{n}/{k}": a for n, part in parts.items() for k, a in part.state().items()}

    def _read_batch(
        self, examples: Sequence[Example], number: int, rows: Sequence[int], names: Collection[str]
    ) -> None:
        """Show the examples at these rows of a shard to the analyses of these names."""
        batch = self._padded([examples[row] for row in rows])
        self._pairing = self.sides.similarity.name in names
        for side, model in self.job.models.items():
            shown = [one for one in self.sides.analyses[side] if one.name in names]
            self._showing = Showing(self.job, batch, shown)
            with self.instruments[side] as instrument:
                self._showing.read_by(model, instrument)
        self._kept, self._showing = [], None
        if self._pairing:
            self.sides.similarity.finish_batch(batch, shard=number, rows=rows)

    def _batches(self, examples: Sequence[Example]) -> Iterator[list[int]]:
        """Rows of each batch, small enough that the maps of one model fit into ROOM."""
        scope, padded_to = self.job.scope, self.job.padded_to
        tokens = padded_to or max(map(len, examples), default=1)
        budget = max(ROOM // (tokens * scope.layers * scope.heads), 1)
        budget = min(budget, self.job.settings.batch_tokens)
        if padded_to is None:
            return batches(examples, budget=budget)
        each = max(budget // tokens, 1)
        order = sorted(range(len(examples)), key=lambda row: len(examples[row]))
        return (order[start : start + each] for start in range(0, len(order), each))

    def _padded(self, examples: Sequence[Example]) -> Batch:
        scope, model, tokens = self.job.scope, self.job.base, self.job.padded_to
        batch = model.batch(
            examples, replicates=scope.replicates, seed=scope.seed, listed=scope.listed
        )
        if tokens is None:
            return batch
        # Below 0 what padding to a multiple of 8 made too long is cut.
        room = (0, tokens - batch.input_ids.shape[1])
        return replace(
            batch,
            input_ids=pad(batch.input_ids, room, value=batch.vocabulary.pad),
            segment_ids=pad(batch.segment_ids, room, value=0),
            mask=pad(batch.mask, room, value=False),
        )

    def _look(self, side: str, layer: LayerView) -> None:
        """Show a batch to the analyses of one model; for the second, compare the maps as well."""
        assert self._showing is not None
        self._showing.observe(layer)
        if not self._pairing:
            return
        maps = layer.long if isinstance(layer, LongLayerView) else layer.attention
        if side == BEFORE:
            self._kept.append(maps)
            return
        before, self._kept[layer.index] = self._kept[layer.index], None
        assert before is not None
        self.sides.similarity.observe_pair(layer.index, before, maps, self._showing.batch)


@contextmanager
def reading(models: Iterable[Model], job: ShardJob) -> Iterator[None]:
    """Inside the context the models are ready to read: no dropout, fastest linear maps."""
    with ExitStack() as stack:
        stack.enter_context(threads_of(job.threads))
        stack.enter_context(torch.inference_mode())
        # In one order for all threads: each model is another's to wait for.
        for model in sorted(models, key=lambda one: id(one.network)):
            stack.enter_context(evaluating(model.network))
            stack.enter_context(linears(model.network, job.linears))
        yield
