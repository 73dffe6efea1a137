"""How does a corpus become a run: planned, computed shard by shard, merged, labelled?

    run = atlas(load("demo"), demo_corpus(), output="atlas-demo")
    run["entropy"]
"""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

import headscope
from headscope.analysis import Analysis, Scope, analyses, choose
from headscope.batch import Batch
from headscope.corpus import Corpus, batches
from headscope.engine.compute import Task
from headscope.engine.local import ModelPlace, run_here, run_workers
from headscope.errors import InputError, RunFolderError, RunStopped
from headscope.linears import choose as choose_linears
from headscope.model import Model, forward
from headscope.plan import Plan, Reader, corpus_ranks, make_plan, read_ranks
from headscope.spec import Settings, differences, fingerprint
from headscope.store import RESULTS, RunFolder, State, put


@dataclass(frozen=True)
class Execution:
    """How to run; nothing here changes a result beyond the last bits of float32.

    workers    processes; each holds a copy of the model
    threads    threads of each process; None: all cores shared among the workers
    linears    "auto", "onednn" or "stock"
    overwrite  replace a run of another spec in the same folder
    progress   called as progress(shards_done, shards)
    command    the command line, for the report
    """

    workers: int = 1
    threads: int | None = None
    linears: str = "auto"
    overwrite: bool = False
    progress: Any = None
    command: Sequence[str] = ()


def atlas(
    model: Model,
    corpus: Corpus,
    *,
    output: str | Path | None = None,
    settings: Settings | None = None,
    execution: Execution | None = None,
    frequency: str | Path | None = None,
    **more: Any,
) -> Run:
    """Run all analyses over a corpus in one pass.

    output     run folder; an unfinished run of the same spec there is continued. None: in memory
    settings   what to compute; its fields may also be given as keywords: atlas(..., limit=10)
    execution  how to run it
    frequency  file of lines "rank count token-id"; None: ranks are counted in the corpus
    raises     InputError and its kinds before anything is computed; RunStopped on Ctrl-C
    """
    settings = settings or Settings(**more)
    execution = execution or Execution()
    if settings.analyses is not None and more and "analyses" not in more:
        raise InputError("give settings=Settings(...) or its fields as keywords, not both")
    names = _possible(model, settings)
    folder = RunFolder(output) if output is not None else None
    plan = make_plan(model, corpus, settings)
    ranks = _ranks(plan, frequency, model)
    spec = _spec(model, corpus, plan, settings, names, frequency)
    scope = Scope(
        layers=model.shape.layers, heads=model.shape.heads, documents=plan.counts.documents,
        special_tokens=model.special_tokens, frequency_rank=ranks,
        replicates=settings.replicates, seed=settings.seed,
    )  # fmt: skip
    if folder is not None:
        folder.prepare(overwrite=execution.overwrite and _differs(folder, spec))
    with folder.locked() if folder else nullcontext():
        manifest = _manifest(folder, spec, model, corpus, plan, execution, settings)
        task = Task(
            corpus, settings, scope, tuple(names), model.shape.stack, manifest["linears"],
            manifest["threads"], {k: dict(v) for k, v in settings.options.items()},
        )  # fmt: skip
        merged = _compute(model, task, plan, folder, execution)
        tree = _label({a.name: a.result() for a in merged}, manifest)
        if folder is not None:
            _write(tree, folder.path / RESULTS)
    return Run(tree, manifest, folder.path if folder else None)


def open_run(path: str | Path) -> Run:
    """A finished run from its folder; raises RunFolderError if it is none, or not finished."""
    folder = RunFolder(path)
    manifest = folder.manifest()
    if manifest is None:
        raise RunFolderError(f"{path} is no run folder (no manifest.json)")
    if not (folder.path / RESULTS).exists():
        raise RunFolderError(f"{path} is not finished; run its command again: {manifest['command']}")
    return Run(xr.load_datatree(folder.path / RESULTS, engine="h5netcdf"), manifest, folder.path)


@dataclass
class Run:
    """The results of a run, one xarray Dataset per analysis.

    tree      the whole, an xarray DataTree
    manifest  what was asked and found
    path      the run folder, or None if the run was in memory
    """

    tree: xr.DataTree
    manifest: dict[str, Any] = field(repr=False)
    path: Path | None = None

    def __getitem__(self, name: str) -> xr.Dataset:
        """The results of one analysis."""
        if name not in self.tree.children:
            there = ", ".join(self.tree.children)
            raise KeyError(f"no analysis called {name!r} in this run; there are {there}")
        return self.tree[name].to_dataset(inherit=False)

    def __iter__(self) -> Iterator[str]:
        """The names of the analyses."""
        return iter(self.tree.children)

    def report(self) -> Path:
        """(Re)build tables, figures and report.html from the results; returns report.html."""
        from headscope.derived import write_tables
        from headscope.draw import save_figures
        from headscope.report import build_report

        if self.path is None:
            raise InputError("this run is in memory; give atlas(..., output=FOLDER) for a report")
        write_tables(self.tree, self.path / "tables")
        save_figures(self.tree, self.path / "figures")
        return build_report(self.tree, self.manifest, self.path)

    def __repr__(self) -> str:
        """What was run on what, and which analyses there are."""
        m, c = self.manifest["model"], self.manifest["counts"]
        return (
            f"<headscope.Run {m['name']} on {c['documents']} documents, {c['tokens']} tokens: "
            f"{', '.join(self)}>"
        )

    def _repr_html_(self) -> str:
        from headscope.report import run_summary

        return run_summary(self.tree, self.manifest)


# --- steps of atlas -------------------------------------------------------------------------


def _possible(model: Model, settings: Settings) -> list[str]:
    """The analyses to run; raises InputError for one asked for that this model does not allow."""
    allowed = model.allows
    known = analyses()
    names = []
    for name in choose(settings.analyses):
        missing = known[name].needs - allowed
        if not missing:
            names.append(name)
        elif settings.analyses is not None:
            raise InputError(
                f"{name} needs {', '.join(sorted(missing))}, which cannot be read from "
                f"{model.architecture}; leave it out of --analyses"
            )
    return names


def _ranks(plan: Plan, frequency: str | Path | None, model: Model) -> np.ndarray[Any, Any]:
    if frequency is None:
        return corpus_ranks(plan.token_counts)
    return read_ranks(Path(frequency), len(model.tokenizer))


def _spec(
    model: Model,
    corpus: Corpus,
    plan: Plan,
    settings: Settings,
    names: list[str],
    frequency: str | Path | None,
) -> dict[str, Any]:
    """Everything that decides the numbers."""
    from headscope.model import file_sha256

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
        "settings": {**settings.as_dict(), "analyses": names},
    }


def _differs(folder: RunFolder, spec: Mapping[str, Any]) -> bool:
    try:
        manifest = folder.manifest()
    except RunFolderError:
        return True
    return manifest is not None and manifest["fingerprint"] != fingerprint(spec)


def _manifest(
    folder: RunFolder | None,
    spec: dict[str, Any],
    model: Model,
    corpus: Corpus,
    plan: Plan,
    execution: Execution,
    settings: Settings,
) -> dict[str, Any]:
    """The manifest of the run in this folder, or a new one; raises if another spec is there.

    What was chosen by timing when the run began (linears, threads) stays, so that a continued run
    gives the same bits.
    """
    found = folder.manifest() if folder else None
    if found is not None:
        if found["fingerprint"] == fingerprint(spec):
            return found
        where = differences(found["spec"], spec)
        raise RunFolderError(
            f"{folder.path if folder else ''} holds a run of another spec "
            f"({'; '.join(where[:3])}{'; …' if len(where) > 3 else ''})\n"
            "nothing of it can be reused: choose another folder with -o, or --overwrite it"
        )
    threads = execution.threads or max(1, _cores() // execution.workers)
    manifest = {
        "spec": spec,
        "fingerprint": fingerprint(spec),
        "versions": versions(),
        "model": {
            "name": model.name, "revision": model.revision, "sha256": model.sha256,
            "architecture": model.architecture, "layers": model.shape.layers,
            "heads": model.shape.heads, "stack": model.shape.stack,
            "special_tokens": model.special_tokens,
        },
        "corpus": corpus.describe(),
        "counts": plan.counts.as_dict(),
        "shards": len(plan.shards),
        "analyses": spec["settings"]["analyses"],
        "linears": _fastest(model, corpus, plan, settings, execution, threads),
        "threads": threads,
        "seed": settings.seed,
        "replicates": settings.replicates,
        "command": shlex.join(execution.command),
        "created": datetime.now(UTC).strftime("%Y-%m-%d"),
    }  # fmt: skip
    if folder is not None:
        folder.write_manifest(manifest)
    return manifest


def _fastest(
    model: Model,
    corpus: Corpus,
    plan: Plan,
    settings: Settings,
    execution: Execution,
    threads: int,
) -> str:
    """Time the linear maps on the first batch of the corpus."""
    from headscope.engine.compute import set_threads

    set_threads(threads)
    examples = Reader(model, corpus, settings).examples(plan.shards[0])
    rows = list(batches(examples, budget=settings.batch_tokens))[-1]
    batch = Batch.of([examples[r] for r in rows], model.vocabulary, replicates=0, device=model.device)

    def once() -> torch.Tensor:
        output = forward(model.network, batch.input_ids, batch.mask, batch.segment_ids)
        return output[0][batch.mask]  # type: ignore[no-any-return]

    return choose_linears(model.network, once, asked=execution.linears)


def _compute(
    model: Model, task: Task, plan: Plan, folder: RunFolder | None, execution: Execution
) -> list[Analysis]:
    """Compute the missing shards and merge all of them, in order."""
    kept: dict[int, State] = {}
    done = folder.finished() if folder else set()
    todo = [shard for shard in plan.shards if shard.number not in done]
    keep = folder.put_shard if folder else kept.__setitem__
    report = execution.progress or (lambda done, total: None)
    count = len(plan.shards) - len(todo)
    report(count, len(plan.shards))
    try:
        if execution.workers > 1 and len(todo) > 1:
            computed = run_workers(_place(model), task, todo, keep, workers=execution.workers)
        else:
            computed = run_here(model, task, todo, keep)
        for _ in computed:
            count += 1
            report(count, len(plan.shards))
    except KeyboardInterrupt as error:
        raise RunStopped(
            f"stopped; {count} of {len(plan.shards)} shards are finished"
            + (" and kept: the same command goes on from here" if folder else "")
        ) from error
    merged = task.new_analyses()
    for shard in plan.shards:
        state = folder.shard(shard.number) if folder else kept[shard.number]
        parts = task.new_analyses()
        for whole, part in zip(merged, parts, strict=True):
            prefix = f"{part.name}/"
            part.load({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
            whole.merge(part)
    return merged


def _place(model: Model) -> ModelPlace:
    if model.load_options is None:
        raise InputError(
            "several workers load the model themselves; give a name or a folder to load(), "
            "or use one worker"
        )
    return ModelPlace(model.name, model.load_options)


def _label(results: dict[str, xr.Dataset], manifest: dict[str, Any]) -> xr.DataTree:
    """The DataTree of all results, with what was run on what as attributes of the root."""
    m, c = manifest["model"], manifest["counts"]
    root = xr.Dataset(
        attrs={
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
        }
    )  # fmt: skip
    return xr.DataTree.from_dict({"/": root, **{f"/{k}": v for k, v in results.items()}})


def _one_line(corpus: Mapping[str, Any]) -> str:
    names = [str(f["name"]) for f in corpus.get("files", [])]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{corpus['kind']}: {shown}" if shown else str(corpus["kind"])


def _write(tree: xr.DataTree, path: Path) -> None:
    """Write the results, whole or not at all."""
    import io

    buffer = io.BytesIO()
    tree.to_netcdf(buffer, engine="h5netcdf")
    put(path, buffer.getvalue())


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
