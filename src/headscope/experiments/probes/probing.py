"""Trains and tests probes; `probe` reads the request.

Features of all sentences are written to disk once, in half precision, network by network; probes
are trained on them a sentence at a time, and the features are deleted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import xarray as xr

from headscope.claims.head_labels import run_labels
from headscope.core.accumulators import Float64
from headscope.errors import InputError
from headscope.experiments.probes import feature_files, probe_plan
from headscope.experiments.probes.feature_files import FeatureFolder
from headscope.experiments.probes.pair_probes import head_spread, right_branching, trial
from headscope.experiments.probes.probe_plan import ProbePlan, ProbeTraining
from headscope.experiments.probes.result import probe_result
from headscope.experiments.probes.settings import FeaturePlace, ProbeSettings
from headscope.experiments.probes.structural import HiddenStates, structural_scores
from headscope.experiments.probes.word_vectors import read_vectors
from headscope.model.model import Model
from headscope.run.execution import Execution
from headscope.run.experiment import ExperimentRequest, run_experiment
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.manifest import identity_of
from headscope.run.settings import fingerprint
from headscope.run.shard_files import State
from headscope.run.store import Run, open_run

SPREAD, STRUCTURAL = 10_000, 20_000  # numbers of the parts that are no trials
Labels = Sequence[Sequence[str]]
Files = str | Path | Sequence[str | Path]


def probe_run(
    model: Model,
    files: Mapping[str, Files],
    settings: ProbeSettings,
    *,
    words: str | Path | None = None,
    output: str | Path | None = None,
    place: FeaturePlace | None = None,
    atlas: Run | str | Path | None = None,
    labels: Labels | None = None,
    execution: Execution | None = None,
    tell: Callable[[str], object] = lambda text: None,
) -> Run:
    """Trains and tests the probes; `files` are of train, test, and dev where there are some."""
    place, execution = place or FeaturePlace(), execution or Execution()
    folder = None if output is None else Path(output)
    labels = labels if atlas is None else _labels(atlas, model)
    plan = _plan(model, files, words, settings, labels)
    if size := feature_files.check_size(plan, place, folder):
        tell(size)

    def compute(run: RunInProgress) -> dict[str, xr.Dataset]:
        key = fingerprint({"model": identity_of(plan.model), "linears": run.linears, **plan.spec})
        trained = sum(job.size for job in plan.jobs) * settings.epochs
        read = plan.sentences * len(plan.kinds)
        meter = Meter(trained + read + plan.layer_work * len(plan.layers), execution.progress)
        with feature_files.folder_of(place, folder, key, shared=run.own is not None) as kept:
            features = FeatureFolder(
                kept, key, plan, run.linears, place.keep, meter.advance, run.own
            )
            work = _ProbeRun(plan, run, meter, features)
            trials, spread = work.trials()
            structural = work.structural()
            run.lead()  # nobody reads features any more
        return {"probes": probe_result(plan, trials, spread, structural)}

    return run_experiment(_request(plan), compute, output=output, execution=execution)


def _request(plan: ProbePlan) -> ExperimentRequest:
    settings = plan.settings
    return ExperimentRequest(
        "probe",
        plan.model,
        corpus=probe_plan.corpus_of(plan.splits),
        examples=[one.example for split in plan.splits for one in split.sentences],
        settings=plan.spec,
        seed=settings.seed,
        replicates=settings.replicates,
        counts=probe_plan.counts_of(plan.splits),
        batch_tokens=settings.batch_tokens,
        divided=True,
        notes=probe_plan.overlap_note(plan.splits),
    )


def _plan(
    model: Model,
    files: Mapping[str, Files],
    words: str | Path | None,
    settings: ProbeSettings,
    labels: Labels | None,
) -> ProbePlan:
    names, lacking = settings.run_probes(words=words is not None)
    paths = {name: _paths(some) for name, some in files.items()}
    splits = probe_plan.read_splits(model, paths, settings, names)
    forms = (form for split in splits for one in split.sentences for form in one.forms)
    vectors = None if words is None else read_vectors(words, forms)
    return ProbePlan(model, splits, settings, names, lacking, vectors, labels)


def _paths(files: Files) -> list[Path]:
    return [Path(file) for file in ([files] if isinstance(files, str | Path) else files)]


def _labels(atlas: Run | str | Path, model: Model) -> list[list[str]]:
    """[layer][head] what an atlas of the same model says; raises InputError for another's."""
    run = atlas if isinstance(atlas, Run) else open_run(atlas)
    of = run.manifest["model"]
    if of["sha256"] != model.sha256:
        raise InputError(
            f"{run.path or 'the atlas'} is an atlas of {of['name']}, and {model.name} has other "
            "weights; wanted an atlas of the same model"
        )
    with run.showing():
        return run_labels(run.tree)


@dataclass(frozen=True)
class _ProbeRun:
    plan: ProbePlan
    run: RunInProgress
    meter: Meter
    features: FeatureFolder

    def trials(self) -> tuple[dict[ProbeTraining, State], Float64 | None]:
        """All probes that score pairs, those on one network after the other; spread of heads."""
        plan, spread = self.plan, None
        trials: dict[ProbeTraining, State] = {}
        if "right_branching" in plan.names:
            rule = right_branching(plan.splits[2].sentences, tree=plan.settings.tree)
            trials[ProbeTraining("right_branching", 0, 0)] = rule
        for kind in (None, "model", "random"):
            jobs = {
                number: job
                for number, job in enumerate(plan.jobs)
                if probe_plan.NETWORK.get(job.probe) == kind
            }
            sizes = {number: job.size * plan.settings.epochs for number, job in jobs.items()}
            if kind == "model" and "attention" in plan.names:
                sizes[SPREAD] = 0

            def make(number: int, jobs: dict[int, ProbeTraining] = jobs) -> State:
                if number == SPREAD:
                    return head_spread(self.features)
                return trial(jobs[number], self.features)

            states = self._stage(kind, sizes, make)
            spread = states[SPREAD]["spread"] if SPREAD in states else spread
            trials |= {job: states[number] for number, job in jobs.items()}
            if kind is not None:
                self.features.drop(kind)
        return trials, spread

    def structural(self) -> dict[int, State]:
        layers = self.plan.layers
        sizes = {STRUCTURAL + layer: self.plan.layer_work for layer in layers}
        states = self._stage("hidden", sizes, lambda number: self._of_layer(number - STRUCTURAL))
        return {layer: states[STRUCTURAL + layer] for layer in layers}

    def _stage(
        self, kind: str | None, sizes: Mapping[int, int], make: Callable[[int], State]
    ) -> dict[int, State]:
        """The parts that read one kind of features, which are made where a part is missing.

        sizes  of each part, as the meter counts
        """
        run, meter, here = self.run, self.meter, set[int]()

        def made(number: int) -> State:
            here.add(number)
            with meter.stage(sizes[number]):
                return make(number)

        def others(number: int) -> None:
            if number not in here:  # it was there, or another process has made it
                with meter.stage(sizes[number]):
                    pass

        def needed() -> bool:
            return not (run.own and run.refreshed()) and not run.done.issuperset(sizes)

        if kind in self.plan.kinds:
            with meter.stage(self.plan.sentences):
                if needed():
                    self.features.of(kind, needed)
        return dict(zip(sizes, run.parts(sizes, made, others), strict=True))

    def _of_layer(self, layer: int) -> State:
        settings, features = self.plan.settings, self.features
        number = self.plan.model.shape.names.number(layer)
        # hidden states begin with the embeddings, and are those of all layers
        train, dev, test = (
            HiddenStates(split.sentences, partial(file.read, part=number + 1))
            for split, file in zip(self.plan.splits, features.of("hidden"), strict=True)
        )
        name = f"structural-{number}"
        return structural_scores(
            (train, dev, test),
            rank=settings.rank,
            epochs=settings.structural_epochs,
            seed=settings.seed,
            state=features.scratch(name),
            key=f"{features.key} {name}",
            progress=self.meter.advance,
        )
