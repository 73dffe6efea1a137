"""How does a paper's battery become a folder: runs, lines, figures, one page?

OUT/report.html   the page, in the paper's order
OUT/lines.csv, lines.json
OUT/figures/      PART-FIGURE.svg and .png
OUT/runs/PART/    a run folder each; `headscope report` works on them
OUT/manifest.json what was asked, and what was found
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import headscope
from headscope.core.whole_file import write_whole
from headscope.draw.figures import draw, pictures
from headscope.draw.saving import write_picture
from headscope.errors import RunFolderError
from headscope.model.model import Model
from headscope.papers.reproduce.desk import Desk, Maker, run_parts
from headscope.papers.reproduce.line import Judged, Paper, Results
from headscope.papers.reproduce.saving import as_json, lines_csv
from headscope.papers.reproduce.verdict import FAILED, STATUSES, judge
from headscope.run.finished_run import Run
from headscope.run.life_cycle import run_in_progress
from headscope.run.manifest import Manifest
from headscope.run.settings import fingerprint
from headscope.run.store import RESULTS, RunFolder, put, why_unwritten

KINDS = ("svg", "png")
OWNER = "google-bert"  # of BERT on the hub
VOCABULARY = {"bert-base-uncased": 30522, "bert-base-cased": 28996}  # tokens


@dataclass(frozen=True)
class Outcome:
    """A battery that was run.

    model    name, revision, sha256, architecture, layers, heads; empty where none could be loaded
    own      whether the model is the paper's own
    absent   for the parts that have no run, why
    seconds  of each part, what was there already included
    """

    paper: Paper
    folder: Path
    model: Mapping[str, Any]
    own: bool
    lines: Sequence[Judged]
    runs: Mapping[str, Run]
    absent: Mapping[str, str]
    data: Sequence[Mapping[str, str]]
    limit: int | None
    seconds: Mapping[str, float] = field(default_factory=dict)
    command: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """How many lines have each status, all of STATUSES in order."""
        found = Counter(line.status for line in self.lines)
        return {status: found[status] for status in STATUSES}

    @property
    def failed(self) -> bool:
        """Whether a line or a part failed, rather than lacking what it needs."""
        return self.counts[FAILED] > 0


def reproduce(
    paper: Paper,
    desk: Desk,
    makers: Mapping[str, Maker],
    *,
    command: str = "",
) -> Outcome:
    """Run what can be run, judge every line, write the folder.

    raises  RunFolderError for a folder of something else (unless the desk overwrites), ModelError,
            RunStopped
    """
    spec = {
        "paper": paper.name, "model": desk.model_name, "limit": desk.limit, "seed": desk.seed,
        "replicates": desk.replicates, "loading": dict(desk.loading),
    }  # fmt: skip
    folder = RunFolder(desk.folder, parts="runs")
    new_manifest = partial(_manifest, spec)
    with run_in_progress(folder, spec, new_manifest, overwrite=desk.overwrite) as battery_run:
        if not desk.overwrite:
            _check_data(desk, battery_run.manifest["data"])
        own = is_own(paper, desk.model)
        runs, absent, seconds = run_parts(desk, paper.parts, makers)
        others = {key: source.elsewhere for key, source in desk.data.sources.items()}
        results = Results(runs, own=own, absent=absent, others=others)
        lines = [judge(line, s.id, results) for s in paper.sections for line in s.lines]
        outcome = Outcome(
            paper, desk.folder, _about(desk.model), own, lines, runs, absent,
            [{"key": s.key, "name": s.name, "elsewhere": s.elsewhere}
             for s in desk.data.sources.values() if s.key in desk.data.used],
            desk.limit, seconds, command,
        )  # fmt: skip
        _write(outcome)
        battery_run.manifest |= _outcome_record(outcome)
        battery_run.save_manifest()
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


def _check_data(desk: Desk, before: Sequence[Mapping[str, str]]) -> None:
    """Raises RunFolderError where the folder's runs read other data than are given now."""
    now = {key: source.name for key, source in desk.data.sources.items()}
    changes = [
        f"{source['key']} was {source['name']}, is {now.get(source['key'], 'none')}"
        for source in before
        if now.get(source["key"], "none") != source["name"]
    ]
    if changes:
        raise RunFolderError(
            f"{desk.folder} was made of other data: {', '.join(changes)}\n"
            "give the same, choose another folder with -o, or --overwrite what differs"
        )


def _about(model: Model) -> dict[str, Any]:
    return {
        "name": model.name, "revision": model.revision, "sha256": model.sha256,
        "architecture": model.architecture, "layers": model.shape.layers,
        "heads": model.shape.heads,
    }  # fmt: skip


def _write(outcome: Outcome) -> None:
    from headscope.papers.reproduce.page import render

    folder = outcome.folder
    try:
        _figures(outcome)
        put(folder / "lines.csv", lines_csv(outcome.lines, own=outcome.own).encode())
        put(folder / "lines.json", as_json(summary(outcome)).encode())
        put(folder / "report.html", render(outcome).encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise why_unwritten(error, folder) from error


def _figures(outcome: Outcome) -> None:
    for section in outcome.paper.sections:
        for shown in section.pictures:
            run = outcome.runs.get(shown.part)
            if run is None or not pictures()[shown.picture].available(run.tree):
                continue
            name = f"{shown.part.replace(':', '-')}-{shown.picture}"
            places = [outcome.folder / "figures" / f"{name}.{kind}" for kind in KINDS]
            if all(_drawn_since(place, run) for place in places):
                continue
            figure = draw(run.tree, shown.picture)
            for place, kind in zip(places, KINDS, strict=True):
                write_whole(place, partial(write_picture, figure, kind))


def _drawn_since(place: Path, run: Run) -> bool:
    """Whether a figure is there, and newer than the run's results."""
    if run.path is None or not place.is_file():
        return False
    return place.stat().st_mtime_ns >= (run.path / RESULTS).stat().st_mtime_ns


def summary(outcome: Outcome) -> dict[str, Any]:
    """What a machine reads: the model, counts of statuses, every line."""
    from headscope.papers.reproduce.saving import line_record

    return {
        "paper": outcome.paper.name, "model": dict(outcome.model), "own_model": outcome.own,
        "limit": outcome.limit, "data": list(outcome.data), "counts": outcome.counts,
        "report": str(outcome.folder / "report.html"),
        "lines": [line_record(judged) for judged in outcome.lines],
    }  # fmt: skip


def _manifest(spec: Mapping[str, Any]) -> Manifest:
    """The manifest of a battery that begins."""
    return {
        "spec": dict(spec), "fingerprint": fingerprint(spec), "data": [],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip


def _outcome_record(outcome: Outcome) -> Manifest:
    """What the manifest says of a battery that was run."""
    return {
        "headscope": headscope.__version__, "command": outcome.command,
        "model": dict(outcome.model), "own_model": outcome.own, "data": list(outcome.data),
        "counts": outcome.counts,
        "runs": {
            part: {"fingerprint": run.manifest.get("fingerprint"), "seconds": outcome.seconds[part]}
            for part, run in outcome.runs.items()
        },
        "absent": dict(outcome.absent),
    }  # fmt: skip
