"""The manifest of a run: spec, versions, model, corpus and command.

The spec decides the numbers, and its fingerprint names it. Everything else in the manifest is for
the reader, except `linears`: it moves the last bits of float32, so it is fixed when a run begins.
"""

import json
import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

import headscope
from headscope.core.display import printable
from headscope.core.results import json_number, own_layers
from headscope.core.whole_file import sha256_of
from headscope.core.wording import precision_of
from headscope.model.model import Model, file_sha256
from headscope.run.machine_choices import LinearsChoice
from headscope.run.plan import Plan
from headscope.run.settings import Settings, fingerprint
from headscope.tasks.remembered_task import TRAINING_RECORD

Manifest = dict[str, Any]
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # in HDF5
# Of a configuration, what changes no number: where it was, and what the spec says elsewhere.
_BESIDE_NUMBERS = {"_name_or_path", "transformers_version", "dtype", "torch_dtype", "architectures"}
_TRAINING = ("epochs", "batch", "rate", "layer_decay", "seed")


def spec_of(
    model: Model, plan: Plan, settings: Settings, names: Sequence[str], frequency: str | Path | None
) -> dict[str, Any]:
    """The spec of an atlas: everything that decides the numbers."""
    return {
        "versions": deciding_versions(),
        "model": identity_of(model),
        "corpus": {"inputs_sha256": plan.digest},
        "frequency": None if frequency is None else file_sha256(Path(frequency)),
        "settings": {
            **settings.as_dict(),
            "analyses": list(names),
            "options": settings.options_of(names),
        },
    }


def identity_of(model: Model) -> dict[str, Any]:
    """The model's entry in a spec: everything about it that decides the numbers."""
    config = json.loads(model.network.config.to_json_string(use_diff=True))
    return {
        "sha256": model.sha256,
        "architecture": model.architecture,
        "dtype": dtype_of(model),
        "stack": model.shape.stack,
        "device": model.device.type,
        "config": {key: value for key, value in config.items() if key not in _BESIDE_NUMBERS},
        "tokenizer_sha256": _tokenizer_sha256(model),
    }


def loaded_identity(model: Model, settings: Settings) -> dict[str, Any]:
    """What a process that computes must have in common with the one that began the run."""
    versions = deciding_versions()
    return {"model": identity_of(model), "versions": versions, "files": settings.files()}


def new_manifest(
    spec: dict[str, Any],
    model: Model,
    *,
    corpus: Mapping[str, Any],
    counts: Mapping[str, Any],
    shards: int,
    analyses: Sequence[str],
    linears: LinearsChoice,
    threads: int,
    command: Sequence[str],
    long: str = "",
    engine: str = "processes",
    notes: Sequence[str] = (),
) -> Manifest:
    """The manifest of a run that begins now.

    spec  everything that decides the numbers; its settings hold `seed` and `replicates`
    long  how inputs without whole maps were read; "" where there are none
    engine  what shares out the shards where the run begins
    notes   what makes the numbers doubtful, beside what the model and the files say themselves
    """
    doubts = [printable(note) for note in (*model.notes, *equal_files(corpus), *notes)]
    return {
        "spec": spec,
        "fingerprint": fingerprint(spec),
        "versions": versions(),
        "model": {
            "name": model.name,
            "revision": model.revision,
            "sha256": model.sha256,
            "architecture": model.architecture,
            "layers": model.shape.layers,
            "heads": model.shape.heads,
            "stack": model.shape.stack,
            "special_tokens": model.special_tokens,
            **precision_of(dtype_of(model)),
            **({"size": model.shape.size} if model.shape.others or model.shape.reads else {}),
            **({"encoder_reads": model.shape.reads} if model.shape.reads else {}),
            **({"layer_numbers": list(model.shape.numbers)} if model.shape.numbers else {}),
        },
        "corpus": dict(corpus),
        "counts": dict(counts),
        "shards": shards,
        "analyses": list(analyses),
        "linears": linears.kind,
        "linears_by": "; ".join(filter(None, (linears.by, linears.trouble))),
        "threads": threads,
        **({"engine": engine} if engine != "processes" else {}),
        "seed": spec["settings"]["seed"],
        "replicates": spec["settings"]["replicates"],
        "command": shlex.join(command),
        **({"long": long} if long else {}),
        **({"notes": doubts} if doubts else {}),
        "created": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def several_runs(spec: dict[str, Any], command: Sequence[str] = (), **more: Any) -> Manifest:
    """The manifest of a folder of several runs on one corpus, which begins now."""
    return {
        "spec": spec,
        "fingerprint": fingerprint(spec),
        "versions": versions(),
        "corpus": spec["corpus"],
        "command": shlex.join(command),
        **more,
    }


def equal_files(corpus: Mapping[str, Any]) -> list[str]:
    """Files of a corpus that are equal, in words; of a corpus as `Corpus.describe` tells of it."""
    names = dict[str, list[str]]()
    for file in corpus.get("files", []):
        if digest := file.get("sha256"):
            names.setdefault(digest, []).append(str(file["name"]))
    return [
        f"{' and '.join(dict.fromkeys(some))}: {len(some)} files hold the same, which is read "
        f"{len(some)} times"
        for some in names.values()
        if len(some) > 1
    ]


def label(
    results: Mapping[str, xr.Dataset], manifest: Manifest, *, title: str, **more: str
) -> xr.DataTree:
    """All results as one tree; the root's attributes name model, corpus and versions.

    Neither the date nor how it was run is among them: the same spec gives the same file.

    results  by group; where only some layers attend, these get the model's own numbers
    more     further attributes of the root
    """
    m, c = manifest["model"], manifest["counts"]
    attrs = {
        "title": title,
        "model": m["name"],
        "revision": m["revision"],
        "model_sha256": m["sha256"],
        "architecture": m["architecture"],
        "layers": m["layers"],
        "heads": m["heads"],
        "stack": m["stack"],
        "cls_token": m["special_tokens"].get("cls", ""),
        "sep_token": m["special_tokens"].get("sep", ""),
        "corpus": _one_line(manifest["corpus"]),
        **{k: c[k] for k in ("documents", "examples", "tokens", "skipped", "windowed")},
        "seed": manifest["seed"],
        "replicates": manifest["replicates"],
        "headscope_version": manifest["versions"]["headscope"],
        "spec_fingerprint": manifest["fingerprint"],
        "indexing": "layers and heads count from 0; query attends to key",
    }
    if numbers := m.get("layer_numbers"):
        results = {name: own_layers(one, numbers) for name, one in results.items()}
        attrs["layer_numbers"] = " ".join(map(str, numbers))
    if "counted" in manifest["corpus"]:  # the unit that is counted instead of documents
        attrs["counted"] = manifest["corpus"]["counted"]
    # File names may hold what HDF5 cannot: lone surrogates and NUL.
    texts = {k: printable(v) if isinstance(v, str) else v for k, v in (attrs | more).items()}
    root = xr.Dataset(attrs=texts)
    groups = {f"/{name}": storable(one) for name, one in results.items()}
    return xr.DataTree.from_dict({"/": root, **groups})


def storable(one: xr.Dataset) -> xr.Dataset:
    """A result whose strings HDF5 can store; itself if they all can be."""
    mended = {}
    for name, variable in one.variables.items():
        texts = variable.values.flat if variable.dtype.kind in "OU" else ()
        if any(_UNSTORABLE.search(str(text)) for text in (*texts, *variable.attrs.values())):
            attrs = {key: _storable(value) for key, value in variable.attrs.items()}
            values = variable.values
            if values.dtype.kind in "OU":
                values = np.vectorize(_storable, otypes=[object])(values)
            mended[name] = (variable.dims, values, attrs)
    if mended:
        one = one.assign(mended).set_coords(set(mended) & set(one.coords))
    attrs = {key: _storable(value) for key, value in one.attrs.items()}
    return one.assign_attrs(attrs) if attrs != one.attrs else one


def _storable(value: Any) -> Any:
    return _UNSTORABLE.sub("\ufffd", value) if isinstance(value, str) else value


def training_history(checkpoint: str) -> dict[str, Any] | None:
    """The training of a checkpoint, from its finetuned.json; None without a readable one.

    returns  base (the model it began as), start ("new head": weights of the base; "random"), task,
             metric, learned (examples), scored (examples), settings, and before, after: value,
             ci_low, ci_high, None where undefined
    """
    try:
        record = json.loads((Path(checkpoint) / TRAINING_RECORD).read_text("utf-8"))
        task, data, metrics = record["task"], record["data"], record["metrics"]
        metric = str(task["metrics"][0])
        return {
            "base": str(record["model"]["name"]),
            "start": str(record["model"]["start"]),
            "task": str(task["name"]),
            "metric": metric,
            "learned": int(data["train"]["examples"]),
            "scored": int(data["dev"]["examples"]),
            "settings": {k: record["settings"][k] for k in _TRAINING if k in record["settings"]},
            **{when: _score(metrics[when], metric) for when in ("before", "after")},
        }
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        OSError,
        RecursionError,
        TypeError,
        ValueError,
    ):
        return None  # the report lacks a row; commands that need the record say what is wrong


def _score(metrics: dict[str, Any], metric: str) -> dict[str, float | None]:
    named = {"value": metric, "ci_low": "ci_low", "ci_high": "ci_high"}
    known = {name: metrics.get(key) for name, key in named.items()}
    return {name: None if v is None else json_number(float(v)) for name, v in known.items()}


def versions() -> dict[str, str]:
    """Versions of headscope and of the libraries that decide its numbers."""
    import transformers

    return {
        "headscope": headscope.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
        "xarray": xr.__version__,
    }


def deciding_versions() -> dict[str, str]:
    """Versions that decide the numbers; patch releases of torch or transformers do not."""
    import transformers

    minor = {"torch": torch.__version__, "transformers": transformers.__version__}
    return {
        "headscope": headscope.__version__,
        **{name: ".".join(version.split(".")[:2]) for name, version in minor.items()},
    }


def _tokenizer_sha256(model: Model) -> str:
    """Hash of the vocabulary in the order of its ids, and of which tokens are special."""
    v = model.vocabulary
    special = repr((v.cls, v.sep, v.punctuation, v.pad))
    return sha256_of((_names(model.tokenizer, len(model.tokenizer)), special))


@lru_cache(maxsize=1)
def _names(tokenizer: Any, _count: int) -> str:
    ids = tokenizer.get_vocab()
    return "\x1f".join(sorted(ids, key=ids.__getitem__))


def dtype_of(model: Model) -> str:
    """The type of a model's parameters, say "float32"."""
    return str(model.network.dtype).removeprefix("torch.")


def _one_line(corpus: Mapping[str, Any]) -> str:
    names = [str(f["name"]) for f in corpus.get("files", [])]
    count = corpus.get("file_count", len(names))
    shown = ", ".join(names[:3]) + (f" and {count - 3} more" if count > 3 else "")
    return f"{corpus['kind']}: {shown}" if shown else str(corpus["kind"])
