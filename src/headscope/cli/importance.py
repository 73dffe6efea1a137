"""`headscope importance`: how much a loss depends on each head, by its gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headscope.cli import options
from headscope.cli.options import (
    CorpusOptions,
    IntervalOptions,
    Natural,
    Positive,
)
from headscope.cli.run_request import SharedRunOptions
from headscope.cli.task_options import TaskOptions, refuse_text, task_examples
from headscope.cli.terminal_output import ProgressBar, annotate, size_of
from headscope.cli.typed_command import Options, argument, group, option, run_command
from headscope.errors import InputError
from headscope.model.request import refuse_length
from headscope.run.processes import noting_failure

if TYPE_CHECKING:
    from headscope.experiments.importance.importance import ImportanceSettings
    from headscope.run.store import Run
    from headscope.tasks.task_data import TaskData

NAMED = 5  # heads that the summary names of each method


class _MaskedIntervalOptions(IntervalOptions):
    seed: Natural = option("Seed of masks and draws.", 0)


class _ImportanceOptions(Options):
    model: options.ModelName = argument()
    task: TaskOptions = group("The examples of a task")
    corpus: CorpusOptions = group("Or any text")
    methods: str | None = option(
        "Some of gradient, michel, michel_normalised, slope_zero, slope_uniform, attattr; by "
        "default all for a task, all but the last for text.",
        metavar="A,B,…",
        heading="What to compute",
    )
    steps: Positive = option("Steps of attattr's integral.", 5)
    ablation: Path | None = option(
        "A run of `headscope ablate` to compare the importances with.", metavar="RUN2"
    )
    ablate: Literal["uniform", "zero", "mean"] | None = option(
        "Make that run first, beside RUN: uniform, zero or mean.", metavar="HOW"
    )
    limit: Positive | None = option("Examples of a task, drawn by --seed, or the first documents.")
    lengths: options.LengthOptions = group("Lengths")
    chance: _MaskedIntervalOptions = group("How sure")
    loading: options.ModelOptions = group("The model")
    output: Path = options.output_option(
        "Run folder; re-running resumes.", "importance-{model}", metavar="RUN"
    )
    batch_tokens: Positive = option(
        "Tokens of a forward pass at most, copies of an input included.", 2048
    )
    how: SharedRunOptions = group()


@run_command("importance", _ImportanceOptions)
def importance_command(given: _ImportanceOptions) -> None:
    """Tell how much a loss depends on each head of MODEL, by the gradients of its attention.

    The loss is that of a task that MODEL was fine-tuned for; or on plain text its own, of masked
    tokens or of the next one.

    \b
    headscope importance bert-rte --task rte --data glue -o important
    headscope importance bert-rte --task rte --data glue --ablation ablated -o important
    headscope importance bert-base-uncased --text wiki.txt -o gradients
    """
    with noting_failure(given.output, given.how.shard):
        # Everything that can be wrong with the request is found before a model is loaded.
        data = _asked(given)
        from headscope.experiments.importance.importance import ImportanceSettings

        settings = options.settings_from(
            ImportanceSettings,
            given,
            given.lengths,
            given.chance,
            methods=None if given.methods is None else options.comma_separated(given.methods),
            limit=given.limit if data is None else None,
        )
        options.check_run_folder(given.output)
        run, notes = _of_text(settings, given) if data is None else _of_task(data, settings, given)
    options.conclude(run, given.how, lines=chain(notes, _lines(run)), summary=_summary)


def _of_text(settings: ImportanceSettings, given: _ImportanceOptions) -> tuple[Run, list[str]]:
    from headscope.experiments.importance.importance import importance_to_text
    from headscope.model.language_model import load_language_model

    texts = options.read_corpus(given.corpus, limit=given.limit)
    notes = annotate(texts, quiet=given.how.quiet)
    model = load_language_model(given.model, **asdict(given.loading))
    with ProgressBar(quiet=given.how.quiet, unit="inputs") as progress:
        execution = options.execution_of(progress, given.how)
        run = importance_to_text(
            model, texts, output=given.output, settings=settings, execution=execution
        )
    return run, notes


def _of_task(
    data: TaskData, settings: ImportanceSettings, given: _ImportanceOptions
) -> tuple[Run, list[str]]:
    from headscope.experiments.importance.importance import importance
    from headscope.run.store import open_run
    from headscope.tasks.task_model import load_for_task

    against = None if given.ablation is None else open_run(given.ablation)
    model = load_for_task(given.model, data.task, **asdict(given.loading))
    notes = [*model.notes, *data.notes]
    if given.ablate is not None:
        from headscope.experiments.ablation import ablate as ablation

        output = given.output.with_name(f"{given.output.name}-ablation")
        settings_of_ablation = options.settings_from(
            ablation.AblationSettings,
            given,
            given.chance,
            replacement=given.ablate,
            max_length=given.lengths.max_length or 128,
        )
        with ProgressBar(quiet=given.how.quiet, unit="examples") as progress:
            against = ablation.ablate(
                model,
                data,
                output=output,
                settings=settings_of_ablation,
                execution=options.execution_of(progress, given.how),
            )
        notes.append(f"ablation: {output}")
    with ProgressBar(quiet=given.how.quiet, unit="examples") as progress:
        run = importance(
            model,
            data,
            output=given.output,
            settings=settings,
            ablation=against,
            execution=options.execution_of(progress, given.how),
        )
    return run, notes


def _asked(given: _ImportanceOptions) -> TaskData | None:
    """The examples of a task; None for a corpus. InputError for what contradicts itself."""
    if given.ablation is not None and given.ablate is not None:
        raise InputError("found --ablation and --ablate; give the run, or how to make it")
    if given.task.task is not None:
        refuse_text(
            given.task, given.corpus, "the loss is that of a task, or of a language model on text"
        )
        seed = given.chance.seed
        return task_examples(given.task, given.model, given.loading, seed, given.limit)
    if any(one is not None for one in (given.task.data, given.ablation, given.ablate)):
        raise InputError("found --data, --ablation or --ablate, and no task; give --task NAME too")
    if not given.corpus.named:
        raise InputError(
            "no loss to take the gradient of; give the examples of a task (--task rte --data "
            "FOLDER), or text for a language model (--text FILE, --demo, …)"
        )
    refuse_length(given.model, given.lengths.max_length)
    return None


def _lines(run: Run) -> Iterator[str]:
    import numpy as np

    from headscope.core.results import head_name
    from headscope.experiments.importance.section import importance_findings

    counts = run.manifest["counts"]
    importance, gradients = run["importance"], run["gradients"]
    loss = f"{gradients.attrs['loss_name']} {float(gradients['loss']):.3f}"
    read = f"{counts['examples']:,} inputs, {counts['tokens']:,} tokens"
    yield f"{size_of(run.manifest['model'])}, {loss} on {read}"
    if counts["cut"]:
        yield f"{counts['cut']} of {counts['examples']} examples were cut"
    for name, words in (
        ("windowed", "were longer than an input, and read in windows"),
        ("skipped", "were skipped"),
        ("left_out", "hold no token to predict"),
    ):
        if gradients.attrs.get(name):
            yield f"{gradients.attrs[name]} passages {words}"
    yield from importance_findings(run.tree)
    values = importance["head_importance"].transpose("variant", "layer", "head").values
    for method, of_heads in zip(importance["variant"].values, values, strict=True):
        most = np.argsort(-of_heads.ravel(), kind="stable")[:NAMED]
        yield f"  {method}: {', '.join(head_name(int(at), values.shape[-1]) for at in most)}"
    if note := importance.attrs.get("ablation_note"):
        yield note


def _summary(run: Run) -> Mapping[str, Any]:
    importance, gradients, rho = run["importance"], run["gradients"], {}
    methods = [str(name) for name in importance["variant"].values]
    if "rho" in importance:
        for name in methods:
            one = importance.sel({"variant": name, "effect": "loss"})
            rho[name] = [float(one[f"rho{end}"]) for end in ("", "_ci_low", "_ci_high")]
    told = {"loss_name": gradients.attrs["loss_name"], "loss": float(gradients["loss"])}
    return {**told, "methods": methods, "rho": rho}
