"""`headscope patterns train` and `apply`: learn the classes of maps, and tell them of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from headscope.cli import options as shared
from headscope.cli.options import CorpusOptions, Natural, Positive
from headscope.cli.terminal_output import annotate, complain, say, tell
from headscope.cli.typed_command import group, typed_command
from headscope.core.options import Options, argument, flag, option
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.corpus import Corpus
    from headscope.experiments.map_classifier.classifier_training import Scores
    from headscope.experiments.map_classifier.labelled_maps import LabelledMaps
    from headscope.run.store import Run

    Learned = tuple[tuple[str, str], dict[str, Any], Scores]  # names of files, card, scores


class _TrainOptions(Options):
    output: Path = shared.output_option(
        "Where weights, card and the confusion figure are written.",
        "classifier",
        metavar="FOLDER",
        heading="",
    )
    sessions: tuple[Path, ...] = option(
        "Labels of a session of yours, beside the bundled; repeatable.",
        default=(),
        names="--labels",
        metavar="SESSION",
    )
    columns: Literal["special", "any"] = option("Which columns make a map vertical.", "special")
    without_bundled: bool = flag("Learn from your sessions alone.")
    epochs: Positive | None = option("Passes over the maps.")
    seed: Natural = option("Seed of all random draws.", 0)
    no_scores: bool = flag("Only learn: no cross-validation.")
    quiet: bool = flag("Say nothing until it is done.")
    as_json: bool = shared.json_flag("The card on stdout.")


@typed_command("train", _TrainOptions)
def train_command(options: _TrainOptions) -> None:
    """Learn the five classes from labelled maps and measure how well they are recognised.

    Small networks on what is known of a map (with --columns any, one of eight convolutional layers
    on its picture), and beside them a tree of few rules, are scored on maps and on models that they
    did not learn from; what is written learns from all.

    \b
    headscope patterns train -o classifier
    headscope patterns train --columns any -o classifier
    headscope patterns train --labels session -o classifier
    """
    from headscope.experiments.map_classifier.annotation_session import Session

    if options.without_bundled and not options.sessions:
        raise click.UsageError("--without-bundled leaves no maps to train on; give --labels")
    sessions = [Session(folder) for folder in options.sessions]
    from headscope.experiments.map_classifier.labelled_maps import bundled_labels, joined, labels_of

    parts = [] if options.without_bundled else [bundled_labels(options.columns)]
    for note in (note for session in sessions for note in session.torn()):
        complain(note)
    parts += map(labels_of, sessions)
    shared.hold(options.output)
    files, card, scores = (_learn_any if options.columns == "any" else _learn_marked)(
        joined(parts), options
    )
    if scores:
        from headscope.analyses.patterns.figure import confusion_figure
        from headscope.draw.saving import save_picture

        pairs = [(title, score.confusion) for title, score in scores["network"].items()]
        figure = confusion_figure(pairs)
        for kind in ("svg", "png"):
            save_picture(figure, options.output / f"confusion.{kind}")
    last = f"classifier: {', '.join(str(options.output / name) for name in files)}"
    tell(chain(_lines(scores), [last]), card if options.as_json else None)


def _learn_marked(labelled: LabelledMaps, options: _TrainOptions) -> Learned:
    import numpy as np

    from headscope.analyses.patterns.measure_marked import FILES
    from headscope.core.whole_file import write_whole
    from headscope.experiments.map_classifier.marked_training import HELD_OUT, trained

    network, card, scores, held_out = trained(labelled, **_how(options))
    FILES.write(network, card, options.output)
    if held_out:
        arrays: dict[str, Any] = {"labels": labelled.labels}
        arrays |= {n.lower().replace("-", "_").replace(" ", "_"): p for n, p in held_out.items()}

        def write(path: str) -> None:
            with open(path, "wb") as file:
                np.savez_compressed(file, **arrays)

        write_whole(options.output / HELD_OUT, write)
    return (FILES.weights, FILES.card), card, scores


def _learn_any(labelled: LabelledMaps, options: _TrainOptions) -> Learned:
    from headscope.analyses.patterns.measure_network import FILES
    from headscope.experiments.map_classifier.classifier_training import trained

    network, card, scores = trained(labelled, **_how(options))
    FILES.write(network, card, options.output)
    return (FILES.weights, FILES.card), card, scores


def _how(options: _TrainOptions) -> dict[str, Any]:
    return {
        "epochs": options.epochs,
        "seed": options.seed,
        "scored": not options.no_scores,
        "tell": (lambda text: None) if options.quiet or options.as_json else say,
    }


def _lines(scores: Scores) -> Iterator[str]:
    from headscope.analyses.patterns import CLASSES

    for name, by_folds in scores.items():
        for folds, score in by_folds.items():
            each = ", ".join(
                f"{one.name} {f1:.2f}" for one, f1 in zip(CLASSES, score.f1, strict=True)
            )
            interval = f"[{score.low:.3f}, {score.high:.3f}]"
            yield f"{name}, {folds.lower()}: macro-F1 {score.macro_f1:.3f} {interval}; {each}"


class _ApplyOptions(Options):
    models: tuple[shared.ModelName, ...] = argument(metavar="MODEL...")
    output: Path = shared.output_option(
        "A run folder for each model and file, a table and a figure.",
        "classes",
        metavar="FOLDER",
        heading="The result",
    )
    classifier: Path | None = option(
        "A classifier made by `patterns train`; by default the bundled one.", metavar="FOLDER"
    )
    columns: Literal["special", "any"] = option(
        "Which columns make a map vertical: those of special tokens and punctuation, or any.",
        "special",
    )
    quiet: bool = flag("Say nothing until it is done.")
    as_json: bool = shared.json_flag()
    corpus: CorpusOptions = group("What to read")
    limit: Positive = option("Documents of each file that are read at most.", 200)
    max_length: Positive | None = option(
        "Tokens of an input at most; by default 128 for packed text, else up to 512."
    )
    seed: Natural = option("Seed of all random draws.", 0)
    replicates: int = option("Groups of documents at most, for intervals.", 200)
    loading: Loading = group("The models")


@typed_command("apply", _ApplyOptions)
def apply_command(options: _ApplyOptions) -> None:
    """Tell the classes of every MODEL's maps on every file: Figure 2 of Kovaleva et al. (2019).

    \b
    headscope patterns apply demo --demo -o classes
    headscope patterns apply demo my-model --segments rte.jsonl --text wiki.txt -o classes
    """
    corpora = dict(shared.corpora_by_name(options.corpus, limit=options.limit))
    meanwhile = (lambda text: None) if options.quiet or options.as_json else say
    for corpus in corpora.values():
        for note in annotate(corpus, quiet=options.quiet):
            meanwhile(note)
    shared.hold(options.output)
    runs: dict[tuple[str, str], Run] = {}
    for model in dict.fromkeys(options.models):
        for name, run in _runs(model, corpora, options):
            runs[model, name] = run
            meanwhile(_sentence(model, name, run))
    table, figures = _written(runs, options.output)
    summary = {
        "table": str(table),
        "figures": [str(path) for path in figures],
        "runs": [str(run.path) for run in runs.values()],
    }
    tell([f"table: {table}", f"figure: {figures[-1]}"], summary if options.as_json else None)


def _runs(
    model: str, corpora: Mapping[str, Corpus], options: _ApplyOptions
) -> Iterator[tuple[str, Run]]:
    """(name of the corpus, run) of one model."""
    from headscope.model.model import load
    from headscope.run.atlas import atlas
    from headscope.run.settings import Settings

    loaded = load(model, **asdict(options.loading))
    own: dict[str, Any] = {"columns": options.columns}
    if options.classifier:
        own["classifier"] = str(options.classifier)
    settings = Settings.of(options, analyses=("patterns",), options={"patterns": own})
    for name, corpus in corpora.items():
        folder = options.output / "runs" / f"{_plain(model)}--{_plain(name)}"
        yield name, atlas(loaded, corpus, output=folder, settings=settings, control=None)


def _plain(name: str) -> str:
    """A name as part of a folder's: the last part of a path, letters, digits, '-', '_' and '.'."""
    last = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in (last or ["model"])[-1])[:60]


def _sentence(model: str, corpus: str, run: Run) -> str:
    shares = run["patterns"]["model_share"]
    listed = ", ".join(
        f"{str(name).replace('_', ' + ')} {100 * float(share):.0f} %"
        for name, share in zip(shares["pattern"].values, shares.values, strict=True)
    )
    unsure = 1 - float(shares.sum())
    listed += f", unsure {100 * unsure:.0f} %" if "unsure" in run["patterns"] else ""
    return f"{model} on {corpus}: {listed}"


def _written(runs: Mapping[tuple[str, str], Run], output: Path) -> tuple[Path, list[Path]]:
    import numpy as np
    import pandas as pd

    from headscope.analyses.patterns.figure import bars_of_runs
    from headscope.core.results import printable
    from headscope.core.whole_file import write_whole
    from headscope.draw.saving import save_picture
    from headscope.heads.tables import tidy

    tables = [
        tidy(run.tree)["patterns"].query("metric == 'share'").assign(model=model, corpus=corpus)
        for (model, corpus), run in runs.items()
    ]
    table = pd.concat(tables, ignore_index=True).dropna(axis=1, how="all")
    file = write_whole(output / "patterns.csv", lambda path: table.to_csv(path, index=False))
    names = [(printable(_plain(m)), printable(Path(_plain(c)).stem)) for m, c in runs]
    shares = np.stack([run["patterns"]["model_share"].values for run in runs.values()])
    figure = bars_of_runs(names, shares)  # [run, pattern]
    return file, [save_picture(figure, output / f"patterns.{kind}") for kind in ("svg", "png")]
