"""`headscope reproduce`: compare what a paper published with our runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from headscope.cli import options as shared
from headscope.cli.terminal_output import tell
from headscope.cli.typed_command import run_command
from headscope.core.options import flag
from headscope.papers.reproduce import ReproduceRequest, reproduce

if TYPE_CHECKING:
    from headscope.papers.page import PaperOutcome

WIDTH = 58  # characters of a claim in the summary


class _ReproduceOptions(ReproduceRequest, heading="How to run"):
    quiet: bool = flag("Do not say what is being run.")
    as_json: bool = shared.json_flag("All lines on stdout, for a machine.")


@run_command("reproduce", _ReproduceOptions)
def reproduce_command(options: _ReproduceOptions) -> None:
    """Repeat what PAPER measured, and compare its numbers and claims with ours.

    PAPER is clark2019, kovaleva2019, kobayashi2020 or vig2019; of decoders olsson2022, wang2023 or
    wu2024.
    Every table, figure and claim is a line with a verdict: it holds, it does not hold, these data
    cannot tell, or it is not asked, with what it needs and where to get it. A line that holds says
    whether it also holds in an untrained network. Data that are missing never stop the rest.

    \b
    headscope reproduce kobayashi2020 --data text=wiki.txt -o kobayashi
    headscope reproduce clark2019 --substitutes public-data -o clark
    headscope reproduce kovaleva2019 --model ./my-model --data glue=glue --limit 500 -o kovaleva
    """
    own: dict[str, Any] = {"command": shlex.join(shared.command_line())}
    if not (options.quiet or options.as_json):
        own["tell"] = partial(click.echo, err=True)
    outcome = reproduce(**vars(ReproduceRequest.of(options, **own)))
    from headscope.papers.run_paper import summary

    tell(_lines(outcome), summary(outcome) if options.as_json else None)
    if outcome.failed:
        click.get_current_context().exit(1)


def _lines(outcome: PaperOutcome) -> Iterator[str]:
    from headscope.papers.claim_engine import agreeing
    from headscope.papers.page import ours_text, short_status

    for section in outcome.paper.groups:
        yield f"\n{section.title}"
        for one in outcome.of_group(section.id):
            ours = " ".join(filter(None, ours_text(one))) or "–"
            published = one.claim.published_text or "–"
            claim = one.claim.text
            claim = claim if len(claim) <= WIDTH else claim[: WIDTH - 1] + "…"
            yield f"  {claim:<{WIDTH}} {ours:>22} {published:>12}  {short_status(one)}"
    printed = outcome.paper.prints_numbers and not outcome.own
    own = "" if not printed else f" (published values are those of {outcome.paper.model})"
    counts = "; ".join(agreeing(count, word) for word, count in outcome.counts.items() if count)
    failed = f"; {len(outcome.failed)} failed" if outcome.failed else ""
    yield f"\n{len(outcome.claims)} lines{own}: {counts}{failed}"
    for reason in dict.fromkeys(outcome.absent.values()):
        yield f"  {' '.join(reason.split())}"
    yield from (f"note: {note}" for note in outcome.notes)
    if outcome.limit:
        yield f"limited to {outcome.limit} documents or examples of each part"
    if any(run.path is not None and not run.has_report for run in outcome.runs.values()):
        yield f"a run’s own page: headscope report {outcome.folder / 'runs' / 'PART'}"
    yield f"report: {outcome.folder / 'report.html'}"
