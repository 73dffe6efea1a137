"""What was asked, of what, with which versions? The manifest of a run, and its results' labels.

The spec decides the numbers, and its fingerprint names it. Everything else in the manifest is for
the reader, except `linears`: it moves the last bits of float32, so it is fixed when a run begins.
"""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

import headscope
from headscope.corpus import Corpus
from headscope.errors import RunFolderError
from headscope.model.model import Model, file_sha256
from headscope.run.plan import Plan
from headscope.run.settings import Settings, differences, fingerprint
from headscope.run.store import RunFolder

Manifest = dict[str, Any]


def spec_of(
    model: Model,
    plan: Plan,
    settings: Settings,
    names: Sequence[str],
    frequency: str | Path | None,
) -> dict[str, Any]:
    """Everything that decides the numbers."""
    return {
        "headscope": headscope.__version__,
        "model": {
            "sha256": model.sha256,
            "architecture": model.architecture,
            "dtype": str(model.network.dtype).removeprefix("torch."),
            "stack": model.shape.stack,
        },
        "corpus": {"inputs_sha256": plan.digest},
        "frequency": None if frequency is None else file_sha256(Path(frequency)),
        "settings": {**settings.as_dict(), "analyses": list(names)},
    }


def found_manifest(folder: RunFolder, spec: Mapping[str, Any]) -> Manifest | None:
    """The manifest of the run in a folder, None without one; RunFolderError for another spec's."""
    found = folder.manifest()
    if found is None or found["fingerprint"] == fingerprint(spec):
        return found
    where = differences(found["spec"], spec)
    raise RunFolderError(
        f"{folder.path} holds a run of another spec "
        f"({'; '.join(where[:3])}{'; …' if len(where) > 3 else ''})\n"
        "nothing of it can be reused: choose another folder with -o, or --overwrite it"
    )


def differs(folder: RunFolder, spec: Mapping[str, Any]) -> bool:
    """Whether the folder holds a run that cannot be continued under this spec."""
    try:
        return found_manifest(folder, spec) is None and folder.manifest() is not None
    except RunFolderError:
        return True


def new_manifest(
    spec: dict[str, Any],
    model: Model,
    corpus: Corpus,
    plan: Plan,
    *,
    linears: str,
    threads: int,
    command: Sequence[str],
) -> Manifest:
    """The manifest of a run of `atlas` that begins now."""
    return manifest_of(
        spec, model, corpus=corpus.describe(), counts=plan.counts.as_dict(),
        shards=len(plan.shards), analyses=spec["settings"]["analyses"], linears=linears,
        threads=threads, command=command,
    )  # fmt: skip


def manifest_of(
    spec: dict[str, Any],
    model: Model,
    *,
    corpus: Mapping[str, Any],
    counts: Mapping[str, Any],
    shards: int,
    analyses: Sequence[str],
    linears: str,
    threads: int,
    command: Sequence[str],
) -> Manifest:
    """The manifest of any run that begins now.

    spec  everything that decides the numbers; its settings hold `seed` and `replicates`
    """
    return {
        "spec": spec,
        "fingerprint": fingerprint(spec),
        "versions": versions(),
        "model": {
            "name": model.name, "revision": model.revision, "sha256": model.sha256,
            "architecture": model.architecture, "layers": model.shape.layers,
            "heads": model.shape.heads, "stack": model.shape.stack,
            "special_tokens": model.special_tokens,
        },
        "corpus": dict(corpus),
        "counts": dict(counts),
        "shards": shards,
        "analyses": list(analyses),
        "linears": linears,
        "threads": threads,
        "seed": spec["settings"]["seed"],
        "replicates": spec["settings"]["replicates"],
        "command": shlex.join(command),
        "created": datetime.now(UTC).strftime("%Y-%m-%d"),
    }  # fmt: skip


def label(results: Mapping[str, xr.Dataset], manifest: Manifest) -> xr.DataTree:
    """All results as one tree, with what was run on what as attributes of the root.

    Neither the date nor how it was run is among them: the same spec gives the same file.
    """
    m, c = manifest["model"], manifest["counts"]
    attrs = {
        "title": "headscope atlas",
        "model": m["name"], "revision": m["revision"], "model_sha256": m["sha256"],
        "architecture": m["architecture"], "layers": m["layers"], "heads": m["heads"],
        "stack": m["stack"],
        "cls_token": m["special_tokens"].get("cls", ""),
        "sep_token": m["special_tokens"].get("sep", ""),
        "corpus": _one_line(manifest["corpus"]),
        **{k: c[k] for k in ("documents", "examples", "tokens", "skipped", "windowed")},
        "seed": manifest["seed"], "replicates": manifest["replicates"],
        "headscope_version": manifest["versions"]["headscope"],
        "spec_fingerprint": manifest["fingerprint"],
        "indexing": "layers and heads count from 0; query attends to key",
    }  # fmt: skip
    if "counted" in manifest["corpus"]:  # what stands for documents
        attrs["counted"] = manifest["corpus"]["counted"]
    root = xr.Dataset(attrs={k: _storable(v) for k, v in attrs.items()})
    return xr.DataTree.from_dict({"/": root, **{f"/{k}": v for k, v in results.items()}})


def versions() -> dict[str, str]:
    """Of headscope and of what decides its numbers."""
    import transformers

    return {
        "headscope": headscope.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
        "xarray": xr.__version__,
    }


def _one_line(corpus: Mapping[str, Any]) -> str:
    names = [str(f["name"]) for f in corpus.get("files", [])]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{corpus['kind']}: {shown}" if shown else str(corpus["kind"])


def _storable(value: Any) -> Any:
    """File names may hold what HDF5 cannot: lone surrogates and NUL."""
    from headscope.core.results import printable

    return printable(value) if isinstance(value, str) else value
