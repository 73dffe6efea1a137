"""`headscope patterns train` and `apply`: learn the classes of maps, and tell them of a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.annotating import annotate
from headscope.cli.long_command import long_command
from headscope.cli.new_session import LOADING, corpora_by_name
from headscope.cli.options import FILE, READING, corpus_options, model_options
from headscope.cli.terminal import say

if TYPE_CHECKING:
    from headscope.analyses.patterns.card import Scores
    from headscope.corpus import Corpus
    from headscope.run.finished_run import Run

SECTIONS = {
    "The result": ("output", "classifier", "quiet", "as_json"),
    "What to read": (*READING, "limit", "max_length", "seed", "replicates"),
    "The models": LOADING,
}


@click.command("train")
@click.option("-o", "--output", type=FILE, required=True, metavar="FOLDER",
              help="Where weights, card and the confusion figure are written.")  # fmt: skip
@click.option("--labels", "sessions", type=FILE, multiple=True, metavar="SESSION",
              help="Labels of a session of yours, beside the bundled; repeatable.")  # fmt: skip
@click.option("--without-bundled", is_flag=True, help="Learn from your sessions alone.")
@click.option("--epochs", type=click.IntRange(1), default=None, help="Passes over the maps.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--no-scores", is_flag=True, help="Only learn: no cross-validation.")
@click.option("--quiet", is_flag=True, help="Say nothing until it is done.")
@click.option("--json", "as_json", is_flag=True, help="The card on stdout.")
def train_command(output: Path, **given: Any) -> None:
    """Learn the five classes from labelled maps and say how well they are told.

    A network of eight convolutional layers, and beside it a tree of few rules, are scored on maps
    and on models that they did not learn from; the network that is written learns from all.

    \b
    headscope patterns train -o classifier
    headscope patterns train --labels session -o classifier
    """  # fmt: skip
    from headscope.analyses.patterns.card import trained
    from headscope.analyses.patterns.labelled_maps import bundled_labels, joined, labels_of
    from headscope.analyses.patterns.session import Session
    from headscope.analyses.patterns.weights import CARD, WEIGHTS, write_classifier

    if given["without_bundled"] and not given["sessions"]:
        raise click.UsageError("--without-bundled leaves nothing to learn from; give --labels")
    parts = [] if given["without_bundled"] else [bundled_labels()]
    parts += [labels_of(Session(folder)) for folder in given["sessions"]]
    labels = joined(parts)
    tell = (lambda text: None) if given["quiet"] or given["as_json"] else say
    network, card, scores = trained(
        labels, epochs=given["epochs"], seed=given["seed"], scored=not given["no_scores"], tell=tell
    )
    write_classifier(network, card, output)
    if scores:
        _confusions(scores, output)
    if given["as_json"]:
        click.echo(json.dumps(card))
        return
    for line in _lines(scores):
        say(line)
    say(f"classifier: {output / WEIGHTS}, {output / CARD}")


def _confusions(scores: Scores, output: Path) -> None:
    from headscope.analyses.patterns.figure import confusion_figure
    from headscope.draw.saving import save_picture

    figure = confusion_figure(
        [(title, score.confusion) for title, score in scores["network"].items()]
    )
    for kind in ("svg", "png"):
        save_picture(figure, output / f"confusion.{kind}")


def _lines(scores: Scores) -> list[str]:
    from headscope.analyses.patterns.classes import CLASSES

    lines = []
    for name, by_folds in scores.items():
        for folds, score in by_folds.items():
            each = ", ".join(
                f"{one.name} {f1:.2f}" for one, f1 in zip(CLASSES, score.f1, strict=True)
            )
            interval = f"[{score.low:.3f}, {score.high:.3f}]"
            lines.append(
                f"{name}, {folds.lower()}: macro-F1 {score.macro_f1:.3f} {interval}; {each}"
            )
    return lines


@click.command("apply", cls=long_command(SECTIONS))
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@corpus_options
@click.option("-o", "--output", type=FILE, required=True, metavar="FOLDER",
              help="A run folder for each model and file, a table and a figure.")  # fmt: skip
@click.option("--classifier", type=FILE, metavar="FOLDER",
              help="One of `patterns train`; the bundled one by default.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), default=200, show_default=True,
              help="Documents of each file that are read at most.")  # fmt: skip
@click.option("--max-length", type=int, help="Tokens of an input; 128 packed, else up to 512.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--replicates", type=int, default=200, show_default=True, help="Of the bootstrap.")
@click.option("--quiet", is_flag=True, help="Say nothing until it is done.")
@model_options
@click.option("--json", "as_json", is_flag=True, help="A machine-readable summary on stdout.")
def apply_command(models: tuple[str, ...], **given: Any) -> None:
    """Tell the classes of every MODEL's maps on every file: Figure 2 of Kovaleva et al. (2019).

    \b
    headscope patterns apply demo --demo -o classes
    headscope patterns apply demo my-model --segments rte.jsonl --text wiki.txt -o classes
    """  # fmt: skip
    corpora = dict(corpora_by_name(given))
    tell = (lambda text: None) if given["quiet"] or given["as_json"] else say
    for corpus in corpora.values():
        for note in annotate(corpus, quiet=given["quiet"]):
            tell(note)
    runs: dict[tuple[str, str], Run] = {}
    for model in dict.fromkeys(models):
        for name, run in _runs(model, corpora, given):
            runs[model, name] = run
            tell(_sentence(model, name, run))
    table, figures = _written(runs, given["output"])
    if given["as_json"]:
        summary = {"table": str(table), "figures": [str(path) for path in figures],
                   "runs": [str(run.path) for run in runs.values()]}  # fmt: skip
        click.echo(json.dumps(summary, ensure_ascii=True))
    else:
        say(f"table: {table}")
        say(f"figure: {figures[-1]}")


def _runs(model: str, corpora: Mapping[str, Corpus], given: Mapping[str, Any]) -> Any:
    """(name of the corpus, run) of one model."""
    from headscope.model.model import load
    from headscope.run.atlas import atlas
    from headscope.run.settings import Settings

    loaded = load(model, **{option: given[option] for option in LOADING})
    options = {"patterns": {"classifier": str(given["classifier"])}} if given["classifier"] else {}
    settings = Settings(
        analyses=("patterns",), options=options,
        **{name: given[name] for name in ("limit", "max_length", "seed", "replicates")},
    )  # fmt: skip
    for name, corpus in corpora.items():
        folder = given["output"] / "runs" / f"{_plain(model)}--{_plain(name)}"
        yield name, atlas(loaded, corpus, output=folder, settings=settings)


def _plain(name: str) -> str:
    """A name as part of a folder's: the last part of a path, letters, digits, '-', '_' and '.'."""
    last = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in (last or ["model"])[-1])[:60]


def _sentence(model: str, corpus: str, run: Run) -> str:
    shares = run["patterns"]["model_share"]
    told = ", ".join(
        f"{str(name).replace('_', ' + ')} {100 * float(share):.0f} %"
        for name, share in zip(shares["pattern"].values, shares.values, strict=True)
    )
    return f"{model} on {corpus}: {told}"


def _written(runs: Mapping[tuple[str, str], Run], output: Path) -> tuple[Path, list[Path]]:
    """The table of all heads, and the bars."""
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
