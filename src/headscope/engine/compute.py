"""How does one shard become sums?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import torch
from threadpoolctl import threadpool_limits

from headscope.analysis import Analysis, Scope, analyses
from headscope.batch import Batch
from headscope.corpus import Corpus, Example, batches
from headscope.instrument import Instrument
from headscope.layer import LayerView
from headscope.linears import linears
from headscope.model import Model, forward
from headscope.plan import Reader, Shard
from headscope.spec import Settings


@dataclass(frozen=True)
class Task:
    """All that a process needs to compute any shard, beside the model.

    linears  "onednn" or "stock", as chosen once for the run
    threads  of one process
    """

    corpus: Corpus
    settings: Settings
    scope: Scope
    names: tuple[str, ...]
    stack: str
    linears: str
    threads: int
    options: dict[str, dict[str, Any]] = field(default_factory=dict)

    def new_analyses(self) -> list[Analysis]:
        """Fresh analyses, nothing seen yet."""
        known = analyses()
        return [known[name](self.scope, **self.options.get(name, {})) for name in self.names]


class Computer:
    """Computes shards of one task with one loaded model."""

    def __init__(self, model: Model, task: Task) -> None:
        self.model, self.task = model, task
        self.reader = Reader(model, task.corpus, task.settings)

    def compute(self, shard: Shard) -> dict[str, np.ndarray[Any, Any]]:
        """The state of all analyses after one shard: {"analysis/accumulator": array}."""
        found = self.task.new_analyses()
        with threads_of(self.task.threads):
            run_batches(self.model, self.reader.examples(shard), found, self.task)
        return {f"{a.name}/{key}": array for a in found for key, array in a.state().items()}


def run_batches(
    model: Model, examples: Sequence[Example], found: Sequence[Analysis], task: Task
) -> None:
    """Show all examples to all analyses, in length-sorted batches, one forward pass each."""
    current: list[Batch] = []

    def observe(layer: LayerView) -> None:
        for analysis in found:
            analysis.observe(layer, current[0])

    instrument = Instrument(model.network, observers=[observe], stacks=[task.stack])
    with linears(model.network, task.linears), instrument, torch.inference_mode():
        for rows in batches(examples, budget=task.settings.batch_tokens):
            batch = Batch.of(
                [examples[row] for row in rows],
                model.vocabulary,
                replicates=task.scope.replicates,
                seed=task.scope.seed,
                device=model.device,
            )
            current[:] = [batch]
            forward(model.network, batch.input_ids, batch.mask, batch.segment_ids)
            for analysis in found:
                analysis.finish(batch)


@contextmanager
def threads_of(count: int) -> Iterator[None]:
    """Inside the context this process computes in so many threads.

    Those are torch's and the compiled loops'. numpy's products get one: BLAS divides sums among
    its threads, so that their last bits would depend on how many there are.
    """
    before = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(count)
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])
