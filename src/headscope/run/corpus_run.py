"""What `run.atlas` computes: plan, compute shard by shard, merge, label, store."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims.length_bands import BANDS
from headscope.core.confidence import holding_at_every_look
from headscope.core.progress import one_by_one, phase
from headscope.core.results import with_token_names, without_draws
from headscope.corpus import Corpus, Example, batches
from headscope.corpus.drawn import DrawnCorpus
from headscope.corpus.tokenizer import TokenizerReader
from headscope.model.model import Model, evaluating
from headscope.model.threads import threads_of
from headscope.run.analysis import Analysis, Scope
from headscope.run.chosen_analyses import (
    annotated_analyses,
    is_long,
    long_analyses,
    long_in_words,
    possible_analyses,
    reads_of,
)
from headscope.run.compute import ShardJob, fastest_linears
from headscope.run.control import Control, control_names, control_of, control_results
from headscope.run.execution import Execution
from headscope.run.frequency_ranks import corpus_ranks, read_ranks, unlike_counts
from headscope.run.gather import Engine, gather
from headscope.run.gather_together import gather_together
from headscope.run.known_analyses import CORPUS_NEEDS
from headscope.run.life_cycle import Meter, RunInProgress, run_in_progress
from headscope.run.manifest import Manifest, label, new_manifest, spec_of
from headscope.run.plan import Plan, make_plan
from headscope.run.processes import TakingPart
from headscope.run.readings import WINDOW
from headscope.run.sampled_analyses import read_sample, sampled, streamed, tokens_of
from headscope.run.settings import Settings
from headscope.run.shared_parts import WrittenElsewhereError
from headscope.run.shared_plan import shared_plan
from headscope.run.stopping import (
    Goal,
    Results,
    Stopping,
    first_shards,
    for_looks,
    in_random_order,
)
from headscope.run.store import Run, RunFolder

TIMED = 1024  # tokens that tell the faster kind of linear maps


def corpus_run(
    model: Model,
    corpus: Corpus,
    folder: RunFolder | None,
    settings: Settings,
    execution: Execution,
    *,
    frequency: str | Path | None,
    control: str | Path | None,
    own: TakingPart | None,
    goal: Goal | None = None,
) -> Run:
    """The run of a request of `atlas` that is known to be right; `goal` may stop it early."""
    engine = engine_of(execution, model)
    if goal is not None:
        corpus, settings = in_random_order(corpus, settings)
    possible, held_against = possible_analyses(model, settings), control_of(model, control)
    plan = _planned(model, corpus, settings, execution, own)
    wanted = annotated_analyses(possible, plan, settings)
    names = long_analyses(wanted, model, plan, settings)
    ranks = frequency_ranks(plan, frequency, model)
    scope = scope_of(model, plan, settings, ranks)
    spec = spec_of(model, plan, settings, names, frequency)
    spec |= {} if held_against is None else {"control": dict(held_against.spec)}
    spec |= {} if goal is None else {"until": goal.until}

    def manifest() -> Manifest:
        return new_manifest(
            spec,
            model,
            corpus=corpus.describe(),
            counts=plan.counted(),
            shards=len(plan.shards),
            analyses=names,
            linears=fastest_linears(
                model, longest_inputs(plan, settings), requested=execution.linears
            ),
            threads=execution.threads_each,
            command=execution.command,
            engine=execution.engine,
            long=long_in_words(wanted, names, model, plan, settings),
            notes=unlike_counts(ranks, plan.token_counts) if frequency else (),
        )

    with (
        threads_of(execution.threads_each),
        evaluating(model.network),
        run_in_progress(folder, spec, manifest, overwrite=execution.overwrite, own=own) as run,
    ):
        run.note_linears(execution.linears)
        job = replace(
            _job(model, corpus, plan, settings, scope=scope, names=names),
            linears=run.linears,
            threads=execution.threads_each,
            draws=execution.keep_draws,
        )
        try:
            return _computed(run, model, job, plan, execution, engine, held_against, goal)
        except WrittenElsewhereError:
            return run.elsewhere()


def _planned(
    model: Model,
    corpus: Corpus,
    settings: Settings,
    execution: Execution,
    own: TakingPart | None,
) -> Plan:
    if isinstance(corpus, DrawnCorpus):
        return for_looks(model, corpus, settings)
    if own is not None:
        return shared_plan(model, corpus, settings, own)
    return make_plan(model, corpus, settings, workers=execution.workers)


def _job(
    model: Model, corpus: Corpus, plan: Plan, settings: Settings, *, scope: Scope, names: list[str]
) -> ShardJob:
    return ShardJob(
        corpus,
        settings,
        replace(
            scope,
            stored_inputs=plan.stored_inputs,
            stored_tokens=tuple(model.tokens(e.input_ids) for e in plan.stored_inputs),
        ),
        tuple(streamed(names)),
        model.shape.stack,
        options={name: dict(options) for name, options in settings.options.items()},
        long=is_long(model, plan, settings),
        reads=reads_of(names, plan),
        bands={kind: reading.bands for kind, reading in plan.readings.items()},
    )


def engine_of(execution: Execution, model: Model) -> Engine | None:
    """What computes shards instead of this process; InputError where no scheduler answers."""
    if execution.engine != "dask":
        return None
    from headscope.run.dask_engine import compute_on_dask, reach

    if execution.scheduler is not None:
        reach(execution.scheduler)
    gpu, where = model.device.type == "cuda", execution.scheduler
    return partial(compute_on_dask, scheduler=where, workers=execution.workers, gpu=gpu)


def frequency_ranks(plan: Plan, frequency: str | Path | None, model: Model) -> np.ndarray[Any, Any]:
    """[vocabulary] ranks of the tokens, from a file or as counted in the corpus."""
    if frequency is None:
        return corpus_ranks(plan.token_counts)
    return read_ranks(Path(frequency), TokenizerReader(model.tokenizer).ids)


def scope_of(model: Model, plan: Plan, settings: Settings, ranks: np.ndarray[Any, Any]) -> Scope:
    """What the analyses of a run know before the first batch; `ranks` as `frequency_ranks`."""
    places = len(set(plan.listed.values()))  # few: each document is a group of its own
    return Scope(
        layers=model.shape.layers,
        heads=model.shape.heads,
        documents=plan.counted()["documents"],
        special_tokens=model.special_tokens,
        frequency_rank=ranks,
        relations=plan.annotations.labels,
        seed=settings.seed,
        neurons=model.shape.neurons,
        replicates=places or settings.replicates,
        listed=plan.listed,
        sinks=model.shape.sinks,
        first_token=model.shape.stack == "decoder" and "cls" not in model.special_tokens,
    )


def longest_inputs(plan: Plan, settings: Settings) -> list[Example]:
    """The batch with the longest inputs of the sample, of at most TIMED tokens."""
    examples, most = plan.sample.within(plan.sample.tokens), min(settings.batch_tokens, TIMED)
    return [examples[row].leading(TIMED) for row in list(batches(examples, budget=most))[-1]]


def _computed(  # noqa: PLR0917
    run: RunInProgress,
    model: Model,
    job: ShardJob,
    plan: Plan,
    execution: Execution,
    engine: Engine | None,
    control: Control | None,
    goal: Goal | None,
) -> Run:
    meter = Meter(len(plan.shards), execution.progress)
    finished = run.finished()
    meter.advance(len(run.done) if finished is None else meter.total)
    if finished is not None:
        return finished
    if goal is not None:
        return _stopped_early(run, model, job, plan, meter, execution, engine, control, goal)
    if run.own is None:
        merged = gather(run, model, job, plan, meter, workers=execution.workers, engine=engine)
    else:
        merged = gather_together(run, model, job, plan, meter)
    return _finished(run, model, job, plan, merged, control)


def _finished(  # noqa: PLR0917
    run: RunInProgress,
    model: Model,
    job: ShardJob,
    plan: Plan,
    merged: Mapping[str, Analysis],
    control: Control | None,
) -> Run:
    kept = (lambda result: result) if job.draws else without_draws
    results = {
        name: with_token_names(kept(with_n(merged[name], plan, name)), model.tokens)
        for name in one_by_one(merged, "intervals", "analyses", len(merged))
    }
    if len(results) > len(job.names):
        results[BANDS] = xr.Dataset(attrs={"tidy": 0})
    more = sampled(run.manifest["analyses"])
    results |= {name: kept(result) for name, result in read_samples(more, model, job, plan)}
    results |= read_control(control, job, plan, more)
    return run.finish(results, title="headscope atlas")


def _stopped_early(  # noqa: PLR0917
    run: RunInProgress,
    model: Model,
    job: ShardJob,
    plan: Plan,
    meter: Meter,
    execution: Execution,
    engine: Engine | None,
    control: Control | None,
    goal: Goal,
) -> Run:
    """The run of the first documents that tell what was asked."""
    assert isinstance(job.corpus, DrawnCorpus)
    corpus: DrawnCorpus = job.corpus

    def results(merged: Mapping[str, Analysis]) -> dict[str, xr.Dataset]:
        return {n: with_token_names(with_n(a, plan, n), model.tokens) for n, a in merged.items()}

    def of_control(shards: int) -> dict[str, xr.Dataset]:
        return read_control(control, job, first_shards(model, corpus, plan, job.settings, shards))

    def tree(results: Results) -> xr.DataTree:
        return label(results, run.manifest, title="headscope atlas")

    stopping = Stopping(goal, plan, results, of_control, tree)
    workers, enough, start = execution.workers, stopping.enough, process_time()
    merged = gather(run, model, job, plan, meter, workers=workers, engine=engine, enough=enough)
    last = stopping.looks[-1]
    if goal.sample:
        seconds = process_time() - start - stopping.seconds
        run.manifest["until"] = stopping.record(corpus.draw) | {"seconds": seconds}
        return Run(xr.DataTree(), run.manifest)
    read = first_shards(model, corpus, plan, job.settings, last.shards)
    run.manifest |= {
        "counts": read.counted(),
        "shards": last.shards,
        "until": stopping.record(corpus.draw),
    }
    with holding_at_every_look(last.documents):
        return _finished(run, model, job, read, merged, control)


def read_samples(
    names: Sequence[str], model: Model, job: ShardJob, plan: Plan
) -> Iterator[tuple[str, xr.Dataset]]:
    """(name, results) of the analyses that read a sample of a run's inputs."""
    for name in names:
        reading = plan.readings[reads_of([name], plan)[name]]
        examples = reading.sample.within(tokens_of(reading.counts["tokens"]))
        with phase(name, len(examples), "inputs") as advance:
            analysis = read_sample(name, model, job, examples, advance)
        yield name, with_token_names(with_n(analysis, plan, name), model.tokens)


def read_control(
    control: Control | None, job: ShardJob, plan: Plan, more: Sequence[str] = ()
) -> dict[str, xr.Dataset]:
    """The groups of the control, whose networks read a sample of a run's inputs; none of None.

    more  analyses that read a sample themselves
    """
    if control is None:
        return {}
    names = control_names(job)
    samples, cut = [], 0
    for kind in sorted({plan.reading, *reads_of(names, plan).values()}):
        reading = plan.readings[kind]
        most = control.tokens(reading.counts["tokens"], draws=job.draws)
        samples.append(reading.sample.within(most))
        longest = max(map(len, samples[-1]))
        if longest == min(WINDOW, most) < reading.longest:
            cut = max(cut, longest)
    count = sum(map(len, samples)) * len(control.asked(names))
    with phase("control", count, "inputs") as advance:
        return dict(control_results(control, job, samples, advance, more, window=cut))


def with_n(analysis: Analysis, plan: Plan, name: str = "") -> xr.Dataset:
    """The result of an analysis, and what it is of: `n` is the number of documents with the
    annotations it needs.

    name  of the group in the results: of a band of lengths, its documents are `n`
    """
    result, needs = analysis.result(), analysis.needs & CORPUS_NEEDS
    kind, reading = plan.reading_with(needs)
    counts = reading.counted()
    there = [reading.annotations.documents[one] for one in needs]
    if name.startswith(BANDS):
        there.append(reading.lengths[name.split("/")[1]])
    for variable in result.data_vars.values() if there else ():
        variable.attrs["n"] = min(*there, counts["documents"])
        if kind != plan.reading:
            variable.attrs["tokens"] = counts["tokens"]
    if not analysis.every_reading and not name.startswith(BANDS):
        result.attrs |= {"reading": kind} | {
            one: counts[one] for one in ("documents", "examples", "tokens")
        }
    return result
