"""Run a paper: compute its runs, test its claims on them, write one folder.

OUT/report.html   the page, in the paper's order
OUT/lines.csv, lines.json
OUT/figures/      figure-2.svg and .png: the paper's; RUN-FIGURE: others
OUT/runs/RUN/     a run folder each; `headscope report` works on them
OUT/manifest.json the request and the outcome
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

import headscope
from headscope.claims.verdict import not_asked
from headscope.core.plug_ins import announced
from headscope.core.whole_file import write_whole
from headscope.draw.figures import draw, pictures
from headscope.draw.saving import save_picture
from headscope.errors import InputError, ModelError, RunFolderError, one_line
from headscope.page.shell import write_page
from headscope.papers import claim_engine, decoder_runs, paper_runs
from headscope.papers.claim_engine import ClaimOutcome, Paper, PaperClaim
from headscope.papers.gallery import save_plates
from headscope.papers.own_models import own_model
from headscope.papers.page import PaperOutcome, render
from headscope.papers.paper_data import GROUP
from headscope.papers.quantities import PaperRuns
from headscope.papers.workspace import RunMaker, Workspace, make_runs
from headscope.run.life_cycle import run_in_progress
from headscope.run.manifest import Manifest
from headscope.run.manifest_file import RESULTS
from headscope.run.settings import fingerprint
from headscope.run.store import Run, RunFolder

MAKERS: dict[str, RunMaker] = {
    "tuned": paper_runs.tuned,
    "scratch": paper_runs.scratch,
    "compare": paper_runs.compared,
    "told": paper_runs.feature_change,
    "ablate": paper_runs.ablated,
    **{
        maker.__name__: maker
        for maker in (
            paper_runs.surface,
            paper_runs.norms,
            paper_runs.tokens,
            paper_runs.dependency,
            paper_runs.coreference,
            paper_runs.frames,
            paper_runs.words,
            paper_runs.split,
            paper_runs.gradients,
            paper_runs.probes,
            paper_runs.alignment,
            decoder_runs.repeated,
            decoder_runs.ioi,
            decoder_runs.bag,
            decoder_runs.needle,
        )
    },
}
COLUMNS = (
    "key", "section", "place", "claim", "unit", "ours", "ci_low", "ci_high", "n", "published",
    "published_value", "mark", "difference", "agrees", "direction", "status", "reason", "smallest",
    "shown", "other_data", "beyond_untrained", "untrained", "untrained_value",
)  # fmt: skip


@cache
def papers() -> dict[str, Paper]:
    """All papers by name, ours and those of installed packages."""
    return announced(GROUP, "paper", _checked)[0]


def _checked(announced: object, ours: bool) -> Paper:
    if not isinstance(announced, Paper):
        raise InputError(f"found {announced!r:.80}; wanted a Paper")
    unknown = {name.partition(":")[0] for name in announced.runs} - {*MAKERS, *announced.makers}
    if unknown:
        raise InputError(
            f"its runs have no maker: {', '.join(sorted(unknown))}; wanted makers of them in the "
            f"paper, or one of ours: {', '.join(MAKERS)}"
        )
    return announced


def find_paper(name: str) -> Paper:
    """The paper of that name; raises InputError that lists them."""
    if name not in papers():
        raise InputError(f"no paper called {name!r}; there are {', '.join(papers())}")
    return papers()[name]


def reproduced(paper: Paper, workspace: Workspace, *, command: str = "") -> PaperOutcome:
    """Computes the runs that can be had, judges every claim, writes the folder.

    raises  RunFolderError for a folder of something else (unless the workspace overwrites),
            ModelError, RunStopped
    """
    spec = {
        "paper": paper.name,
        "model": workspace.model_name,
        "limit": workspace.limit,
        "seed": workspace.seed,
        "replicates": workspace.replicates,
        "loading": dict(workspace.loading),
        "control": workspace.control,
    }
    folder = RunFolder(workspace.folder, parts="runs")
    workspace.decoder = paper.decoder

    def new_manifest() -> Manifest:
        created = datetime.now(UTC).isoformat(timespec="seconds")
        return {"spec": spec, "fingerprint": fingerprint(spec), "data": [], "created": created}

    with run_in_progress(folder, spec, new_manifest, overwrite=workspace.overwrite) as progress:
        if not workspace.overwrite:
            _check_data(workspace, progress.manifest["data"])
        outcome = _outcome(paper, workspace, command)
        _write(outcome)
        progress.manifest |= _outcome_record(outcome)
        progress.save_manifest()
    return outcome


def _outcome(paper: Paper, workspace: Workspace, command: str) -> PaperOutcome:
    about, own = _about(paper, workspace)
    if about["architecture"]:
        runs, absent, seconds = make_runs(workspace, paper.runs, {**MAKERS, **paper.makers})
    else:
        runs, absent, seconds = {}, dict.fromkeys(paper.runs, about.pop("absent")), {}
    sources = workspace.data.sources.values()
    others = {source.key: source.elsewhere for source in sources}
    others[""] = next((source.elsewhere for source in sources if source.bundled), "")
    results = PaperRuns(
        runs,
        own=bool(own),
        model=own,
        absent=absent,
        others=others,
        limit=workspace.limit,
        learned=workspace.learned,
    )
    return PaperOutcome(
        paper,
        workspace.folder,
        about,
        bool(own),
        [_judged(claim, results, group.id) for group in paper.groups for claim in group.claims],
        runs,
        absent,
        [
            {"key": s.key, "name": s.name, "elsewhere": s.elsewhere}
            for s in sources
            if s.key in workspace.data.used
        ],
        workspace.limit,
        seconds,
        command,
    )


def _judged(claim: PaperClaim, runs: PaperRuns, group: str) -> ClaimOutcome:
    try:
        return claim_engine.judge(claim, runs, group)
    except Exception as error:  # a fault in one claim leaves the others
        return ClaimOutcome(claim, not_asked(one_line(error)), group=group, failed=True)


def _about(paper: Paper, workspace: Workspace) -> tuple[dict[str, Any], str]:
    """The model, and which of the paper's own it is; why it is `absent` where that is a decoder of
    the hub that nobody gave.
    """
    try:
        model = workspace.model
    except ModelError as error:
        if not paper.decoder or workspace.model_name != paper.model:
            raise
        absent = f"needs {paper.model}, or another decoder as --model: {error}"
        nothing = {"revision": "", "sha256": "", "architecture": "", "layers": 0, "heads": 0}
        return {"name": paper.model, **nothing, "absent": absent}, paper.model
    return {
        "name": model.name,
        "revision": model.revision,
        "sha256": model.sha256,
        "architecture": model.architecture,
        "layers": model.shape.layers,
        "heads": model.shape.heads,
    }, own_model(paper.own, model)


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
            "give the same data, choose another folder with -o, or replace the old results with "
            "--overwrite"
        )


def _outcome_record(outcome: PaperOutcome) -> Manifest:
    return {
        "headscope": headscope.__version__,
        "command": outcome.command,
        "model": dict(outcome.model),
        "own_model": outcome.own,
        "data": list(outcome.data),
        "counts": outcome.counts,
        "runs": {
            name: {"fingerprint": run.manifest.get("fingerprint"), "seconds": outcome.seconds[name]}
            for name, run in outcome.runs.items()
        },
        "absent": dict(outcome.absent),
    }


def _write(outcome: PaperOutcome) -> None:
    folder = outcome.folder
    with RunFolder(folder).listing():
        _figures(outcome)
        save_plates(outcome.gallery, folder / "figures")
        write_whole(folder / "lines.csv", claims_csv(outcome.claims, own=outcome.own).encode())
        lines = json.dumps(summary(outcome), indent=2, allow_nan=False) + "\n"
        write_whole(folder / "lines.json", lines.encode())
        write_page(folder / "report.html", render(outcome))


def _figures(outcome: PaperOutcome) -> None:
    for shown in (figure for group in outcome.paper.groups for figure in group.figures):
        run = outcome.runs.get(shown.run)
        if run is None or not pictures()[shown.figure].available(run.tree):
            continue
        name = f"{shown.run.replace(':', '-')}-{shown.figure}"
        places = [outcome.folder / "figures" / f"{name}.{kind}" for kind in ("svg", "png")]
        if not all(_drawn_since(place, run) for place in places):
            figure = draw(run.tree, shown.figure)
            for place in places:
                save_picture(figure, place)


def _drawn_since(place: Path, run: Run) -> bool:
    """Whether a figure is there, and newer than the run's results."""
    if run.path is None or not place.is_file():
        return False
    return place.stat().st_mtime_ns >= (run.path / RESULTS).stat().st_mtime_ns


def summary(paper: PaperOutcome) -> dict[str, Any]:
    """The model, how many claims have each verdict, and every claim."""
    return {
        "paper": paper.paper.name,
        "model": dict(paper.model),
        "own_model": paper.own,
        "limit": paper.limit,
        "data": list(paper.data),
        "counts": paper.counts,
        **({"notes": paper.notes} if paper.notes else {}),
        "report": str(paper.folder / "report.html"),
        "lines": [claim_engine.claim_record(outcome) for outcome in paper.claims],
    }


def claims_csv(outcomes: Sequence[ClaimOutcome], *, own: bool) -> str:
    """A row for each claim; two published values make two rows.

    own  whether `published` is of the same model: else the column says so
    """
    rows = [
        record
        | {
            "published": published.get("text", ""),
            "mark": published.get("mark", ""),
            "published_value": published.get("value"),
            "difference": published.get("difference"),
            "agrees": published.get("agrees"),
            **claim_engine.untrained_columns(record["untrained"]),
        }
        for record in map(claim_engine.claim_record, outcomes)
        for published in record["published"] or [{}]
    ]
    table = pd.DataFrame(rows, columns=COLUMNS, dtype=object)
    table = table if own else table.rename(columns={"published": "published_other_model"})
    return table.to_csv(index=False, lineterminator="\n")
