"""How are gradients and attributions of all examples computed, part by part?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.corpus.document import Example
from headscope.corpus.packing import batches
from headscope.errors import HeadscopeError
from headscope.experiments.ablation.sweep import batch_of, fastest_linears
from headscope.experiments.importance.attribution import Grown, attributions
from headscope.experiments.importance.check import check_gradients
from headscope.experiments.importance.correlation import Effect, correlations
from headscope.experiments.importance.eager import following
from headscope.experiments.importance.gather import Gather
from headscope.experiments.importance.objectives import Objective
from headscope.experiments.importance.result import (
    METHODS,
    Totals,
    gradients_result,
    importance_result,
    per_example,
)
from headscope.experiments.importance.settings import Running, Settings
from headscope.experiments.importance.stream import frozen
from headscope.model.batch import Batch, to_float64
from headscope.model.linears import linears
from headscope.model.model import Model, evaluating, run_network
from headscope.run.experiment import ExperimentRequest, run_experiment
from headscope.run.finished_run import Run
from headscope.run.life_cycle import RunInProgress
from headscope.run.store import State

PART_TOKENS = 4096  # of the examples whose numbers are kept together, so that a run can go on


@dataclass
class Work:
    """The computation behind `importance`.

    effect  what the importances are held against; None: nothing
    notes   counts of what was left out, for the reader
    """

    model: Model
    examples: Sequence[Example]
    objective: Objective
    settings: Settings
    progress: Callable[[int, int], None] | None
    effect: Effect | None = None
    notes: dict[str, int] = field(default_factory=dict)

    def run(
        self, corpus: Mapping[str, Any], output: str | Path | None, running: Running,
        about: Mapping[str, Any], *, cut: int,
    ) -> Run:  # fmt: skip
        """The run of that spec, opened or computed; `about` is further spec."""
        settings = self.settings
        request = ExperimentRequest(
            "importance", self.model, corpus=corpus, examples=self.examples,
            settings={**asdict(settings), **about, "loss": self.objective.name},
            seed=settings.seed, replicates=settings.replicates, cut=cut, line=running.command,
            linears=lambda: fastest_linears(
                self.model, self.examples, batch_tokens=settings.batch_tokens,
                asked=running.linears,
            ),
        )  # fmt: skip
        with evaluating(self.model.network):
            return run_experiment(request, self.compute, output=output, overwrite=running.overwrite)

    def compute(self, run: RunInProgress) -> dict[str, xr.Dataset]:
        """The groups `gradients` and `importance`."""
        settings, network = self.settings, self.model.network
        totals, done = Totals(settings.replicates, settings.seed), 0
        check_gradients(self.model, self.examples, self.objective)
        with linears(network, run.linears), frozen(network):
            for number, places in enumerate(_in_parts(self.examples)):
                state = run.part(number, partial(self._part, places))
                totals.add(per_example(state), [self.examples[at].document for at in places])
                done += len(places)
                if self.progress:
                    self.progress(done, len(self.examples))
        gradients = gradients_result(totals, self.objective).assign_attrs(self.notes)
        found = importance_result(totals, self.methods, self.objective, steps=settings.steps)
        if self.effect is not None:
            against = correlations(
                found, self.effect, replicates=settings.replicates, seed=settings.seed
            )
            found = xr.merge([found, against], join="exact", combine_attrs="no_conflicts")
        return {"gradients": gradients, "importance": found}

    @property
    def methods(self) -> tuple[str, ...]:
        """Of METHODS, those asked for."""
        return self.settings.methods or METHODS

    def _part(self, places: Sequence[int]) -> State:
        """[example of the part, …] by name."""
        found = self._by_batch(places, 1, self._gradients)
        if "attattr" in self.methods:
            steps, objective = self.settings.steps, self.objective
            with Grown(self.model.network) as grown:

                def run(batch: Batch, at: Sequence[int]) -> State:
                    return attributions(grown, batch, at, objective, steps=steps)

                found |= self._by_batch(places, steps + 1, run)
        return found

    def _by_batch(
        self, places: Sequence[int], copies: int, run: Callable[[Batch, Sequence[int]], State]
    ) -> State:
        """What `run` gives for batches of these examples, in their order."""
        examples = [self.examples[at] for at in places]
        order: list[int] = []
        given: list[State] = []
        for rows in batches(examples, budget=max(1, self.settings.batch_tokens // copies)):
            batch = batch_of(self.model, [examples[row] for row in rows])
            given.append(run(batch, [places[row] for row in rows]))
            order += rows
        back = np.argsort(order)
        return {name: np.concatenate([one[name] for one in given])[back] for name in given[0]}

    def _gradients(self, batch: Batch, places: Sequence[int]) -> State:
        shape, network = self.model.shape, self.model.network
        gather = Gather(batch, layers=shape.layers, heads=shape.heads)
        with following(network, gather) as stream, self.objective.asking(network, places):
            answer: Any = run_network(network, batch.input_ids, batch.mask, batch.segment_ids)
            losses = self.objective.losses(answer.logits, places)
            self._check(losses, places)
            stream.backward(losses.sum())
        return {**gather.state(), "queries": batch.lengths * 1.0, "loss": to_float64(losses)}

    def _check(self, losses: torch.Tensor, places: Sequence[int]) -> None:
        bad = [
            at for at, loss in zip(places, losses.tolist(), strict=True) if not np.isfinite(loss)
        ]
        if bad:
            raise HeadscopeError(
                f"the loss of {self.examples[bad[0]].id!r} is not finite (NaN or infinite); wanted "
                "a number: the training may have diverged, or the numbers are too small a type: "
                "try --dtype float32"
            )


def _in_parts(examples: Sequence[Example]) -> Iterator[list[int]]:
    """Places of examples in reading order, so many together that they hold about PART_TOKENS."""
    part: list[int] = []
    tokens = 0
    for at, example in enumerate(examples):
        part.append(at)
        tokens += len(example)
        if tokens >= PART_TOKENS:
            yield part
            part, tokens = [], 0
    if part:
        yield part
