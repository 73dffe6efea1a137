"""`headscope atlas`: from a model and a corpus to a report."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from headscope.cli.options import (
    FILE,
    corpus_options,
    model_options,
    parse_options,
    read_corpus,
)


@click.command("atlas")
@click.argument("model")
@corpus_options
@click.option("-o", "--output", type=FILE, required=True, help="Run folder; re-running resumes.")
@click.option("--analyses", help="Comma-separated names; all by default (`headscope analyses`).")
@click.option("--set", "options", multiple=True, help="ANALYSIS.OPTION=VALUE, repeatable.")
@click.option("--frequency", type=FILE, help="Frequency ranks, lines 'rank count token-id'.")
@model_options
@click.option("--max-length", type=int, help="Tokens of an input; 128 packed, else up to 512.")
@click.option("--long", type=click.Choice(["window", "skip", "error"]), default="window",
              show_default=True, help="What to do with anything longer.")
@click.option("--segment-ids", type=click.Choice(["auto", "zeros"]), default="auto",
              show_default=True, help="zeros: all 0, as Clark et al.'s script.")
@click.option("--batch-tokens", type=int, default=2048, show_default=True)
@click.option("--shard-tokens", type=int, default=32_768, show_default=True)
@click.option("--limit", type=int, help="Read only the first N documents.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--replicates", type=int, default=200, show_default=True, help="Of the bootstrap.")
@click.option("--workers", type=int, default=1, show_default=True, help="Processes.")
@click.option("--threads", type=int, help="Threads of each process.")
@click.option("--linears", type=click.Choice(["auto", "onednn", "stock"]), default="auto",
              show_default=True, help="Matrix products on a CPU; auto times both.")
@click.option("--overwrite", is_flag=True, help="Replace a run of another spec in the folder.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.option("--json", "as_json", is_flag=True, help="A machine-readable summary on stdout.")
def command(model: str, **given: Any) -> None:
    """Run all analyses over a corpus in one pass and write a run folder with a report.

    MODEL is a hub id, a local folder, or `demo`.

    \b
    headscope atlas demo --demo -o atlas-demo
    headscope atlas bert-base-uncased --text wiki.txt --documents heading -o run
    headscope atlas ./my-model --treebank dev.conllu --workers 4 -o run
    """  # fmt: skip
    # Everything that can be wrong with the request is found before the model is loaded.
    names = ("demo", "text", "treebank", "segments", "documents", "passages")
    corpus = read_corpus(**{name: given[name] for name in names})
    if given["workers"] < 1 or (given["threads"] is not None and given["threads"] < 1):
        raise click.BadParameter("--workers and --threads are at least 1")
    from headscope.plan import read_ranks
    from headscope.spec import Settings

    asked = given["analyses"]
    settings = Settings(
        analyses=tuple(filter(None, map(str.strip, asked.split(",")))) if asked else None,
        options=parse_options(given["options"]),
        **{k: given[k] for k in ("max_length", "long", "segment_ids", "batch_tokens",
                                 "shard_tokens", "limit", "seed", "replicates")},
    )  # fmt: skip
    if given["frequency"] is not None:
        read_ranks(given["frequency"], 1)
    _hush()
    from headscope.model import load
    from headscope.run import Execution, atlas
    from headscope.store import RunFolder

    RunFolder(given["output"]).prepare(overwrite=False)
    loaded = load(model, **{k: given[k] for k in ("device", "dtype", "revision", "trust_remote_code")})
    with _Progress(quiet=given["quiet"]) as progress:
        execution = Execution(
            workers=given["workers"], threads=given["threads"], linears=given["linears"],
            overwrite=given["overwrite"], progress=progress, command=["headscope", *sys.argv[1:]],
        )  # fmt: skip
        run = atlas(
            loaded, corpus, output=given["output"], settings=settings, execution=execution,
            frequency=given["frequency"],
        )  # fmt: skip
        report = run.report()
    _say(run.manifest, report, as_json=given["as_json"])


def _hush() -> None:
    """No telemetry, no bars and no advice of the libraries between our lines."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


class _Progress:
    """A bar over shards on stderr; silent when quiet or not on a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet, self.bar = quiet or not sys.stderr.isatty(), None

    def __enter__(self) -> _Progress:
        return self

    def __call__(self, done: int, total: int) -> None:
        if self.quiet:
            return
        from tqdm import tqdm

        if self.bar is None:
            self.bar = tqdm(total=total, unit="shard", initial=done, file=sys.stderr)  # type: ignore[assignment]
        else:
            self.bar.update(done - self.bar.n)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()


def _say(manifest: dict[str, Any], report: Path, *, as_json: bool) -> None:
    counts = manifest["counts"]
    if as_json:
        summary = {
            "run": str(report.parent), "report": str(report), "model": manifest["model"],
            "counts": counts, "analyses": manifest["analyses"],
            "fingerprint": manifest["fingerprint"], "linears": manifest["linears"],
        }  # fmt: skip
        click.echo(json.dumps(summary, ensure_ascii=True))
        return
    model = manifest["model"]
    click.echo(
        f"{model['name']}: {model['layers']} layers × {model['heads']} heads on "
        f"{counts['documents']} documents, {counts['examples']} inputs, {counts['tokens']} tokens"
    )
    if counts["windowed"]:
        click.echo(f"windowed: {counts['windowed']} passages were longer than an input")
    for reason, entry in counts["reasons"].items():
        first = ", ".join(entry["first"][:3])
        click.echo(f"skipped: {entry['total']} × {reason} ({first}{', …' if entry['total'] > 3 else ''})")
    click.echo(f"report: {report}")
