"""How is a model without some of its heads written, and what stands beside it?

The folder is a checkpoint as `headscope finetune` writes one, and works wherever such a one does;
`pruned.json` says which heads are gone and what that costs, `pruned.svg` and `.png` show it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xarray as xr

import headscope
from headscope.core.results import estimate, head_name
from headscope.errors import InputError
from headscope.experiments.ablation.disable import disabled
from headscope.experiments.ablation.readings import best_order
from headscope.experiments.ablation.removal import Head
from headscope.experiments.finetune.saving import put_folder, replaceable
from headscope.model.checkpoint import quietly, weights_sha256
from headscope.model.model import Model
from headscope.run.finished_run import Run

NOTE = "pruned.json"


def refuse_strangers(folder: Path, *, checkpoint: str | Path) -> None:
    """Raises RunFolderError for a folder that is not ours, InputError for the checkpoint itself."""
    if folder.exists() and Path(checkpoint).exists() and folder.samefile(checkpoint):
        raise InputError(
            f"{folder} is the checkpoint that is to be pruned; choose another folder with -o"
        )
    replaceable(folder, marks=(NOTE,))


def chosen_heads(
    pruning: xr.Dataset, *, order: str | None = None, remove: int | None = None
) -> tuple[str, list[Head]]:
    """The order, and the heads that go: as many as the allowance permits unless told otherwise.

    remove  a number of heads that the curves have a point for
    raises  InputError for an order that was not looked at
    """
    names = [str(name) for name in pruning["order"].values]
    order = best_order(pruning) if order is None else order
    if order not in names:
        raise InputError(f"no order {order!r} among {', '.join(names)}")
    at = names.index(order)
    count = int(pruning["can_go"].values[at]) if remove is None else remove
    turns = pruning["turn"].values[..., at]  # [layer, head]
    return order, [(int(layer), int(head)) for layer, head in zip(*(turns < count).nonzero(),
                                                                  strict=True)]  # fmt: skip


def note_of(run: Run, order: str, heads: Sequence[Head]) -> dict[str, Any]:
    """What pruned.json says."""
    found, model = run["pruning"], run.manifest["model"]
    at = [str(name) for name in found["order"].values].index(order)
    removed = [int(n) for n in found["removed"].values]
    apart = estimate(found, "difference", order=order, removed=len(heads))
    held = estimate(found, "held_out", order=order)
    return {
        "checkpoint": {k: model[k] for k in ("name", "revision", "sha256")},
        "task": found.attrs["task"], "metric": found.attrs["metric"],
        "removed": [
            head_name(layer * model["heads"] + head, model["heads"])
            for layer, head in sorted(heads)
        ],
        "removed_from_0": [list(head) for head in sorted(heads)],
        "heads": int(found.attrs["heads"]),
        "order": order,
        "chosen_by": found.attrs["chosen_by"],
        "score": {
            "heads_gone": len(heads), "examples": int(found.attrs["examples"]),
            "before": float(found["score"].values[at, 0]),
            "difference": _numbers(apart),
        },
        "held_out": {
            "heads_gone": int(found["can_go_half"].values[at]), "difference": _numbers(held),
        },
        "curve": {
            "heads_gone": removed,
            "score": [float(x) for x in found["score"].values[at]],
        },
        "headscope": headscope.__version__,
    }  # fmt: skip


def write_pruned(model: Model, run: Run, order: str, heads: Sequence[Head], folder: Path) -> Path:
    """Writes the checkpoint without these heads; whole, or not at all.

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

    put_folder(folder, write)
    return folder


def _numbers(parts: Any) -> dict[str, float | None]:
    """A value and its interval; None for what does not exist."""
    named = {"value": parts.value, "ci_low": parts.low, "ci_high": parts.high}
    return {name: float(x) if math.isfinite(x) else None for name, x in named.items()}
