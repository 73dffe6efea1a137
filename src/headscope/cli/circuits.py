"""`headscope circuits`: which heads of a decoder look back, copy, induce and count on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from click import get_current_context
from click.core import ParameterSource

from headscope.cli import options as shared
from headscope.cli.options import RunOptions
from headscope.cli.terminal_output import ProgressBar, size_of
from headscope.cli.typed_command import run_command
from headscope.core.head_names import names_of
from headscope.core.options import several
from headscope.errors import InputError
from headscope.experiments.circuits.circuits import CircuitsRequest, circuits
from headscope.experiments.circuits.settings import CircuitSettings
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.model.language_model import LanguageModel
    from headscope.run.store import Run

NAMED = 5  # heads that the summary names of each score


class _CircuitOptions(RunOptions, CircuitsRequest):
    export: tuple[Literal["duo", "kvpress", "json", "mib"], ...] = several(
        "Write which heads retrieve: gates of key-value heads as DuoAttention reads them (kvpress: "
        "the same files), or JSON of all heads. Or the circuit's scores as the Mechanistic "
        "Interpretability Benchmark takes them (mib); repeatable.",
        heading="What to compute",
        before="control",
    )


@run_command("circuits", _CircuitOptions)
def circuits_command(options: _CircuitOptions) -> None:
    """Tell which heads of MODEL, a decoder, do what on inputs made for the question.

    Random tokens that come twice show which heads look at the previous token, at the same token
    and at what came after it (induction); weights show which copy, count on, and read which.

    \b
    headscope circuits demo-decoder -o circuits
    headscope circuits demo-decoder --prompts ioi -o circuits
    """
    views = get_current_context().get_parameter_source("views")
    if views is ParameterSource.COMMANDLINE and not options.prompts:
        raise InputError("found --views; wanted --prompts ioi, or another NAME|FILE, beside it")
    if "mib" in options.export and not (options.prompts and options.circuit):
        raise InputError(
            "found --export mib; wanted --prompts NAME|FILE beside it, and its circuit"
        )
    retrieving = [form for form in options.export if form != "mib"]
    own: dict[str, Any] = {"corpus": list(options.corpus or ()) or None}  # type: ignore[arg-type]
    if retrieving:
        own |= {**vars(Loading()), "model": _to_export(options)}
    with ProgressBar(quiet=options.quiet, unit="sequences") as bar:
        how = shared.execution_of(bar, options)
        run = circuits(**vars(CircuitsRequest.of(options, execution=how, **own)))
    written: list[Path] = []
    if retrieving:
        from headscope.experiments.circuits.export import export_heads

        written = export_heads(run, own["model"].model, retrieving)
    if "mib" in options.export:
        from headscope.experiments.circuits.discovery.importances import export_importances

        written.append(export_importances(run))
    shared.conclude(
        run,
        options,
        lines=_lines(run, written),
        summary=lambda run: {**_summary(run), "exported": list(map(str, written))},
    )


def _to_export(options: _CircuitOptions) -> LanguageModel:
    """The model, loaded; InputError for one that reads no haystack."""
    from headscope.run.store import check_run_folder

    check_run_folder(options.output)
    from headscope.experiments.circuits.circuit_run import haystack_of
    from headscope.experiments.circuits.export import NO_HAYSTACK
    from headscope.model.language_model import load_language_model

    model = load_language_model(str(options.model), **asdict(Loading.of(options)))
    if not haystack_of(model.model, CircuitSettings.of(options)):
        raise InputError(NO_HAYSTACK)
    return model


def _lines(run: Run, written: list[Path]) -> Iterator[str]:
    from headscope.claims.reading import run_findings
    from headscope.core.results import estimate
    from headscope.core.wording import percent
    from headscope.report.build import first_words

    counts, scores = run.manifest["counts"], run["circuits"]
    yield f"{size_of(run.manifest['model'])}, {counts['examples']:,} made inputs"
    yield from filter(None, [first_words(run.tree), *run_findings(run.tree)])
    for name, parts in _parts(scores):
        values = estimate(scores, parts[0], **parts[1]).value
        most = (-values).argsort(axis=None, kind="stable")[:NAMED].tolist()
        heads = (
            f"{names_of(run.tree).unit(at, values.shape[1])} {percent(values.flat[at])}"
            for at in most
        )
        yield f"  {name}: {', '.join(heads)}"
    yield from (f"exported: {path}" for path in written)


def _parts(scores: Any) -> Iterator[tuple[str, tuple[str, dict[str, str]]]]:
    for kind in scores["circuit"].values.tolist():
        yield kind.replace("_", " "), ("score", {"circuit": kind})
    for name, variable in (("copying", "copied_attention"), ("successor",) * 2, ("retrieval",) * 2):
        if variable in scores:
            yield name, (variable, {})


def _summary(run: Run) -> Mapping[str, Any]:
    from headscope.claims.head_labels import head_labels
    from headscope.experiments.circuits.verdicts import verdicts

    labels: dict[str, list[list[int]]] = {}
    for place, one in head_labels(run.tree).items():
        for claim in one.labels:
            labels.setdefault(claim.kind, []).append(list(place))
    return {
        "labels": labels,
        "told_again": float(run["circuits"]["told_again"]),
        "verdicts": {kind: str(one.outcome) for kind, one in verdicts(run.tree).items()},
    }
