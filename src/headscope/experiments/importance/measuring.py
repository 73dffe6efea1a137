"""Computes how much a loss depends on each head; `importance` reads the request."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims.reading import WITHHELD
from headscope.core.display import printable
from headscope.corpus import Corpus
from headscope.corpus.document import Example
from headscope.corpus.packing import batches
from headscope.errors import HeadscopeError
from headscope.experiments.importance import result
from headscope.experiments.importance.attribution import Grown, attributions
from headscope.experiments.importance.correlation import Effect, correlations, effect_of
from headscope.experiments.importance.gradients import following, frozen
from headscope.experiments.importance.settings import METHODS, QUICK, ImportanceSettings
from headscope.experiments.importance.task_loss import Objective, TaskLoss
from headscope.model import language_model as objectives
from headscope.model.batch import Batch, to_float64
from headscope.model.language_model import LanguageModel
from headscope.model.linears import linears
from headscope.model.model import Model, run_network
from headscope.run.execution import Execution
from headscope.run.experiment import ExperimentRequest, digest_of, in_parts, of_task, run_experiment
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.plan import encoder_for
from headscope.run.settings import Settings as CorpusSettings
from headscope.run.shard_files import State, joined
from headscope.run.store import Run
from headscope.tasks.predict import MAX_LENGTH, encode
from headscope.tasks.task_data import TaskData
from headscope.tasks.task_model import TaskModel

PART_TOKENS = 4096  # of the examples whose numbers are kept together, so that a run can go on


def importance_to_task(
    model: TaskModel,
    data: TaskData,
    settings: ImportanceSettings,
    *,
    output: str | Path | None,
    ablation: Run | None,
    execution: Execution | None,
) -> Run:
    """Computes how much the loss of a task depends on each head."""
    execution, length = execution or Execution(), settings.max_length or MAX_LENGTH
    settings = replace(settings, methods=settings.methods or METHODS, max_length=length)
    encoded, effect = encode(model, data, max_length=length), None
    if ablation is not None:
        inputs = digest_of(encoded.examples)
        effect = effect_of(ablation, model.model, task=printable(data.task.name), inputs=inputs)
    objective = TaskLoss(data.task, encoded.labels)
    work = ImportanceRun(
        model.model, encoded.examples, objective, settings, execution.progress, effect
    )
    about = {"ablation": None if effect is None else effect.about}
    return work.run(of_task(data), output, execution, about, cut=encoded.cut)


def importance_to_text(
    model: LanguageModel,
    corpus: Corpus,
    *,
    output: str | Path | None = None,
    settings: ImportanceSettings | None = None,
    execution: Execution | None = None,
) -> Run:
    """Computes how much the loss of a language model depends on each head.

    Otherwise as `importance`. Raises CorpusError where nothing can be asked.
    """
    settings, execution = settings or ImportanceSettings(), execution or Execution()
    settings = replace(settings, methods=settings.methods or QUICK)
    reading = CorpusSettings(
        max_length=settings.max_length,
        long=settings.long,
        segment_ids=settings.segment_ids,
        seed=settings.seed,
    )
    encoder = encoder_for(model.model, reading)
    examples = [e for document in islice(corpus, settings.limit) for e in encoder.encode(document)]
    is_masked, counts = model.kind == "masked", encoder.counts
    predicted = (
        objectives.masked(model.model, examples, seed=settings.seed)
        if is_masked
        else objectives.causal(examples)
    )
    notes = {"windowed": counts.windowed, "skipped": counts.skipped, "left_out": predicted.left_out}
    work = ImportanceRun(
        model.model,
        predicted.examples,
        predicted.objective,
        settings,
        execution.progress,
        notes=notes,
    )
    return work.run(
        corpus.describe(), output, execution, {"asked": predicted.objective.digest}, cut=0
    )


@dataclass
class ImportanceRun:
    """The computation behind `importance`.

    effect  what the importances are compared with; None: nothing
    notes   counts of what was left out, for the reader
    """

    model: Model
    examples: Sequence[Example]
    objective: Objective
    settings: ImportanceSettings
    progress: Callable[[int, int], None] | None
    effect: Effect | None = None
    notes: dict[str, int] = field(default_factory=dict)

    @property
    def methods(self) -> tuple[str, ...]:
        """The requested ones of METHODS."""
        return self.settings.methods or METHODS

    def run(
        self,
        corpus: Mapping[str, Any],
        output: str | Path | None,
        execution: Execution,
        about: Mapping[str, Any],
        *,
        cut: int,
    ) -> Run:
        """The run of that spec, opened or computed; `about` is further spec."""
        settings = self.settings
        request = ExperimentRequest(
            "importance",
            self.model,
            corpus=corpus,
            examples=self.examples,
            settings={**asdict(settings), **about, "loss": self.objective.name},
            seed=settings.seed,
            replicates=settings.replicates,
            cut=cut,
            batch_tokens=settings.batch_tokens,
            divided=True,
        )
        return run_experiment(request, self.compute, output=output, execution=execution)

    def compute(self, run: RunInProgress) -> dict[str, xr.Dataset]:
        """The groups `gradients` and `importance`."""
        settings, network = self.settings, self.model.network
        totals = result.ImportanceTotals(settings.replicates)
        meter = Meter(len(self.examples), self.progress)
        result.check_gradients(self.model, self.examples, self.objective)
        everything = range(len(self.examples))
        parts = [*in_parts(everything, lambda at: len(self.examples[at]), tokens=PART_TOKENS)]
        with linears(network, run.linears), frozen(network):
            states = run.parts(
                range(len(parts)),
                lambda number: self._part(parts[number]),
                lambda number: meter.advance(len(parts[number])),
                last=True,
            )
            for places, state in zip(parts, states, strict=True):
                totals.add(result.per_example(state), [self.examples[at].document for at in places])
        gradients = result.gradients_result(totals, self.objective).assign_attrs(self.notes)
        importance = result.importance_result(
            totals, self.methods, self.objective, steps=settings.steps
        )
        if self.effect is not None:
            against = correlations(importance, self.effect)
            importance = xr.merge([importance, against], join="exact", combine_attrs="no_conflicts")
        groups = {"gradients": gradients, "importance": importance}
        if why := result.worse_than_guessing(totals, self.objective, self._outputs):
            groups = {name: one.assign_attrs({WITHHELD: why}) for name, one in groups.items()}
        return groups

    @property
    def _outputs(self) -> int:
        """Classes, or tokens of the vocabulary, that the answers are of."""
        if isinstance(self.objective, TaskLoss):
            return self.objective.task.outputs
        head: Any = self.model.network.get_output_embeddings()  # type: ignore[no-untyped-call]
        return int(head.weight.shape[0])

    def _part(self, places: Sequence[int]) -> State:
        """[example of the part, …] by name."""
        state = self._by_batch(places, 1, self._gradients)
        if "attattr" in self.methods:
            steps = self.settings.steps
            with Grown(self.model.network) as grown:
                run = partial(attributions, grown, objective=self.objective, steps=steps)
                state |= self._by_batch(places, steps + 1, run)
        return state

    def _by_batch(
        self, places: Sequence[int], copies: int, run: Callable[[Batch, Sequence[int]], State]
    ) -> State:
        examples = [self.examples[at] for at in places]
        order: list[int] = []
        states: list[State] = []
        for rows in batches(examples, budget=max(1, self.settings.batch_tokens // copies)):
            batch = self.model.batch([examples[row] for row in rows])
            states.append(run(batch, [places[row] for row in rows]))
            order += rows
        back = np.argsort(order)
        return {name: values[back] for name, values in joined(states).items()}

    def _gradients(self, batch: Batch, places: Sequence[int]) -> State:
        shape, network = self.model.shape, self.model.network
        gather = result.GradientSums(batch, layers=shape.layers, heads=shape.heads)
        reading = following(network, gather, shape.names)
        with reading as stream, self.objective.asking(network, places):
            answer: Any = run_network(network, *batch.inputs)
            losses = self.objective.losses(answer.logits, places)
            bad = np.flatnonzero(~np.isfinite(to_float64(losses)))
            if len(bad):
                raise HeadscopeError(
                    f"the loss of {self.examples[places[bad[0]]].id!r} is not finite (NaN or "
                    "infinite); wanted a number: the training may have diverged, or the dtype is "
                    "too narrow: try --dtype float32"
                )
            stream.backward(losses.sum())
        return {**gather.state(), "queries": batch.lengths * 1.0, "loss": to_float64(losses)}
