"""`headscope reproduce`: a paper's tables and figures, published beside ours."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.long_command import long_command
from headscope.cli.options import FILE, model_options
from headscope.cli.terminal import say
from headscope.errors import RunStopped

if TYPE_CHECKING:
    from headscope.papers.reproduce.paper_outcome import PaperOutcome

SECTIONS = {
    "What to read": ("data", "substitutes", "limit"),
    "The model": ("model", "device", "dtype", "revision", "trust_remote_code"),
    "How to run": ("output", "seed", "replicates", "threads", "overwrite", "no_report", "quiet",
                   "as_json"),
}  # fmt: skip
PAPERS = ("clark2019", "kovaleva2019", "kobayashi2020")
WIDTH = 58  # characters of a claim in the summary


@click.command("reproduce", cls=long_command(SECTIONS))
@click.argument("paper", type=click.Choice(PAPERS), metavar="PAPER")
@click.option("--model", help="Hub id, local folder or `demo`; by default the paper’s own.")
@click.option("--data", multiple=True, metavar="KEY=PATH",
              help="text, segments, treebank, coref, frames, glue, checkpoints, probe_train, "
              "probe_test, words, frequency, alignment, translator; repeatable.")  # fmt: skip
@click.option("--substitutes", type=FILE, metavar="DIR",
              help="A folder with public data sets, found by their file names.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1),
              help="Documents, or examples, of each part at most.")  # fmt: skip
@click.option("-o", "--output", type=FILE, required=True, metavar="OUT",
              help="Folder for the page and the runs; re-running resumes.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--replicates", type=click.IntRange(0), default=200, show_default=True,
              help="Of the bootstrap.")  # fmt: skip
@click.option("--threads", type=click.IntRange(1), help="All cores by default.")
@click.option("--overwrite", is_flag=True, help="Replace a battery of another model in OUT.")
@click.option("--no-report", is_flag=True,
              help="Only the paper’s page; `headscope report` makes the runs’.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Do not say what is being run.")
@click.option("--json", "as_json", is_flag=True, help="All lines on stdout, for a machine.")
@model_options
def command(paper: str, output: Path, **given: Any) -> None:
    """Run everything that PAPER measured, and hold its numbers and claims against ours.

    PAPER is clark2019, kovaleva2019 or kobayashi2020.
    Every table, figure and claim is a line with a status: reproduced within its interval, direction
    holds, differs, or not run, with what it needs and where to get it. Data that are missing never
    stop the rest.

    \b
    headscope reproduce kobayashi2020 --data text=wiki.txt -o kobayashi
    headscope reproduce clark2019 --substitutes public-data -o clark
    headscope reproduce kovaleva2019 --model ./my-model --data glue=glue --limit 500 -o kovaleva
    """  # fmt: skip
    try:
        outcome = _run(paper, output, given)
    except KeyboardInterrupt as error:
        raise RunStopped("stopped; the same command goes on from what is finished") from error
    from headscope.papers.reproduce.paper_outcome import summary

    if given["as_json"]:
        click.echo(json.dumps(summary(outcome), ensure_ascii=True))
    else:
        _tell(outcome)
    if outcome.failed:
        click.get_current_context().exit(1)


def _run(name: str, output: Path, given: dict[str, Any]) -> PaperOutcome:
    from headscope.papers.reproduce.paper_data import find_data

    data = find_data(given["data"], given["substitutes"])
    from headscope.papers.reproduce.run_paper import find_paper, reproduce
    from headscope.papers.reproduce.workspace import Workspace
    from headscope.run.engine.memory import keep_few_products, keep_freed_memory

    keep_freed_memory()
    keep_few_products()
    paper = find_paper(name)
    quiet = given["quiet"] or given["as_json"]
    workspace = Workspace(
        given["model"] or paper.model, data, output,
        loading={k: given[k] for k in ("device", "dtype", "revision", "trust_remote_code")},
        reports=not given["no_report"],
        tell=(lambda text: None) if quiet else lambda text: click.echo(text, err=True),
        **{k: given[k] for k in ("limit", "seed", "replicates", "threads", "overwrite")},
    )  # fmt: skip
    line = shlex.join(["headscope", *sys.argv[1:]])
    return reproduce(paper, workspace, command=line)


def _tell(outcome: PaperOutcome) -> None:
    """The lines section by section, how many hold, and where the page is."""
    from headscope.papers.reproduce.paper_outcome import ours_text, short_status

    for group in outcome.paper.groups:
        say(f"\n{group.title}")
        for one in outcome.of_group(group.id):
            ours = " ".join(filter(None, ours_text(one))) or "–"
            published = " / ".join(p.text for p in one.claim.published) or "–"
            claim = one.claim.text
            claim = claim if len(claim) <= WIDTH else claim[: WIDTH - 1] + "…"
            say(f"  {claim:<{WIDTH}} {ours:>22} {published:>12}  {short_status(one)}")
    own = "" if outcome.own else f" (published values are those of {outcome.paper.model})"
    counts = ", ".join(f"{count} {word}" for word, count in outcome.counts.items() if count)
    say(f"\n{len(outcome.claims)} lines{own}: {counts}")
    for reason in dict.fromkeys(outcome.absent.values()):
        say(f"  {' '.join(reason.split())}")
    if outcome.limit:
        say(f"limited to {outcome.limit} documents or examples of each part")
    if any(run.path is not None and not run.has_report for run in outcome.runs.values()):
        say(f"a run’s own page: headscope report {outcome.folder / 'runs' / 'PART'}")
    say(f"report: {outcome.folder / 'report.html'}")
