"""Finds how many heads a task can do without, and which: `headscope prune` and `hs.prune`.

    done = prune("bert-rte", "rte", "bert-rte-pruned", data="glue")  # done.run["pruning"]

Heads are chosen by some examples and scored on others. Nothing heavy is imported before the request
is known to be right; `pruning` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.display import Displayed
from headscope.core.options import (
    argument,
    keyword,
    option,
    takes,
    whole,
)
from headscope.core.whole_file import held
from headscope.errors import CorpusError, InputError
from headscope.experiments.ablation.settings import PruningSettings
from headscope.model.request import model_place
from headscope.run.execution import Execution
from headscope.run.manifest_file import run_place
from headscope.tasks.remembered_task import with_remembered_task
from headscope.tasks.task_request import (
    Loading,
    TaskRequest,
    checkpoint_of,
    examples_of,
    learned_task_option,
    model_and_examples,
)

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.accumulators import Float64
    from headscope.model.model import Model, Shape
    from headscope.model.variants import Head
    from headscope.run.store import Run
    from headscope.tasks.task import Task
    from headscope.tasks.task_data import TaskData


CHOOSE = 256  # examples


def chosen_by(
    scoring: TaskData,
    request: TaskRequest,
    *,
    choose: int | None,
    split: str | None,
    file: str | Path | None,
    seed: int,
    here: bool,
) -> tuple[TaskData, tuple[str, ...]]:
    """The examples by which heads are chosen; the scored examples if no others are named.

    choose  how many at most; None: CHOOSE, at most the limit of those that are scored
    here    the scored ones were read before: nobody knows where there are others
    """
    most = choose or max(2, min(CHOOSE, request.limit or CHOOSE))
    same = "heads were chosen by the examples that are scored"
    if here and file is None:
        return scoring, (same,)
    where = TaskRequest(
        data=file or request.data, split=split or "train", columns=request.columns, limit=most
    )
    try:
        choosing = examples_of(scoring.task, where, seed=seed)
    except (InputError, CorpusError):
        if split is not None or file is not None:
            raise
        return scoring, (f"no train split: {same}",)
    if choosing.rows_sha256 == scoring.rows_sha256:
        return scoring, (same,)
    return choosing, choosing.notes


def importance_of(
    source: Run | str | Path | None, variant: str | None
) -> tuple[xr.DataArray | None, str]:
    """Importance [layer, head] from a run of `importance`, and its name."""
    if source is None:
        return None, "given"
    from headscope.run.store import Run, open_run

    run = source if isinstance(source, Run) else open_run(source)
    if "importance" not in run:
        raise InputError(f"{source} holds {', '.join(run)}; wanted a run of `headscope importance`")
    with run.showing():
        values = run["importance"]["head_importance"]
        names = [str(name) for name in values["variant"].values]
        name = variant or names[0]
        if name not in names:
            raise InputError(f"no importance {name!r} in that run; there are {', '.join(names)}")
        return values.sel(variant=name).transpose("layer", "head"), name


def checked_layers(importance: xr.DataArray | None, shape: Shape) -> Float64 | None:
    """The importance [layer, head]; InputError if its layers are not the model's."""
    if importance is None:
        return None
    layers = importance["layer"].values.tolist()
    names = shape.names
    own = [names.number(place) for place in range(shape.layers)]
    if len(layers) == len(own) and layers != own:
        theirs, ours = (", ".join(str(n + names.first) for n in some) for some in (layers, own))
        raise InputError(
            f"the importance is of the layers {theirs}; wanted {ours}: that of the same model"
        )
    return importance.values


class PruneRequest(Loading, PruningSettings, TaskRequest, kw_only=False, heading="The task"):
    """What is to be pruned, and how."""

    model: Model | str | Path = argument(
        "A checkpoint with a head for the task: a folder, a hub id.",
        reads=model_place,
        metavar="CHECKPOINT",
    )
    task: TaskData | Task | str | None = learned_task_option()
    output: str | Path | None = option(
        "Folder of the checkpoint without the heads.",
        names="-o --output",
        usual="{model}-pruned",
        metavar="CKPT2",
        heading="How to run",
    )
    _: KW_ONLY
    run: str | Path | None = option(
        "Keep the curves as a run folder, with report; re-running resumes.",
        metavar="RUN",
        before="batch_tokens",
    )
    importance: Run | str | Path | None = option(
        "A run of `headscope importance`, for one more order.",
        reads=run_place,
        metavar="RUN",
        heading="Which heads go",
        before="allowance",
    )
    variant: str | None = option(
        "Which importance of that run; the first by default.", names="--method", before="allowance"
    )
    by: str | None = option(
        "The order by which heads go; by default the one by which most can.", before="remove"
    )
    choose: int | None = option(
        "Number of examples by which heads are chosen; by default 256, at most --limit.",
        least=2,
        metavar="N",
    )
    choose_split: str | None = option("The split that these examples are from; by default train.")
    choose_file: str | Path | None = option("A file with these examples, instead of --data.")
    settings: PruningSettings | None = whole(PruningSettings)
    execution: Execution | None = keyword("How to run.")
    told: Callable[[str], object] = keyword(
        "Called with a few words before each part of the work.", lambda words: None
    )
    begun: Callable[[Mapping[str, int]], object] = keyword(
        "Called before the first with the forward passes that each takes.", lambda passes: None
    )


@dataclass(frozen=True, repr=False)
class Pruned(Displayed):
    """What a pruning came to.

    run    the curves: run["pruning"]
    order  by which heads went
    heads  (layer, head) that are gone, from 0; layers by their places
    path   the checkpoint without them
    notes  what the reader should know of model and examples
    """

    run: Run
    order: str
    heads: tuple[Head, ...]
    path: Path
    notes: tuple[str, ...] = ()

    def facts(self) -> dict[str, object]:
        """The checkpoint, and what is gone."""
        gone = f"{len(self.heads)} of {self.run['pruning'].attrs['heads']} heads are gone"
        return {"path": self.path, "heads": gone, "order": f"in the order {self.order}"}


@takes(PruneRequest)
def prune(request: PruneRequest) -> Pruned:
    """Removes heads one after another, sees what a task loses, and writes what is left.

    Raises InputError and its kinds before anything is computed.
    """
    request, remembered = with_remembered_task(request, request.model)
    if request.output is None or request.task is None:
        raise InputError("found no output; wanted prune(model, task, output)")
    settings = PruningSettings.of(request)
    place, load = checkpoint_of(request.model, Loading.of(request))
    if request.importance is not None and "given" not in settings.orders:
        settings = replace(settings, orders=(*settings.orders, "given"))
    folder, seed = Path(request.output), settings.seed
    importance, name = importance_of(request.importance, request.variant)
    from headscope.run.store import check_run_folder

    check_run_folder(request.run)
    examples = TaskRequest.of(request)
    scoring = examples_of(
        request.task, examples, seed=seed, checkpoint=place, revision=load.revision
    )
    choosing, notes = chosen_by(
        scoring,
        examples,
        choose=request.choose,
        split=request.choose_split,
        file=request.choose_file,
        seed=seed,
        here=scoring is request.task,
    )
    from headscope.experiments.ablation import pruned_checkpoint as checkpoint
    from headscope.experiments.ablation.pruning import Pruning, prune_curves

    with held(folder):
        checkpoint.refuse_strangers(folder, checkpoint=place, run=request.run)
        loaded, _ = model_and_examples(place, scoring, TaskRequest(), load, seed=seed)
        values = checked_layers(importance, loaded.model.shape)
        plan = Pruning(loaded, choosing, scoring, settings, values, name)
        plan.check_order(request.by)
        request.begun(plan.passes)
        run = prune_curves(
            plan, output=request.run, execution=request.execution, begin=request.told
        )
        order, heads = checkpoint.chosen_heads(
            run["pruning"], order=request.by, remove=settings.remove
        )
        checkpoint.write_pruned(loaded.model, run, order, heads, folder)
    return Pruned(
        run, order, tuple(heads), folder, (*remembered, *loaded.notes, *scoring.notes, *notes)
    )
