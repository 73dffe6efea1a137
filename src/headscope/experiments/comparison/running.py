"""How does a planned comparison become a run: shard by shard, merged, labelled, kept?"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

import xarray as xr

from headscope.core.labelled import DRAWS, keeping_draws, with_token_names
from headscope.core.results import printable
from headscope.corpus import Corpus
from headscope.errors import RunStopped
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
from headscope.run.finished_run import Run, open_run
from headscope.run.manifest import Manifest, label
from headscope.run.plan import Plan, Reader
from headscope.run.settings import Settings
from headscope.run.store import RunFolder

Progress = Callable[[int, int], None]


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


def run_job(
    job: ComparisonJob, manifest: Manifest, *, folder: RunFolder | None, progress: Progress | None
) -> Run:
    """Compute what is missing, merge, label and keep; a finished run is only opened."""
    report, shards = progress or (lambda done, total: None), len(job.plan.shards)
    if folder is not None and folder.has_results(manifest.get("results_sha256")):
        report(shards, shards)
        return open_run(folder.path)
    merged = _merged(job, folder, report)
    tree = label(_results(job, merged), manifest)
    base = manifest["base"]
    tree.attrs |= {
        "title": "headscope compare", "base_model": printable(base["name"]),
        "base_revision": base["revision"], "base_sha256": base["sha256"],
    }  # fmt: skip
    if folder is None:
        return Run(tree, manifest)
    buffer = io.BytesIO()
    tree.to_netcdf(buffer, engine="h5netcdf")
    manifest["results_sha256"] = folder.put_results(buffer.getvalue())
    folder.write_manifest(manifest)
    return Run(tree, manifest, folder.path)


def _merged(job: ComparisonJob, folder: RunFolder | None, report: Progress) -> PairState:
    """The sums of all shards, added in their order."""
    done = folder.finished() if folder else set()
    merged, pair = PairState(job.work), PairReader(job.base, job.tuned, job.work)
    reader = Reader(job.reader, job.corpus, job.settings)
    count, total = len(done), len(job.plan.shards)
    report(count, total)
    try:
        for shard in job.plan.shards:
            if folder is not None and shard.number in done:
                pair.sides.load(folder.shard(shard.number))
            else:
                state = pair.read(shard.number, reader.examples(shard))
                if folder is not None:
                    folder.put_shard(shard.number, state)
                count += 1
                report(count, total)
            merged.merge(pair.sides)
    except KeyboardInterrupt as error:
        kept = " and kept: the same command goes on from here" if folder else ""
        raise RunStopped(f"stopped; {count} of {total} shards are finished{kept}") from error
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
