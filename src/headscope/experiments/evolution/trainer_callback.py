"""A callback of transformers' Trainer that follows the heads of a model while it learns.

    trainer = Trainer(model, arguments, train_dataset=inputs, processing_class=tokenizer)
    trainer.add_callback(hs.HeadscopeCallback(trainer, output="heads"))
    trainer.train()

The run folder gets the runs of every measured step, and at the end results and report, as of
`headscope evolve`. A few numbers go to `trainer.log`, and so to whatever the Trainer reports to.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import TrainerCallback

from headscope.claims.control import CONTROL
from headscope.core.head_names import names_of
from headscope.core.results import derived_once
from headscope.corpus import CorpusLike, corpus_of
from headscope.errors import HeadscopeError, InputError, RunStopped, one_line
from headscope.experiments.evolution.collected import (
    chosen_measures,
    labels_of,
    metrics_of,
    with_controls,
)
from headscope.experiments.evolution.evolve import with_analyses
from headscope.experiments.evolution.evolving import EvolveJob, collect, evolution_in_progress
from headscope.experiments.evolution.measuring import measured_steps, step_folders, trees_of
from headscope.experiments.evolution.settings import Followed
from headscope.model.language_model import CAUSAL, LanguageModel
from headscope.model.model import Model, load
from headscope.run.control import NONE, RANDOM
from headscope.run.execution import Execution
from headscope.run.settings import Settings
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    import xarray as xr
    from transformers import PreTrainedModel, Trainer, TrainerControl, TrainerState
    from transformers import TrainingArguments as Arguments

LOGGER = logging.getLogger("headscope")
POINTS = 40  # ours: measured steps of a training, where they cost little enough
MOST_COST = 0.04  # ours: share of the training time; of 5 % the rest is for what varies
PREFIX = "headscope"
COLLECTED = "headscope evolve {}"  # how a training that was killed is collected
_STRANGE = re.compile(r"[^0-9A-Za-z_./ -]")
WRAPPED = ("forward", "_original_forward")  # by accelerate
SPLIT = {"is_fsdp_enabled": "FSDP", "is_deepspeed_enabled": "DeepSpeed"}
FAULTS = (HeadscopeError, RuntimeError, ValueError, TypeError, OSError, ArithmeticError)


class HeadscopeCallback(TrainerCallback):
    """Follows every head of a model while a Trainer trains it.

    trainer   whose model it is; its `processing_class` is the tokenizer unless one is named, and
              its `log` gets the numbers
    corpus    what is read at every measured step, as for `atlas`; None: decoders read made inputs
              alone, encoders the bundled corpus
    output    run folder, which a resumed training goes on with
    every     steps between two measurements; None: a fortieth of the training, or a power of two
              times that, so that they cost about 4 % of the training's time where it takes minutes
    follow    numbers per head that are logged and drawn, as `evolve`; None: a few usual ones
    log       "summary": of each number the largest and the mean head, and how many heads have each
              label; "heads": also each head; "none"
    control   "random": untrained networks are read at the first and at the last step; "none"
    report    whether tables, figures and report.html are written at the end
    settings  of the analyses; more: fields of `Followed`: sequences, length
    raises    InputError or ModelError before the training begins: a model that cannot be read, no
              tokenizer, a model that is split over devices
    """

    def __init__(
        self,
        trainer: Trainer,
        corpus: CorpusLike | None = None,
        *,
        output: str | Path = "evolve",
        every: int | None = None,
        follow: Sequence[str] | None = None,
        log: str = "summary",
        control: str = RANDOM,
        report: bool = True,
        tokenizer: Any = None,
        settings: Settings | None = None,
        **more: Any,
    ) -> None:
        if every is not None and every < 1:
            raise InputError(f"every is {every!r}; wanted 1 step or more, or None")
        if log not in ("summary", "heads", "none"):
            raise InputError(f"log is {log!r}; wanted 'summary', 'heads' or 'none'")
        if control not in (RANDOM, NONE):
            raise InputError(f"control is {control!r}; wanted {RANDOM!r} or {NONE!r}")
        self.trainer, self.every, self.log, self.report = trainer, every, log, report
        self.tokenizer = tokenizer or getattr(trainer, "processing_class", None)
        self.job = EvolveJob(
            Path(output),
            None if corpus is None else corpus_of(corpus),
            with_analyses(settings or Settings()),
            Followed(follow=None if follow is None else tuple(follow), **more),
            Execution(linears="stock", command=COLLECTED.format(output).split()),
            control,
            Loading(),
        )
        self.progress = Progress()
        self.first: Sequence[xr.DataTree] | None = None  # of the first measured step
        _refuse_split(trainer)
        with as_it_is(trainer.model) as network:
            self._model(network)

    # --- what the Trainer calls -----------------------------------------------------------------

    def on_train_begin(
        self, args: Arguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Begin the run folder, or go on with it, and measure the first step."""
        if not state.is_world_process_zero:
            return
        with evolution_in_progress(self.job, {"every": self.every}) as run:
            every = self.every or run.manifest.get("every")
        base = max(1, state.max_steps // POINTS)
        self.progress = Progress(time.monotonic(), state.global_step, base, every)
        known = step_folders(self.job.folder, state.global_step)
        if self.progress.is_due(state.global_step) and not (state.global_step and known):
            self._measure(state, control, self.job.control, begins=True)

    def on_step_end(
        self, args: Arguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Measure a step that is due, and the last one."""
        if not state.is_world_process_zero:
            return
        ends = state.global_step >= state.max_steps or control.should_training_stop
        if ends or self.progress.is_due(state.global_step):
            self._tolerant(state, control, self.job.control if ends else NONE)
            if self.progress.every is None and not ends:
                self._choose_interval(state)

    def on_train_end(
        self, args: Arguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Write results and report; measure the last step of a training that ended early."""
        if not state.is_world_process_zero:
            return
        if self.progress.last != state.global_step and not args.load_best_model_at_end:
            self._tolerant(state, None, self.job.control)
        try:
            with evolution_in_progress(self.job) as run:
                finished = collect(run, self.job.followed.follow, self.progress.notes)
            if self.report:
                finished.report()
        except FAULTS as error:
            again = COLLECTED.format(self.job.folder)
            LOGGER.warning("heads were not collected (%s); again: %s", one_line(error), again)

    # --- measuring ------------------------------------------------------------------------------

    def _choose_interval(self, state: TrainerState) -> None:
        """Fix the interval after the second measurement; a resumed training keeps it."""
        now = time.monotonic()
        every = self.progress.interval(state.global_step, state.max_steps, now)
        self.progress.every = every
        with evolution_in_progress(self.job) as run:
            run.manifest["every"] = every
            run.save_manifest()

    def _tolerant(
        self, state: TrainerState, control: TrainerControl | None, held_against: str
    ) -> None:
        """Measure; what goes wrong is noted, and the training goes on."""
        try:
            self._measure(state, control, held_against)
        except RunStopped as error:
            raise KeyboardInterrupt from error
        except FAULTS as error:
            note = f"step {state.global_step} was not measured: {one_line(error)}"
            self.progress.notes.append(note)
            LOGGER.warning("%s; the training goes on", note)

    def _measure(
        self,
        state: TrainerState,
        control: TrainerControl | None,
        held_against: str,
        *,
        begins: bool = False,
    ) -> None:
        """Measure the model as it is now, and log it unless the trackers have ended their runs.

        begins  the folder must not hold this step of another training
        """
        start, step = time.monotonic(), state.global_step
        with as_it_is(self.trainer.model) as network:
            model = self._model(network)
            measurement = self.job.measurement(model)
            runs = measurement.of(model, step, control=held_against, overwrite=not begins)
        with evolution_in_progress(self.job) as run:
            run.manifest["steps"][str(step)] = "in training"
            run.save_manifest()
        if self.log != "none" and control is not None:
            trees = self._held(step, [run.tree for run in runs])
            with _keeping(control):
                self.trainer.log(numbers(trees, self.job.followed.follow, self.log == "heads"))
        self.progress.last = step
        self.progress.costs.append(time.monotonic() - start)

    def _model(self, network: PreTrainedModel) -> Model | LanguageModel:
        model = load(network, tokenizer=self.tokenizer)
        causal = any(ending in type(network).__name__ for ending in CAUSAL)
        return LanguageModel(model, "causal") if causal else model

    def _held(self, step: int, trees: list[xr.DataTree]) -> Sequence[xr.DataTree]:
        """The results of a step with a control: its own, or that of the first measured step."""
        if CONTROL in trees[0]:
            self.first = trees
        if self.first is None:  # a resumed training: the step was measured before
            before = trees_of(measured_steps(self.job.folder)).values()
            self.first = next((some for some in before if CONTROL in some[0]), trees)
        return with_controls({step - 1: self.first, step: trees})[step]


def numbers(
    trees: Sequence[xr.DataTree], follow: Sequence[str] | None, heads: bool
) -> dict[str, float]:
    """What is logged of a step, by name: `headscope/circuits.score.induction/largest`.

    follow  keys of numbers per head; None: a few usual ones
    heads   whether each head's number is logged too
    """
    logged = dict[str, float]()
    with derived_once():
        known, names = metrics_of(trees), names_of(trees[0])
        for key in chosen_measures(trees, follow):
            values = known[key].estimate.value  # [layer, head]
            logged[f"{key}/largest"] = float(np.nanmax(values))
            logged[f"{key}/mean"] = float(np.nanmean(values))
            for layer, head in np.ndindex(*values.shape) if heads else ():
                logged[f"{key}/{names.head(layer, head)}"] = float(values[layer, head])
        for (_, name), having in sorted(labels_of(trees).items()):
            logged[f"heads with a label/{name}"] = float(len(having))
    # Trackers take no other signs in a name, and no NaN in JSON.
    finite = {name: value for name, value in logged.items() if math.isfinite(value)}
    return {f"{PREFIX}/{_STRANGE.sub('', name)}": value for name, value in finite.items()}


@dataclass
class Progress:
    """What a callback knows of the training that goes on.

    begun     time of a steady clock; began_at: the step at which it begins, or is resumed
    base      steps between measurements until `every` is chosen
    costs     seconds of each measurement
    last      the step measured last
    """

    begun: float = 0.0
    began_at: int = 0
    base: int = 1
    every: int | None = None
    costs: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    last: int = -1

    def is_due(self, step: int) -> bool:
        """Whether a step is measured."""
        return step % (self.every or self.base) == 0

    def interval(self, step: int, most: int, now: float) -> int:
        """Steps between measurements: `base`, or a power of two times that which costs little.

        step  until which the costs are known
        most  steps of the whole training
        now   the time of the clock of `begun`
        """
        spent, each = sum(self.costs), self.costs[-1]
        seconds = (now - self.begun - spent) / max(1, step - self.began_at)  # of one step
        # The last measurement reads the control once more, as the first did.
        left = MOST_COST * seconds * (most - self.began_at) - spent - max(self.costs)
        every = self.base
        while every < most and (most - step) / every * each > left:
            every *= 2
        return every


@contextmanager
def as_it_is(network: Any) -> Iterator[PreTrainedModel]:
    """Inside the context the network without what a Trainer has wrapped around `forward`.

    With mixed precision that casts, and a copy of the network would still call the original.
    """
    wrapped = {name: vars(network).pop(name) for name in WRAPPED if name in vars(network)}
    try:
        yield network
    finally:
        vars(network).update(wrapped)


@contextmanager
def _keeping(control: TrainerControl) -> Iterator[None]:
    """Inside the context a log may be made; one that is due at this step is made all the same."""
    due = control.should_log
    try:
        yield
    finally:
        control.should_log = due


def _refuse_split(trainer: Trainer) -> None:
    """Raises InputError where no process holds the whole model."""
    for name, words in SPLIT.items():
        if getattr(trainer, name, False):
            raise InputError(
                f"found a training with {words}, whose processes each hold a part of the weights; "
                "wanted a whole model: follow its checkpoints instead, headscope evolve OUT"
            )
