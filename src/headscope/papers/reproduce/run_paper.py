"""Run a paper: compute its runs, hold its claims against them, write one folder.

OUT/report.html   the page, in the paper's order
OUT/lines.csv, lines.json
OUT/figures/      RUN-FIGURE.svg and .png
OUT/runs/RUN/     a run folder each; `headscope report` works on them
OUT/manifest.json what was asked, and what came of it
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import headscope
from headscope.core.whole_file import write_whole
from headscope.draw.saving import write_picture
from headscope.errors import InputError, RunFolderError
from headscope.model.model import Model
from headscope.papers.claim_engine import Paper, against_published
from headscope.papers.quantities import DEPENDENCY, NORMS, SURFACE, PaperRuns
from headscope.papers.reproduce import (
    clark2019,
    kobayashi2020,
    kovaleva2019,
    paper_runs,
    task_runs,
)
from headscope.papers.reproduce.page import render
from headscope.papers.reproduce.paper_outcome import PaperOutcome, as_json, claims_csv, summary
from headscope.papers.reproduce.workspace import RunMaker, Workspace, make_runs
from headscope.report.figures import PICTURES, draw
from headscope.run.finished_run import Run
from headscope.run.store import MANIFEST, RESULTS, put, why_unwritten

PAPERS: dict[str, Paper] = {
    paper.name: paper for paper in (clark2019.PAPER, kovaleva2019.PAPER, kobayashi2020.PAPER)
}
MAKERS: dict[str, RunMaker] = {
    SURFACE: paper_runs.surface,
    NORMS: paper_runs.norms,
    "tokens": paper_runs.tokens,
    DEPENDENCY: paper_runs.dependency,
    "coreference": paper_runs.coreference,
    "frames": paper_runs.frames,
    "words": paper_runs.words,
    "split": paper_runs.split,
    "gradients": paper_runs.gradients,
    "probes": paper_runs.probes,
    "tuned": task_runs.tuned,
    "scratch": task_runs.scratch,
    "compare": task_runs.compared,
    "told": task_runs.told,
    "ablate": task_runs.ablated,
    "alignment": paper_runs.alignment,
}
KINDS = ("svg", "png")
OWNER = "google-bert"  # of BERT on the hub
VOCABULARY = {"bert-base-uncased": 30522, "bert-base-cased": 28996}  # tokens


def find_paper(name: str) -> Paper:
    """The paper of that name; raises InputError that lists them."""
    if name not in PAPERS:
        raise InputError(f"no paper called {name!r}; there are {', '.join(PAPERS)}")
    return PAPERS[name]


def reproduce(paper: Paper, workspace: Workspace, *, command: str = "") -> PaperOutcome:
    """Computes the runs that can be had, judges every claim, writes the folder.

    raises  RunFolderError for a folder of something else (unless the workspace overwrites),
            ModelError, RunStopped
    """
    spec = {
        "paper": paper.name, "model": workspace.model_name, "limit": workspace.limit,
        "seed": workspace.seed, "replicates": workspace.replicates,
        "loading": dict(workspace.loading),
    }  # fmt: skip
    _check(workspace, spec)
    model = workspace.model
    _claim(workspace.folder, spec)
    own = is_own(paper, model)
    runs, absent, seconds = make_runs(workspace, paper.runs, MAKERS)
    sources = workspace.data.sources.values()
    others = {source.key: source.elsewhere for source in sources}
    results = PaperRuns(runs, own=own, absent=absent, others=others)
    outcome = PaperOutcome(
        paper, workspace.folder, _about(model), own,
        [against_published(claim, results, group.id)
         for group in paper.groups for claim in group.claims],
        runs, absent,
        [{"key": s.key, "name": s.name, "elsewhere": s.elsewhere}
         for s in sources if s.key in workspace.data.used],
        workspace.limit, seconds, command,
    )  # fmt: skip
    _write(outcome, spec)
    return outcome


def is_own(paper: Paper, model: Model) -> bool:
    """Whether a model is the paper's own, by its name, shape and size of vocabulary.

    The name is an id of the hub, whole, or the last part of a local folder's.
    """
    owner, _, name = model.name.rstrip("/\\").replace("\\", "/").rpartition("/")
    if name not in paper.names or (model.revision and owner not in ("", OWNER)):
        return False
    size = getattr(model.network.config, "vocab_size", None)
    return (model.shape.layers, model.shape.heads, size) == (12, 12, VOCABULARY[name])


# --- the folder -----------------------------------------------------------------------------


def _check(workspace: Workspace, spec: Mapping[str, Any]) -> None:
    """Raises RunFolderError where the folder holds something else, or a paper of another spec."""
    folder = workspace.folder
    file = folder / MANIFEST
    try:
        if not file.is_file():
            if folder.exists() and any(folder.iterdir()):
                raise RunFolderError(f"{folder} holds something else; choose a new folder with -o")
            return
        manifest = json.loads(file.read_text("utf-8"))
        before_spec = manifest.get("spec")
        before = {str(d["key"]): str(d["name"]) for d in manifest.get("data", ())}
    except (ValueError, AttributeError, TypeError, KeyError) as error:
        raise RunFolderError(
            f"{file} is no manifest of ours ({error}); choose another folder with -o"
        ) from error
    except OSError as error:
        raise why_unwritten(error, folder) from error
    if workspace.overwrite:
        return
    if before_spec != json.loads(json.dumps(spec)):
        raise RunFolderError(
            f"{folder} holds {_spec_words(before_spec)}, now asked is {_spec_words(spec)}\n"
            "choose another folder with -o, or --overwrite it"
        )
    now = {key: source.name for key, source in workspace.data.sources.items()}
    if other := [key for key, name in before.items() if now.get(key, "none") != name]:
        changes = ", ".join(f"{key} was {before[key]}, is {now.get(key, 'none')}" for key in other)
        raise RunFolderError(
            f"{folder} was made of other data: {changes}\n"
            "give the same, choose another folder with -o, or --overwrite what differs"
        )


def _claim(folder: Path, spec: Mapping[str, Any]) -> None:
    """Writes what is asked before the first run; a manifest of the same spec is kept."""
    file = folder / MANIFEST
    before = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    if before.get("spec") != json.loads(json.dumps(spec)):
        put(file, as_json({"spec": spec}).encode())


def _spec_words(spec: Any) -> str:
    asked = spec if isinstance(spec, dict) else {}
    limit = f", limit {asked['limit']}" if asked.get("limit") else ""
    return f"{asked.get('paper', 'another run')} of {asked.get('model', '?')}{limit}"


def _about(model: Model) -> dict[str, Any]:
    return {
        "name": model.name, "revision": model.revision, "sha256": model.sha256,
        "architecture": model.architecture, "layers": model.shape.layers,
        "heads": model.shape.heads,
    }  # fmt: skip


def _write(outcome: PaperOutcome, spec: Mapping[str, Any]) -> None:
    folder = outcome.folder
    try:
        _figures(outcome)
        put(folder / "lines.csv", claims_csv(outcome.claims, own=outcome.own).encode())
        put(folder / "lines.json", as_json(summary(outcome)).encode())
        put(folder / "report.html", render(outcome).encode("utf-8", "backslashreplace"))
        put(folder / MANIFEST, as_json(_manifest(outcome, spec)).encode())
    except OSError as error:
        raise why_unwritten(error, folder) from error


def _figures(outcome: PaperOutcome) -> None:
    for shown in (figure for group in outcome.paper.groups for figure in group.figures):
        run = outcome.runs.get(shown.run)
        if run is None or not PICTURES[shown.figure].available(run.tree):
            continue
        name = f"{shown.run.replace(':', '-')}-{shown.figure}"
        places = [outcome.folder / "figures" / f"{name}.{kind}" for kind in KINDS]
        if all(_drawn_since(place, run) for place in places):
            continue
        figure = draw(run.tree, shown.figure)
        for place, kind in zip(places, KINDS, strict=True):
            write_whole(place, partial(write_picture, figure, kind))


def _drawn_since(place: Path, run: Run) -> bool:
    """Whether a figure is there, and newer than the run's results."""
    if run.path is None or not place.is_file():
        return False
    return place.stat().st_mtime_ns >= (run.path / RESULTS).stat().st_mtime_ns


def _manifest(outcome: PaperOutcome, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "spec": dict(spec), "headscope": headscope.__version__, "command": outcome.command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"), "model": dict(outcome.model),
        "own_model": outcome.own, "data": list(outcome.data), "counts": outcome.counts,
        "runs": {
            name: {"fingerprint": run.manifest.get("fingerprint"), "seconds": outcome.seconds[name]}
            for name, run in outcome.runs.items()
        },
        "absent": dict(outcome.absent),
    }  # fmt: skip
