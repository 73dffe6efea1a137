"""Compares two finished runs of models of any shape: which heads have the same role."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from headscope.errors import InputError, RunFolderError
from headscope.experiments.comparison import SAME_ROLES
from headscope.experiments.comparison.fingerprints import RULES, SCORES
from headscope.experiments.comparison.same_roles import DISCOVERY, same_roles
from headscope.run.execution import Execution
from headscope.run.life_cycle import run_in_progress
from headscope.run.manifest import Manifest, deciding_versions, versions
from headscope.run.settings import fingerprint
from headscope.run.store import Run, folder_of, open_run

METHOD = 2  # to be raised when runs are compared in another way within a version
AGAIN = (
    "the two runs are as they were: --overwrite compares them again in this folder; -o with "
    "another folder keeps this comparison"
)
USED = (RULES, SCORES, DISCOVERY)  # groups
AS_FIRST = ("model", "corpus", "counts", "seed", "replicates", "linears")  # of the manifest


def compared_runs(
    first: Run | str | Path,
    second: Run | str | Path,
    also: Sequence[Run | str | Path],
    *,
    output: str | Path | None,
    execution: Execution,
) -> Run:
    """A run that says which heads of the second model do what heads of the first one do.

    also     further runs of either model, known by its weights: of `circuits` beside `atlas`
    returns  a run of the first model with the group `same_roles`
    raises   RunFolderError for a folder without a finished run; InputError for runs of which
             nothing says what model they are of, without fingerprints of the same kind, or for a
             further run of a third model; RunFolderError, too, for a comparison of other runs or by
             another METHOD in the folder, which is left as it is
    """
    folder = folder_of(output, execution)
    one, other, *more = (_opened(run) for run in (first, second, *also))
    sides = [[run, *_of_same_model(run, more)] for run in (one, other)]
    for run in more:
        if not any(run is mine for side in sides for mine in side):
            raise InputError(
                f"{_place(run)} is a run of {run.manifest['model']['name']}; wanted one of "
                f"{one.manifest['model']['name']} or {other.manifest['model']['name']}: the same "
                "weights as in the first two runs"
            )
    spec = {
        "versions": deciding_versions(),
        "command": "compare",
        "method": METHOD,
        "runs": [[_identity(run) for run in side] for side in sides],
    }
    begin = partial(_manifest, sides, spec, execution)
    again = execution.overwrite
    with run_in_progress(folder, spec, begin, overwrite=again, instead=AGAIN) as progress:
        if (finished := progress.finished()) is not None:
            return finished
        roles = same_roles(*([run.tree for run in side] for side in sides))
        if roles is None:
            raise _nothing_shared(sides)
        return progress.finish({SAME_ROLES.name: roles}, title="headscope compare")


def _opened(run: Run | str | Path) -> Run:
    run = run if isinstance(run, Run) else open_run(run)
    if "model" not in run.manifest:
        raise RunFolderError(
            f"{_place(run)} has no manifest.json that says of which model it is; run its command "
            "again"
        )
    return run


def _of_same_model(run: Run, more: Sequence[Run]) -> list[Run]:
    """The further runs of the model; raises InputError for two that hold the same."""
    same = [
        one for one in more if one.manifest["model"]["sha256"] == run.manifest["model"]["sha256"]
    ]
    for group in USED:
        if sum(group in one for one in (run, *same)) > 1:
            raise InputError(
                f"found two runs of {run.manifest['model']['name']} that hold {group}; wanted one"
            )
    return same


def _identity(run: Run) -> dict[str, Any]:
    """What a run's part in a spec is: its own spec, and its results."""
    known = ("fingerprint", "results_sha256")
    return {name: run.manifest[name] for name in known if name in run.manifest}


def _about(run: Run) -> dict[str, Any]:
    """A run's model and what it has read, for the page of the comparison."""
    model, said = run.manifest["model"], {n: run.tree.attrs.get(n) for n in ("corpus", "counted")}
    size = "{architecture}, {layers} layers × {heads} heads".format_map(model)
    said |= {"model": model["name"], "weights": model["sha256"], "size": size}
    said |= {name: run.manifest.get(name) for name in ("counts", "long")}
    said |= {"files": run.manifest["corpus"].get("files")}
    return {name: one for name, one in said.items() if one}


def _place(run: Run) -> str:
    return "a run in memory" if run.path is None else str(run.path)


def _nothing_shared(sides: Sequence[Sequence[Run]]) -> InputError:
    held = " and ".join(", ".join(name for run in side for name in run) for side in sides)
    return InputError(
        f"the runs hold {held}, and no fingerprint of the same kind; wanted {RULES} in both (atlas "
        f"--analyses {RULES}), or {SCORES} in both (headscope circuits)"
    )


def _texts(manifest: Manifest) -> tuple[Any, ...]:
    """What a run has read, whatever tokens that is; inputs that are made for each model are one."""
    kind = manifest["corpus"].get("kind")
    made = kind == "made inputs"
    return (kind,) if made else (manifest["corpus"], manifest["counts"]["documents"])


def _manifest(
    sides: Sequence[Sequence[Run]], spec: dict[str, Any], execution: Execution
) -> Manifest:
    first, second = (side[0].manifest for side in sides)
    doubts = [
        f"{run.manifest['model']['name']}: {note}"
        for side in sides
        for run in side
        for note in run.manifest.get("notes", ())
    ]
    if _texts(first) != _texts(second):
        doubts.append(
            "the two runs have read different inputs: part of every distance is that of the texts"
        )
    return {
        **{name: first[name] for name in AS_FIRST if name in first},
        "spec": spec,
        "fingerprint": fingerprint(spec),
        "versions": versions(),
        "shards": 0,
        "analyses": [SAME_ROLES.name],
        "command": shlex.join(execution.command),
        "compared": [{**_identity(run), **_about(run)} for side in sides for run in side],
        **({"notes": doubts} if doubts else {}),
        "created": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
