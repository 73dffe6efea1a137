"""Writes a model without some of its heads as an ordinary checkpoint.

What a head gives reaches the model through its rows of the output projection W_O alone. With these
set to 0 the head adds nothing: the checkpoint stays as large and loads everywhere, and answers as
with the head replaced by `zero`. Beside the weights `pruned.json` says which heads are gone and
what that costs; `pruned.svg` and `.png` show it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

import headscope
from headscope.claims.card_part import named_ends
from headscope.core.head_names import names_of
from headscope.core.intervals import Estimate
from headscope.core.results import at, estimate, json_number
from headscope.core.whole_file import put_folder, replaceable
from headscope.errors import InputError, ModelError
from headscope.experiments.ablation.terms import best_order
from headscope.model.batch import Batch
from headscope.model.checkpoint import quietly
from headscope.model.families.sites import find_sites, registered
from headscope.model.model import Model, forward
from headscope.model.placement import refuse_spread
from headscope.model.variant_answers import naive
from headscope.model.variants import Head, StandIn, Variant, heads_in
from headscope.model.weights import weights_sha256
from headscope.run.store import Run

TOLERANCE = 1e-4  # of the largest logit
NOTE = "pruned.json"


def projections_of(network: PreTrainedModel, *, layers: int) -> list[nn.Linear | Conv1D]:
    """[layer] the output projections.

    raises  ModelError where a head cannot be switched off in one layer alone, or its projection is
            not known
    """
    refuse_spread(network, "whose weights are changed")
    sites = find_sites(network) if registered(network) else []
    projections = [s.projection for s in sites if isinstance(s.projection, nn.Linear | Conv1D)]
    if len(projections) == layers == len({id(one) for one in projections}):
        return projections
    shares = 0 < len(sites) < layers
    why = "shares weights between layers" if shares else "has output projections of its own kind"
    raise ModelError(
        f"{type(network).__name__} {why}: its heads cannot be removed; `headscope "
        "ablate` can switch them off while the model runs"
    )


def disable(network: PreTrainedModel, heads: Variant, *, layers: int, per_layer: int) -> None:
    """Sets the heads' part of the output projections to 0, in place.

    per_layer  heads of a layer
    """
    for layer, projection in enumerate(projections_of(network, layers=layers)):
        weight, off = projection.weight.data, heads_in(heads, layer)
        if isinstance(projection, Conv1D):
            weight.view(per_layer, -1, weight.shape[1])[off] = 0  # [head, dim, model]
        else:
            weight.view(weight.shape[0], per_layer, -1)[:, off] = 0  # [model, head, dim]


@contextmanager
def disabled(
    network: PreTrainedModel, heads: Variant, *, layers: int, per_layer: int
) -> Iterator[None]:
    """Inside the context the heads are switched off; afterwards the weights are restored."""
    projections = projections_of(network, layers=layers)
    before = {layer: projections[layer].weight.detach().clone() for layer, _ in heads}
    try:
        disable(network, heads, layers=layers, per_layer=per_layer)
        yield
    finally:
        with torch.no_grad():
            for layer, weight in before.items():
                projections[layer].weight.copy_(weight)


def check_disabled(
    network: PreTrainedModel, batch: Batch, heads: Variant, *, layers: int, per_layer: int
) -> None:
    """Raises ModelError unless zeroed weights give the answers of zeroed head outputs."""
    wanted = naive(network, batch, [heads], StandIn("zero"))[1]
    with disabled(network, heads, layers=layers, per_layer=per_layer):
        logits = forward(network, *batch.inputs).logits
    gap = float((logits - wanted).abs().max())
    if not gap <= TOLERANCE * max(float(wanted.abs().max()), 1.0):
        raise ModelError(
            f"{type(network).__name__} without these heads differs by {gap:.1e} from one whose "
            "heads add nothing: headscope misreads its output projection; please report this model"
        )


# --- the folder -------------------------------------------------------------------------------


def refuse_strangers(
    folder: Path, *, checkpoint: str | Path, run: str | Path | None = None
) -> None:
    """Raises RunFolderError for a folder not written by headscope, InputError for the source
    checkpoint.

    run  the folder of the curves, which must be another
    """
    if run is not None and Path(run).resolve() == folder.resolve():
        raise InputError(f"found -o {folder} and --run {run}; wanted two folders")
    if folder.exists() and Path(checkpoint).exists() and folder.samefile(checkpoint):
        raise InputError(f"{folder} is the checkpoint to prune; choose another folder with -o")
    replaceable(folder, marks=(NOTE,))


def chosen_heads(
    pruning: xr.Dataset, *, order: str | None = None, remove: int | None = None
) -> tuple[str, list[Head]]:
    """The order, and the heads to remove: `remove` of them, or as many as the allowance permits.

    remove  a number of heads that the curves have a point for
    raises  InputError for an order that was not looked at
    """
    names = [str(name) for name in pruning["order"].values]
    order = best_order(pruning) if order is None else order
    if order not in names:
        raise InputError(f"no order {order!r} among {', '.join(names)}")
    chosen = pruning.sel(order=order)
    count = int(chosen["can_go"]) if remove is None else remove
    turns = chosen["turn"].transpose("layer", "head").values
    return order, [(layer, head) for layer, head in np.argwhere(turns < count).tolist()]


def note_of(run: Run, order: str, heads: Sequence[Head]) -> dict[str, Any]:
    """The content of pruned.json."""
    curve, model = run["pruning"], run.manifest["model"]
    scores = curve["score"].sel(order=order).values.astype(float).tolist()
    names = replace(names_of(run.tree), first=1)  # as in all files
    return {
        "checkpoint": {k: model[k] for k in ("name", "revision", "sha256")},
        "task": curve.attrs["task"],
        "metric": curve.attrs["metric"],
        "removed": [names.head(*head) for head in sorted(heads)],
        "removed_from_0": [[names.number(layer), head] for layer, head in sorted(heads)],
        "heads": int(curve.attrs["heads"]),
        "order": order,
        "chosen_by": curve.attrs["chosen_by"],
        "score": {
            "heads_gone": len(heads),
            "examples": int(curve.attrs["examples"]),
            "before": scores[0],
            "difference": _numbers(estimate(curve, "difference", order=order, removed=len(heads))),
        },
        "held_out": {
            "heads_gone": int(curve["can_go_half"].sel(order=order)),
            "difference": _numbers(estimate(curve, "held_out", order=order)),
        },
        "curve": {"heads_gone": curve["removed"].values.astype(int).tolist(), "score": scores},
        "headscope": headscope.__version__,
    }


def write_pruned(model: Model, run: Run, order: str, heads: Sequence[Head], folder: Path) -> Path:
    """Writes the checkpoint without these heads, atomically.

    returns  the folder
    raises   HeadscopeError if it cannot be written
    """
    from headscope.draw.figures import draw
    from headscope.draw.saving import save_picture

    shape, note = model.shape, note_of(run, order, heads)
    gone = frozenset(heads)

    def write(draft: Path) -> None:
        off = disabled(model.network, gone, layers=shape.layers, per_layer=shape.heads)
        with off, quietly():
            model.network.save_pretrained(draft)
            model.tokenizer.save_pretrained(draft)
        note["sha256"] = weights_sha256(str(draft), model.network)
        (draft / NOTE).write_text(json.dumps(note, indent=2) + "\n", "utf-8")
        figure = draw(run.tree, "pruning")
        for kind in ("svg", "png"):
            save_picture(figure, draft / f"pruned.{kind}")

    put_folder(folder, write, marks=(NOTE,))
    return folder


def _numbers(parts: Estimate) -> dict[str, float | None]:
    """A value and its interval; None for what is missing."""
    return {name: json_number(end) for name, end in named_ends(at(parts)).items()}
