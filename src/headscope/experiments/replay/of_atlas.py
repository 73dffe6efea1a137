"""The rules that a finished atlas chose, and the model that it read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.errors import InputError, ModelError
from headscope.model.request import model_place
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    import xarray as xr

    from headscope.claims.attention_rule import AttentionRule
    from headscope.model.model import Model
    from headscope.run.store import Run

EXPLAINED = "explained"


def model_or_run(name: str) -> str:
    """The name of a run folder, or of a model as `model_place` takes it."""
    return name if _is_run(name) else model_place(name)


def _is_run(name: str | Path) -> bool:
    there = [(Path(name) / file).is_file() for file in ("manifest.json", "config.json")]
    return there[0] and not there[1]


@dataclass(frozen=True)
class AtlasRules:
    """What an atlas says of the rules of heads.

    explained  its results of the question `explained`
    manifest   of the run
    place      its folder, or what stands for it in words
    """

    explained: xr.Dataset
    manifest: Mapping[str, Any]
    place: str

    @property
    def model(self) -> Mapping[str, Any]:
        """The entry of the model in the manifest."""
        entry: Mapping[str, Any] = self.manifest["model"]
        return entry

    @property
    def digest(self) -> str:
        """What tells its rules from those of another run."""
        return str(self.manifest.get("results_sha256") or self.manifest["fingerprint"])

    @property
    def relations(self) -> tuple[str, ...]:
        """Labels of the trees that its rules are of."""
        return tuple(json.loads(self.explained.attrs.get("relations", "[]")))

    def loading(self, loading: Loading) -> Loading:
        """How its model is loaded: by the same revision, unless another is wanted."""
        return replace(loading, revision=loading.revision or self.model["revision"] or None)

    @contextmanager
    def loading_its_model(self) -> Iterator[None]:
        """Inside the context a ModelError says whose model it is: it may be gone."""
        try:
            yield
        except ModelError as error:
            raise ModelError(
                f"{self.place} is an atlas of {self.model['name']!r}: {error}\nwithout that model, "
                "name another, with what hs.explain writes of the atlas as --rules"
            ) from error

    def refuse_other(self, model: Model) -> None:
        """Raise InputError for a model whose weights are not those that the atlas read."""
        if model.sha256 != self.model["sha256"]:
            raise InputError(
                f"{self.place} is an atlas of {self.model['name']}, and {model.name} has other "
                "weights now; wanted those that the atlas read: make the atlas again, or name the "
                "model with --revision"
            )

    def rules(self, known: Sequence[AttentionRule]) -> list[AttentionRule]:
        """The rules by the numbers of the atlas; InputError for one that is not known here."""
        by_name = {rule.name: rule for rule in known}
        names: list[str] = json.loads(self.explained.attrs["rules"])
        lacking = [name for name in names if name not in by_name]
        if lacking:
            raise InputError(
                f"{self.place} tried the rule {lacking[0]!r}, which no question brings here; "
                "wanted the plug-ins that the atlas was made with, or a new atlas"
            )
        return [by_name[name] for name in names]

    def chosen_on(self, corpus: Mapping[str, Any]) -> str:
        """Whether inputs of this corpus may have chosen the rules: "possible", "no", "unknown".

        corpus  as `Corpus.describe`
        """
        own, other = (_sources(one) for one in (self.manifest["corpus"], corpus))
        if own & other:
            return "possible"
        return "no" if all(kind == "file" for kind, _ in own | other) and own else "unknown"


def _sources(corpus: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Kind and digest of what a corpus was read from; where no digest is known, its name."""
    files = corpus.get("files") or ()
    known = {("file", str(one["sha256"])) for one in files if "sha256" in one}
    named = {("name", str(one.get("name"))) for one in files if "sha256" not in one}
    memory = {("memory", str(corpus["sha256"]))} if not files and "sha256" in corpus else set()
    return known | named | memory


def atlas_rules(source: Run | str | Path) -> AtlasRules:
    """What a run, or a run folder, says of rules.

    raises  RunFolderError as `open_run`; InputError for a run without rules, or without a manifest
    """
    from headscope.run.store import Run, open_run

    run = source if isinstance(source, Run) else open_run(source)
    place = str(run.path or "the run")
    if not run.manifest:
        raise InputError(f"{run.unproven}; wanted a whole run folder: run atlas again")
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
    return AtlasRules(explained, run.manifest, place)


def atlas_of(model: Any) -> AtlasRules | None:
    """The rules of the atlas that stands in the place of a model; None for a model."""
    from headscope.run.store import Run

    if isinstance(model, Run) or (isinstance(model, str | Path) and _is_run(model)):
        return atlas_rules(model)
    return None
