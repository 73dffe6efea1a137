"""Compares what a paper published with our runs: `headscope reproduce`, `hs.reproduce`.

Nothing heavy is imported before the data are found; `run_paper` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.options import argument, flag, keyword, option, required, several, takes
from headscope.errors import InputError, did_you_mean
from headscope.papers.paper_data import GROUP, bundled_data, find_data
from headscope.run.execution import control_option
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.papers.page import PaperOutcome


def read_paper(name: str) -> str:
    """The name; InputError for that of no paper."""
    known = [entry.name for entry in entry_points(group=GROUP)]
    if known and name not in known:
        meant = did_you_mean(name, known) or ";"
        raise InputError(f"no paper called {name!r}{meant} there are {', '.join(known)}")
    return name


class ReproduceRequest(Loading, kw_only=False, heading="How to run"):
    """Which paper is compared with which model and data."""

    paper: str = argument(
        "clark2019, kovaleva2019, kobayashi2020, vig2019, olsson2022, wang2023, wu2024, or one of "
        "an installed package.",
        reads=read_paper,
        metavar="PAPER",
    )
    output: str | Path = required(
        "Folder for the page and the runs; re-running resumes.",
        names="-o --output",
        usual="{paper}",
        metavar="OUT",
    )
    _: KW_ONLY
    model: str | Path | None = option(
        "Hub id, local folder or `demo`; by default the paper’s own.",
        reads=str,
        heading="The model",
        before="device",
    )
    data: Mapping[str, str | Path | Sequence[str | Path]] | Sequence[str] = several(
        "Data of a kind: text, segments, treebank, coref, frames, glue, checkpoints, probe_train, "
        "probe_test, words, frequency, alignment, translator; repeatable.",
        reads=str,
        metavar="KEY=PATH",
        heading="What to read",
        before="model",
        python='In Python also {"text": "wiki.txt", …}.',
    )
    substitutes: str | Path | None = option(
        "A folder with public data sets, found by their file names.",
        metavar="DIR",
        before="model",
    )
    limit: int | None = option(
        "Documents, or examples, of each part at most.", least=1, before="model"
    )
    seed: int = option("Seed of all random draws.", 0, least=0, heading="How to run")
    control: str = control_option("the lines")
    replicates: int = option("Groups of documents at most, for intervals.", 200, least=0)
    threads: int | None = option("Threads; by default all cores.", least=1)
    overwrite: bool = flag("Replace the runs of another model in OUT.")
    keep_shards: bool = flag("Leave the shards of finished runs beside their results.")
    reports: bool = flag(
        "Whether every run gets its own page.",
        True,
        off="Only the paper’s page; `headscope report` makes the runs’.",
        names="--no-report",
    )
    tell: Callable[[str], None] = keyword(
        "Called with a sentence when a run begins.", lambda text: None
    )
    command: str = keyword("The command line, for the page.", "")


@takes(ReproduceRequest)
def reproduce(request: ReproduceRequest) -> PaperOutcome:
    """Repeats what a paper measured, and compares its numbers and claims with ours. Without data it
    reads the bundled corpus. Finished runs in the folder are not computed again. Raises InputError
    and its kinds, ModelError, RunStopped.
    """
    data = request.data
    files = _named_files(data) if isinstance(data, Mapping) else data
    public = None if request.substitutes is None else Path(request.substitutes)
    files_by_kind = find_data(files, public)
    from headscope.papers.run_paper import find_paper, reproduced
    from headscope.papers.workspace import Workspace

    paper = find_paper(request.paper)
    if not (files_by_kind.sources or paper.decoder):  # decoders read inputs that are made
        files_by_kind = bundled_data()
    workspace = Workspace(
        model_name=str(request.model or paper.model),
        data=files_by_kind,
        folder=Path(request.output),
        limit=request.limit,
        seed=request.seed,
        replicates=request.replicates,
        threads=request.threads,
        loading=asdict(Loading.of(request)),
        reports=request.reports,
        overwrite=request.overwrite,
        keep_shards=request.keep_shards,
        control=request.control,
        tell=request.tell,
    )
    return reproduced(paper, workspace, command=request.command)


def _named_files(data: Mapping[str, str | Path | Sequence[str | Path]]) -> list[str]:
    """KEY=FILE of each, as the command takes them."""
    return [
        f"{key}={path}"
        for key, some in data.items()
        for path in ([some] if isinstance(some, str | Path) else some)
    ]
