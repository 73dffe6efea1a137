"""`headscope probe`: how much syntax small trained probes find in attention."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.long_command import long_command
from headscope.cli.options import FILE, model_options
from headscope.cli.running import Progress
from headscope.cli.terminal import complain, say
from headscope.errors import InputError, RunStopped

if TYPE_CHECKING:
    from headscope.model.model import Model
    from headscope.run.finished_run import Run

SECTIONS = {
    "The data": ("train", "test", "dev", "words", "limit", "test_limit", "max_length", "long",
                 "pieces"),
    "The probes": ("probes", "epochs", "patience", "rate", "seeds", "curve", "tree",
                   "legacy_root_shift", "structural_layers", "structural_epochs", "rank", "atlas"),
    "Features": ("features", "features_limit", "keep_features"),
    "How sure": ("replicates", "seed"),
    "The model": ("device", "dtype", "revision", "trust_remote_code"),
    "How to run": ("output", "batch_tokens", "linears", "overwrite", "no_report", "quiet",
                   "as_json"),
}  # fmt: skip
COUNT = click.IntRange(1)


def _data_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        [
            click.option("--train", type=FILE, multiple=True, required=True,
                         help="CoNLL-U or CoNLL-X to learn from; repeatable."),
            click.option("--test", type=FILE, multiple=True, required=True,
                         help="To be scored on; repeatable."),
            click.option("--dev", type=FILE, multiple=True,
                         help="To choose epochs by; a tenth of train by default."),
            click.option("--words", metavar="FILE",
                         help="Word vectors: GloVe, word2vec (text, binary), fastText's .vec, "
                         "gzipped or not; or glove-6b-50d, the package."),
            click.option("--limit", type=COUNT,
                         help="Sentences of train at most, drawn by --seed."),
            click.option("--test-limit", type=COUNT, help="Likewise of test."),
            click.option("--max-length", type=click.IntRange(4),
                         help="Tokens of a sentence; what the model takes by default."),
            click.option("--long", type=click.Choice(["window", "skip", "error"]),
                         default="window", show_default=True,
                         help="What to do with longer ones."),
            click.option("--pieces", type=click.Choice(["mean", "first", "max"]), default="mean",
                         show_default=True, help="Attention from a word of several tokens."),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


def _probe_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        [
            click.option("--probes", metavar="A,B,…",
                         help="right_branching, attention, attention_words, distances_words, "
                         "random_words, structural; all by default."),
            click.option("--epochs", type=COUNT, default=1, show_default=True,
                         help="Of the probes on attention; of several, the best on dev counts."),
            click.option("--patience", type=COUNT, default=5, show_default=True,
                         help="Epochs without a better loss on dev before training ends."),
            click.option("--rate", type=float, default=0.002, show_default=True, help="Of Adam."),
            click.option("--seeds", type=COUNT, default=1, show_default=True,
                         help="Train each probe so often, from other first weights."),
            click.option("--curve", metavar="N,N,…",
                         help="Also train on so many sentences: the learning curve."),
            click.option("--tree", is_flag=True,
                         help="Also the likeliest directed tree of each sentence (slower)."),
            click.option("--legacy-root-shift", is_flag=True,
                         help="Words get the next word's vector, as in Clark et al.'s code."),
            click.option("--structural-layers", metavar="N,N,…",
                         help="Of the structural probe, from 1; all by default."),
            click.option("--structural-epochs", type=COUNT, default=40, show_default=True,
                         help="Of the structural probe, at most."),
            click.option("--rank", type=COUNT,
                         help="Of the structural probe; full by default."),
            click.option("--atlas", type=FILE, metavar="RUN",
                         help="A run of `headscope atlas`, to name the heads."),
            click.option("--features", type=FILE, metavar="FOLDER",
                         help="Where features are kept meanwhile; in the run by default."),
            click.option("--features-limit", type=click.FloatRange(0, min_open=True),
                         default=20.0, show_default=True, metavar="GB", help="On disk, at most."),
            click.option("--keep-features", is_flag=True,
                         help="Do not delete them at the end."),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


@click.command("probe", cls=long_command(SECTIONS))
@click.argument("model")
@_data_options
@_probe_options
@click.option("-o", "--output", type=FILE, required=True, metavar="RUN",
              help="Run folder; re-running resumes.")  # fmt: skip
@click.option("--replicates", type=click.IntRange(0), default=1000, show_default=True,
              help="Of the bootstrap.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@model_options
@click.option("--batch-tokens", type=COUNT, default=2048, show_default=True,
              help="Of a forward pass.")  # fmt: skip
@click.option("--linears", type=click.Choice(["auto", "onednn", "stock"]), default="auto",
              show_default=True, help="Matrix products on a CPU; auto times both.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace a run of another spec in the folder.")
@click.option("--no-report", is_flag=True, help="Results only; `headscope report` makes the rest.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.option("--json", "as_json", is_flag=True, help="A machine-readable summary on stdout.")
def command(model: str, **given: Any) -> None:
    """Train small probes to find every word's syntactic head in the attention maps of MODEL.

    Beside them: a rule, probes without the model's attention, and the structural probe on its
    hidden states.

    \b
    headscope probe demo --train train.conllu --test dev.conllu -o probed
    headscope probe demo --train train.conllu --test dev.conllu --words glove.6B.100d.txt -o words
    headscope probe demo --train train.conllu --test dev.conllu --curve 100,300 -o curve
    """  # fmt: skip
    try:
        _run(model, given)
    except KeyboardInterrupt as error:
        raise RunStopped("stopped; the same command goes on from what is finished") from error


def _run(name: str, given: dict[str, Any]) -> None:
    from headscope.run.store import RunFolder

    RunFolder(given["output"]).check()
    from headscope.experiments.probes.feature_files import FeaturePlace
    from headscope.experiments.probes.probe import probe
    from headscope.experiments.probes.settings import ProbeSettings
    from headscope.model.model import load
    from headscope.run.engine.memory import keep_few_products, keep_freed_memory

    keep_freed_memory()
    keep_few_products()
    same = ("epochs", "patience", "rate", "seeds", "tree", "legacy_root_shift", "rank", "pieces",
            "structural_epochs", "max_length", "long", "limit", "test_limit", "batch_tokens",
            "replicates", "seed")  # fmt: skip
    layers = _numbers("--structural-layers", given["structural_layers"])
    settings = ProbeSettings(
        probes=tuple(_parts(given["probes"])) or None, curve=_numbers("--curve", given["curve"]),
        structural_layers=tuple(layer - 1 for layer in layers) or None,
        **{k: given[k] for k in same},
    )  # fmt: skip
    settings.run_probes(words=given["words"] is not None)  # fail before the model is loaded
    model = load(
        name, **{k: given[k] for k in ("device", "dtype", "revision", "trust_remote_code")}
    )
    with Progress(quiet=given["quiet"], unit="sentence") as progress:
        run = probe(
            model, given["train"], given["test"], dev=given["dev"], words=given["words"],
            output=given["output"], settings=settings,
            place=FeaturePlace(given["features"], given["features_limit"], given["keep_features"]),
            labels=None if given["atlas"] is None else _labels(given["atlas"], model),
            asked_linears=given["linears"], overwrite=given["overwrite"],
            command=["headscope", *sys.argv[1:]], progress=progress,
            tell=lambda text: None if given["quiet"] else complain(text),
        )  # fmt: skip
    if not (given["no_report"] or run.has_report):
        run.report()
    if given["as_json"]:
        click.echo(json.dumps(_summary(run), ensure_ascii=True))
        return
    for line in _lines(run):
        say(line)


def _parts(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _numbers(option: str, text: str | None) -> tuple[int, ...]:
    """`100,300` as (100, 300); raises InputError for what is no number from 1."""
    parts = _parts(text)
    if any(not part.isdecimal() or int(part) < 1 for part in parts):
        raise InputError(f"found {option} {text}; wanted numbers from 1, say {option} 100,300")
    return tuple(int(part) for part in parts)


def _labels(folder: Path, model: Model) -> list[list[str]]:
    """[layer][head] what an atlas of the same model says; raises InputError for another's."""
    from headscope.heads.labels import run_labels
    from headscope.run.finished_run import open_run

    atlas = open_run(folder)
    found = atlas.manifest["model"]
    if found["sha256"] != model.sha256:
        raise InputError(
            f"{folder} is an atlas of {found['name']}, and {model.name} has other weights; wanted "
            "an atlas of the same model"
        )
    return run_labels(atlas.tree)


# --- what is said ---------------------------------------------------------------------------


def _lines(run: Run) -> list[str]:
    from headscope.experiments.probes.findings import (
        data_text,
        influential_heads,
        probe_lines,
        root_note,
        structural_text,
    )

    found, model = run["probes"], run.manifest["model"]
    lines = [f"{model['name']}: {model['layers']} layers × {model['heads']} heads"]
    lines += data_text(found)
    counts = run.manifest["counts"]
    if counts["windowed"]:
        lines.append(f"{counts['windowed']} sentences were longer and read in windows")
    for reason, entry in counts["reasons"].items():
        lines.append(f"{entry['total']} sentences were skipped: {reason}")
    if lacking := str(found.attrs["lacking"]).split():
        names = ", ".join(lacking)
        lines.append(f"not run, as they need --words: {names}")
    lines += probe_lines(found)
    lines += [text for text in (structural_text(found), root_note(found)) if text]
    if heads := influential_heads(run.tree):
        lines.append(f"the probe on attention leans most on {heads}")
    report = _report(run)
    lines.append(f"results: {run.path}/atlas.nc" if report is None else f"report: {report}")
    return lines


def _summary(run: Run) -> dict[str, Any]:
    from headscope.experiments.probes.findings import scores

    found, report = run["probes"], _report(run)
    return {
        "run": str(run.path), "report": None if report is None else str(report),
        **{k: run.manifest[k] for k in ("model", "counts", "fingerprint", "linears")},
        "not_run": str(found.attrs["lacking"]).split(), **scores(found),
    }  # fmt: skip


def _report(run: Run) -> Path | None:
    assert run.path is not None
    return run.path / "report.html" if run.has_report else None
