"""The workspace of a paper's runs: the model, data, folder and settings that they share.

Every run has a folder OUT/runs/NAME. A finished one is opened, an interrupted one continued.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from headscope.corpus import Corpus
from headscope.errors import RunStopped, joined_lines, one_line
from headscope.model.language_model import LanguageModel, load_language_model
from headscope.model.model import Model, load
from headscope.model.threads import threads_of
from headscope.papers.claim_engine import failure
from headscope.papers.paper_data import PaperData
from headscope.papers.quantities import Unmeasured
from headscope.run.atlas import atlas
from headscope.run.control import NONE
from headscope.run.execution import Execution
from headscope.run.settings import Settings
from headscope.run.store import Run


@dataclass
class Workspace:
    """What all runs of a paper share.

    model     as `headscope.load` takes it
    limit     documents, or examples, of each run at most
    loading   device, dtype, revision, trust_remote_code
    reports   whether every run gets its own page
    overwrite  whether runs of another spec are replaced
    keep_shards  leaves the shards of finished runs
    control   as for `atlas`: a line that networks without training satisfy too says so
    tell      called with a sentence when a run begins
    decoder   whether the model is read with its language-model head
    learned   by run, or task, of what the limit leaves a part to learn from: how many examples
    """

    model_name: str
    data: PaperData
    folder: Path
    limit: int | None = None
    seed: int = 0
    replicates: int = 200
    threads: int | None = None
    loading: Mapping[str, Any] = field(default_factory=dict)
    reports: bool = True
    overwrite: bool = False
    keep_shards: bool = False
    control: str = NONE
    tell: Callable[[str], None] = lambda text: None
    decoder: bool = False
    learned: dict[str, int] = field(default_factory=dict)

    @cached_property
    def language(self) -> LanguageModel:
        """The model with its language-model head."""
        return load_language_model(self.model_name, **self.loading)

    @cached_property
    def model(self) -> Model:
        """The model, loaded when the first run needs it."""
        if self.decoder:
            return self.language.model
        return load(self.model_name, **self.loading)

    @property
    def chance(self) -> dict[str, Any]:
        """What the random draws of all runs have in common."""
        return {"seed": self.seed, "replicates": self.replicates}

    @property
    def settings(self) -> Settings:
        """What all runs have in common."""
        return Settings(limit=self.limit, **self.chance)

    @property
    def execution(self) -> Execution:
        """How all runs are computed: stock linear maps give the same numbers on every machine."""
        return Execution(
            threads=self.threads,
            linears="stock",
            overwrite=self.overwrite,
            keep_shards=self.keep_shards,
        )

    def place(self, name: str) -> Path:
        """The folder of a run."""
        return self.folder / "runs" / name.replace(":", "-")

    def atlas(
        self,
        name: str,
        corpus: Corpus,
        *analyses: str,
        frequency: Path | None = None,
        **changes: Any,
    ) -> Run:
        """An atlas of these analyses that keeps the draws of its intervals."""
        settings = replace(self.settings, analyses=analyses, **changes)
        return atlas(
            self.model,
            corpus,
            output=self.place(name),
            settings=settings,
            execution=replace(self.execution, keep_draws=True),
            frequency=frequency,
            control=self.control,
        )


RunMaker = Callable[[Workspace, str], Run]


def make_runs(
    workspace: Workspace, names: list[str], makers: Mapping[str, RunMaker]
) -> tuple[dict[str, Run], dict[str, str], dict[str, float]]:
    """Compute all possible runs; returns them, why others are missing, and seconds of each.

    names   "tokens" or "ablate:rte": the maker goes by what stands before the colon
    raises  RunStopped on Ctrl-C
    """
    runs: dict[str, Run] = {}
    absent: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for name in names:
        began = time.monotonic()
        workspace.tell(f"{name} …")
        try:
            with threads_of(workspace.execution.threads_each):
                run = makers[name.partition(":")[0]](workspace, name)
            if workspace.reports and run.path is not None and not run.has_report:
                run.report()
            runs[name] = run
        except Unmeasured as error:
            absent[name] = joined_lines(str(error))  # it may tell of an error
        except RunStopped:
            raise
        except Exception as error:  # a fault in one run leaves the others
            absent[name] = failure(one_line(error))
        else:
            seconds[name] = round(time.monotonic() - began, 1)
    return runs, absent, seconds
