"""`headscope importance`: how much a loss depends on each head, by its gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headscope.cli.options import (
    BootstrapOptions,
    CorpusOptions,
    LengthOptions,
    ModelOptions,
    RunOptions,
    check_run_folder,
    comma_separated,
    command_line,
    conclude,
    output_option,
    read_corpus,
)
from headscope.cli.task_options import TaskOptions, asked_task, task_data
from headscope.cli.terminal_output import ProgressBar, annotate
from headscope.cli.typed_command import RESUMES, argument, group, option, typed_command
from headscope.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from headscope.corpus import Corpus
    from headscope.experiments.importance.importance import ImportanceSettings
    from headscope.run.atlas import Execution
    from headscope.run.finished_run import Run
    from headscope.tasks.task_data import TaskData

NAMED = 5  # heads that the summary names of each method


@dataclass(frozen=True, kw_only=True)
class MaskedBootstrapOptions(BootstrapOptions):
    """What is left to chance where tokens are masked as well."""

    seed: int = option("Seed of masks, draws and the bootstrap.", default=0, minimum=0)


@dataclass(frozen=True, kw_only=True)
class ImportanceOptions:
    """What `headscope importance` is asked."""

    model: str = argument()
    task: TaskOptions = group("The examples of a task")
    corpus: CorpusOptions = group("Or any text")
    methods: str | None = option(
        "Some of gradient, michel, michel_normalised, slope_zero, slope_uniform, attattr; by "
        "default all for a task, all but the last for text.",
        metavar="A,B,…",
        heading="What to compute",
    )
    steps: int = option("Steps of attattr's integral.", default=5, minimum=1)
    ablation: Path | None = option(
        "A run of `headscope ablate` to compare the importances with.", metavar="RUN2"
    )
    ablate: Literal["uniform", "zero", "mean"] | None = option(
        "Make that run first, beside RUN: uniform, zero or mean.", metavar="HOW"
    )
    limit: int | None = option(
        "Examples of a task, drawn by --seed, or the first documents.", minimum=1
    )
    lengths: LengthOptions = group("Lengths")
    chance: MaskedBootstrapOptions = group("How sure")
    loading: ModelOptions = group("The model")
    output: Path = output_option(
        "Run folder; re-running resumes.", metavar="RUN", heading="How to run"
    )
    batch_tokens: int = option(
        "Tokens of a forward pass at most, copies of an input included.", default=2048, minimum=1
    )
    how: RunOptions = group()


@typed_command("importance", ImportanceOptions, stopped=RESUMES)
def command(given: ImportanceOptions) -> None:
    """Tell how much a loss depends on each head of MODEL, by the gradients of its attention.

    The loss is that of a task that MODEL was fine-tuned for; or on plain text its own, of masked
    tokens or of the next one.

    \b
    headscope importance bert-rte --task rte --data glue -o important
    headscope importance bert-rte --task rte --data glue --ablation ablated -o important
    headscope importance bert-base-uncased --text wiki.txt -o gradients
    """
    # Everything that can be wrong with the request is found before a model is loaded.
    data = _asked(given)
    settings = _settings(given)

    check_run_folder(given.output)
    texts = read_corpus(given.corpus, limit=given.limit) if data is None else None
    notes = [] if texts is None else annotate(texts, quiet=given.how.quiet)

    if data is None:
        assert texts is not None
        run = _of_text(texts, settings, given)
    else:
        run, more = _of_task(data, settings, given)
        notes += more
    conclude(run, given.how, lines=lambda run: (*notes, *_lines(run)), summary=_summary)


def _of_text(texts: Corpus, settings: ImportanceSettings, given: ImportanceOptions) -> Run:
    from headscope.experiments.importance.importance import importance_to_text
    from headscope.experiments.importance.language_model import load_language_model

    model = load_language_model(given.model, **asdict(given.loading))
    with ProgressBar(quiet=given.how.quiet, unit="input") as progress:
        return importance_to_text(
            model,
            texts,
            output=given.output,
            settings=settings,
            execution=_execution(given, progress),
        )


def _of_task(
    data: TaskData, settings: ImportanceSettings, given: ImportanceOptions
) -> tuple[Run, list[str]]:
    """The run, and what is to be said before it."""
    from headscope.experiments.importance.importance import importance
    from headscope.run.finished_run import open_run
    from headscope.tasks.task_model import load_for_task

    against = None if given.ablation is None else open_run(given.ablation)
    model = load_for_task(given.model, data.task, **asdict(given.loading))
    notes = [*model.notes, *data.notes]
    if given.ablate is not None:
        from headscope.experiments.ablation import ablate as ablation

        output = given.output.with_name(f"{given.output.name}-ablation")
        settings_of_ablation = ablation.AblationSettings(
            replacement=given.ablate,
            max_length=given.lengths.max_length or 128,
            batch_tokens=given.batch_tokens,
            **asdict(given.chance),
        )
        with ProgressBar(quiet=given.how.quiet, unit="example") as progress:
            against = ablation.ablate(
                model,
                data,
                output=output,
                settings=settings_of_ablation,
                asked_linears=given.how.linears,
                overwrite=given.how.overwrite,
                command=command_line(),
                progress=progress,
            )
        notes.append(f"ablation: {output}")
    with ProgressBar(quiet=given.how.quiet, unit="example") as progress:
        run = importance(
            model,
            data,
            output=given.output,
            settings=settings,
            ablation=against,
            execution=_execution(given, progress),
        )
    return run, notes


# --- what is asked --------------------------------------------------------------------------


def _asked(given: ImportanceOptions) -> TaskData | None:
    """The examples of a task; None for a corpus. InputError for what contradicts itself."""
    texts, task = given.corpus.named, given.task.task
    if given.ablation is not None and given.ablate is not None:
        raise InputError("found --ablation and --ablate; give the run, or how to make it")
    if task is not None:
        if texts or given.corpus.annotate:
            raise InputError(
                f"found --task {task} and {', '.join(texts) or '--annotate'}; wanted "
                "only one of them: the loss is that of a task, or of a language model on text"
            )
        asked = asked_task(given.task, given.model, revision=given.loading.revision)
        return task_data(given.task, asked, seed=given.chance.seed, limit=given.limit)
    if any(one is not None for one in (given.task.data, given.ablation, given.ablate)):
        raise InputError("found --data, --ablation or --ablate, and no task; give --task NAME too")
    if not texts:
        raise InputError(
            "no loss to take the gradient of; give the examples of a task (--task rte --data "
            "FOLDER), or text for a language model (--text FILE, --demo, …)"
        )
    return None


def _settings(given: ImportanceOptions) -> ImportanceSettings:
    from headscope.experiments.importance.importance import ImportanceSettings

    return ImportanceSettings(
        methods=None if given.methods is None else comma_separated(given.methods),
        limit=None if given.task.task is not None else given.limit,
        steps=given.steps,
        batch_tokens=given.batch_tokens,
        **asdict(given.lengths),
        **asdict(given.chance),
    )


def _execution(given: ImportanceOptions, progress: ProgressBar) -> Execution:
    from headscope.run.atlas import Execution

    how = given.how
    return Execution(
        linears=how.linears, overwrite=how.overwrite, command=command_line(), progress=progress
    )


# --- what is said ---------------------------------------------------------------------------


def _lines(run: Run) -> Iterator[str]:
    from headscope.experiments.importance.findings import gradient_finding, integral_note, rho_lines

    model, counts = run.manifest["model"], run.manifest["counts"]
    importance, gradients = run["importance"], run["gradients"]
    yield (
        f"{model['name']}: {model['layers']} layers × {model['heads']} heads, "
        f"{gradients.attrs['loss_name']} {float(gradients['loss']):.3f} on "
        f"{counts['examples']:,} inputs, {counts['tokens']:,} tokens"
    )
    if counts["cut"]:
        yield f"{counts['cut']} of {counts['examples']} examples were cut"
    for name, words in (
        ("windowed", "were longer than an input, and read in windows"),
        ("skipped", "were skipped"),
        ("left_out", "hold no token to predict"),
    ):
        if gradients.attrs.get(name):
            yield f"{gradients.attrs[name]} passages {words}"
    yield from filter(None, (gradient_finding(run.tree), integral_note(importance)))
    for method in map(str, importance["method"].values):
        yield f"  {method}: {_most(importance, method)}"
    yield from rho_lines(importance)


def _most(importance: xr.Dataset, method: str) -> str:
    """The most important heads by a method."""
    import numpy as np

    from headscope.core.results import head_name

    chosen = importance["head_importance"].sel({"method": method})
    values = chosen.transpose("layer", "head").values
    order = np.argsort(-values.ravel(), kind="stable")[:NAMED]
    return ", ".join(head_name(int(unit), values.shape[1]) for unit in order)


def _summary(run: Run) -> Mapping[str, Any]:
    importance, gradients, rho = run["importance"], run["gradients"], {}
    methods = [str(name) for name in importance["method"].values]
    if "rho" in importance:
        for name in methods:
            one = importance.sel({"method": name, "effect": "loss"})
            rho[name] = [float(one[f"rho{end}"]) for end in ("", "_ci_low", "_ci_high")]
    return {
        "loss_name": gradients.attrs["loss_name"],
        "loss": float(gradients["loss"]),
        "methods": methods,
        "rho": rho,
    }
