"""`headscope probe`: how much syntax small trained probes find in attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from headscope.cli import options
from headscope.cli.options import IntervalOptions, ModelOptions, Positive
from headscope.cli.run_request import SharedRunOptions
from headscope.cli.terminal_output import ProgressBar, complain, size_of
from headscope.cli.typed_command import group, run_command
from headscope.core.head_names import first
from headscope.core.options import (
    Options,
    argument,
    comma_separated,
    flag,
    option,
    required,
    several,
)
from headscope.errors import InputError
from headscope.run.processes import noting_failure

if TYPE_CHECKING:
    from headscope.experiments.probes.probe_plan import ProbeSettings
    from headscope.run.store import Run


class _ProbeDataOptions(Options):
    train: tuple[Path, ...] = required("CoNLL-U or CoNLL-X to learn from; repeatable.")
    test: tuple[Path, ...] = required("CoNLL-U or CoNLL-X to be scored on; repeatable.")
    dev: tuple[Path, ...] = several("To choose the best epoch by; by default a tenth of --train.")
    words: str | None = option(
        "Word vectors: GloVe, word2vec (text, binary), fastText's .vec, gzipped or not; or "
        "glove-6b-50d, the package.",
        metavar="FILE",
    )
    limit: Positive | None = option("Sentences of --train at most, drawn by --seed.")
    test_limit: Positive | None = option("Sentences of --test at most, drawn by --seed.")
    max_length: Positive | None = option(
        "Tokens of a sentence; what the model takes by default.", type=click.IntRange(4)
    )
    long: Literal["window", "skip", "error"] = option("What to do with longer ones.", "window")
    pieces: Literal["mean", "first", "max"] = option(
        "How the attention from a word of several tokens is joined.", "mean"
    )


class _TrainingOptions(Options):
    probes: str | None = option(
        "Some of right_branching, attention, attention_words, distances_words, random_words, "
        "structural; by default all.",
        metavar="A,B,…",
    )
    epochs: Positive = option("Epochs of the probes on attention; the best on --dev counts.", 1)
    patience: Positive = option("Epochs without a better loss on --dev before training ends.", 5)
    rate: float = option("Learning rate of Adam.", 0.002)
    seeds: Positive = option("Trainings of each probe, from different first weights.", 1)
    curve: str | None = option("Learning curve: also train on so many sentences.", metavar="N,N,…")
    tree: bool = flag("Also the likeliest directed tree of each sentence (slower).")
    legacy_root_shift: bool = flag("Words get the next word's vector, as in Clark et al.'s code.")
    structural_layers: str | None = option(
        "Layers of the structural probe, from 1; by default all.", metavar="N,N,…"
    )
    structural_epochs: Positive = option("Epochs of the structural probe at most.", 40)
    rank: Positive | None = option("Rank of the structural probe; by default full.")
    atlas: Path | None = option("A run of `headscope atlas`, to name the heads.", metavar="RUN")


class _FeatureOptions(Options):
    features: Path | None = option(
        "Where features are kept meanwhile; in the run by default.", metavar="FOLDER"
    )
    features_limit: float = option(
        "Disk space of the features at most.",
        default=20.0,
        metavar="GB",
        type=click.FloatRange(0, min_open=True),
    )
    keep_features: bool = flag("Do not delete the features at the end.")


class _ProbeOptions(Options):
    model: options.ModelName = argument()
    data: _ProbeDataOptions = group("The data")
    training: _TrainingOptions = group("The probes")
    features: _FeatureOptions = group("Features")
    chance: IntervalOptions = group("How sure")
    loading: ModelOptions = group("The model")
    output: Path = options.output_option(
        "Run folder; re-running resumes.", "probe-{model}", metavar="RUN"
    )
    batch_tokens: Positive = option("Tokens of a forward pass at most.", 2048)
    how: SharedRunOptions = group()


@run_command("probe", _ProbeOptions)
def probe_command(given: _ProbeOptions) -> None:
    """Train small probes to find every word's syntactic head in the attention maps of MODEL.

    Beside them: a rule, probes without the model's attention, and the structural probe on its
    hidden states.

    \b
    headscope probe demo --train train.conllu --test dev.conllu -o probed
    headscope probe demo --train train.conllu --test dev.conllu --words glove.6B.100d.txt -o words
    headscope probe demo --train train.conllu --test dev.conllu --curve 100,300 -o curve
    """
    options.check_run_folder(given.output)
    from headscope.experiments.probes.feature_files import FeaturePlace
    from headscope.experiments.probes.probe import probe
    from headscope.model.model import load

    with noting_failure(given.output, given.how.shard):
        data, features, atlas = given.data, given.features, given.training.atlas
        settings = _settings(given)
        settings.run_probes(words=data.words is not None)  # fail before the model is loaded
        model = load(given.model, **asdict(given.loading))
    with ProgressBar(quiet=given.how.quiet, unit="sentences") as progress:
        run = probe(
            model,
            data.train,
            data.test,
            dev=data.dev,
            words=data.words,
            output=given.output,
            settings=settings,
            place=FeaturePlace(features.features, features.features_limit, features.keep_features),
            atlas=atlas,
            execution=options.execution_of(progress, given.how),
            tell=lambda text: None if given.how.quiet else complain(text),
        )
    options.conclude(run, given.how, lines=_lines(run), summary=_summary)


def _settings(given: _ProbeOptions) -> ProbeSettings:
    from headscope.experiments.probes.probe_plan import ProbeSettings

    start = first()
    layers = _numbers("--structural-layers", given.training.structural_layers, start)
    return options.settings_from(
        ProbeSettings,
        given,
        given.data,
        given.training,
        given.chance,
        probes=comma_separated(given.training.probes) or None,
        curve=_numbers("--curve", given.training.curve),
        structural_layers=tuple(layer - start for layer in layers) or None,
    )


def _numbers(option: str, text: str | None, least: int = 1) -> tuple[int, ...]:
    """`100,300` as (100, 300); raises InputError for what is no number from `least`."""
    parts = comma_separated(text)
    if any(not part.isdecimal() or int(part) < least for part in parts):
        raise InputError(
            f"found {option} {text}; wanted numbers from {least}, say {option} 100,300"
        )
    return tuple(int(part) for part in parts)


def _lines(run: Run) -> Iterator[str]:
    from headscope.experiments.probes import findings

    probes, counts = run["probes"], run.manifest["counts"]
    yield size_of(run.manifest["model"])
    yield from findings.data_text(probes)
    if counts["windowed"]:
        yield f"{counts['windowed']} sentences were longer and read in windows"
    for reason, entry in counts["reasons"].items():
        yield f"{entry['total']} sentences were skipped: {reason}"
    if lacking := str(probes.attrs["lacking"]).split():
        yield f"not run, as they need --words: {', '.join(lacking)}"
    yield from findings.probe_lines(probes)
    yield from filter(None, (findings.structural_text(probes), findings.root_note(probes)))
    if heads := findings.influential_heads(run.tree):
        yield f"the probe on attention leans most on {heads}"


def _summary(run: Run) -> dict[str, Any]:
    from headscope.experiments.probes.findings import scores

    probes = run["probes"]
    return {"not_run": str(probes.attrs["lacking"]).split(), **scores(probes)}
