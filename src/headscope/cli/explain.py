"""`headscope explain`: do rules do what heads do, when they are put in their place?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headscope.cli import options as shared
from headscope.cli.terminal_output import heads_given, size_of
from headscope.cli.typed_command import group, run_command
from headscope.core.wording import how_many
from headscope.experiments.replay.replay import ReplayRequest, replay

if TYPE_CHECKING:
    from headscope.run.store import Run


class _ExplainOptions(shared.SharedRunOptions, ReplayRequest):
    corpus: shared.CorpusOptions = group("What to read", before="limit")  # type: ignore[assignment]


@run_command("explain", _ExplainOptions)
def explain_command(options: _ExplainOptions) -> None:
    """Replace the attention of heads of MODEL by rules, and measure what its output loses.

    One half of the documents chooses the rules of every head, the other tries them, beside even
    attention, the mean map by position, rest alone and the rules of another head. A finished run of
    atlas in the place of MODEL brings its model and the rules that it chose.

    \b
    headscope explain demo-decoder --text wiki.txt --documents heading -o explained
    headscope explain demo --demo -o explained
    headscope explain run --text articles.txt -o explained
    headscope explain gpt2 --text wiki.txt --heads L5H2,L6H10 --rules mine.json -o mine
    """
    heads_given("--heads", *options.heads)
    with shared.reading_inputs(options) as (reading, notes):
        run = replay(**vars(ReplayRequest.of(options, **reading)))
    shared.conclude(run, options, lines=[*notes, *_lines(run)], summary=_summary)


def _lines(run: Run) -> Iterator[str]:
    from headscope.claims.reading import run_findings
    from headscope.experiments.replay.terms import units_of

    inputs, units = run["replay"].attrs["inputs"], units_of(run["replay"])
    of_units = f" of {units}" if units.endswith("documents") else ""
    yield f"{size_of(run.manifest['model'])}, tried on {how_many(inputs, 'input')}{of_units}"
    yield from run_findings(run.tree)


def _summary(run: Run) -> dict[str, Any]:
    from headscope.core.results import json_number

    replayed = run["replay"]
    change = {
        str(name): {
            str(order): {
                f"{share:g}": json_number(
                    float(replayed["change"].sel(replacement=name, order=order, share=share))
                )
                for share in replayed["share"].values
            }
            for order in replayed["order"].values
        }
        for name in replayed["replacement"].values
    }
    return {"kind": replayed.attrs["kind"], "change": change}
