"""Choose the examples and importance scores by which heads are pruned; imports no torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import xarray as xr

from headscope.core.accumulators import Float64
from headscope.core.head_names import first
from headscope.errors import CorpusError, InputError
from headscope.run.store import Run, open_run
from headscope.tasks.task_data import TaskData
from headscope.tasks.task_request import TaskRequest, examples_of

if TYPE_CHECKING:
    from headscope.model.model import Shape

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
    run = source if isinstance(source, Run) else open_run(source)
    if "importance" not in run:
        raise InputError(f"{source} holds {', '.join(run)}; wanted a run of `headscope importance`")
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
    own = [shape.number(place) for place in range(shape.layers)]
    if len(layers) == len(own) and layers != own:
        theirs, ours = (", ".join(str(n + first()) for n in some) for some in (layers, own))
        raise InputError(
            f"the importance is of the layers {theirs}; wanted {ours}: that of the same model"
        )
    return importance.values
