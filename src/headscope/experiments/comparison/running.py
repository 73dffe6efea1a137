"""Compute a planned comparison: read both models shard by shard, merge, and label the results."""

from __future__ import annotations

from dataclasses import dataclass

import xarray as xr

from headscope.core.labelled import DRAWS, keeping_draws, with_token_names
from headscope.core.results import printable
from headscope.corpus import Corpus
from headscope.experiments.comparison.change import change_of
from headscope.experiments.comparison.layer_change import Training
from headscope.experiments.comparison.paired_reading import (
    AFTER,
    BEFORE,
    ComparisonPlan,
    PairReader,
    PairState,
)
from headscope.experiments.comparison.shown import example_maps, find_changed, listed
from headscope.model.model import Model
from headscope.run.atlas import with_n
from headscope.run.finished_run import Run
from headscope.run.life_cycle import Meter, Progress, RunInProgress
from headscope.run.plan import Plan, Reader
from headscope.run.settings import Settings


@dataclass(frozen=True)
class ComparisonJob:
    """A comparison, planned.

    reader  the model whose tokenizer and limit decide what is read
    """

    base: Model
    tuned: Model
    reader: Model
    corpus: Corpus
    plan: Plan
    settings: Settings
    work: ComparisonPlan
    training: Training | None


def compute_comparison(run: RunInProgress, job: ComparisonJob, *, progress: Progress | None) -> Run:
    """Compute what is missing, merge, label and keep; a finished run is only opened."""
    meter = Meter(len(job.plan.shards), progress)
    meter.advance(len(run.done))
    if (finished := run.finished()) is not None:
        return finished
    base = run.manifest["base"]
    return run.finish(
        _results(job, _merged(run, job, meter)), title="headscope compare",
        base_model=printable(base["name"]), base_revision=base["revision"],
        base_sha256=base["sha256"],
    )  # fmt: skip


def _merged(run: RunInProgress, job: ComparisonJob, meter: Meter) -> PairState:
    """The sums of all shards, added in their order."""
    merged, pair = PairState(job.work), PairReader(job.base, job.tuned, job.work)
    reader = Reader(job.reader, job.corpus, job.settings)
    for shard in job.plan.shards:
        if shard.number in run.done:
            pair.sides.load(run.kept(shard.number))
        else:
            run.keep(shard.number, pair.read(shard.number, reader.examples(shard)))
            meter.advance(1)
        merged.merge(pair.sides)
    return merged


def _results(job: ComparisonJob, merged: PairState) -> dict[str, xr.Dataset]:
    """All groups: those of the second model's atlas, and what the comparison says."""
    sides = {}
    with keeping_draws():
        for side, analyses in merged.analyses.items():
            sides[side] = {a.name: with_n(a, job.plan.annotations) for a in analyses}
    scope = job.work.scope
    changed = change_of(
        sides[BEFORE], sides[AFTER], shape=(scope.layers, scope.heads), documents=scope.documents,
        replicates=scope.replicates,
    )  # fmt: skip
    results = {name: _told(found, job.tuned) for name, found in sides[AFTER].items()}
    records = merged.similarity.most.records
    most = find_changed(records, job.reader, job.corpus, job.settings, job.plan)
    similar = merged.similarity.result(job.training)
    results["similarity"] = xr.merge([similar, listed(most, job.reader)])
    maps = example_maps({BEFORE: job.base, AFTER: job.tuned}, job.work, most)
    more = {"change": changed, "examples": maps}
    return results | {name: found for name, found in more.items() if found is not None}


def _told(found: xr.Dataset, model: Model) -> xr.Dataset:
    """A result as an atlas has it: without replicates, tokens by name."""
    kept = found.drop_vars([name for name in found.data_vars if str(name).endswith(DRAWS)])
    dims = [dim for dim in kept.dims if str(dim).startswith("replicate_")]
    kept = kept.drop_vars([dim for dim in dims if dim in kept.coords])
    return with_token_names(kept, model.tokens)
