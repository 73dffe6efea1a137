"""Computes how much a loss depends on each head, by its gradients.

run = importance("my-checkpoint", "rte", data="glue", output="run")
run["importance"]["head_importance"].sel(variant="michel")

run = importance("bert-base-uncased", corpus="wiki.txt")
run["gradients"]["magnitude"].sel(category="sep")
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import xarray as xr

from headscope.core.accumulators import REPLICATES
from headscope.core.results import printable
from headscope.core.settings_table import SettingsTable, documented, keywords, settings_of
from headscope.corpus import Corpus, CorpusLike, corpus_of
from headscope.corpus.document import Example
from headscope.corpus.packing import batches
from headscope.errors import HeadscopeError, InputError
from headscope.experiments.importance import result
from headscope.experiments.importance.attribution import Grown, attributions
from headscope.experiments.importance.correlation import Effect, correlations, effect_of
from headscope.experiments.importance.gradients import following, frozen
from headscope.experiments.importance.task_loss import Objective, TaskLoss
from headscope.model import language_model as objectives
from headscope.model.batch import Batch, to_float64
from headscope.model.language_model import LanguageModel, load_language_model
from headscope.model.linears import linears
from headscope.model.model import Model, run_network
from headscope.model.variant_answers import BATCH_TOKENS
from headscope.run.atlas import Execution
from headscope.run.experiment import ExperimentRequest, digest_of, in_parts, of_task, run_experiment
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.plan import encoder_for
from headscope.run.settings import Settings as CorpusSettings
from headscope.run.shard_files import State
from headscope.run.store import Run, open_run
from headscope.tasks.predict import MAX_LENGTH, encode
from headscope.tasks.task import Task
from headscope.tasks.task_data import TaskData
from headscope.tasks.task_model import TaskModel
from headscope.tasks.task_request import Loading, TaskFields, TaskRequest, model_and_examples

STEPS = 5  # of AttAttr's integral: errs by 1e-4 of a probability on fine-tuned models
QUICK = tuple(name for name in result.METHODS if name != "attattr")
PART_TOKENS = 4096  # of the examples whose numbers are kept together, so that a run can go on


@dataclass(frozen=True, repr=False)
class ImportanceSettings(SettingsTable):
    """Settings of a run of importance.

    methods       of result.METHODS; None: all of them for a task, and without AttAttr for text,
                  where a step costs a pass through the whole vocabulary
    steps         of AttAttr's integral
    max_length    tokens of an input at most; None: 128 for a task, and as `atlas` for text
    long          what to do with longer text, as `atlas`; of a task they are cut, and counted
    segment_ids   of text, as `atlas`
    limit         examples of a task, drawn by the seed, or the first documents of a corpus
    batch_tokens  tokens of one forward pass, copies of an example included
    replicates    groups of examples at most, for intervals
    seed          of masks and draws
    """

    methods: tuple[str, ...] | None = None
    steps: int = STEPS
    max_length: int | None = None
    long: str = "window"
    segment_ids: str = "auto"
    limit: int | None = None
    batch_tokens: int = BATCH_TOKENS
    replicates: int = REPLICATES
    seed: int = 0

    def __post_init__(self) -> None:
        unknown = [name for name in self.methods or () if name not in result.METHODS]
        if unknown or self.methods == ():
            given = ", ".join(self.methods or ()) or "none"
            raise InputError(f"methods are {given}; wanted some of {', '.join(result.METHODS)}")
        if self.steps < 1 or self.batch_tokens < 1 or self.replicates < 0:
            raise InputError(
                f"found steps={self.steps}, batch_tokens={self.batch_tokens}, replicates="
                f"{self.replicates}; wanted at least 1, 1 and 0"
            )


class ImportanceFields(TaskFields, total=False):
    """The fields of `ImportanceSettings`, `TaskRequest` and `Loading`, as keywords."""

    methods: tuple[str, ...] | None
    steps: int
    max_length: int | None
    long: str
    segment_ids: str
    batch_tokens: int
    replicates: int
    seed: int


@documented(ImportanceSettings, TaskRequest, Loading)
def importance(
    model: TaskModel | LanguageModel | str | Path,
    task: TaskData | Task | str | None = None,
    *,
    corpus: CorpusLike | None = None,
    output: str | Path | None = None,
    settings: ImportanceSettings | None = None,
    ablation: Run | str | Path | None = None,
    execution: Execution | None = None,
    **more: Unpack[ImportanceFields],
) -> Run:
    """Computes how much a loss depends on each head: that of a task, or of a language model.

    model     a checkpoint with a head for the task, or with its language-model head: a folder, a
              hub id
    task      a task of GLUE by its name, or a name of your own; or examples that are read already
    corpus    instead: texts, files, a column of a table, or a corpus, see `corpus_of`
    output    run folder; an interrupted run of the same spec there goes on. None: in memory
    settings  whole; or its fields as keywords
    ablation  a run of `ablate` of the same checkpoint and task, or its folder, to hold the
              importances against
    execution  its progress is called with inputs done, and all
    raises    InputError and its kinds before anything is computed
    """
    if (task is None) == (corpus is None):
        found = "neither a task nor" if task is None else "a task and"
        raise InputError(f"found {found} a corpus; wanted importance(model, task) or (corpus=…)")
    own, asked, loading = keywords(more, ImportanceSettings, TaskRequest, Loading)
    settings, load = settings_of(ImportanceSettings, settings, own), Loading(**loading)
    if corpus is not None and (set(asked) - {"limit"} or ablation is not None):
        given = sorted({*asked, *(["ablation"] if ablation is not None else [])} - {"limit"})
        raise InputError(f"found a corpus and {', '.join(given)}, which a task has")
    if corpus is not None:
        if isinstance(model, TaskModel):
            raise InputError("found a model with a head for a task; wanted a language model")
        return importance_to_text(
            model,
            corpus_of(corpus),
            output=output,
            settings=settings,
            execution=execution,
            loading=load,
        )
    if task is None or isinstance(model, LanguageModel):
        raise InputError("found a language model and a task; wanted importance(model, corpus=…)")
    request = TaskRequest(**{"limit": settings.limit, **asked})
    model, data = model_and_examples(model, task, request, load, seed=settings.seed)
    against = open_run(ablation) if isinstance(ablation, str | Path) else ablation
    settings = replace(settings, limit=None)
    return _to_task(model, data, settings, output=output, ablation=against, execution=execution)


def _to_task(
    model: TaskModel,
    data: TaskData,
    settings: ImportanceSettings,
    *,
    output: str | Path | None,
    ablation: Run | None,
    execution: Execution | None,
) -> Run:
    execution, length = execution or Execution(), settings.max_length or MAX_LENGTH
    settings = replace(settings, methods=settings.methods or result.METHODS, max_length=length)
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
    model: LanguageModel | str | Path,
    corpus: Corpus,
    *,
    output: str | Path | None = None,
    settings: ImportanceSettings | None = None,
    execution: Execution | None = None,
    loading: Loading | None = None,
) -> Run:
    """Computes how much the loss of a language model depends on each head.

    Otherwise as `importance`. Raises CorpusError where nothing can be asked.
    """
    settings, execution = settings or ImportanceSettings(), execution or Execution()
    settings = replace(settings, methods=settings.methods or QUICK)
    if not isinstance(model, LanguageModel):
        model = load_language_model(model, **asdict(loading or Loading()))
    reading = CorpusSettings(
        max_length=settings.max_length,
        long=settings.long,
        segment_ids=settings.segment_ids,
        seed=settings.seed,
    )
    encoder = encoder_for(model.model, reading)
    examples = [e for document in islice(corpus, settings.limit) for e in encoder.encode(document)]
    is_masked, counts = model.kind == "masked", encoder.counts
    told = (
        objectives.masked(model.model, examples, seed=settings.seed)
        if is_masked
        else objectives.causal(examples)
    )
    notes = {"windowed": counts.windowed, "skipped": counts.skipped, "left_out": told.left_out}
    work = ImportanceRun(
        model.model, told.examples, told.objective, settings, execution.progress, notes=notes
    )
    return work.run(corpus.describe(), output, execution, {"asked": told.objective.digest}, cut=0)


@dataclass
class ImportanceRun:
    """The computation behind `importance`.

    effect  what the importances are held against; None: nothing
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
        """Of METHODS, those asked for."""
        return self.settings.methods or result.METHODS

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
        found = result.importance_result(totals, self.methods, self.objective, steps=settings.steps)
        if self.effect is not None:
            against = correlations(found, self.effect)
            found = xr.merge([found, against], join="exact", combine_attrs="no_conflicts")
        return {"gradients": gradients, "importance": found}

    def _part(self, places: Sequence[int]) -> State:
        """[example of the part, …] by name."""
        found = self._by_batch(places, 1, self._gradients)
        if "attattr" in self.methods:
            steps = self.settings.steps
            with Grown(self.model.network) as grown:
                run = partial(attributions, grown, objective=self.objective, steps=steps)
                found |= self._by_batch(places, steps + 1, run)
        return found

    def _by_batch(
        self, places: Sequence[int], copies: int, run: Callable[[Batch, Sequence[int]], State]
    ) -> State:
        examples = [self.examples[at] for at in places]
        order: list[int] = []
        given: list[State] = []
        for rows in batches(examples, budget=max(1, self.settings.batch_tokens // copies)):
            batch = self.model.batch([examples[row] for row in rows])
            given.append(run(batch, [places[row] for row in rows]))
            order += rows
        back = np.argsort(order)
        return {name: np.concatenate([one[name] for one in given])[back] for name in given[0]}

    def _gradients(self, batch: Batch, places: Sequence[int]) -> State:
        shape, network = self.model.shape, self.model.network
        gather = result.GradientSums(batch, layers=shape.layers, heads=shape.heads)
        with following(network, gather) as stream, self.objective.asking(network, places):
            answer: Any = run_network(network, *batch.inputs)
            losses = self.objective.losses(answer.logits, places)
            bad = np.flatnonzero(~np.isfinite(to_float64(losses)))
            if len(bad):
                raise HeadscopeError(
                    f"the loss of {self.examples[places[bad[0]]].id!r} is not finite (NaN or "
                    "infinite); wanted a number: the training may have diverged, or the numbers "
                    "are too small a type: try --dtype float32"
                )
            stream.backward(losses.sum())
        return {**gather.state(), "queries": batch.lengths * 1.0, "loss": to_float64(losses)}
