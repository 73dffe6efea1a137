"""Computes how many heads a task can do without, and which; `prune` reads what is wanted.

    run = prune_curves(Pruning(model, choosing, scoring, settings))  # run["pruning"]
    order, heads = chosen_heads(run["pruning"])
    write_pruned(model.model, run, order, heads, folder)  # a checkpoint without the heads

Heads are chosen by some examples and scored on others. `removal_curves` has the orders, and
`pruned_checkpoint` what it means to remove a head.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import xarray as xr

from headscope.core.accumulators import Float64
from headscope.core.progress import begin
from headscope.errors import InputError
from headscope.experiments.ablation import pruned_checkpoint as checkpoint
from headscope.experiments.ablation import removal_curves
from headscope.experiments.ablation.removal_curves import Curves, Pruner
from headscope.experiments.ablation.settings import ORDERS, PruningSettings
from headscope.experiments.ablation.terms import RANDOM
from headscope.model.variant_answers import choose_way
from headscope.model.variants import Head, StandIn, single_heads
from headscope.run.execution import Execution
from headscope.run.experiment import ExperimentRequest, of_task, run_experiment
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.shard_files import State
from headscope.run.store import Run
from headscope.tasks.predict import EncodedTask, encode
from headscope.tasks.task_data import TaskData
from headscope.tasks.task_model import TaskModel
from headscope.tasks.task_request import overlap_note

POINTS = 24  # ours: of a curve
ALONE, GREEDY = "look at each head alone", "look again, greedily"


@dataclass(frozen=True)
class Pruning:
    """A pruning: its model, examples and settings.

    choosing    examples by which heads are chosen; none of them should be in `scoring`
    scoring     examples that the curves are scored on
    importance  [layer, head] for the order "given"; and what it is called
    """

    model: TaskModel
    choosing: TaskData
    scoring: TaskData
    settings: PruningSettings = field(default_factory=PruningSettings)
    importance: Float64 | None = None
    importance_name: str = "given"

    @property
    def names(self) -> list[str]:
        """What the orders are called in the result; random ones are numbered from 1."""
        named = {
            "given": [self.importance_name],
            "random": [f"{RANDOM}{draw + 1}" for draw in range(self.settings.draws)],
        }
        kinds = [kind for kind in ORDERS if kind in self.settings.orders]
        return [name for kind in kinds for name in named.get(kind, [kind])]

    @property
    def passes(self) -> dict[str, int]:
        """Part of the work → forward passes of one example that it takes, in their order."""
        shape, kinds, counted = self.model.model.shape, set(self.settings.orders), {}
        heads = shape.layers * shape.heads
        if {"greedy", "alone"} & kinds:
            counted[ALONE] = (heads + 1) * len(self.choosing)
        if "greedy" in kinds:
            counted[GREEDY] = removal_curves.greedy_variants(heads, self.step) * len(self.choosing)
        points = len(removal_curves.counts(heads, self.step, also=self.settings.remove))
        return counted | {f"score {name}": points * len(self.scoring) for name in self.names}

    @property
    def same_examples(self) -> bool:
        """Whether heads are chosen by the very examples that are scored."""
        return self.choosing.rows_sha256 == self.scoring.rows_sha256

    @property
    def step(self) -> int:
        """Heads from one point of a curve to the next."""
        shape = self.model.model.shape
        return self.settings.step or max(1, round(shape.layers * shape.heads / POINTS))

    def check_order(self, name: str | None) -> None:
        """Raises InputError for an order that is none of `names`."""
        if name is not None and name not in self.names:
            raise InputError(f"--by {name!r}; the orders are {', '.join(self.names)}")


def prune_curves(
    plan: Pruning,
    *,
    output: str | Path | None = None,
    execution: Execution | None = None,
    begin: Callable[[str], object] = lambda _: None,
) -> Run:
    """Removes the heads in several orders and scores the model on the way.

    output  run folder; an interrupted run of the same spec there goes on. None: in memory
    begin   called with the name of each part of the work (`Pruning.passes`) before it; progress, of
            the execution, with the passes that are done, and all
    raises  ModelError for a model whose heads cannot be removed one by one; InputError for an
            importance of another size, or more heads to remove than there are
    """
    model, settings = plan.model.model, plan.settings
    checkpoint.projections_of(model.network, layers=model.shape.layers)
    _check(plan)
    choosing, scoring = (
        encode(plan.model, data, max_length=settings.max_length)
        for data in (plan.choosing, plan.scoring)
    )
    spec = {
        **asdict(settings),
        "chosen_by": plan.choosing.rows_sha256,
        "importance": None if plan.importance is None else plan.importance.tolist(),
    }
    request = ExperimentRequest(
        "prune",
        model,
        corpus=of_task(plan.scoring),
        examples=scoring.examples,
        settings=spec,
        seed=settings.seed,
        replicates=settings.replicates,
        cut=scoring.cut,
        batch_tokens=settings.batch_tokens,
        notes=() if plan.same_examples else overlap_note(plan.choosing, plan.scoring),
    )
    execution = execution or Execution()
    meter = Meter(sum(plan.passes.values()), execution.progress)
    work = _PruningRun(plan, choosing, scoring, begin, meter)
    return run_experiment(request, work.compute, output=output, execution=execution)


@dataclass
class _PruningRun:
    plan: Pruning
    choosing: EncodedTask
    scoring: EncodedTask
    begin: Callable[[str], object]
    meter: Meter

    def compute(self, run: RunInProgress) -> dict[str, xr.Dataset]:
        plan, model, settings = self.plan, self.plan.model.model, self.plan.settings
        layers, heads = model.shape.layers, model.shape.heads
        variants = single_heads(layers, heads)
        way = choose_way(model, self.choosing.examples, variants, StandIn("zero"))
        batch = model.batch(self.choosing.examples[:2])
        ends = variants[-1] | variants[0]
        checkpoint.check_disabled(model.network, batch, ends, layers=layers, per_layer=heads)
        pruner = Pruner(
            plan.model,
            self.choosing,
            way,
            run.linears,
            settings.batch_tokens,
            self.meter.advance,
        )
        orders = self._orders(pruner, run)
        steps = removal_curves.counts(layers * heads, plan.step, also=settings.remove)
        answers = []
        for number, (name, order) in enumerate(orders.items()):
            self.begin(part := f"score {name}")

            def make(order: Sequence[Head] = order) -> State:
                answers = [pruner.answers_without(self.scoring, order[:n]) for n in steps]
                return {"answers": np.stack(answers)}  # [removed, example, …]

            with self.meter.stage(plan.passes[part]):
                answers.append(run.part(100 + number, make)["answers"])
        begin("intervals")
        curves = Curves(
            plan.model.task,
            self.scoring.labels,
            [e.id for e in self.scoring.examples],
            (layers, heads),
            orders,
            steps,
            np.stack(answers),
        )
        pruning = removal_curves.pruning_result(
            curves,
            allowance=settings.allowance / 100,
            replicates=settings.replicates,
            seed=settings.seed,
        )
        pruning.attrs |= {
            "chosen_by": plan.choosing.source,
            "chosen_by_examples": len(plan.choosing),
            "same_examples": int(plan.same_examples),
        }
        return {"pruning": pruning}

    def _orders(self, pruner: Pruner, run: RunInProgress) -> dict[str, list[Head]]:
        plan, settings = self.plan, self.plan.settings
        orders: dict[str, list[Head]] = {}
        if {"greedy", "alone"} & set(settings.orders):
            self.begin(ALONE)
            with self.meter.stage(plan.passes[ALONE]):
                first = self._first(pruner, run)
            if "greedy" in settings.orders:
                self.begin(GREEDY)

                def make() -> State:
                    order = removal_curves.greedy(pruner, step=plan.step, start=first)
                    return {"order": np.array(order, np.int64)}  # [turn, (layer, head)]

                with self.meter.stage(plan.passes[GREEDY]):
                    kept = run.part(1, make)["order"].tolist()
                orders["greedy"] = [(layer, head) for layer, head in kept]
            if "alone" in settings.orders:
                orders["alone"] = list(first)
        if "given" in settings.orders and plan.importance is not None:
            orders[plan.importance_name] = removal_curves.given(plan.importance)
        if "random" in settings.orders:
            for draw in range(settings.draws):
                order = removal_curves.random(pruner.heads, seed=settings.seed + draw)
                orders[f"{RANDOM}{draw + 1}"] = order
        return orders

    def _first(self, pruner: Pruner, run: RunInProgress) -> Mapping[Head, float]:
        def make() -> State:
            rises = removal_curves.alone(pruner)
            return {"heads": np.array(list(rises), np.int64), "rises": np.array([*rises.values()])}

        kept = run.part(0, make)
        heads = [(layer, head) for layer, head in kept["heads"].tolist()]
        return dict(zip(heads, kept["rises"].tolist(), strict=True))


def _check(plan: Pruning) -> None:
    layers, heads = plan.model.model.shape.layers, plan.model.model.shape.heads
    importance = plan.importance
    if (plan.settings.remove or 0) > layers * heads:
        raise InputError(
            f"found {plan.settings.remove} heads to remove; the model has {layers * heads}"
        )
    if "given" in plan.settings.orders and importance is None:
        raise InputError("the order 'given' needs an importance of every head (--importance RUN)")
    if importance is not None and importance.shape != (layers, heads):
        raise InputError(
            f"the importance is of {importance.shape[0]} layers of {importance.shape[1]} heads; "
            f"wanted {layers} of {heads}: that of the same model"
        )
