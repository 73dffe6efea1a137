"""Computes an evolution: every checkpoint in turn, then one dataset with the dimension `step`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from headscope.corpus import Corpus, demo_corpus
from headscope.errors import InputError, ModelError, RunFolderError, one_line
from headscope.experiments.evolution.checkpoints import ListedCheckpoint
from headscope.experiments.evolution.collected import evolution, own_controls, with_controls
from headscope.experiments.evolution.measuring import (
    STEPS,
    StepMeasurement,
    load_checkpoint,
    measured_steps,
    refuse_missing,
    refuse_unlike,
    trees_of,
)
from headscope.experiments.evolution.settings import Followed, MadeInputs
from headscope.experiments.trial.labels_of_run import groups_of
from headscope.model.language_model import LanguageModel
from headscope.model.model import Model
from headscope.run.execution import Execution
from headscope.run.experiment import BESIDE
from headscope.run.life_cycle import RunInProgress, run_in_progress
from headscope.run.manifest import Manifest, deciding_versions, several_runs
from headscope.run.processes import TakingPart, taking_part
from headscope.run.settings import Settings, fingerprint
from headscope.run.shard_files import State
from headscope.run.shared_parts import WrittenElsewhereError
from headscope.run.store import Run, RunFolder
from headscope.tasks.task_request import Loading

COMMAND = "evolve"
OF_RUNS = ("model", "corpus", "counts", "linears", "threads", "seed", "replicates")


@dataclass(frozen=True)
class EvolveJob:
    """What is measured of every checkpoint, and how; as `EvolveRequest`."""

    folder: Path
    corpus: Corpus | None
    settings: Settings
    followed: Followed
    execution: Execution
    control: str
    loading: Loading
    tokenizer: str | Path | None = None

    @cached_property
    def spec(self) -> dict[str, Any]:
        """Everything that decides the numbers, but the checkpoints, of which more may come."""
        made = asdict(MadeInputs.of(self.followed))
        return {
            "versions": deciding_versions(),
            "command": COMMAND,
            "corpus": {} if self.corpus is None else dict(self.corpus.describe()),
            "dtype": self.loading.dtype,
            "settings": {**self.settings.as_dict(), **made},
            "control": self.control,
        }

    def measurement(self, model: Model | LanguageModel) -> StepMeasurement:
        """What is measured of a model: an encoder reads the bundled corpus where none is named."""
        corpus = self.corpus
        if corpus is None and not isinstance(model, LanguageModel):
            corpus = demo_corpus()
        made = MadeInputs.of(self.followed)
        return StepMeasurement(self.folder, corpus, self.settings, made, self.execution)


@contextmanager
def evolution_in_progress(
    job: EvolveJob, more: Mapping[str, Any] | None = None, own: TakingPart | None = None
) -> Iterator[RunInProgress]:
    """Lock the folder of an evolution, and begin it where nothing is there yet.

    more    of a manifest that begins now
    own     this process, where several fill the folder together
    raises  RunFolderError for a folder with something else, or measured in another way
    """
    spec = job.spec

    def begin() -> Manifest:
        made = {"analyses": [], "steps": {}, "created": datetime.now(UTC).strftime("%Y-%m-%d")}
        return several_runs(spec, job.execution.command, **made, **(more or {}))

    folder = RunFolder(job.folder, parts=STEPS)
    with run_in_progress(folder, spec, begin, overwrite=job.execution.overwrite, own=own) as run:
        yield run


def evolve_run(
    listed: Sequence[ListedCheckpoint],
    left_out: Sequence[str],
    job: EvolveJob,
    begin: Callable[[str], None],
) -> Run:
    """The evolution of a request that is known to be right; a checkpoint that fails is left out."""
    refuse_missing(listed)
    notes, failed = list(left_out), list[ModelError]()
    with (
        taking_part(job.folder, job.execution.shard) as own,
        evolution_in_progress(job, own=own) as progress,
    ):
        known = dict[str, str](progress.manifest["steps"])
        try:
            for one, state in zip(listed, _measured(progress, listed, job, begin), strict=True):
                if "error" in state:
                    failed.append(ModelError(state["error"].tobytes().decode()))
                    notes.append(f"{one.name} is left out: {one_line(failed[-1])}")
                    continue
                known[str(one.step)] = one.name
                progress.manifest["steps"] = known
                progress.save_manifest()
            if len(failed) == len(listed):
                raise failed[0]
            return collect(progress, job.followed.follow, notes)
        except WrittenElsewhereError:
            return progress.elsewhere()


def _measured(
    progress: RunInProgress,
    listed: Sequence[ListedCheckpoint],
    job: EvolveJob,
    begin: Callable[[str], None],
) -> Iterator[State]:
    """Measure every checkpoint, this process alone or with others; of one that fails the reason."""

    def measure(number: int) -> State:
        one = listed[number]
        begin(one.name)
        try:
            model = load_checkpoint(one, job.loading, job.tokenizer)
        except ModelError as error:
            return {"error": np.frombuffer(str(error).encode("utf-8", "replace"), np.uint8)}
        refuse_unlike(one.name, model, job.folder)
        job.measurement(model).of(model, one.step, control=job.control)
        return {}

    if progress.own is None:
        return map(measure, range(len(listed)))
    assert progress.folder is not None
    if progress.finished() and not {str(one.step) for one in listed} <= {
        *progress.manifest["steps"]
    }:
        raise InputError(
            f"{job.folder} holds a finished evolution without some of these steps; wanted one "
            "process to add them: leave --shard out"
        )
    names = {one.step: one.name for one in listed}
    progress.folder.owner = fingerprint({"spec": progress.manifest["spec"], "steps": names})
    progress.verify()  # there may be parts of a list of other checkpoints
    return progress.parts(range(len(listed)), measure, lambda at: None, last=True)


def collect(
    progress: RunInProgress, measures: Sequence[str] | None, notes: Sequence[str] = ()
) -> Run:
    """Write the results of an evolution, from the runs of all steps in its folder.

    raises  InputError where no step is measured yet
    """
    assert progress.folder is not None
    steps = measured_steps(progress.folder.path)
    if not steps:
        raise InputError(f"{progress.folder.path}: no step is measured yet; wanted one or more")
    last = steps[max(steps)][0].manifest
    own = {name: last[name] for name in OF_RUNS if name in last}
    known: dict[str, str] = progress.manifest["steps"]
    names = {step: known.get(str(step), "") for step in steps}
    kept = [*dict.fromkeys([*last.get("notes", ()), *notes])]
    manifest = progress.manifest
    trees = with_controls(trees_of(steps))
    # The page is also that of the last checkpoint: its labels, its heads.
    groups = {name: one for tree in trees[max(trees)] for name, one in groups_of(tree).items()}
    analyses = sorted(name for name in groups if "/" not in name and name not in BESIDE)
    manifest |= own | {"shards": 0, "analyses": ["evolution", *analyses], "notes": kept}
    groups["evolution"] = evolution(trees, measures, names, own_controls(trees_of(steps)))
    return progress.finish(groups, title="headscope evolve")


def collected_again(folder: Path, measures: Sequence[str] | None = None) -> Run:
    """The evolution of what a folder holds by now, of a training that goes on or was killed.

    raises  RunFolderError for a folder without an evolution
    """
    place = RunFolder(folder, parts=STEPS)
    manifest = place.manifest()
    if manifest is None or manifest["spec"].get("command") != COMMAND:
        raise RunFolderError(f"{folder} holds no evolution; wanted the folder of headscope evolve")
    with run_in_progress(place, manifest["spec"], lambda: manifest, overwrite=False) as run:
        return collect(run, measures)
