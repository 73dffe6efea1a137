"""What `compare` computes: both models read the same inputs, and what differs is measured."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.analyses.examples.measure import capture_maps
from headscope.claims.control import BASE
from headscope.claims.question import questions
from headscope.core.display import printable
from headscope.core.progress import begin
from headscope.core.results import with_token_names, without_draws
from headscope.corpus import Corpus, Example
from headscope.errors import InputError
from headscope.experiments.comparison import paired_inputs
from headscope.experiments.comparison.change import change_of
from headscope.experiments.comparison.paired_reading import (
    AFTER,
    BEFORE,
    ComparisonJob,
    PairReader,
    PairState,
    reading,
)
from headscope.experiments.comparison.similarity import Similarity, read_training
from headscope.model.model import Model, file_sha256
from headscope.run import corpus_run, manifest
from headscope.run.analysis import LEADING
from headscope.run.chosen_analyses import (
    annotated_analyses,
    is_long,
    long_analyses,
    long_in_words,
    possible_analyses,
    reads_of,
)
from headscope.run.compute import Reader, fastest_linears
from headscope.run.control import RANDOM, Control, control_of
from headscope.run.execution import Execution
from headscope.run.gather import merge_shard
from headscope.run.known_analyses import choose
from headscope.run.life_cycle import Meter, RunInProgress, run_in_progress
from headscope.run.machine_choices import LinearsChoice
from headscope.run.manifest import Manifest
from headscope.run.plan import encoder_for, make_plan
from headscope.run.sampled_analyses import sampled
from headscope.run.settings import Settings
from headscope.run.store import Run, folder_of
from headscope.tasks.remembered_task import TRAINING_RECORD

STORED = 4  # inputs that are stored with their maps


def comparison_run(
    base: Model,
    tuned: Model,
    corpus: Corpus,
    settings: Settings,
    execution: Execution,
    *,
    output: str | Path | None,
    padded_to: int | None,
    control: str | Path | None,
) -> Run:
    """The run of a request of `compare` that is known to be right."""
    against = _control(base, tuned, control)
    if padded_to is not None and settings.max_length is None:
        settings = replace(settings, max_length=padded_to)
    folder = folder_of(output, execution)
    job = _planned(base, tuned, corpus, settings, padded_to=padded_to)
    job = replace(job, threads=execution.threads_each)
    spec = _spec(job) | ({} if against is None else {"control": dict(against.spec)})

    def begin() -> Manifest:
        inputs = corpus_run.longest_inputs(job.plan, settings)
        linears = fastest_linears(job.reader, inputs, requested=execution.linears)
        return _manifest(job, spec, linears=linears, command=execution.command)

    with run_in_progress(folder, spec, begin, overwrite=execution.overwrite) as run:
        run.note_linears(execution.linears)
        meter, finished = Meter(len(job.plan.shards), execution.progress), run.finished()
        meter.advance(len(run.done) if finished is None else meter.total)
        if finished is not None:
            return finished
        job, first = replace(job, linears=run.linears), run.manifest["base"]
        results = _results(job, _merged(run, job, meter))
        results |= corpus_run.read_control(against, job, job.plan)
        apart = {}
        if base.shape.numbers != tuned.shape.numbers:
            of_base = [*map(base.shape.names.number, range(base.shape.layers))]
            apart["base_layer_numbers"] = " ".join(map(str, of_base))
        return run.finish(
            results,
            title="headscope compare",
            base_model=printable(first["name"]),
            base_revision=first["revision"],
            base_sha256=first["sha256"],
            **apart,
        )


def _control(base: Model, tuned: Model, wish: str | Path | None) -> Control | None:
    """The control of an atlas of the second model, and the first one's weights shuffled."""
    control = control_of(tuned, wish)
    if control is None or control.kind != RANDOM or (more := control_of(base, wish)) is None:
        return control
    shuffled = {"shuffled base": more.networks["shuffled"]}
    return replace(control, networks={**control.networks, **shuffled})


def _planned(
    base: Model,
    tuned: Model,
    corpus: Corpus,
    settings: Settings,
    *,
    padded_to: int | None,
) -> ComparisonJob:
    """What is to be computed; all that can be wrong is found here."""
    names = _names(base, tuned, settings)
    training = None
    if tuned.name != "demo":
        shape = tuned.shape
        training = read_training(tuned.name, layers=shape.depth, numbers=shape.numbers)
    paired_inputs.check_same_tokens(base, tuned, corpus, limit=settings.limit)
    reader = min((base, tuned), key=lambda model: model.limit)
    plan = make_plan(reader, corpus, settings)
    wanted = annotated_analyses(names, plan, settings)
    names = long_analyses(wanted, reader, plan, settings)
    long = is_long(reader, plan, settings)
    longest = encoder_for(reader, settings).limit
    if padded_to is not None and not longest <= padded_to <= reader.limit:
        raise InputError(
            f"maps padded to {padded_to} tokens, and inputs have up to {longest}; wanted {longest} "
            f"to {reader.limit} (what the models take), or a smaller --max-length"
        )
    if padded_to is not None and long:
        raise InputError(
            f"padded maps are whole, and inputs of {plan.longest} tokens are read without; wanted "
            f"--whole-maps {padded_to}, or --max-length {settings.whole_maps}"
        )
    scope = corpus_run.scope_of(
        reader, plan, settings, corpus_run.frequency_ranks(plan, None, reader)
    )
    return ComparisonJob(
        corpus,
        settings,
        scope,
        tuple(names),
        reader.shape.stack,
        options={name: dict(options) for name, options in settings.options.items()},
        base=base,
        tuned=tuned,
        reader=reader,
        plan=plan,
        training=training,
        padded_to=padded_to,
        long=long,
        told=long_in_words(wanted, names, reader, plan, settings),
        reads={**reads_of(names, plan), Similarity.name: plan.reading},
    )


def _names(base: Model, tuned: Model, settings: Settings) -> list[str]:
    """The analyses that both models allow, and that were asked for.

    One whose options are given is asked for; a measure alone is meant for all.
    """
    if settings.analyses is None:
        named = {name for name, options in settings.options.items() if set(options) - {"measure"}}
        requested = set(choose(None)) - ({one.name for one in questions() if one.slow} - named)
    else:
        requested = set(settings.analyses)
    requested -= {"examples"}  # which are shown is known only in the end
    if settings.analyses is not None and (alone := sampled(requested)):
        raise InputError(
            f"{alone[0]} reads a sample of the inputs of one model, and is not compared; leave it "
            "out of --analyses, and run atlas with each model"
        )
    requested -= set(sampled(requested))
    anything = replace(settings, analyses=None)
    first, second = (set(possible_analyses(one, anything)) for one in (base, tuned))
    allowed = first & second
    if settings.analyses is not None and (missing := sorted(requested - allowed)):
        raise InputError(
            f"{missing[0]} needs numbers that cannot be read from {base.architecture} and "
            f"{tuned.architecture}; leave it out of --analyses"
        )
    return sorted(requested & allowed)


def _spec(job: ComparisonJob) -> dict[str, Any]:
    record = Path(job.tuned.name) / TRAINING_RECORD
    settings = {"analyses": list(job.names), "padded_to": job.padded_to}
    return {
        "versions": manifest.deciding_versions(),
        "command": "compare",
        "base": manifest.identity_of(job.base),
        "model": manifest.identity_of(job.tuned),
        "corpus": {"inputs_sha256": job.plan.digest},
        "training": file_sha256(record) if job.training is not None else None,
        "settings": {**job.settings.as_dict(), **settings},
    }


def _manifest(
    job: ComparisonJob, spec: dict[str, Any], *, linears: LinearsChoice, command: Sequence[str]
) -> Manifest:
    counts = {**job.plan.counted(), "cut": getattr(job.corpus, "cut", 0)}
    begun = manifest.new_manifest(
        spec,
        job.tuned,
        corpus=job.corpus.describe(),
        counts=counts,
        shards=len(job.plan.shards),
        analyses=job.names,
        linears=linears,
        threads=job.threads,
        command=command,
        long=job.told,
        notes=[f"{job.base.name}: {note}" for note in job.base.notes],
    )
    base = {name: getattr(job.base, name) for name in ("name", "revision", "sha256")}
    numbers = job.base.shape.numbers
    return begun | {
        "base": base | {"architecture": job.base.architecture, "layer_numbers": list(numbers)},
        "history": manifest.training_history(job.tuned.name),
    }


def _merged(run: RunInProgress, job: ComparisonJob, meter: Meter) -> PairState:
    merged, pair = PairState.new(job), PairReader(job)
    reader = Reader(job.reader, job.corpus, job.settings)
    todo = sum(shard.examples for shard in job.plan.shards if shard.number not in run.done)
    advance = begin("compute", todo, "inputs")
    for shard in job.plan.shards:
        if shard.number in run.done:
            state = run.kept(shard.number)
        else:
            state = pair.read(shard.number, reader.examples(shard), advance)
            run.keep(shard.number, state)
            meter.advance(1)
        merge_shard(merged.parts, pair.sides.parts, state)
    return merged


def _results(job: ComparisonJob, merged: PairState) -> dict[str, xr.Dataset]:
    scope = job.scope
    begin("intervals")
    before, after = (
        {a.name: corpus_run.with_n(a, job.plan) for a in merged.analyses[side]}
        for side in (BEFORE, AFTER)
    )
    changed = change_of(
        before,
        after,
        shape=(scope.layers, scope.heads),
        documents=scope.documents,
    )
    results = {n: with_token_names(one, job.tuned.tokens) for n, one in after.items()}
    results[BASE] = xr.Dataset(attrs={"tidy": 0})
    for name, one in before.items():
        results[f"{BASE}/{name}"] = with_token_names(one, job.base.tokens)
    records = merged.similarity.most.records
    most = paired_inputs.find_changed(records, job.reader, job.corpus, job.settings, job.plan)
    similar = merged.similarity.result(job.training)
    results["similarity"] = xr.merge(
        [similar, paired_inputs.listed(most, records["score"], job.reader)]
    )
    more = {"change": changed, "examples": _stored_inputs(job, most)}
    results |= {name: result for name, result in more.items() if result is not None}
    return {name: without_draws(result) for name, result in results.items()}


def _stored_inputs(job: ComparisonJob, changed: Sequence[Example]) -> xr.Dataset | None:
    few = list(changed[:STORED])
    if job.long and job.stack == "decoder":
        few = [example.leading(LEADING) for example in few]
    elif job.long:
        few = [example for example in few if len(example) <= job.settings.whole_maps]
    if not few:
        return None
    maps = {}
    for side, model in job.models.items():
        with reading([model], job):
            maps[side] = capture_maps(model, few, job.scope)
    title = job.base.name.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    versus = maps[BEFORE]["token_attention"].assign_attrs(versus=f"attention, {title}")
    return maps[AFTER].assign(versus_attention=versus).assign_attrs(chosen="changed")
