"""Compares a checkpoint with the model that it was trained from.

    run = compare(load("demo"), load("checkpoint"), demo_corpus(), output="run")
    run["similarity"], run["change"]

The run folder is that of an atlas of the second model, with two more groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import xarray as xr

import headscope
from headscope.core.labelled import DRAWS, keeping_draws, with_token_names
from headscope.core.question import named as named_question
from headscope.core.results import printable
from headscope.corpus import Corpus
from headscope.errors import InputError
from headscope.experiments.comparison.change import change_of
from headscope.experiments.comparison.changed_inputs import ChangedInput, find_changed, listed
from headscope.experiments.comparison.layer_change import Training, read_training
from headscope.experiments.comparison.paired_reading import (
    AFTER,
    BEFORE,
    ComparisonPlan,
    PairReader,
    PairState,
    reading,
)
from headscope.experiments.comparison.same_inputs import check_comparable, check_same_tokens
from headscope.experiments.input_maps import capture_maps
from headscope.model.model import Model, file_sha256
from headscope.run.analysis import choose
from headscope.run.atlas import (
    Execution,
    annotated_analyses,
    frequency_ranks,
    longest_inputs,
    possible_analyses,
    scope_of,
    with_n,
)
from headscope.run.engine.compute import fastest_linears
from headscope.run.finished_run import Run
from headscope.run.life_cycle import Meter, Progress, RunInProgress, run_in_progress
from headscope.run.manifest import (
    TRAINING_RECORD,
    Manifest,
    identity_of,
    new_manifest,
    training_history,
)
from headscope.run.plan import Plan, Reader, encoder_for, make_plan
from headscope.run.settings import Settings
from headscope.run.store import RunFolder

STORED = 4  # inputs that are stored with their maps


def is_slow(name: str) -> bool:
    """Whether an analysis runs only if it is named: it compares the heads of one model with each
    other, has no number per head, or takes as long as all the rest together.
    """
    question = named_question(name)
    return question is not None and question.slow


def compare(
    base: Model,
    tuned: Model,
    corpus: Corpus,
    *,
    output: str | Path | None = None,
    settings: Settings | None = None,
    execution: Execution | None = None,
    padded_to: int | None = None,
) -> Run:
    """How alike the heads of two models are, and what changes from the first to the second.

    base, tuned  of one shape, with one tokenizer; where `headscope finetune` made the second, what
                 it wrote down of the training is read
    output       run folder; an unfinished run of the same spec is continued. None: in memory
    settings     as for `atlas`; without `analyses`, all that are not slow
    execution    as for `atlas`, in one process
    padded_to    also the cosine of maps padded to so many tokens
    raises       InputError and its kinds before anything is computed; RunStopped on Ctrl-C
    """
    check_comparable(base, tuned)
    settings, execution = _settled(settings or Settings(), padded_to), execution or Execution()
    names = _names(base, tuned, settings)
    folder = None if output is None else RunFolder(output)
    if folder is not None:
        folder.check()
    place = None if tuned.name == "demo" else tuned.name
    training = None if place is None else read_training(place, layers=tuned.shape.layers)
    check_same_tokens(base, tuned, corpus, limit=settings.limit)
    reader = min((base, tuned), key=lambda model: model.limit)
    plan = make_plan(reader, corpus, settings)
    names = annotated_analyses(names, plan, settings)
    if padded_to is not None:
        _check_width(padded_to, limit=encoder_for(reader, settings).limit, most=reader.limit)
    work = _work(reader, plan, settings, names, padded_to=padded_to)
    work = replace(work, threads=execution.threads_each)
    job = ComparisonJob(base, tuned, reader, corpus, plan, settings, work, training)
    spec = _spec(job)

    def manifest() -> Manifest:
        inputs = longest_inputs(reader, corpus, plan, settings)
        linears = fastest_linears(reader, inputs, asked=execution.linears)
        return _manifest(job, spec, linears=linears, command=execution.command)

    with run_in_progress(folder, spec, manifest, overwrite=execution.overwrite) as run:
        job = replace(job, work=replace(work, linears=run.linears))
        return compute_comparison(run, job, progress=execution.progress)


def _settled(settings: Settings, padded_to: int | None) -> Settings:
    """Inputs that are padded to a length are no longer than that."""
    if padded_to is None or settings.max_length is not None:
        return settings
    return replace(settings, max_length=padded_to)


def _check_width(padded_to: int, *, limit: int, most: int) -> None:
    if not limit <= padded_to <= most:
        raise InputError(
            f"maps padded to {padded_to} tokens, and inputs have up to {limit}; wanted {limit} "
            f"to {most} (what the models take), or a smaller --max-length"
        )


def _names(base: Model, tuned: Model, settings: Settings) -> list[str]:
    """The analyses that both models allow, and that were asked for.

    One whose options are given is asked for; a measure alone is meant for all.
    """
    named = {name for name, given in settings.options.items() if set(given) - {"measure"}}
    if settings.analyses is None:
        asked = {name for name in choose(None) if name in named or not is_slow(name)}
    else:
        asked = set(settings.analyses)
    asked -= {"examples"}  # which are shown is known only in the end
    anything = replace(settings, analyses=None)
    allowed = set(possible_analyses(base, anything)) & set(possible_analyses(tuned, anything))
    if settings.analyses is not None and (missing := sorted(asked - allowed)):
        raise InputError(
            f"{missing[0]} needs what cannot be read from {base.architecture} and "
            f"{tuned.architecture}; leave it out of --analyses"
        )
    return sorted(asked & allowed)


def _work(
    model: Model, plan: Plan, settings: Settings, names: list[str], *, padded_to: int | None
) -> ComparisonPlan:
    scope = scope_of(model, plan, settings, frequency_ranks(plan, None, model))
    return ComparisonPlan(
        scope, tuple(names), model.shape.stack, settings.batch_tokens, padded_to=padded_to,
        options={name: dict(given) for name, given in settings.options.items()},
    )  # fmt: skip


def _spec(job: ComparisonJob) -> dict[str, Any]:
    """Everything that decides the numbers."""
    record, work = Path(job.tuned.name) / TRAINING_RECORD, job.work
    settings = {"analyses": list(work.names), "padded_to": work.padded_to}
    return {
        "headscope": headscope.__version__,
        "command": "compare",
        "base": identity_of(job.base),
        "model": identity_of(job.tuned),
        "corpus": {"inputs_sha256": job.plan.digest},
        "training": file_sha256(record) if job.training is not None else None,
        "settings": {**job.settings.as_dict(), **settings},
    }


def _manifest(
    job: ComparisonJob, spec: dict[str, Any], *, linears: str, command: Sequence[str]
) -> Manifest:
    counts = {**job.plan.counts.as_dict(), "cut": getattr(job.corpus, "cut", 0)}
    manifest = new_manifest(
        spec, job.tuned, corpus=job.corpus.describe(), counts=counts, shards=len(job.plan.shards),
        analyses=job.work.names, linears=linears, threads=job.work.threads, command=command,
    )  # fmt: skip
    base = {name: getattr(job.base, name) for name in ("name", "revision", "sha256")}
    return manifest | {
        "base": base | {"architecture": job.base.architecture},
        "history": training_history(job.tuned.name),
    }


# --- the computation --------------------------------------------------------------------------


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
    results = {name: _as_in_atlas(found, job.tuned) for name, found in sides[AFTER].items()}
    records = merged.similarity.most.records
    most = find_changed(records, job.reader, job.corpus, job.settings, job.plan)
    similar = merged.similarity.result(job.training)
    results["similarity"] = xr.merge([similar, listed(most, job.reader)])
    maps = _stored_inputs({BEFORE: job.base, AFTER: job.tuned}, job.work, most)
    more = {"change": changed, "examples": maps}
    return results | {name: found for name, found in more.items() if found is not None}


def _as_in_atlas(dataset: xr.Dataset, model: Model) -> xr.Dataset:
    """A result as an atlas has it: without replicates, tokens by name."""
    kept = dataset.drop_vars([name for name in dataset.data_vars if str(name).endswith(DRAWS)])
    dims = [dim for dim in kept.dims if str(dim).startswith("replicate_")]
    kept = kept.drop_vars([dim for dim in dims if dim in kept.coords])
    return with_token_names(kept, model.tokens)


def _stored_inputs(
    models: dict[str, Model], work: ComparisonPlan, changed: Sequence[ChangedInput]
) -> xr.Dataset | None:
    """Maps of the first of them in the second model, and `versus_attention`, those of the first."""
    few = tuple(one.example for one in changed[:STORED])
    if not few:
        return None
    found = {}
    for side, model in models.items():
        with reading([model], work):
            found[side] = capture_maps(model, few, work.scope)
    maps = found[BEFORE]["token_attention"]
    title = models[BEFORE].name.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    versus = maps.assign_attrs(versus=f"attention, {title}")
    return found[AFTER].assign(versus_attention=versus).assign_attrs(chosen="changed")
