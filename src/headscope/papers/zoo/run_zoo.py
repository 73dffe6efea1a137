"""What `zoo` computes: the claims, run over a list of models.

Every model has a run folder of `atlas` below OUT/models. A finished one is opened, an interrupted
one continued; where a model fails, its error is kept, and the others go on.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from headscope.core.whole_file import held
from headscope.corpus import Corpus
from headscope.corpus.contents import annotations_of
from headscope.errors import HeadscopeError, InputError, ModelError, RunStopped, one_line
from headscope.model.model import Model, load
from headscope.page.shell import write_page
from headscope.papers.zoo.figure import save_figures
from headscope.papers.zoo.listed_models import MODELS, ListedModel
from headscope.papers.zoo.outcome import ZooOutcome, claim_table, write_tables
from headscope.papers.zoo.page import render
from headscope.run.atlas import atlas
from headscope.run.control import NONE
from headscope.run.execution import Execution
from headscope.run.known_analyses import CORPUS_NEEDS, MODEL_NEEDS, choose, known_analyses
from headscope.run.life_cycle import RunInProgress, run_in_progress
from headscope.run.manifest import deciding_versions, several_runs
from headscope.run.manifest_file import MANIFEST
from headscope.run.processes import taking_part
from headscope.run.settings import Settings, fingerprint
from headscope.run.shard_files import State
from headscope.run.shared_parts import KeptParts, Member, WrittenElsewhereError
from headscope.run.store import Run, RunFolder, open_run
from headscope.tasks.task_request import Loading

ANALYSES = (
    "surface", "entropy", "norms", "mixing", "divergence", "dependency", "neurons", "examples",
)  # fmt: skip
PATIENCE = 60.0  # seconds until a process that has helped sees the end of a run
MOST_HEADS = 400  # ours: pairs grow with the square; BERT-large has 384 heads


class Zoo(ZooOutcome):
    """The runs of a list of models on one corpus, with their claims as a table and a page."""

    @property
    def claims(self) -> pd.DataFrame:
        """One row per claim and model; see `claim_table`."""
        return claim_table(self)

    def report(self) -> Path:
        """Writes the tables, the figures and report.html; returns the page."""
        with held(self.path), RunFolder(self.path).listing():
            write_tables(self)
            save_figures(self)
            return write_page(self.path / "report.html", render(self))


def run_zoo(
    listed: Sequence[ListedModel],
    job: ZooJob,
    begin: Callable[[str], None],
) -> Zoo:
    """The zoo of a request that is known to be right."""
    corpus, settings, execution = job.corpus, job.settings, job.execution
    folder = RunFolder(job.folder, parts=MODELS)
    spec = {  # everything but the models that decides the numbers
        "versions": deciding_versions(),
        "command": "zoo",
        "corpus": corpus.describe(),
        "dtype": job.loading.dtype,
        "settings": settings.as_dict(),
        "control": str(job.control or NONE),
    }

    begun = partial(several_runs, spec, models={}, failed={})
    overwrite = execution.overwrite
    with (
        taking_part(folder.path, execution.shard) as own,
        run_in_progress(folder, spec, begun, overwrite=overwrite, own=own) as progress,
    ):
        return _zoo_of(listed, job, begin, progress)


def _zoo_of(
    listed: Sequence[ListedModel],
    job: ZooJob,
    begin: Callable[[str], None],
    progress: RunInProgress,
) -> Zoo:
    own, folder = progress.own, progress.folder
    assert folder is not None
    try:
        each = _each if own is None else partial(_together, progress)
        runs, failed = each(listed, job, begin)
    except WrittenElsewhereError:
        return _elsewhere(folder, listed)
    if not runs:
        if own is None and not any((folder.path / MODELS).iterdir()):
            (folder.path / MODELS).rmdir()  # nothing began: another spec may
            (folder.path / MANIFEST).unlink()
        raise _none(failed)
    progress.manifest |= {
        "command": shlex.join(job.execution.command),
        "models": {label: run.manifest["model"] for label, run in runs.items()},
        "failed": {label: one_line(error) for label, error in failed.items()},
    }
    if own is not None:
        progress.manifest["written_by"] = own.name
    progress.save_manifest()
    if own is not None:
        progress.clear()
        for run in runs.values() if job.reports else ():
            _report(run)
    return Zoo(folder.path, runs, progress.manifest)


def allowed_analyses(
    model: Model, settings: Settings, annotated: frozenset[str]
) -> tuple[str, ...]:
    """The analyses asked for that model and corpus allow; raises InputError where there is none."""
    known, shape = known_analyses(), model.shape
    requested = choose(settings.analyses or ANALYSES)
    kept = []
    for name in requested:
        needs = known[name].needs_with(settings.options.get(name, {}))
        large = name == "divergence" and shape.layers * shape.heads > MOST_HEADS
        missing = (needs & MODEL_NEEDS) - model.allows | (needs & CORPUS_NEEDS) - annotated
        if not missing and not (large and settings.analyses is None):
            kept.append(name)
    if not kept:
        raise InputError(
            f"none of {', '.join(requested)} can run on {model.architecture} with this corpus; "
            "wanted --analyses that need less (`headscope analyses`), or annotated text"
        )
    return tuple(sorted(kept))


@dataclass(frozen=True)
class ZooJob:
    """What is done with every model; `annotated`: which annotations the corpus has."""

    folder: Path
    corpus: Corpus
    settings: Settings
    execution: Execution
    loading: Loading
    reports: bool
    control: str | Path | None
    annotated: frozenset[str]


def _each(
    listed: Sequence[ListedModel], job: ZooJob, begin: Callable[[str], None]
) -> tuple[dict[str, Run], dict[str, HeadscopeError]]:
    runs: dict[str, Run] = {}
    failed: dict[str, HeadscopeError] = {}
    for entry in listed:
        begin(entry.label)
        try:
            runs[entry.label] = _one(entry, job, runs)
        except RunStopped:
            raise
        except Exception as error:  # a fault in one model leaves the others
            failed[entry.label] = _readable(error)
    return runs, failed


def _one(entry: ListedModel, job: ZooJob, runs: Mapping[str, Run]) -> Run:
    """The run of one model; it keeps the draws, so that any mean of them has an interval."""
    source = entry.given
    model = load(source, **asdict(job.loading)) if isinstance(source, str) else source
    if same := _same(model.sha256, runs):
        raise same
    names = allowed_analyses(model, job.settings, job.annotated)
    options = {name: source for name, source in job.settings.options.items() if name in names}
    settings = replace(job.settings, analyses=names, options=options)
    run = atlas(
        model,
        job.corpus,
        output=job.folder / MODELS / entry.folder,
        settings=settings,
        execution=replace(job.execution, keep_draws=True),
        control=job.control,
    )
    if job.reports and not run.has_report:
        run.report()
    return run


def _report(run: Run) -> None:
    """Its page; processes that have helped with it soon see its end."""
    if not run.has_report:
        assert run.path is not None
        with held(run.path, patience=PATIENCE):
            pass
        run.report()


class _ModelParts(KeptParts):
    """Which models are done, whoever ran them; of one that failed the part says why."""

    def __init__(self, progress: RunInProgress, listed: Sequence[ListedModel]) -> None:
        assert progress.folder is not None
        self.manifest, self.before = progress.folder.manifest, progress.folder.manifest()
        names = [entry.folder for entry in listed]
        owner = fingerprint({"spec": progress.manifest["spec"], "models": names})
        super().__init__(progress.folder, owner, progress.own)
        self.verify()  # there may be parts of a list of other models

    def refreshed(self) -> bool:
        """Likewise; the last process replaces the manifest."""
        return super().refreshed() or self.manifest() != self.before


@dataclass
class _Helping(Member):
    """A process that helps with the shards of others' models before it waits for them."""

    tried: set[int] = field(default_factory=set)

    def wait(self) -> None:
        missing: list[int] = self.order[~self.there[self.order]].tolist()
        left = [at for at in missing if at not in self.tried]
        if not left:
            super().wait()
            return
        self.tried.add(left[0])
        self.own.tell(state="computing", doing=f"model {left[0] + 1}, with others")
        self.make(left[0])


def _together(
    progress: RunInProgress,
    listed: Sequence[ListedModel],
    job: ZooJob,
    begin: Callable[[str], None],
) -> tuple[dict[str, Run], dict[str, HeadscopeError]]:
    """As `_each`, of several processes; WrittenElsewhereError but in the last one."""
    quietly, said = replace(job, reports=False), dict[str, tuple[str, ...]]()

    def make(number: int) -> State:
        begin(listed[number].label)
        try:
            said[listed[number].label] = _one(listed[number], quietly, {}).said
        except RunStopped:
            raise
        except Exception as error:
            reason = one_line(_readable(error)).encode("utf-8", "replace")
            return {"error": np.frombuffer(reason, np.uint8)}
        return {}

    parts, numbers = _ModelParts(progress, listed), range(len(listed))
    states = parts.parts(numbers, make, lambda at: None, what="model", last=True, member=_Helping)
    runs: dict[str, Run] = {}
    failed: dict[str, HeadscopeError] = {}
    for entry, state in zip(listed, states, strict=True):
        if "error" in state:
            failed[entry.label] = HeadscopeError(state["error"].tobytes().decode())
            continue
        run = open_run(job.folder / MODELS / entry.folder)
        run = replace(run, said=said.get(entry.label, ()))
        if same := _same(run.manifest["model"]["sha256"], runs):
            failed[entry.label] = same
        else:
            runs[entry.label] = run
    return runs, failed


def _elsewhere(folder: RunFolder, listed: Sequence[ListedModel]) -> Zoo:
    """The zoo that another process has written."""
    manifest = folder.manifest() or {}
    runs = {
        entry.label: open_run(folder.path / MODELS / entry.folder)
        for entry in listed
        if entry.label in manifest.get("models", ())
    }
    return Zoo(folder.path, runs, manifest, elsewhere=True)


def _same(sha256: str, runs: Mapping[str, Run]) -> ModelError | None:
    for label, run in runs.items():
        if run.manifest["model"]["sha256"] == sha256:
            return ModelError(f"has the same weights as {label}")
    return None


def annotations_in(corpus: Corpus, limit: int | None) -> frozenset[str]:
    """Which annotations some document has; the corpus is read until all have been seen."""
    kinds: set[str] = set()
    for document in islice(corpus, limit):
        for passage in document.passages:
            kinds.update(annotations_of(passage))
        if kinds >= CORPUS_NEEDS:
            break
    return frozenset(kinds)


def _readable(error: Exception) -> HeadscopeError:
    if isinstance(error, HeadscopeError):
        return error
    return HeadscopeError(f"failed with {one_line(error)}")


def _none(failed: Mapping[str, HeadscopeError]) -> HeadscopeError:
    """The error where no model could be read: the one that all share, or each model's."""
    errors = list(failed.values())
    if len({one_line(error) for error in errors}) == 1:
        return errors[0]
    each = "; ".join(f"{label}: {one_line(error)[:200]}" for label, error in failed.items())
    return HeadscopeError(f"none of the {len(failed)} models could be read: {each[:800]}")
