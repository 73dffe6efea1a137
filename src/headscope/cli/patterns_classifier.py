"""`headscope patterns train` and `apply`: learn the classes of maps, and tell them of a model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from headscope.cli import options as shared
from headscope.cli.options import CorpusOptions
from headscope.cli.terminal_output import annotate, complain, say, tell
from headscope.cli.typed_command import group, typed_command
from headscope.core.options import Options, argument, flag, option, several
from headscope.model.request import model_place
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.experiments.map_classifier.classifier_training import Scores
    from headscope.experiments.map_classifier.labelled_maps import LabelledMaps

    Learned = tuple[tuple[str, str], dict[str, Any], Scores]  # names of files, card, scores


class _TrainOptions(Options):
    output: Path = option(
        "Where weights, card and the confusion figure are written.",
        names="-o --output",
        usual="classifier",
        metavar="FOLDER",
    )
    sessions: tuple[Path, ...] = option(
        "Labels of a session of yours, beside the bundled; repeatable.",
        default=(),
        names="--labels",
        metavar="SESSION",
    )
    columns: Literal["special", "any"] = option("Which columns make a map vertical.", "special")
    without_bundled: bool = flag("Learn from your sessions alone.")
    epochs: int | None = option("Passes over the maps.", least=1)
    seed: int = option("Seed of all random draws.", 0, least=0)
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
    from headscope.analyses.patterns.measure_marked import FILES
    from headscope.experiments.map_classifier.marked_training import trained, write_held_out

    network, card, scores, held_out = trained(labelled, **_how(options))
    FILES.write(network, card, options.output)
    if held_out:
        write_held_out(options.output, labelled.labels, held_out)
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
    models: tuple[str, ...] = argument(metavar="MODEL...", reads=model_place, many=True)
    output: Path = option(
        "A run folder for each model and file or task, a table and a figure.",
        names="-o --output",
        usual="classes",
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
    task: tuple[str, ...] = several(
        "The examples of a task of GLUE, or of your own; repeatable. Without one, and without a "
        "text, of the task that each MODEL learned.",
        metavar="NAME",
        heading="Or the examples of a task",
    )
    data: Path | None = option(
        "Folder with the tasks’ dev.tsv (or .csv, .jsonl, .parquet), or one file; by default those "
        "that MODEL learned by, or GLUE from the hub.",
        metavar="FOLDER",
    )
    limit: int = option(
        "Documents of each file, or examples of a task, that are read at most.", 200, least=1
    )
    max_length: int | None = option(
        "Tokens of an input at most; by default 128 for packed text, else up to 512.", least=1
    )
    seed: int = option("Seed of all random draws.", 0, least=0)
    replicates: int = option("Groups of documents at most, for intervals.", 200)
    loading: Loading = group("The models")


@typed_command("apply", _ApplyOptions)
def apply_command(options: _ApplyOptions) -> None:
    """Tell the classes of every MODEL's maps on every file or task: Figure 2 of Kovaleva et al.

    \b
    headscope patterns apply demo --demo -o classes
    headscope patterns apply demo my-model --segments rte.jsonl --text wiki.txt -o classes
    headscope patterns apply bert-rte --task rte --data glue -o classes
    headscope patterns apply bert-rte bert-mrpc -o figure-2
    """
    if options.task:
        shared.refuse_text(options.task[0], options.corpus, "apply twice, into two folders")
    models = list(dict.fromkeys(options.models))
    corpora: dict[str, Any] = {}
    if options.corpus.named:
        corpora = dict(shared.corpora_by_name(options.corpus, limit=options.limit))
    meanwhile = (lambda text: None) if options.quiet or options.as_json else say
    for corpus in corpora.values():
        for note in annotate(corpus, quiet=options.quiet):
            meanwhile(note)
    shared.hold(options.output)
    own: dict[str, Any] = {"columns": options.columns}
    if options.classifier:
        own["classifier"] = str(options.classifier)
    from headscope.experiments.map_classifier.applied import classes_of, task_texts, write_classes
    from headscope.run.settings import Settings

    settings = Settings.of(options, analyses=("patterns",), options={"patterns": own})
    texts = (
        dict.fromkeys(models, corpora)
        if corpora
        else task_texts(models, options.task, options.data, limit=options.limit, seed=options.seed)
    )
    runs = classes_of(texts, options.output, settings, options.loading, tell=meanwhile)
    table, figures = write_classes(runs, options.output)
    summary = {
        "table": str(table),
        "figures": [str(path) for path in figures],
        "runs": [str(run.path) for run in runs.values()],
    }
    tell([f"table: {table}", f"figure: {figures[-1]}"], summary if options.as_json else None)
