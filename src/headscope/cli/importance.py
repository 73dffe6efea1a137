"""`headscope importance`: how much a loss depends on each head, by its gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headscope.cli import options as shared
from headscope.cli.terminal_output import ProgressBar, annotate, size_of
from headscope.cli.typed_command import group, run_command
from headscope.core.head_names import names_of
from headscope.core.options import option
from headscope.core.wording import how_many
from headscope.errors import InputError
from headscope.experiments.ablation.ablate import ablate
from headscope.experiments.ablation.settings import AblationSettings
from headscope.experiments.importance.importance import ImportanceRequest, importance
from headscope.run.processes import noting_failure
from headscope.tasks.remembered_task import remembered_task, with_remembered_task
from headscope.tasks.task_request import Loading, TaskRequest, model_and_examples

if TYPE_CHECKING:
    from headscope.run.store import Run

NAMED = 5  # heads that the summary names of each method


class _ImportanceOptions(shared.SharedRunOptions, ImportanceRequest):
    texts: shared.CorpusOptions = group("Or any text", before="limit")
    ablate: Literal["uniform", "zero", "mean"] | None = option(
        "Make that run first, beside RUN: uniform, zero or mean.",
        metavar="HOW",
        heading="What to compute",
    )


@run_command("importance", _ImportanceOptions, headings={"The task": "The examples of a task"})
def importance_command(options: _ImportanceOptions) -> None:
    """Tell how much a loss depends on each head of MODEL, by the gradients of its attention.

    The loss is that of a task that MODEL was fine-tuned for; or on plain text its own, of masked
    tokens or of the next one.

    \b
    headscope importance bert-rte --task rte --data glue -o important
    headscope importance bert-rte --task rte --data glue --ablation ablated -o important
    headscope importance bert-base-uncased --text wiki.txt -o gradients
    """
    notes: list[str] = []
    with noting_failure(options.output, options.shard):
        if options.task is None and not options.texts.named and remembered_task(options.model):
            options, notes = with_remembered_task(options, options.model)
        _check(options)
        own: dict[str, Any] = {"tell": notes.append}
        if options.task is None:
            own["corpus"] = shared.read_corpus(options.texts, limit=options.limit)
            notes += annotate(own["corpus"], quiet=options.quiet)
        elif options.ablate is not None:
            own = _ablated(options, notes)
        unit = "inputs" if options.task is None else "examples"
        with ProgressBar(quiet=options.quiet, unit=unit) as bar:
            how = shared.execution_of(bar, options)
            run = importance(**vars(ImportanceRequest.of(options, execution=how, **own)))
    shared.conclude(run, options, lines=chain(notes, _lines(run)), summary=_summary)


def _ablated(options: _ImportanceOptions, notes: list[str]) -> dict[str, Any]:
    """Ablate first; what is read stands in the place of its options."""
    assert options.task is not None
    from headscope.run.store import check_run_folder

    check_run_folder(options.output)
    model, data = model_and_examples(
        str(options.model),
        options.task,
        TaskRequest.of(options),
        Loading.of(options),
        seed=options.seed,
    )
    output = Path(str(options.output)).with_name(f"{Path(str(options.output)).name}-ablation")
    settings = AblationSettings.of(
        options, replacement=options.ablate, max_length=options.max_length or 128
    )
    with ProgressBar(quiet=options.quiet, unit="examples") as bar:
        how = shared.execution_of(bar, options)
        ablation = ablate(
            model, data, output=output, settings=settings, execution=how, tell=notes.append
        )
    notes.append(f"ablation: {output}")
    read = {"model": model, "task": data, "ablation": ablation}
    return {**vars(TaskRequest()), **vars(Loading()), **read}


def _check(options: _ImportanceOptions) -> None:
    """Raise InputError for options that contradict each other, or name no loss."""
    if options.ablation is not None and options.ablate is not None:
        raise InputError("found --ablation and --ablate; give the run, or how to make it")
    if options.task is not None:
        why = "the loss is that of a task, or of a language model on text"
        shared.refuse_text(options.task, options.texts, why)
    elif any(one is not None for one in (options.data, options.ablation, options.ablate)):
        raise InputError("found --data, --ablation or --ablate, and no task; give --task NAME too")
    elif not options.texts.named:
        raise InputError(
            "no loss to take the gradient of; give the examples of a task (--task rte --data "
            "FOLDER), or text for a language model (--text FILE, --demo, …)"
        )


def _lines(run: Run) -> Iterator[str]:
    import numpy as np

    from headscope.claims.reading import WITHHELD, run_findings

    counts = run.manifest["counts"]
    importance, gradients = run["importance"], run["gradients"]
    loss = f"{gradients.attrs['loss_name']} {float(gradients['loss']):.3f}"
    read = f"{how_many(counts['examples'], 'input')}, {how_many(counts['tokens'], 'token')}"
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
    yield from run_findings(run.tree)
    if WITHHELD in importance.attrs:
        return
    values = importance["head_importance"].transpose("variant", "layer", "head").values
    names = names_of(run.tree)
    for method, of_heads in zip(importance["variant"].values, values, strict=True):
        most = np.argsort(-of_heads.ravel(), kind="stable")[:NAMED]
        yield f"  {method}: {', '.join(names.unit(int(at), values.shape[-1]) for at in most)}"
    if note := importance.attrs.get("ablation_note"):
        yield note


def _summary(run: Run) -> Mapping[str, Any]:
    from headscope.claims.reading import WITHHELD

    importance, gradients, rho = run["importance"], run["gradients"], {}
    methods = [str(name) for name in importance["variant"].values]
    if "rho" in importance:
        for name in methods:
            one = importance.sel({"variant": name, "effect": "loss"})
            rho[name] = [float(one[f"rho{end}"]) for end in ("", "_ci_low", "_ci_high")]
    loss = {"loss_name": gradients.attrs["loss_name"], "loss": float(gradients["loss"])}
    loss |= {key: why for key, why in gradients.attrs.items() if key == WITHHELD}
    return {**loss, "methods": methods, "rho": rho}
