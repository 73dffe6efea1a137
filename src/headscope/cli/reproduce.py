"""`headscope reproduce`: a paper's tables and figures, published beside ours."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from headscope.cli.options import ModelOptions, command_line, output_option
from headscope.cli.terminal_output import say
from headscope.cli.typed_command import (
    RESUMES,
    argument,
    flag,
    group,
    option,
    several,
    typed_command,
)

if TYPE_CHECKING:
    from headscope.papers.reproduce.paper_outcome import PaperOutcome

WIDTH = 58  # characters of a claim in the summary


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """What `headscope reproduce` is asked."""

    paper: Literal["clark2019", "kovaleva2019", "kobayashi2020"] = argument(metavar="PAPER")
    data: tuple[str, ...] = several(
        "Data of a kind: text, segments, treebank, coref, frames, glue, checkpoints, probe_train, "
        "probe_test, words, frequency, alignment, translator; repeatable.",
        metavar="KEY=PATH",
        heading="What to read",
    )
    substitutes: Path | None = option(
        "A folder with public data sets, found by their file names.", metavar="DIR"
    )
    limit: int | None = option("Documents, or examples, of each part at most.", minimum=1)
    model: str | None = option(
        "Hub id, local folder or `demo`; by default the paper’s own.", heading="The model"
    )
    loading: ModelOptions = group()
    output: Path = output_option(
        "Folder for the page and the runs; re-running resumes.", metavar="OUT", heading="How to run"
    )
    seed: int = option("Seed of all random draws.", default=0, minimum=0)
    replicates: int = option("Bootstrap replicates.", default=200, minimum=0)
    threads: int | None = option("Threads; by default all cores.", minimum=1)
    overwrite: bool = flag("Replace the runs of another model in OUT.")
    no_report: bool = flag("Only the paper’s page; `headscope report` makes the runs’.")
    quiet: bool = flag("Do not say what is being run.")
    as_json: bool = flag("All lines on stdout, for a machine.", names="--json")


@typed_command("reproduce", ReproduceOptions, stopped=RESUMES)
def command(given: ReproduceOptions) -> None:
    """Run everything that PAPER measured, and hold its numbers and claims against ours.

    PAPER is clark2019, kovaleva2019 or kobayashi2020.
    Every table, figure and claim is a line with a status: reproduced within its interval, direction
    holds, differs, or not run, with what it needs and where to get it. Data that are missing never
    stop the rest.

    \b
    headscope reproduce kobayashi2020 --data text=wiki.txt -o kobayashi
    headscope reproduce clark2019 --substitutes public-data -o clark
    headscope reproduce kovaleva2019 --model ./my-model --data glue=glue --limit 500 -o kovaleva
    """
    outcome = _run(given)
    from headscope.papers.reproduce.paper_outcome import summary

    if given.as_json:
        click.echo(json.dumps(summary(outcome), ensure_ascii=True))
    else:
        _tell(outcome)
    if outcome.failed:
        click.get_current_context().exit(1)


def _run(given: ReproduceOptions) -> PaperOutcome:
    from headscope.papers.reproduce.paper_data import find_data

    data = find_data(given.data, given.substitutes)
    from headscope.papers.reproduce.run_paper import find_paper, reproduce
    from headscope.papers.reproduce.workspace import Workspace

    paper = find_paper(given.paper)
    quiet = given.quiet or given.as_json
    workspace = Workspace(
        given.model or paper.model,
        data,
        given.output,
        loading=asdict(given.loading),
        reports=not given.no_report,
        tell=(lambda text: None) if quiet else lambda text: click.echo(text, err=True),
        limit=given.limit,
        seed=given.seed,
        replicates=given.replicates,
        threads=given.threads,
        overwrite=given.overwrite,
    )
    return reproduce(paper, workspace, command=shlex.join(command_line()))


def _tell(outcome: PaperOutcome) -> None:
    """The lines section by section, how many hold, and where the page is."""
    from headscope.papers.reproduce.paper_outcome import ours_text, short_status

    for section in outcome.paper.groups:
        say(f"\n{section.title}")
        for one in outcome.of_group(section.id):
            ours = " ".join(filter(None, ours_text(one))) or "–"
            published = one.claim.published_text or "–"
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
