"""Exports retrieval heads for inference engines: gates of key-value heads, and JSON.

duo, kvpress  folders `gates-mean` and `gates-max`, each with what DuoAttention (Xiao et al. 2025)
              reads: `full_attention_heads.tsv` [layer, key-value head] from 0 to 1, `config.json`;
              and `streaming_share.tsv`, likewise
json          `retrieval_heads.json`: every head and every key-value head

The gate is the retrieval score of the query heads that share the key-value head, their mean or
maximum; DuoAttention learns its gates, which are other numbers. The streaming share is their mean,
or beside the maximum the least: what a cache of first and latest tokens leaves of the head that
looks beyond them most. It is there where answers see more tokens than these.
"""

import json
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from headscope.claims.head_labels import with_label
from headscope.core.whole_file import held, write_whole
from headscope.errors import InputError, ModelError
from headscope.experiments.circuits.claims import RETRIEVED
from headscope.experiments.circuits.settings import FEWEST
from headscope.model.attention import AttentionCall, listening
from headscope.model.families.sites import find_sites
from headscope.model.model import Model, evaluating, forward
from headscope.run.store import Run, RunFolder

STREAMING = {"sink_size": 128, "recent_size": 256}  # DuoAttention's own patterns
WINDOW = "128+256"  # the same
STREAMED = ("streaming", "streaming_ci_low", "streaming_ci_high")
GATE = (
    "headscope's retrieval score, the share of a needle's tokens that are attended to most as they "
    "are told; not a gate that DuoAttention learned"
)
NO_HAYSTACK = (
    "there is no haystack in this run, and --export tells which heads retrieve; wanted --haystack "
    "TOKENS, as many as the model takes with a needle, its question and its answer"
)


def export_heads(run: Run, model: Model, forms: Collection[str]) -> list[Path]:
    """Writes the requested formats (duo, kvpress, json) into the run's folder.

    model    the model of the run: it says which heads share keys and values
    returns  the files written
    raises   InputError for a run without needles, or of fewer than FEWEST that the model tells;
             ModelError where the gates make no table of all layers; UnwrittenError
    """
    if run.path is None:
        raise InputError("this run is in memory; give circuits(…, output=FOLDER)")
    dataset = run["circuits"]
    if "recall" not in dataset:
        raise InputError(NO_HAYSTACK)
    if "retrieval" not in dataset:
        raise InputError(
            f"of {dataset.sizes['run']} needles the model answers {dataset.attrs['answered']}, "
            f"and retrieval needs {FEWEST}: give a smaller --haystack or more --needles; "
            "without --export the same command makes the report of this run"
        )
    heads = _heads(run, groups := key_heads(model))
    shared = heads.groupby(["layer", "key_value_head"])
    gates = shared["retrieval"].agg(["mean", "max"])
    streaming = shared["streaming"].agg(["mean", "min"]).add_prefix("streaming_")
    about = {key: run.manifest["model"][key] for key in ("name", "revision", "sha256")}
    files = _gates(gates, streaming, model, about) if set(forms) - {"json"} else {}
    if "json" in forms:
        files["retrieval_heads.json"] = _json(
            {
                **about,
                "layers": len(groups),
                "heads": dataset.sizes["head"],
                "key_value_heads": groups,
                "score": GATE,
                "threshold": RETRIEVED,
                "needles": dataset.sizes["run"],
                "answered": int(dataset.attrs["answered"]),
                "streaming_window": STREAMING,
                "query_heads": heads,
                "gates": gates.join(streaming).reset_index(),
            }
        )
    with held(run.path), RunFolder(run.path).listing():
        return [write_whole(run.path / name, write) for name, write in files.items()]


def key_heads(model: Model) -> list[int]:
    """Number of key-value heads in each layer that attends."""
    many, one = dict[nn.Module, int](), torch.zeros((1, 1), dtype=torch.long, device=model.device)

    def count(call: AttentionCall) -> None:
        many[call.module] = call.key.shape[1]

    with evaluating(model.network), listening(model.network, count, alone=True):
        forward(model.network, one, torch.ones_like(one), keep=False)
    sites = [site for site in find_sites(model.network) if site.stack == model.shape.stack]
    return [many[site.attention] for site in sites]


def _heads(run: Run, groups: list[int]) -> pd.DataFrame:
    """One row per head: layer, head, key_value_head, retrieval, low, high, streaming with its own,
    label.
    """
    names = {"retrieval": "retrieval", "retrieval_ci_low": "low", "retrieval_ci_high": "high"}
    streaming = {f"needle_{name}": name for name in STREAMED}
    dataset = run["circuits"].sel(window=WINDOW)[[*names, *streaming]]
    frame = dataset.to_dataframe(["layer", "head"]).drop(columns="window")
    frame = frame.rename(columns=names | streaming).reset_index()
    many = len(frame) // len(groups)
    shared = [head * count // many for count in groups for head in range(many)]
    frame.insert(2, "key_value_head", shared)
    return frame.assign(label=with_label(run.tree, "retrieval").ravel())


def _gates(
    gates: pd.DataFrame, streaming: pd.DataFrame, model: Model, about: dict[str, str]
) -> dict[str, Any]:
    """Writes the folders in DuoAttention's layout."""
    files: dict[str, Any] = {}
    for (over, column), (_, share) in zip(gates.items(), streaming.items(), strict=True):
        table = column.unstack()
        if table.isna().any(axis=None) or model.shape.others:
            raise ModelError(
                f"{model.name!r} has {model.shape.depth} layers, of which {model.shape.layers} "
                f"attend, the least with {table.count(axis=1).min()} key-value heads and the most "
                f"with {table.shape[1]}; gates need the same number in each layer: give --export "
                "json"
            )
        config = {**about, **STREAMING, "gate": GATE, "over_query_heads": over}
        rows = partial(np.savetxt, X=table, delimiter="\t")
        place = f"gates-{over}"
        files |= {f"{place}/full_attention_heads.tsv": rows, f"{place}/config.json": _json(config)}
        if share.notna().all():
            kept = partial(np.savetxt, X=share.unstack(), delimiter="\t")
            files[f"{place}/streaming_share.tsv"] = kept
    return files


def _json(content: Any) -> bytes:
    """Tables as lists of their rows, NaN as null."""

    def rows(table: pd.DataFrame) -> Any:
        return table.astype(object).where(table.notna(), None).to_dict("records")

    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False, default=rows)
    return f"{text}\n".encode()
