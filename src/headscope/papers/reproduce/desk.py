"""Where is a battery computed: which model, which data, which folder, and what is there already?

Every part is a run folder OUT/runs/PART. A finished one is opened, an interrupted one continued.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from headscope.core.labelled import keeping_draws
from headscope.corpus import Corpus
from headscope.errors import HeadscopeError, RunStopped
from headscope.model.model import Model, load
from headscope.papers.reproduce.data import Data
from headscope.papers.reproduce.line import NotRun
from headscope.papers.reproduce.verdict import failure
from headscope.run.atlas import Execution, atlas
from headscope.run.finished_run import Run
from headscope.run.settings import Settings


@dataclass
class Desk:
    """What all parts of a battery share.

    model     as `headscope.load` takes it
    limit     documents, or examples, of each part at most
    loading   device, dtype, revision, trust_remote_code
    reports   whether every run gets its own page
    overwrite  whether runs of another spec are replaced
    tell      is given a sentence when a part begins
    """

    model_name: str
    data: Data
    folder: Path
    limit: int | None = None
    seed: int = 0
    replicates: int = 200
    threads: int | None = None
    loading: Mapping[str, Any] = field(default_factory=dict)
    reports: bool = True
    overwrite: bool = False
    tell: Callable[[str], None] = lambda text: None

    @cached_property
    def model(self) -> Model:
        """The model, loaded when the first part needs it."""
        return load(self.model_name, **self.loading)

    @property
    def settings(self) -> Settings:
        """What all parts have in common."""
        return Settings(limit=self.limit, seed=self.seed, replicates=self.replicates)

    @property
    def execution(self) -> Execution:
        """How all parts are run. Stock linear maps: the same numbers on every machine of a kind."""
        return Execution(threads=self.threads, linears="stock", overwrite=self.overwrite)

    def place(self, part: str) -> Path:
        """The run folder of a part."""
        return self.folder / "runs" / part.replace(":", "-")

    def atlas(
        self,
        part: str,
        corpus: Corpus,
        *analyses: str,
        frequency: Path | None = None,
        **changes: Any,
    ) -> Run:
        """An atlas of these analyses that keeps the draws of its intervals."""
        settings = replace(self.settings, analyses=analyses, **changes)
        with keeping_draws():
            return atlas(
                self.model, corpus, output=self.place(part), settings=settings,
                execution=self.execution, frequency=frequency,
            )  # fmt: skip


Maker = Callable[[Desk, str], Run]


def run_parts(
    desk: Desk, parts: list[str], makers: Mapping[str, Maker]
) -> tuple[dict[str, Run], dict[str, str], dict[str, float]]:
    """Runs of all parts that can be had; for the others why not; and seconds of each.

    parts   names "text" or "ablate:rte": what is before the colon names the maker
    raises  RunStopped on Ctrl-C
    """
    runs: dict[str, Run] = {}
    absent: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for part in parts:
        began = time.monotonic()
        desk.tell(f"{part} …")
        try:
            run = makers[part.partition(":")[0]](desk, part)
            if desk.reports and run.path is not None and not run.has_report:
                run.report()
            runs[part] = run
        except NotRun as error:
            absent[part] = str(error)
        except RunStopped:
            raise
        except HeadscopeError as error:
            absent[part] = failure(" ".join(str(error).split()))
        except Exception as error:  # one part's fault is that part's
            absent[part] = failure(f"{type(error).__name__}: {str(error)[:200]}")
        else:
            seconds[part] = round(time.monotonic() - began, 1)
    return runs, absent, seconds
