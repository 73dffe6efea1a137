"""The rules that a finished atlas chose, and the model that it read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from headscope.errors import InputError
from headscope.run.manifest_file import is_run
from headscope.run.model_of_run import ModelOfRun

if TYPE_CHECKING:
    import xarray as xr

    from headscope.claims.attention_rule import AttentionRule
    from headscope.run.store import Run

EXPLAINED = "explained"


@dataclass(frozen=True)
class AtlasRules(ModelOfRun):
    """What an atlas says of the rules of heads, and its model.

    explained  its results of the question `explained`
    """

    explained: xr.Dataset
    without: ClassVar[str] = (
        "without that model, name another, with what hs.explain writes of the run as --rules"
    )

    @property
    def relations(self) -> tuple[str, ...]:
        """Labels of the trees that its rules are of."""
        return tuple(json.loads(self.explained.attrs.get("relations", "[]")))

    def rules(self, known: Sequence[AttentionRule]) -> list[AttentionRule]:
        """The rules by the numbers of the atlas; InputError for one that is not known here."""
        from headscope.analyses.explained.rules import RESTS

        by_name = {rule.name: rule for rule in known}
        names: list[str] = json.loads(self.explained.attrs["rules"])
        lacking = [name for name in names if name not in by_name]
        if lacking:
            raise InputError(
                f"{self.place} tried the rule {lacking[0]!r}, which no question brings here; "
                "wanted the plug-ins that the atlas was made with, or a new atlas"
            )
        return [by_name[name] for name in dict.fromkeys([*names, *RESTS])]  # older ones lack some


def atlas_rules(source: Run | str | Path) -> AtlasRules:
    """What a run, or a run folder, says of rules.

    raises  RunFolderError as `open_run`; InputError for a run without rules, or without a manifest
    """
    from headscope.run.store import Run, open_run

    run = source if isinstance(source, Run) else open_run(source)
    of, place = ModelOfRun.of(run), str(run.path or "the run")
    if EXPLAINED not in run.tree.children:
        raise InputError(
            f"{place} has no results of explained; run atlas with it: --analyses explained"
        )
    from headscope.core.results import without_draws

    explained = without_draws(run[EXPLAINED])
    if (explained["rest"].sel(explains="attention") < 0).any():
        raise InputError(
            f"{place} chose no rules: it read too few inputs; run atlas on more, or give the model "
            "in its place"
        )
    return AtlasRules(of.manifest, place, explained)


def atlas_of(model: Any) -> AtlasRules | None:
    """The rules of the atlas that stands in the place of a model; None for a model."""
    if is_run(model):
        return atlas_rules(model)
    return None
