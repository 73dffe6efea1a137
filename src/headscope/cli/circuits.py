"""`headscope circuits`: which heads of a decoder look back, copy, induce and count on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from click import get_current_context
from click.core import ParameterSource

from headscope.cli import options
from headscope.cli.options import IntervalOptions, Natural, Positive, RunOptions
from headscope.cli.terminal_output import ProgressBar, size_of
from headscope.cli.typed_command import (
    Options,
    argument,
    flag,
    group,
    option,
    run_command,
    several,
)
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.run.store import Run

NAMED = 5  # heads that the summary names of each score


class _MadeIntervalOptions(IntervalOptions):
    replicates: Natural = option("Groups of sequences at most, for intervals.", 200)
    seed: Natural = option("Seed of all that is made.", 0)


class _CircuitOptions(Options):
    model: options.ModelName = argument()
    sequences: Positive = option(
        "Made inputs of random tokens, with a repeat and without.", 100, heading="What to compute"
    )
    length: Positive = option("Tokens that come twice.", 50)
    text: tuple[Path, ...] = several("Plain text for haystacks; by default the bundled corpus.")
    needles: Positive = option("Haystacks with a needle.", 20)
    haystack: Natural | None = option("Tokens of each, 512 by default; 0 for none.")
    steps: Natural = option(
        "Also let the model write an answer of so many tokens at most, and count its steps as Wu "
        "et al. do; 50 there, 0 for none.",
        0,
    )
    no_successors: bool = flag("Leave out which heads count on.")
    no_composition: bool = flag("Leave out which heads read which.")
    prompts: str = option(
        "Which heads write and carry the answers of prompts: ioi, greater-than, antonyms, "
        "capitals, or a table with the columns prompt, answer, wrong, corrupted.",
        "",
        metavar="NAME|FILE",
    )
    pairs: Positive = option("Prompts of a made set at most.", 32)
    views: Natural = option("Prompts that a page shows head by head, at most; 0 for none.", 4)
    switch_off: Natural = option(
        "Switch so many heads off, the best of each kind, beside as many random ones: what it "
        "costs on random tokens that come again.",
        0,
        metavar="N",
    )
    export: tuple[Literal["duo", "kvpress", "json"], ...] = several(
        "Write which heads retrieve: gates of key-value heads as DuoAttention reads them (kvpress: "
        "the same files), or JSON of all heads; repeatable."
    )
    control: str = options.control_option("heads")
    chance: _MadeIntervalOptions = group("How sure")
    loading: options.ModelOptions = group("The model")
    output: Path = options.output_option(
        "Run folder; re-running resumes.", "circuits-{model}", metavar="RUN"
    )
    batch_tokens: Positive = option("Tokens of a forward pass, about.", 1024)
    how: RunOptions = group()


@run_command("circuits", _CircuitOptions)
def circuits_command(given: _CircuitOptions) -> None:
    """Tell which heads of MODEL, a decoder, do what on inputs made for the question.

    Random tokens that come twice show which heads look at the previous token, at the same token
    and at what came after it (induction); weights show which copy, count on, and read which.

    \b
    headscope circuits gpt2 -o circuits
    headscope circuits my-decoder --prompts ioi -o circuits
    """
    options.check_run_folder(given.output)
    asked = get_current_context().get_parameter_source("views") is ParameterSource.COMMANDLINE
    if asked and not given.prompts:
        raise InputError("found --views; wanted --prompts ioi, or another NAME|FILE, beside it")
    from headscope.experiments.circuits.circuits import CircuitSettings, circuits, haystack_of
    from headscope.experiments.circuits.export import NO_HAYSTACK, export_heads
    from headscope.model.language_model import load_language_model

    settings = options.settings_from(
        CircuitSettings,
        given,
        given.chance,
        successors=not given.no_successors,
        composition=not given.no_composition,
    )
    model = load_language_model(given.model, **asdict(given.loading))
    if given.export and not haystack_of(model.model, settings):
        raise InputError(NO_HAYSTACK)
    with ProgressBar(quiet=given.how.quiet, unit="sequences") as progress:
        run = circuits(
            model,
            list(given.text) or None,
            output=given.output,
            settings=settings,
            control=given.control,
            execution=options.execution_of(progress, given.how),
        )
    written = export_heads(run, model.model, given.export) if given.export else []
    options.conclude(
        run,
        given.how,
        lines=_lines(run, written),
        summary=lambda run: {**_summary(run), "exported": list(map(str, written))},
    )


def _lines(run: Run, written: list[Path]) -> Iterator[str]:
    from headscope.core.headline import headline
    from headscope.core.results import estimate, head_name
    from headscope.core.wording import percent
    from headscope.experiments.circuits.section import circuit_findings

    counts, found = run.manifest["counts"], run["circuits"]
    yield f"{size_of(run.manifest['model'])}, {counts['examples']:,} made inputs"
    yield from filter(None, [headline(run.tree), *circuit_findings(run.tree)])
    for name, parts in _parts(found):
        values = estimate(found, parts[0], **parts[1]).value
        most = (-values).argsort(axis=None, kind="stable")[:NAMED].tolist()
        told = (f"{head_name(at, values.shape[1])} {percent(values.flat[at])}" for at in most)
        yield f"  {name}: {', '.join(told)}"
    yield from (f"exported: {path}" for path in written)


def _parts(found: Any) -> Iterator[tuple[str, tuple[str, dict[str, str]]]]:
    for kind in found["circuit"].values.tolist():
        yield kind.replace("_", " "), ("score", {"circuit": kind})
    for name, variable in (("copying", "copied_attention"), ("successor",) * 2, ("retrieval",) * 2):
        if variable in found:
            yield name, (variable, {})


def _summary(run: Run) -> Mapping[str, Any]:
    from headscope.core.head_labels import head_labels
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
