"""Computes what a task loses without each head and each layer; `ablate` reads the request."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import xarray as xr

from headscope.analyses.examples.measure import capture_maps
from headscope.core.display import printable
from headscope.core.head_names import head_named
from headscope.core.progress import begin
from headscope.corpus.document import Example
from headscope.corpus.packing import batches
from headscope.experiments.ablation.effects import Answers, effects
from headscope.experiments.ablation.findings import most_moved
from headscope.experiments.ablation.result import ablation_result
from headscope.experiments.ablation.settings import AblationSettings
from headscope.model import variants
from headscope.model.linears import linears
from headscope.model.model import Model, evaluating
from headscope.model.request import BATCH_TOKENS
from headscope.model.variant_answers import (
    Way,
    answering,
    choose_way,
    small_batches,
    sweep,
)
from headscope.model.variants import StandIn, Variant
from headscope.run.analysis import Scope
from headscope.run.execution import Execution
from headscope.run.experiment import ExperimentRequest, in_parts, of_task, run_experiment
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.shard_files import State
from headscope.run.store import Run
from headscope.tasks.predict import EncodedTask, encode
from headscope.tasks.task_data import TaskData, TaskExample
from headscope.tasks.task_model import TaskModel

SHOWN = 4  # examples of which maps are kept
LONGEST = 400  # characters of an example where it is named
PART_TOKENS = 2048  # of the examples whose answers are kept together, so that a run can go on


def ablation_run(
    model: TaskModel,
    data: TaskData,
    settings: AblationSettings,
    *,
    output: str | Path | None = None,
    execution: Execution | None = None,
) -> Run:
    """Switches off every head, every layer and the groups of the settings, one after the other."""
    execution = execution or Execution()
    shape, names = model.model.shape, model.model.shape.names
    named = tuple(tuple(map(head_named, group)) for group in settings.groups)
    settings = replace(settings, groups=named)
    groups = [frozenset((names.place(layer), head) for layer, head in group) for group in named]
    variants.check(groups, names, layers=shape.layers, heads=shape.heads)
    encoded = encode(model, data, max_length=settings.max_length)
    meter = Meter((2 if settings.pairs else 1) * len(encoded.examples), execution.progress)
    work = _AblationRun(model, encoded, data, settings, groups, meter)
    request = ExperimentRequest(
        "ablate",
        model.model,
        corpus=of_task(data),
        examples=encoded.examples,
        settings=asdict(settings),
        seed=settings.seed,
        replicates=settings.replicates,
        cut=encoded.cut,
        batch_tokens=settings.batch_tokens,
        divided=True,
    )
    return run_experiment(request, work.compute, output=output, execution=execution)


@dataclass
class _AblationRun:
    model: TaskModel
    encoded: EncodedTask
    data: TaskData
    settings: AblationSettings
    groups: list[Variant]
    meter: Meter

    def compute(self, run: RunInProgress) -> dict[str, xr.Dataset]:
        """The group `ablation`, and `examples`: maps of those whose answers change most."""
        model, settings = self.model.model, self.settings
        shape = model.shape
        alone = variants.single_heads(shape.layers, shape.heads)
        alone += variants.whole_layers(shape.layers, shape.heads)
        with linears(model.network, run.linears):
            stand_in = stand_in_of(model, self.encoded.examples, settings.replacement)
            way = choose_way(model, self.encoded.examples, [*alone, *self.groups], stand_in)
            answers = self._answers(
                run, [*alone, *self.groups], stand_in, way, first=0, last=not settings.pairs
            )
            if settings.pairs:
                both = self._pairs(answers[: len(alone) + 1])
                more = self._answers(run, both, stand_in, way, first=10_000, last=True)
                answers, self.groups = np.concatenate([answers, more[1:]]), self.groups + both
            begin("intervals")
            ablation = ablation_result(
                self.model.task,
                self.encoded.labels,
                answers,
                layers=shape.layers,
                heads=shape.heads,
                names=shape.names,
                groups=self.groups,
                ids=[e.id for e in self.encoded.examples],
                texts=[_text(row) for row in self.data.rows],
                replicates=settings.replicates,
                seed=settings.seed,
                about={
                    "replacement": settings.replacement,
                    "way": way.name,
                    "way_reason": way.reason,
                },
            )
            maps = self._maps(ablation)
        return {"ablation": ablation} | ({} if maps is None else {"examples": maps})

    def _maps(self, dataset: xr.Dataset) -> xr.Dataset | None:
        """How the whole model attends where answers hang on most heads; None where on none."""
        model, shape = self.model.model, self.model.model.shape
        few = [self.encoded.examples[at] for at in most_moved(dataset)[:SHOWN]]
        if not few:
            return None
        scope = Scope(shape.layers, shape.heads, special_tokens=model.special_tokens)
        return capture_maps(model, few, scope).assign_attrs(chosen="moved")

    def _pairs(self, answers: Answers) -> list[Variant]:
        """Every two of the heads that change the loss most; answers of the single heads first."""
        shape = self.model.model.shape
        single = shape.layers * shape.heads
        alone = effects(self.model.task, self.encoded.labels, answers[: single + 1], replicates=0)
        order = np.argsort(-np.abs(alone.loss_difference.value), kind="stable")
        most = [divmod(int(at), shape.heads) for at in order[: self.settings.pairs]]
        there = set(self.groups)
        return [pair for pair in variants.pairs(sorted(most)) if pair not in there]

    def _answers(
        self,
        run: RunInProgress,
        switched: Sequence[Variant],
        stand_in: StandIn,
        way: Way,
        *,
        first: int,
        last: bool,
    ) -> Answers:
        """[variant + 1, example, output] kept part by part, numbered from `first`."""
        model, examples, settings = self.model.model, self.encoded.examples, self.settings
        outputs = self.model.task.outputs
        logits = np.empty((len(switched) + 1, len(examples), outputs), np.float32)
        with answering(model.network, way, stand_in, batch_tokens=settings.batch_tokens) as answers:
            small = small_batches(examples, switched, batch_tokens=settings.batch_tokens)
            parts = in_parts(
                small, lambda places: sum(len(examples[at]) for at in places), tokens=PART_TOKENS
            )
            some = dict(enumerate(parts, start=first))
            places = {number: [at for one in each for at in one] for number, each in some.items()}

            def make(number: int) -> State:
                answered = [sweep(model, examples, at, switched, answers) for at in some[number]]
                return {"answers": np.concatenate(answered, axis=1)}  # [variant + 1, place, output]

            states = run.parts(
                places, make, lambda number: self.meter.advance(len(places[number])), last=last
            )
            for at, state in zip(places.values(), states, strict=True):
                logits[:, at] = state["answers"]
        return logits


def stand_in_of(model: Model, examples: Sequence[Example], replacement: str) -> StandIn:
    """What a head gives instead; its mean output is taken over these examples."""
    if replacement != "mean":
        return StandIn(replacement)
    shown = (
        model.batch([examples[at] for at in places])
        for places in batches(examples, budget=BATCH_TOKENS)
    )
    return StandIn("mean", variants.mean_mixtures(model.network, shown))


def answers_without(
    model: TaskModel,
    encoded: EncodedTask,
    switched: Sequence[Variant],
    *,
    replacement: str,
    batch_tokens: int = BATCH_TOKENS,
    linear_maps: str = "stock",
) -> Answers:
    """[variant + 1, example, output] logits of the whole model, then of each variant; no parts.

    linear_maps  "onednn" or "stock"
    """
    examples, network = encoded.examples, model.model.network
    logits = np.empty((len(switched) + 1, len(examples), model.task.outputs), np.float32)
    with evaluating(network), linears(network, linear_maps):
        stand_in = stand_in_of(model.model, examples, replacement)
        way = choose_way(model.model, examples, switched, stand_in)
        with answering(network, way, stand_in, batch_tokens=batch_tokens) as answers:
            for places in small_batches(examples, switched, batch_tokens=batch_tokens):
                logits[:, places] = sweep(model.model, examples, places, switched, answers)
    return logits


def _text(row: TaskExample) -> str:
    both = row.text_a if row.text_b is None else f"{row.text_a} / {row.text_b}"
    return printable(" ".join(both.split()))[:LONGEST]
