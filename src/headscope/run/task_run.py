"""How do the results of a command other than `atlas` become a run folder, which `report` can read?

    asked = Asked("ablate", model, corpus=of_task(data), examples=encoded.examples, settings={…})
    run = task_run(asked, compute, output="run")       # compute(parts) -> {"ablation": dataset}

The folder is one of `headscope atlas` in every respect: the same manifest, atlas.nc, tables,
figures and page. A finished run of the same spec is opened, not computed again; what a command
keeps as parts survives an interruption.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import xarray as xr

import headscope
from headscope.corpus.contents import EncodeCounts
from headscope.corpus.document import Example
from headscope.model.model import Model
from headscope.run.finished_run import Run, open_run
from headscope.run.manifest import differs, found_manifest, label, manifest_of
from headscope.run.store import RunFolder, State
from headscope.tasks.task_data import TaskData
from headscope.tasks.training_record import history_of


@dataclass(frozen=True)
class Asked:
    """What a command was asked; all but `linears`, `line` and the words of `corpus` is its spec.

    command   its name: "ablate"
    model     the model that the run is about
    corpus    `kind`, and `files` with name and sha256, as `Corpus.describe`; see `of_task`
    examples  what the model is shown; each is taken for a document unless their ids say otherwise
    settings  everything else that decides the numbers: values that JSON knows
    others    further models by the part that they play, say "base"
    cut       examples that were shortened
    counts    further counts for the manifest: what was skipped, or read in windows
    linears   says which linear maps are fastest; asked once, when a run begins
    line      the command line
    """

    command: str
    model: Model
    corpus: Mapping[str, Any]
    examples: Sequence[Example]
    settings: Mapping[str, Any]
    others: Mapping[str, Model] = field(default_factory=dict)
    seed: int = 0
    replicates: int = 1000
    cut: int = 0
    counts: Mapping[str, Any] = field(default_factory=dict)
    linears: Callable[[], str] = lambda: "stock"
    line: Sequence[str] = ()


class Parts:
    """What a long computation keeps as it goes, so that the same command can go on from there.

    linears  "onednn" or "stock", as chosen when the run began
    """

    def __init__(self, folder: RunFolder | None, linears: str) -> None:
        self.folder, self.linears = folder, linears
        self._done = folder.finished() if folder else set()

    def part(self, number: int, make: Callable[[], State]) -> State:
        """Named arrays: what was kept under this number, else what `make` gives, then kept."""
        if self.folder is None:
            return make()
        if number not in self._done:
            self.folder.put_shard(number, make())
            self._done.add(number)
        return self.folder.shard(number)


Compute = Callable[[Parts], Mapping[str, xr.Dataset]]


def task_run(
    asked: Asked, compute: Compute, *, output: str | Path | None = None, overwrite: bool = False
) -> Run:
    """The run of that spec: opened if it is finished, else computed and kept.

    compute    gives the results by group; called with where parts of them may be kept
    output     run folder; None: in memory
    overwrite  replace a run of another spec in the same folder
    raises     RunFolderError where the folder holds something else
    """
    folder = None if output is None else RunFolder(output)
    spec = _spec(asked)
    with folder.locked() if folder else nullcontext():
        manifest = None
        if folder is not None:
            folder.prepare(overwrite=overwrite and differs(folder, spec))
            manifest = found_manifest(folder, spec)
            if manifest is not None and folder.has_results(manifest.get("results_sha256")):
                return open_run(folder.path)
        if manifest is None:
            manifest = _manifest(asked, spec)
            if folder is not None:
                folder.write_manifest(manifest)
        results = compute(Parts(folder, manifest["linears"]))
        manifest["analyses"] = sorted(results)
        tree = label(dict(results), manifest)
        tree.attrs["title"] = f"headscope {asked.command}"
        if folder is None:
            return Run(tree, manifest)
        buffer = io.BytesIO()
        tree.to_netcdf(buffer, engine="h5netcdf")
        manifest["results_sha256"] = folder.put_results(buffer.getvalue())
        folder.write_manifest(manifest)
        return Run(tree, manifest, folder.path)


def of_task(data: TaskData) -> dict[str, Any]:
    """A task's data as `Asked.corpus`."""
    file = {"name": data.source, "sha256": data.sha256}
    return {
        "kind": f"task {data.task.name}", "files": [file], "counted": "examples",
        "rows_sha256": data.rows_sha256, "labels": list(data.task.labels),
        "notes": list(data.notes),
    }  # fmt: skip


def _spec(asked: Asked) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(dict(asked.settings)))
    return {
        "headscope": headscope.__version__,
        "command": asked.command,
        "model": _identity(asked.model),
        "others": {part: _identity(model) for part, model in asked.others.items()},
        "corpus": {
            "inputs_sha256": digest_of(asked.examples),
            "rows_sha256": asked.corpus.get("rows_sha256"),
        },
        "settings": {**plain, "seed": asked.seed, "replicates": asked.replicates},
    }


def _manifest(asked: Asked, spec: dict[str, Any]) -> dict[str, Any]:
    counts = EncodeCounts(
        documents=len({e.document for e in asked.examples}),
        examples=len(asked.examples),
        tokens=sum(map(len, asked.examples)),
    ).as_dict()
    manifest = manifest_of(
        spec, asked.model, corpus=asked.corpus, shards=0,
        counts={**counts, "cut": asked.cut, **asked.counts},
        analyses=[], linears=asked.linears(), threads=torch.get_num_threads(), command=asked.line,
    )  # fmt: skip
    return manifest | {"history": history_of(asked.model.name)}


def _identity(model: Model) -> dict[str, Any]:
    dtype = str(model.network.dtype).removeprefix("torch.")
    return {
        "sha256": model.sha256, "architecture": model.architecture, "dtype": dtype,
        "stack": model.shape.stack,
    }  # fmt: skip


def digest_of(examples: Sequence[Example]) -> str:
    """Hex sha256 over all inputs in order."""
    digest = hashlib.sha256()
    for example in examples:
        for part in (example.id, example.document):
            digest.update(part.encode("utf-8", "surrogatepass") + b"\x1f")
        digest.update(example.input_ids.tobytes() + b"\x1e" + example.segment_ids.tobytes())
    return digest.hexdigest()
