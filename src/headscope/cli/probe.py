"""`headscope probe`: how much syntax small trained probes find in attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from headscope.cli.options import (
    BootstrapOptions,
    ModelOptions,
    RunOptions,
    check_run_folder,
    comma_separated,
    command_line,
    conclude,
    output_option,
)
from headscope.cli.terminal_output import ProgressBar, complain
from headscope.cli.typed_command import (
    RESUMES,
    argument,
    flag,
    group,
    option,
    several,
    typed_command,
)
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.experiments.probes.settings import ProbeSettings
    from headscope.model.model import Model
    from headscope.run.finished_run import Run


@dataclass(frozen=True, kw_only=True)
class ProbeDataOptions:
    """Treebanks to learn from and to be scored on, and how they are read."""

    train: tuple[Path, ...] = option("CoNLL-U or CoNLL-X to learn from; repeatable.", required=True)
    test: tuple[Path, ...] = option(
        "CoNLL-U or CoNLL-X to be scored on; repeatable.", required=True
    )
    dev: tuple[Path, ...] = several("To choose the best epoch by; by default a tenth of --train.")
    words: str | None = option(
        "Word vectors: GloVe, word2vec (text, binary), fastText's .vec, gzipped or not; or "
        "glove-6b-50d, the package.",
        metavar="FILE",
    )
    limit: int | None = option("Sentences of --train at most, drawn by --seed.", minimum=1)
    test_limit: int | None = option("Sentences of --test at most, drawn by --seed.", minimum=1)
    max_length: int | None = option(
        "Tokens of a sentence; what the model takes by default.", minimum=4
    )
    long: Literal["window", "skip", "error"] = option(
        "What to do with longer ones.", default="window"
    )
    pieces: Literal["mean", "first", "max"] = option(
        "How the attention from a word of several tokens is joined.", default="mean"
    )


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Which probes are trained, and how."""

    probes: str | None = option(
        "Some of right_branching, attention, attention_words, distances_words, random_words, "
        "structural; by default all.",
        metavar="A,B,…",
    )
    epochs: int = option(
        "Epochs of the probes on attention; the best on --dev counts.", default=1, minimum=1
    )
    patience: int = option(
        "Epochs without a better loss on --dev before training ends.", default=5, minimum=1
    )
    rate: float = option("Learning rate of Adam.", default=0.002)
    seeds: int = option(
        "Trainings of each probe, from different first weights.", default=1, minimum=1
    )
    curve: str | None = option("Learning curve: also train on so many sentences.", metavar="N,N,…")
    tree: bool = flag("Also the likeliest directed tree of each sentence (slower).")
    legacy_root_shift: bool = flag("Words get the next word's vector, as in Clark et al.'s code.")
    structural_layers: str | None = option(
        "Layers of the structural probe, from 1; by default all.", metavar="N,N,…"
    )
    structural_epochs: int = option(
        "Epochs of the structural probe at most.", default=40, minimum=1
    )
    rank: int | None = option("Rank of the structural probe; by default full.", minimum=1)
    atlas: Path | None = option("A run of `headscope atlas`, to name the heads.", metavar="RUN")


@dataclass(frozen=True, kw_only=True)
class FeatureOptions:
    """Where the features that probes learn from are kept meanwhile."""

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


@dataclass(frozen=True, kw_only=True)
class ProbeOptions:
    """What `headscope probe` is asked."""

    model: str = argument()
    data: ProbeDataOptions = group("The data")
    training: TrainingOptions = group("The probes")
    features: FeatureOptions = group("Features")
    chance: BootstrapOptions = group("How sure")
    loading: ModelOptions = group("The model")
    output: Path = output_option(
        "Run folder; re-running resumes.", metavar="RUN", heading="How to run"
    )
    batch_tokens: int = option("Tokens of a forward pass at most.", default=2048, minimum=1)
    how: RunOptions = group()


@typed_command("probe", ProbeOptions, stopped=RESUMES)
def command(given: ProbeOptions) -> None:
    """Train small probes to find every word's syntactic head in the attention maps of MODEL.

    Beside them: a rule, probes without the model's attention, and the structural probe on its
    hidden states.

    \b
    headscope probe demo --train train.conllu --test dev.conllu -o probed
    headscope probe demo --train train.conllu --test dev.conllu --words glove.6B.100d.txt -o words
    headscope probe demo --train train.conllu --test dev.conllu --curve 100,300 -o curve
    """

    check_run_folder(given.output)
    from headscope.experiments.probes.feature_files import FeaturePlace
    from headscope.experiments.probes.probe import probe
    from headscope.model.model import load

    data, features, atlas = given.data, given.features, given.training.atlas
    settings = _settings(given)
    settings.run_probes(words=data.words is not None)  # fail before the model is loaded
    model = load(given.model, **asdict(given.loading))
    with ProgressBar(quiet=given.how.quiet, unit="sentence") as progress:
        run = probe(
            model,
            data.train,
            data.test,
            dev=data.dev,
            words=data.words,
            output=given.output,
            settings=settings,
            place=FeaturePlace(features.features, features.features_limit, features.keep_features),
            labels=None if atlas is None else _labels(atlas, model),
            asked_linears=given.how.linears,
            overwrite=given.how.overwrite,
            command=command_line(),
            progress=progress,
            tell=lambda text: None if given.how.quiet else complain(text),
        )
    conclude(run, given.how, lines=_lines, summary=_summary)


def _settings(given: ProbeOptions) -> ProbeSettings:
    from headscope.experiments.probes.settings import ProbeSettings

    data, training = given.data, given.training
    layers = _numbers("--structural-layers", training.structural_layers)
    return ProbeSettings(
        probes=comma_separated(training.probes) or None,
        epochs=training.epochs,
        patience=training.patience,
        rate=training.rate,
        seeds=training.seeds,
        curve=_numbers("--curve", training.curve),
        tree=training.tree,
        legacy_root_shift=training.legacy_root_shift,
        structural_layers=tuple(layer - 1 for layer in layers) or None,
        structural_epochs=training.structural_epochs,
        rank=training.rank,
        pieces=data.pieces,
        max_length=data.max_length,
        long=data.long,
        limit=data.limit,
        test_limit=data.test_limit,
        batch_tokens=given.batch_tokens,
        **asdict(given.chance),
    )


def _numbers(option: str, text: str | None) -> tuple[int, ...]:
    """`100,300` as (100, 300); raises InputError for what is no number from 1."""
    parts = comma_separated(text)
    if any(not part.isdecimal() or int(part) < 1 for part in parts):
        raise InputError(f"found {option} {text}; wanted numbers from 1, say {option} 100,300")
    return tuple(int(part) for part in parts)


def _labels(folder: Path, model: Model) -> list[list[str]]:
    """[layer][head] what an atlas of the same model says; raises InputError for another's."""
    from headscope.core.head_labels import run_labels
    from headscope.run.finished_run import open_run

    atlas = open_run(folder)
    of = atlas.manifest["model"]
    if of["sha256"] != model.sha256:
        raise InputError(
            f"{folder} is an atlas of {of['name']}, and {model.name} has other weights; wanted "
            "an atlas of the same model"
        )
    return run_labels(atlas.tree)


# --- what is said ---------------------------------------------------------------------------


def _lines(run: Run) -> Iterator[str]:
    from headscope.experiments.probes.findings import (
        data_text,
        influential_heads,
        probe_lines,
        root_note,
        structural_text,
    )

    probes, model, counts = run["probes"], run.manifest["model"], run.manifest["counts"]
    yield f"{model['name']}: {model['layers']} layers × {model['heads']} heads"
    yield from data_text(probes)
    if counts["windowed"]:
        yield f"{counts['windowed']} sentences were longer and read in windows"
    for reason, entry in counts["reasons"].items():
        yield f"{entry['total']} sentences were skipped: {reason}"
    if lacking := str(probes.attrs["lacking"]).split():
        yield f"not run, as they need --words: {', '.join(lacking)}"
    yield from probe_lines(probes)
    yield from filter(None, (structural_text(probes), root_note(probes)))
    if heads := influential_heads(run.tree):
        yield f"the probe on attention leans most on {heads}"


def _summary(run: Run) -> dict[str, Any]:
    from headscope.experiments.probes.findings import scores

    probes = run["probes"]
    return {"not_run": str(probes.attrs["lacking"]).split(), **scores(probes)}
