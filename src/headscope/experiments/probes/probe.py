"""Trains probes that find the syntactic head of a word, on attention, on words, on hidden states.

    run = probe(load("demo"), ["train.conllu"], ["test.conllu"], output="run")
    run["probes"]["uas"].sel(probe="attention")

Features of all sentences are written to disk once, in half precision, network by network; probes
are trained on them a sentence at a time, and the features are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import xarray as xr

from headscope.experiments.probes.feature_files import (
    FeatureFolder,
    FeaturePlace,
    check_size,
    folder_of,
)
from headscope.experiments.probes.probe_plan import ProbePlan, ProbeTraining
from headscope.experiments.probes.result import ProbeAnswers, probe_result
from headscope.experiments.probes.settings import NETWORK, ProbeSettings
from headscope.experiments.probes.structural import HiddenStates, structural_scores
from headscope.experiments.probes.train_and_test import head_spread, right_branching, trial
from headscope.experiments.probes.treebank_splits import corpus_of, counts_of, read_splits
from headscope.experiments.probes.word_vectors import read_vectors
from headscope.model.model import Model
from headscope.run.experiment import ExperimentRequest, run_experiment
from headscope.run.finished_run import Run
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.settings import fingerprint
from headscope.run.store import State

SPREAD, STRUCTURAL = 10_000, 20_000  # numbers of the parts that are no trials
Files = Sequence[str | Path]


def probe(
    model: Model,
    train: Files,
    test: Files,
    *,
    dev: Files = (),
    words: str | Path | None = None,
    output: str | Path | None = None,
    settings: ProbeSettings | None = None,
    place: FeaturePlace | None = None,
    labels: Sequence[Sequence[str]] | None = None,
    asked_linears: str = "auto",
    overwrite: bool = False,
    command: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Run:
    """Trains and tests all probes that can be run.

    train, test, dev  CoNLL-U or CoNLL-X files; without dev, a tenth of train is held out where it
                      is needed: for several epochs, and for the structural probe
    words             a file of word vectors, or "glove-6b-50d"; None: probes on words are left out
    output            run folder; an interrupted run of the same spec there goes on. None: in memory
    place             of the features
    labels            [layer][head] what an atlas says of each head
    progress          called as progress(done, all), in sentences read and trained on
    tell              called with what is to be said before the work begins
    raises            InputError and its kinds before anything is computed
    """
    settings, place = settings or ProbeSettings(), place or FeaturePlace()
    names, lacking = settings.run_probes(words=words is not None)
    files = {"train": train, "test": test} | ({"dev": dev} if dev else {})
    paths = {name: [Path(file) for file in some] for name, some in files.items()}
    splits = read_splits(model, paths, settings, names)
    every = [sentence for split in splits for sentence in split.sentences]
    vectors = None
    if words is not None:
        vectors = read_vectors(words, (form for s in every for form in s.forms))
    asking = ProbePlan(model, splits, settings, names, lacking, vectors, labels)
    folder = None if output is None else Path(output)
    if told := check_size(asking.kinds, model, splits, place, folder):
        tell(told)
    request = ExperimentRequest(
        "probe", model, corpus=corpus_of(splits), examples=[s.example for s in every],
        settings=asking.spec, seed=settings.seed, replicates=settings.replicates, line=command,
        counts=counts_of(splits), linears=asked_linears, batch_tokens=settings.batch_tokens,
    )  # fmt: skip
    work = _ProbeRun(asking, place, folder, progress)
    return run_experiment(request, work.compute, output=output, overwrite=overwrite)


@dataclass
class _ProbeRun:
    """The computation behind `probe`."""

    asking: ProbePlan
    place: FeaturePlace
    folder: Path | None
    progress: Callable[[int, int], None] | None

    def __post_init__(self) -> None:
        """Count the sentences that will be read and trained on."""
        asking = self.asking
        self.reading = sum(len(split.sentences) for split in asking.splits)
        once = len(asking.splits[0].sentences)
        self.of_layer = 2 * asking.settings.structural_epochs * once
        total = sum(job.size for job in asking.jobs) * asking.settings.epochs
        total += self.reading * len(asking.kinds) + self.of_layer * len(asking.layers)
        self.meter = Meter(total, self.progress)

    def compute(self, run: RunInProgress) -> dict[str, xr.Dataset]:
        """The group `probes`."""
        key = fingerprint({"model": self.asking.model.sha256, "linears": run.linears,
                           **self.asking.spec})  # fmt: skip
        with folder_of(self.place, self.folder, key) as folder:
            features = FeatureFolder(
                folder, key, self.asking, run.linears, keep=self.place.keep,
                advance=self.meter.advance,
            )  # fmt: skip
            with features:
                found = self._trials(run, features)
                found.structural = self._structural(run, features)
        return {"probes": probe_result(self.asking, found)}

    def _trials(self, run: RunInProgress, features: FeatureFolder) -> ProbeAnswers:
        """All probes that score pairs, those on one network after the other."""
        asking = self.asking
        found = ProbeAnswers({}, None, {})
        if "right_branching" in asking.names:
            rule = right_branching(asking.splits[2].sentences, tree=asking.settings.tree)
            found.trials[ProbeTraining("right_branching", 0, 0)] = rule
        for kind in (None, "model", "random"):
            extra = self.reading if kind in asking.kinds else 0
            for number, job in enumerate(asking.jobs):
                if NETWORK.get(job.probe) != kind:
                    continue
                with self.meter.stage(job.size * asking.settings.epochs + extra):
                    make = partial(trial, job, features)
                    found.trials[job] = run.part(number, make)
                extra = 0
            if kind == "model" and "attention" in asking.names:
                found.spread = run.part(SPREAD, partial(head_spread, features))["spread"]
            if kind is not None:
                features.drop(kind)
        return found

    def _structural(self, run: RunInProgress, features: FeatureFolder) -> dict[int, State]:
        """The structural probe, layer by layer."""
        found, extra = {}, self.reading
        for layer in self.asking.layers:
            with self.meter.stage(self.of_layer + extra):
                make = partial(self._of_layer, layer, features)
                found[layer] = run.part(STRUCTURAL + layer, make)
            extra = 0
        return found

    def _of_layer(self, layer: int, features: FeatureFolder) -> State:
        settings = self.asking.settings
        # hidden states begin with the embeddings
        train, dev, test = (
            HiddenStates(split.sentences, partial(store.read, part=layer + 1))
            for split, store in zip(self.asking.splits, features.of("hidden"), strict=True)
        )
        name = f"structural-{layer}"
        return structural_scores(
            (train, dev, test), rank=settings.rank, epochs=settings.structural_epochs,
            seed=settings.seed, state=features.scratch(name), key=f"{features.key} {name}",
            progress=self.meter.advance,
        )  # fmt: skip
