"""What did a zoo find: the runs of the models, and the claims held against each?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from headscope.core.accumulators import Estimate
from headscope.papers.zoo.claims import CLAIMS
from headscope.papers.zoo.numbers import lines
from headscope.papers.zoo.verdict import Answer, answer
from headscope.run.finished_run import Run


@dataclass
class Zoo:
    """The runs of a list of models on one corpus.

    path      folder of the zoo
    runs      by what the page calls the model, in the order in which they were named
    manifest  what was asked; `failed` says of every model that could not be read why
    """

    path: Path
    runs: dict[str, Run]
    manifest: Mapping[str, Any] = field(repr=False)

    @cached_property
    def answers(self) -> dict[str, dict[str, Answer]]:
        """What every model says to every claim: [name of the claim][model]."""
        return {
            claim.name: {label: answer(claim, run.tree) for label, run in self.runs.items()}
            for claim in CLAIMS
        }

    @cached_property
    def lines(self) -> dict[str, dict[str, Estimate]]:
        """Of every model what is drawn over depth, see `numbers.lines`: [model][number]."""
        return {label: lines(run.tree) for label, run in self.runs.items()}

    @property
    def failed(self) -> dict[str, str]:
        """Models that could not be read, and why."""
        return dict(self.manifest.get("failed", {}))

    @property
    def claims(self) -> pd.DataFrame:
        """One row per claim and model; see `tables.claim_table`."""
        from headscope.papers.zoo.tables import claim_table

        return claim_table(self)

    @property
    def headlines(self) -> list[str]:
        """What holds for how many, in sentences."""
        from headscope.papers.zoo.headlines import headlines

        return headlines(self)

    def report(self) -> Path:
        """Writes the tables, the figures and report.html; returns the page."""
        from headscope.papers.zoo.figure import save_figures
        from headscope.papers.zoo.page import write_page
        from headscope.papers.zoo.tables import write_tables

        write_tables(self)
        save_figures(self)
        return write_page(self)
