"""Computes a study: each training with its comparison and ablation is one part of the run.

Parts are kept as they are finished, so that a study that was stopped goes on, and processes can
share one. A training that was stopped goes on from its own last state, see `teach`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from headscope.core.accumulators import Float64
from headscope.core.progress import Advance, begin
from headscope.core.whole_file import sha256_of
from headscope.corpus.document import Example
from headscope.errors import InputError
from headscope.experiments.ablation.ablating import answers_without
from headscope.experiments.ablation.effects import Answers, effects
from headscope.experiments.ablation.settings import REPLACEMENTS
from headscope.experiments.comparison.comparing import comparison_run
from headscope.experiments.comparison.paired_inputs import task_corpus
from headscope.experiments.finetune.settings import TrainingSchedule
from headscope.experiments.finetune.teaching import Record, check_installed, teach
from headscope.experiments.study import features
from headscope.experiments.study.gains import best_head
from headscope.experiments.study.result import MEASURES, StudyParts, study_result
from headscope.experiments.study.terms import TOGETHER
from headscope.experiments.study.trainings import (
    FROM_SCRATCH,
    StudyTraining,
)
from headscope.model import variants
from headscope.model.model import Model, load
from headscope.run.execution import Execution
from headscope.run.experiment import ExperimentRequest, of_task, run_experiment
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.settings import Settings
from headscope.run.shard_files import State
from headscope.run.store import Run
from headscope.tasks.metrics import learned
from headscope.tasks.predict import EncodedTask, encode, outputs
from headscope.tasks.task_data import TaskData
from headscope.tasks.task_model import TaskModel, load_for_task
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.experiments.study.study_request import StudyRequest


@dataclass(frozen=True)
class StudyPlan:
    """A request whose examples are read.

    place     hub id or folder of the model
    data      by the name of a task: examples to learn from, and to be scored on
    schedule  the numbers of all variants; see `StudyTraining.schedule`
    request   everything else
    """

    place: str | Path
    loading: Loading
    data: dict[str, tuple[TaskData, TaskData]]
    trainings: list[StudyTraining]
    schedule: TrainingSchedule
    request: StudyRequest
    output: Path


def study_run(plan: StudyPlan, *, execution: Execution | None) -> Run:
    """The run of a plan; raises InputError for a model that cannot be trained so."""
    check_installed()
    execution = execution or Execution()
    model = load(plan.place, **asdict(plan.loading))
    layers = model.shape.depth
    if plan.schedule.freeze > layers:
        raise InputError(
            f"found freeze={plan.schedule.freeze}; wanted at most {layers}, the layers of the model"
        )
    frozen = plan.schedule.freeze or max(layers // 2, 1)
    plan = replace(plan, schedule=replace(plan.schedule, freeze=frozen))
    encoded = {
        name: encode(TaskModel(model, dev.task), dev, max_length=plan.request.max_length)
        for name, (_, dev) in plan.data.items()
    }
    meter = Meter(len(plan.trainings), execution.progress)
    work = _StudyRun(plan, model, encoded, meter)
    request = ExperimentRequest(
        "study",
        model,
        corpus=_corpus(plan),
        examples=[_of(name, one) for name, task in encoded.items() for one in task.examples],
        settings=_settings(plan),
        seed=plan.request.seed,
        replicates=plan.request.replicates,
        cut=sum(task.cut for task in encoded.values()),
        batch_tokens=plan.request.batch_tokens,
        divided=True,
    )
    return run_experiment(request, work.compute, output=plan.output, execution=execution)


def _of(task: str, example: Example) -> Example:
    return replace(example, id=f"{task} {example.id}", document=f"{task} {example.document}")


def _settings(plan: StudyPlan) -> dict[str, Any]:
    request = plan.request
    schedule = {key: one for key, one in asdict(plan.schedule).items() if key != "seed"}
    return {
        **schedule,
        "variants": list(request.variants),
        "tasks": list(plan.data),
        "seeds": request.seeds,
        "replacement": request.replacement,
        "max_length": request.max_length,
        "train_rows": {name: train.rows_sha256 for name, (train, _) in plan.data.items()},
    }


def _corpus(plan: StudyPlan) -> dict[str, Any]:
    of_dev = {name: of_task(dev) for name, (_, dev) in plan.data.items()}
    return {
        "kind": f"tasks {', '.join(of_dev)}",
        "files": [file for one in of_dev.values() for file in one["files"]],
        "counted": "examples",
        "rows_sha256": sha256_of(f"{name}\x1f{one['rows_sha256']}" for name, one in of_dev.items()),
        "notes": [f"{name}: {note}" for name, one in of_dev.items() for note in one["notes"]],
    }


@dataclass
class _StudyRun:
    plan: StudyPlan
    model: Model
    encoded: dict[str, EncodedTask]
    meter: Meter

    def compute(self, run: RunInProgress) -> dict[str, xr.Dataset]:
        """The group `study`."""
        plan, request, shape = self.plan, self.plan.request, self.model.shape
        states = run.parts(
            range(len(plan.trainings)),
            lambda number: self._part(plan.trainings[number], run.linears),
            lambda _: self.meter.advance(1),
            last=True,
        )
        parts = StudyParts(
            dict(zip(plan.trainings, states, strict=True)),
            {name: dev.task for name, (_, dev) in plan.data.items()},
            {name: one.labels for name, one in self.encoded.items()},
            shape.layers,
            shape.heads,
        )
        begin("intervals")
        about = {"replacement": request.replacement, "decay": str(plan.schedule.layer_decay)}
        about["frozen"] = str(plan.schedule.freeze)
        return {
            "study": study_result(
                parts,
                replicates=request.replicates,
                replacement=request.replacement,
                seed=request.seed,
            ).assign_attrs(about)
        }

    def _start(self, one: StudyTraining) -> TaskModel:
        """The model before the training: with a new head, or all weights drawn by the seed."""
        task = self.plan.data[one.task][1].task
        return load_for_task(
            self.plan.place,
            task,
            new_head=True,
            random_init=one.variant == FROM_SCRATCH,
            seed=one.seed,
            **asdict(self.plan.loading),
        )

    def _part(self, one: StudyTraining, linear_maps: str) -> State:
        plan = self.plan
        train, dev = plan.data[one.task]
        place = one.place(plan.output)
        record = teach(
            self._start(one),
            one.examples(train),
            dev,
            place,
            max_length=plan.request.max_length,
            progress=_Steps(one.name),
            **asdict(one.schedule(plan.schedule)),
        )
        loading = asdict(plan.loading) | {"revision": None}
        tuned = load_for_task(place, dev.task, **loading)
        state = _scores(record)
        state |= self._changes(self._start(one).model, tuned.model, dev, linear_maps)
        return state | self._answers(one, tuned, linear_maps)

    def _changes(self, base: Model, tuned: Model, dev: TaskData, linear_maps: str) -> State:
        """What `compare` says of the model before and after a training."""
        request = self.plan.request
        settings = Settings(
            analyses=features.ANALYSES,  # maps are compared in any case
            max_length=request.max_length,
            replicates=request.replicates,
            seed=request.seed,
        )
        corpus, settings = task_corpus(base, tuned, dev, settings)
        run = comparison_run(
            base,
            tuned,
            corpus,
            settings,
            Execution(linears=linear_maps),  # type: ignore[arg-type]
            output=None,
            padded_to=None,
            control="none",
        )
        similar, layers = run["similarity"], self.model.shape.layers
        ends = [similar[f"map_change{end}"].values for end in ("", "_ci_low", "_ci_high")]
        cosine = [similar[f"layer_cosine{end}"].values for end in ("", "_ci_high", "_ci_low")]
        nothing = np.full(layers, np.nan)
        return {
            **features.feature_state(run["change"]),
            "map_change": np.stack(ends),  # [end, layer, head]
            "layer_map_change": 1 - np.stack(cosine),  # [end, layer]
            # Of a training without a record some are not there.
            **{
                name: similar[name].values if name in similar else nothing  # [layer]
                for name in MEASURES
            },
            **{
                name: np.array([float(similar[name]) if name in similar else np.nan])
                for name in TOGETHER
            },
        }

    def _answers(self, one: StudyTraining, tuned: TaskModel, linear_maps: str) -> State:
        """Answers of the whole model; also without each head if the task was learned."""
        encoded, request, shape = self.encoded[one.task], self.plan.request, self.model.shape
        whole: Float64 = outputs(tuned, encoded)
        if not learned(tuned.task, encoded.labels, whole):
            return {"answers": whole.reshape(1, len(whole), -1).astype(np.float32)}
        advance = begin(f"switch off heads, {one.name}")
        heads = variants.single_heads(shape.layers, shape.heads)

        def without(switched: list[variants.Variant], replacement: str) -> Answers:
            return answers_without(
                tuned,
                encoded,
                switched,
                replacement=replacement,
                batch_tokens=request.batch_tokens,
                linear_maps=linear_maps,
            )

        answers = without(heads, request.replacement)
        advance(1)
        alone = effects(tuned.task, encoded.labels, answers, replicates=0)
        best = best_head(alone.difference.value, alone.loss_difference.value)
        others = [
            without([heads[best]], name)[1:] for name in REPLACEMENTS if name != request.replacement
        ]
        return {"answers": answers, "others": np.concatenate(others)}  # [replacement, example, …]


def _scores(record: Record) -> State:
    """Scores before and after a training with their ends, and that of a constant answer."""
    metric = record["task"]["metrics"][0]
    rows = [
        [record["metrics"][when][key] for key in (metric, "ci_low", "ci_high")]
        for when in ("before", "after")
    ]
    return {"scores": np.array(rows, np.float64), "chance": np.array([float(record["chance"])])}


class _Steps:
    """Shows the steps of one training."""

    def __init__(self, name: str) -> None:
        self.name, self.done = name, 0
        self.advance: Advance | None = None

    def __call__(self, done: int, total: int) -> None:
        """Called by the training with the steps done, and all."""
        if self.advance is None:
            self.advance = begin(f"train {self.name}", total, "steps", done - 1)
            self.done = done - 1
        self.advance(done - self.done)
        self.done = done
