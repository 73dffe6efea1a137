"""Run a paper: compute its runs, hold its claims against them, write one folder.

OUT/report.html   the page, in the paper's order
OUT/lines.csv, lines.json
OUT/figures/      RUN-FIGURE.svg and .png
OUT/runs/RUN/     a run folder each; `headscope report` works on them
OUT/manifest.json what was asked, and what came of it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import headscope
from headscope.core.whole_file import write_whole
from headscope.draw.figures import draw, pictures
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
from headscope.run.finished_run import Run
from headscope.run.life_cycle import run_in_progress
from headscope.run.manifest import Manifest
from headscope.run.settings import fingerprint
from headscope.run.store import RESULTS, RunFolder, put, why_unwritten

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
    "told": task_runs.feature_change,
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
    folder = RunFolder(workspace.folder, parts="runs")
    new_manifest = partial(_manifest, spec)
    with run_in_progress(folder, spec, new_manifest, overwrite=workspace.overwrite) as progress:
        if not workspace.overwrite:
            _check_data(workspace, progress.manifest["data"])
        outcome = _outcome(paper, workspace, command)
        _write(outcome)
        progress.manifest |= _outcome_record(outcome)
        progress.save_manifest()
    return outcome


def _outcome(paper: Paper, workspace: Workspace, command: str) -> PaperOutcome:
    own = is_own(paper, workspace.model)
    runs, absent, seconds = make_runs(workspace, paper.runs, MAKERS)
    sources = workspace.data.sources.values()
    others = {source.key: source.elsewhere for source in sources}
    results = PaperRuns(runs, own=own, absent=absent, others=others)
    return PaperOutcome(
        paper, workspace.folder, _about(workspace.model), own,
        [against_published(claim, results, group.id)
         for group in paper.groups for claim in group.claims],
        runs, absent,
        [{"key": s.key, "name": s.name, "elsewhere": s.elsewhere}
         for s in sources if s.key in workspace.data.used],
        workspace.limit, seconds, command,
    )  # fmt: skip


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


def _check_data(workspace: Workspace, before: Sequence[Mapping[str, str]]) -> None:
    """Raises RunFolderError where the folder's runs read other data than are given now."""
    now = {key: source.name for key, source in workspace.data.sources.items()}
    changes = [
        f"{source['key']} was {source['name']}, is {now.get(source['key'], 'none')}"
        for source in before
        if now.get(source["key"], "none") != source["name"]
    ]
    if changes:
        raise RunFolderError(
            f"{workspace.folder} was made of other data: {', '.join(changes)}\n"
            "give the same, choose another folder with -o, or --overwrite what differs"
        )


def _manifest(spec: Mapping[str, Any]) -> Manifest:
    """The manifest before the first run."""
    return {
        "spec": dict(spec), "fingerprint": fingerprint(spec), "data": [],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip


def _outcome_record(outcome: PaperOutcome) -> Manifest:
    """What the manifest says at the end."""
    return {
        "headscope": headscope.__version__, "command": outcome.command,
        "model": dict(outcome.model), "own_model": outcome.own, "data": list(outcome.data),
        "counts": outcome.counts,
        "runs": {
            name: {"fingerprint": run.manifest.get("fingerprint"), "seconds": outcome.seconds[name]}
            for name, run in outcome.runs.items()
        },
        "absent": dict(outcome.absent),
    }  # fmt: skip


def _about(model: Model) -> dict[str, Any]:
    return {
        "name": model.name, "revision": model.revision, "sha256": model.sha256,
        "architecture": model.architecture, "layers": model.shape.layers,
        "heads": model.shape.heads,
    }  # fmt: skip


def _write(outcome: PaperOutcome) -> None:
    folder = outcome.folder
    try:
        _figures(outcome)
        put(folder / "lines.csv", claims_csv(outcome.claims, own=outcome.own).encode())
        put(folder / "lines.json", as_json(summary(outcome)).encode())
        put(folder / "report.html", render(outcome).encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise why_unwritten(error, folder) from error


def _figures(outcome: PaperOutcome) -> None:
    for shown in (figure for group in outcome.paper.groups for figure in group.figures):
        run = outcome.runs.get(shown.run)
        if run is None or not pictures()[shown.figure].available(run.tree):
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
