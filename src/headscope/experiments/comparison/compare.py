"""What does a checkpoint do differently from the model that it was trained from?

    run = compare(load("demo"), load("checkpoint"), demo_corpus(), output="run")
    run["similarity"], run["change"]

The run folder is that of an atlas of the second model, with two more groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import headscope
from headscope.corpus import Corpus
from headscope.errors import InputError
from headscope.experiments.comparison.layer_change import read_training
from headscope.experiments.comparison.paired_reading import ComparisonPlan
from headscope.experiments.comparison.running import ComparisonJob, compute_comparison
from headscope.experiments.comparison.same_inputs import check_comparable, check_same_tokens
from headscope.model.model import Model, file_sha256
from headscope.run.analysis import Scope, choose
from headscope.run.atlas import (
    Execution,
    annotated_analyses,
    frequency_ranks,
    longest_inputs,
    possible_analyses,
)
from headscope.run.engine.compute import fastest_linears
from headscope.run.finished_run import Run
from headscope.run.life_cycle import run_in_progress
from headscope.run.manifest import (
    TRAINING_RECORD,
    Manifest,
    identity_of,
    new_manifest,
    training_history,
)
from headscope.run.plan import Plan, encoder_for, make_plan
from headscope.run.settings import Settings
from headscope.run.store import RunFolder

# Of one model's heads among each other, or without a number per head, or as dear as all the rest
# together (neurons). Named in `analyses` they run all the same.
LEFT_OUT = ("divergence", "examples", "flow", "mixing", "neuron_sources", "neurons")


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
    settings     as for `atlas`; without `analyses`, all but LEFT_OUT
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
        asked = {name for name in choose(None) if name not in LEFT_OUT or name in named}
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
    scope = Scope(
        layers=model.shape.layers, heads=model.shape.heads, documents=plan.counts.documents,
        special_tokens=model.special_tokens, frequency_rank=frequency_ranks(plan, None, model),
        relations=plan.annotations.labels, replicates=settings.replicates, seed=settings.seed,
        neurons=model.shape.neurons,
    )  # fmt: skip
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
