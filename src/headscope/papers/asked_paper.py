"""Hold what a paper published against runs of a model, by names and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Unpack

from headscope.core.settings_table import documented, keywords
from headscope.papers import run_paper
from headscope.papers.page import PaperOutcome
from headscope.papers.paper_data import find_data
from headscope.papers.workspace import Workspace
from headscope.run.control import RANDOM
from headscope.tasks.task_request import Loading, LoadingFields


@documented(Loading)
def reproduce(
    paper: str,
    output: str | Path,
    *,
    model: str | Path | None = None,
    data: Mapping[str, str | Path | Sequence[str | Path]] | None = None,
    substitutes: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    replicates: int = 200,
    control: str = RANDOM,
    threads: int | None = None,
    overwrite: bool = False,
    reports: bool = True,
    tell: Callable[[str], None] = lambda text: None,
    command: str = "",
    **more: Unpack[LoadingFields],
) -> PaperOutcome:
    """Runs everything that a paper measured, and holds its numbers and claims against ours.

    paper        "clark2019", "kovaleva2019" or "kobayashi2020"
    output       folder for the page and the runs; what is finished there is not computed again
    model        hub id, folder or "demo"; None: the paper's own
    data         {"text": "wiki.txt", "glue": "glue", …}: files by kind, see `workspace.KEYS`
    substitutes  a folder with public data sets, found by their files' names
    limit        documents, or examples, of each part at most
    seed         of all random draws
    replicates   groups of documents at most, for intervals
    control      what the lines are held against, as for `atlas`
    threads      None: all cores
    overwrite    replace the runs of another model in the folder
    reports      whether every run gets its own page
    tell         called with a sentence when a run begins
    command      the command line, for the page
    raises       InputError and its kinds, ModelError, RunStopped
    """
    (loading,) = keywords(more, Loading)
    named = [
        f"{key}={path}"
        for key, some in (data or {}).items()
        for path in ([some] if isinstance(some, str | Path) else some)
    ]
    found = find_data(named, None if substitutes is None else Path(substitutes))
    which = run_paper.find_paper(paper)
    workspace = Workspace(
        model_name=str(model or which.model), data=found, folder=Path(output), limit=limit,
        seed=seed, replicates=replicates, threads=threads, loading=loading, reports=reports,
        overwrite=overwrite, control=control, tell=tell,
    )  # fmt: skip
    return run_paper.reproduce(which, workspace, command=command)
