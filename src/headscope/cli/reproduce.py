"""`headscope reproduce`: hold what a paper published against runs of ours."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from headscope.cli import options
from headscope.cli.options import Natural, Positive
from headscope.cli.terminal_output import tell
from headscope.cli.typed_command import group, run_command
from headscope.core.options import Options, argument, flag, option, several
from headscope.run.execution import control_option
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.papers.page import PaperOutcome

WIDTH = 58  # characters of a claim in the summary


class _ReproduceOptions(Options):
    paper: Literal[
        "clark2019", "kovaleva2019", "kobayashi2020", "olsson2022", "wang2023", "wu2024"
    ] = argument(metavar="PAPER")
    data: tuple[str, ...] = several(
        "Data of a kind: text, segments, treebank, coref, frames, glue, checkpoints, probe_train, "
        "probe_test, words, frequency, alignment, translator; repeatable.",
        metavar="KEY=PATH",
        heading="What to read",
    )
    substitutes: Path | None = option(
        "A folder with public data sets, found by their file names.", metavar="DIR"
    )
    limit: Positive | None = option("Documents, or examples, of each part at most.")
    model: str | None = option(
        "Hub id, local folder or `demo`; by default the paper’s own.", heading="The model"
    )
    loading: Loading = group()
    output: Path = options.output_option(
        "Folder for the page and the runs; re-running resumes.", "{paper}", metavar="OUT"
    )
    seed: Natural = option("Seed of all random draws.", 0)
    control: str = control_option("the lines")
    replicates: Natural = option("Groups of documents at most, for intervals.", 200)
    threads: Positive | None = option("Threads; by default all cores.")
    overwrite: bool = flag("Replace the runs of another model in OUT.")
    keep_shards: bool = flag("Leave the shards of finished runs beside their results.")
    no_report: bool = flag("Only the paper’s page; `headscope report` makes the runs’.")
    quiet: bool = flag("Do not say what is being run.")
    as_json: bool = options.json_flag("All lines on stdout, for a machine.")


@run_command("reproduce", _ReproduceOptions)
def reproduce_command(given: _ReproduceOptions) -> None:
    """Run everything that PAPER measured, and hold its numbers and claims against ours.

    PAPER is clark2019, kovaleva2019 or kobayashi2020; of decoders olsson2022, wang2023 or wu2024.
    Every table, figure and claim is a line with a verdict: it holds, it does not hold, these data
    cannot tell, or it is not asked, with what it needs and where to get it. Of a line that holds it
    is told whether it also holds of an untrained network. Data that are missing never stop the
    rest.

    \b
    headscope reproduce kobayashi2020 --data text=wiki.txt -o kobayashi
    headscope reproduce clark2019 --substitutes public-data -o clark
    headscope reproduce kovaleva2019 --model ./my-model --data glue=glue --limit 500 -o kovaleva
    """
    from headscope.papers.paper_data import find_data

    data = find_data(given.data, given.substitutes)
    from headscope.papers.run_paper import find_paper, reproduced, summary
    from headscope.papers.workspace import Workspace

    paper = find_paper(given.paper)
    quiet = given.quiet or given.as_json
    workspace = options.settings_from(
        Workspace,
        given,
        model_name=given.model or paper.model,
        data=data,
        folder=given.output,
        loading=asdict(given.loading),
        reports=not given.no_report,
        tell=(lambda text: None) if quiet else lambda text: click.echo(text, err=True),
    )
    outcome = reproduced(paper, workspace, command=shlex.join(options.command_line()))
    tell(_lines(outcome), summary(outcome) if given.as_json else None)
    if outcome.failed:
        click.get_current_context().exit(1)


def _lines(outcome: PaperOutcome) -> Iterator[str]:
    from headscope.papers.page import ours_text, short_status

    for section in outcome.paper.groups:
        yield f"\n{section.title}"
        for one in outcome.of_group(section.id):
            ours = " ".join(filter(None, ours_text(one))) or "–"
            published = one.claim.published_text or "–"
            claim = one.claim.text
            claim = claim if len(claim) <= WIDTH else claim[: WIDTH - 1] + "…"
            yield f"  {claim:<{WIDTH}} {ours:>22} {published:>12}  {short_status(one)}"
    own = "" if outcome.own else f" (published values are those of {outcome.paper.model})"
    counts = "; ".join(f"{count} {word}" for word, count in outcome.counts.items() if count)
    failed = f"; {len(outcome.failed)} failed" if outcome.failed else ""
    yield f"\n{len(outcome.claims)} lines{own}: {counts}{failed}"
    for reason in dict.fromkeys(outcome.absent.values()):
        yield f"  {' '.join(reason.split())}"
    if outcome.limit:
        yield f"limited to {outcome.limit} documents or examples of each part"
    if any(run.path is not None and not run.has_report for run in outcome.runs.values()):
        yield f"a run’s own page: headscope report {outcome.folder / 'runs' / 'PART'}"
    yield f"report: {outcome.folder / 'report.html'}"
