"""Switches every head and every layer off in turn and scores the task without it.

run = ablate("my-checkpoint", "rte", data="glue", output="run")
run["ablation"]["difference"]
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np
import xarray as xr

from headscope.analyses.examples.measure import capture_maps
from headscope.core.accumulators import REPLICATES
from headscope.core.head_names import Head, head_named
from headscope.core.progress import begin
from headscope.core.results import layer_place, printable
from headscope.core.settings_table import SettingsTable, documented, keywords, settings_of
from headscope.corpus.packing import batches
from headscope.errors import InputError
from headscope.experiments.ablation.effects import Answers, effects
from headscope.experiments.ablation.findings import most_moved
from headscope.experiments.ablation.result import ablation_result
from headscope.model import variants
from headscope.model.linears import linears
from headscope.model.variant_answers import (
    BATCH_TOKENS,
    Way,
    answering,
    choose_way,
    small_batches,
    sweep,
)
from headscope.model.variants import StandIn, Variant
from headscope.run.analysis import Scope
from headscope.run.atlas import Execution
from headscope.run.experiment import ExperimentRequest, in_parts, of_task, run_experiment
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.shard_files import State
from headscope.run.store import Run
from headscope.tasks.predict import EncodedTask, encode
from headscope.tasks.task import Task
from headscope.tasks.task_data import TaskData, TaskExample
from headscope.tasks.task_model import TaskModel
from headscope.tasks.task_request import Loading, TaskFields, TaskRequest, model_and_examples

SHOWN = 4  # examples of which maps are kept
LONGEST = 400  # characters of an example where it is named
PART_TOKENS = 2048  # of the examples whose answers are kept together, so that a run can go on


@dataclass(frozen=True, repr=False)
class AblationSettings(SettingsTable):
    """Settings of an ablation.

    replacement   what a head gives instead: "uniform" attention, "zero" output, or its "mean"
    groups        heads to be off together, each ((layer, head), …) from 0, by the model's own
                  numbers of layers, or their names: ("L4H1", "1.11")
    pairs         also every two of so many heads: those that change the loss most when alone
    max_length    tokens of an example at most
    batch_tokens  tokens of one forward pass, all variants in it included
    replicates    groups of examples at most, for intervals
    seed          of all random draws
    """

    replacement: str = "uniform"
    groups: tuple[tuple[Head | str, ...], ...] = ()
    pairs: int = 0
    max_length: int = 128
    batch_tokens: int = BATCH_TOKENS
    replicates: int = REPLICATES
    seed: int = 0

    def __post_init__(self) -> None:
        if self.replacement not in variants.WAYS:
            raise InputError(
                f"no replacement called {self.replacement!r}; there are {', '.join(variants.WAYS)}"
            )
        if self.pairs == 1 or self.pairs < 0 or self.batch_tokens < 1 or self.replicates < 0:
            raise InputError(
                f"found pairs={self.pairs}, batch_tokens={self.batch_tokens}, replicates="
                f"{self.replicates}; wanted 0 or at least 2 pairs, 1 token, 0 replicates"
            )
        if any(not group for group in self.groups):
            raise InputError("found a group without heads; wanted one head or more in each")


class AblateFields(TaskFields, total=False):
    """The fields of `AblationSettings`, `TaskRequest` and `Loading`, as keywords."""

    replacement: str
    groups: tuple[tuple[tuple[int, int], ...], ...]
    pairs: int
    max_length: int
    batch_tokens: int
    replicates: int
    seed: int


@documented(AblationSettings, TaskRequest, Loading)
def ablate(
    model: TaskModel | str | Path,
    task: TaskData | Task | str,
    *,
    output: str | Path | None = None,
    settings: AblationSettings | None = None,
    execution: Execution | None = None,
    **more: Unpack[AblateFields],
) -> Run:
    """Switches off every head, every layer and the groups that were named, one after the other.

    model      a checkpoint with a head for the task, as `finetune` makes it: a folder, a hub id
    task       a task of GLUE by its name, or a name of your own; or examples that are read already
    output     run folder; an interrupted run of the same spec there goes on. None: in memory
    settings   whole; or its fields as keywords
    execution  its progress is called with examples done, and all; with pairs each is done twice
    raises     InputError and its kinds before anything is computed
    """
    own, asked, loading = keywords(more, AblationSettings, TaskRequest, Loading)
    settings = settings_of(AblationSettings, settings, own)
    execution = execution or Execution()
    model, data = model_and_examples(
        model, task, TaskRequest(**asked), Loading(**loading), seed=settings.seed
    )
    shape = model.model.shape
    named = tuple(tuple(map(head_named, group)) for group in settings.groups)
    settings = replace(settings, groups=named)
    groups = [
        frozenset((layer_place(layer, shape.numbers), head) for layer, head in group)
        for group in named
    ]
    variants.check(groups, layers=shape.layers, heads=shape.heads)
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
            stand_in = self._stand_in()
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

    def _stand_in(self) -> StandIn:
        if self.settings.replacement != "mean":
            return StandIn(self.settings.replacement)
        model, examples = self.model.model, self.encoded.examples
        shown = (
            model.batch([examples[at] for at in places])
            for places in batches(examples, budget=BATCH_TOKENS)
        )
        return StandIn("mean", variants.mean_mixtures(model.network, shown))

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
        asked: Sequence[Variant],
        stand_in: StandIn,
        way: Way,
        *,
        first: int,
        last: bool,
    ) -> Answers:
        """[variant + 1, example, output] kept part by part, numbered from `first`."""
        model, examples, settings = self.model.model, self.encoded.examples, self.settings
        outputs = self.model.task.outputs
        logits = np.empty((len(asked) + 1, len(examples), outputs), np.float32)
        with answering(model.network, way, stand_in, batch_tokens=settings.batch_tokens) as answers:
            small = small_batches(examples, asked, batch_tokens=settings.batch_tokens)
            parts = in_parts(
                small, lambda places: sum(len(examples[at]) for at in places), tokens=PART_TOKENS
            )
            some = dict(enumerate(parts, start=first))
            places = {number: [at for one in each for at in one] for number, each in some.items()}

            def make(number: int) -> State:
                told = [sweep(model, examples, at, asked, answers) for at in some[number]]
                return {"answers": np.concatenate(told, axis=1)}  # [variant + 1, place, output]

            states = run.parts(
                places, make, lambda number: self.meter.advance(len(places[number])), last=last
            )
            for at, state in zip(places.values(), states, strict=True):
                logits[:, at] = state["answers"]
        return logits


def _text(row: TaskExample) -> str:
    both = row.text_a if row.text_b is None else f"{row.text_a} / {row.text_b}"
    return printable(" ".join(both.split()))[:LONGEST]


def note_of(run: Mapping[str, xr.Dataset] | Run) -> str:
    """How the variants of a run were computed; '' for the usual way."""
    attrs = run["ablation"].attrs
    if attrs["way"] == "shared":
        return ""
    return f"computed by the way {attrs['way']!r}: {attrs['way_reason']}"
