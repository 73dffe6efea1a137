"""The classes of the maps of models on texts: a run for each two, a table, and a figure.

Figure 2 of Kovaleva et al. (2019).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from headscope.analyses.patterns.figure import bars_of_runs
from headscope.core.display import printable
from headscope.core.whole_file import write_whole
from headscope.corpus import Corpus
from headscope.draw.saving import save_picture
from headscope.errors import InputError
from headscope.experiments.comparison.paired_inputs import task_corpus
from headscope.heads.tables import tidy
from headscope.model.model import load
from headscope.run.atlas import atlas
from headscope.run.settings import Settings
from headscope.run.store import Run
from headscope.tasks.remembered_task import remembered_task
from headscope.tasks.task_data import TaskData, read_task
from headscope.tasks.task_request import Loading

Runs = dict[tuple[str, str], Run]  # by model and text, or task
Texts = Mapping[str, Corpus | TaskData]


def classes_of(
    models: Mapping[str, Texts],
    output: Path,
    settings: Settings,
    loading: Loading,
    *,
    tell: Callable[[str], object],
) -> Runs:
    """A run of every model on each of its texts or tasks, in a folder below `output`.

    settings  of runs of `patterns` alone
    tell      called with the shares of each run
    """
    runs: Runs = {}
    for name, texts in models.items():
        model = load(name, **asdict(loading))
        for text, source in texts.items():
            folder = output / "runs" / f"{_plain(name)}--{_plain(text)}"
            corpus, how = (
                task_corpus(model, model, source, settings)
                if isinstance(source, TaskData)
                else (source, settings)
            )
            run = atlas(model, corpus, output=folder, settings=how, control=None)
            runs[name, text] = run
            tell(_sentence(name, text, run))
    return runs


def task_texts(
    models: Iterable[str], tasks: Sequence[str], data: Path | None, *, limit: int, seed: int
) -> dict[str, Texts]:
    """The dev examples of the tasks, for every model; without a task, of the one that it learned.

    data    a folder, or a file; by default where the model learned from, or GLUE on the hub
    raises  InputError for a model of which no task is known; as `read_task`
    """
    texts: dict[str, Texts] = {}
    for model in models:
        own = remembered_task(model)
        if not tasks and own is None:
            raise InputError(
                f"found no text and no task, and {model} has no finetuned.json that names one; "
                "wanted --task NAME, --text FILE or another corpus"
            )
        learned = Path(own.dev) if own and data is None and Path(own.dev).is_file() else data
        texts[model] = {
            name: read_task(
                name, learned if own and own.name == name else data, limit=limit, seed=seed
            )
            for name in tasks or ([own.name] if own else [])
        }
    return texts


def write_classes(runs: Runs, output: Path) -> tuple[Path, list[Path]]:
    """Write the shares of all runs as a table and a figure; returns the files."""
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


def _plain(name: str) -> str:
    """A name as part of a folder's: the last part of a path, letters, digits, '-', '_' and '.'."""
    last = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in (last or ["model"])[-1])[:60]


def _sentence(model: str, corpus: str, run: Run) -> str:
    shares = run["patterns"]["model_share"]
    words = ", ".join(
        f"{str(name).replace('_', ' + ')} {100 * float(share):.0f} %"
        for name, share in zip(shares["pattern"].values, shares.values, strict=True)
    )
    unsure = 1 - float(shares.sum())
    words += f", unsure {100 * unsure:.0f} %" if "unsure" in run["patterns"] else ""
    return f"{model} on {corpus}: {words}"
