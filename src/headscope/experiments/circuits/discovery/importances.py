"""Exports scores as the Mechanistic Interpretability Benchmark takes them: importances.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.results import shape
from headscope.core.whole_file import held, write_whole
from headscope.errors import InputError
from headscope.run.store import Run, RunFolder

NAME = "importances.json"
LOGITS = "logits"


def export_importances(run: Run) -> Path:
    """Writes the scores of a run's nodes, and of its edges where it has them, into its folder.

    raises  InputError for a run in memory, or without a circuit; UnwrittenError
    """
    if run.path is None:
        raise InputError("this run is in memory; give circuits(…, output=FOLDER)")
    if "discovery" not in run.tree.children:
        raise InputError("this run has no circuit; wanted --prompts NAME|FILE, with corrupted ones")
    text = json.dumps(importances(run["discovery"], *shape(run.tree)), indent=1)
    with held(run.path), RunFolder(run.path).listing():
        return write_whole(run.path / NAME, f"{text}\n".encode())


def importances(dataset: xr.Dataset, layers: int, heads: int) -> dict[str, Any]:
    """Scores in logits: `nodes` and `edges` by their names, and the size of the network.

    A score above 0 is that of a part without which the network answers worse.
    """
    gap, member = float(dataset["gap"]), dataset["member"].values == 1
    keys = [str(key) for key in dataset["node"].values]
    nodes: dict[str, Any] = {
        key: {"in_graph": bool(inside), "score": float(score) * gap}
        for key, inside, score in zip(keys, member, dataset["score"].values, strict=True)
    }
    nodes[LOGITS] = {"in_graph": True, "score": 0.0}
    edges: dict[str, Any] = {}
    if "edge_score" in dataset:
        readers = [str(key) for key in dataset["reader"].values]
        scores = dataset["edge_score"].values
        for node, reader in np.argwhere(np.isfinite(scores)).tolist():
            name = f"{keys[node]}->{readers[reader]}"
            edges[name] = {"score": float(scores[node, reader]) * gap, "in_graph": False}
    size = {
        "n_layers": layers,
        "n_heads": heads,
        "parallel_attn_mlp": bool(dataset.attrs["beside"]),
        "d_model": int(dataset.attrs["width"]),
    }
    return {"cfg": size, "nodes": nodes, "edges": edges}
