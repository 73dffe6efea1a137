"""`headscope prune`: write a checkpoint without the heads that a task can do without."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from headscope.cli import options as shared
from headscope.cli.terminal_output import ProgressBar, complain, size_of, tell
from headscope.cli.typed_command import typed_command
from headscope.core.options import flag
from headscope.experiments.ablation.prune import PruneRequest, prune
from headscope.run.execution import Linears

if TYPE_CHECKING:
    from headscope.run.store import Run


class _PruneOptions(Linears, PruneRequest, heading="How to run"):
    overwrite: bool = flag("Replace a run with other settings in --run.")
    quiet: bool = flag("Say nothing until it is done.")
    as_json: bool = shared.json_flag()


@typed_command("prune", _PruneOptions, stopped="with --run the same command goes on")
def prune_command(options: _PruneOptions) -> None:
    """Remove heads of CHECKPOINT one after another, see what a task loses, and write what is left.

    Heads are chosen by examples of the train split and scored on dev. The new checkpoint works
    in stock transformers: what the heads add is 0, all else is as it was.

    \b
    headscope prune bert-rte --task rte --data glue -o bert-rte-pruned
    headscope prune bert-rte --task rte --data glue --remove 40 --by greedy -o bert-rte-40
    """

    def begun(passes: Mapping[str, int]) -> None:
        if not options.quiet:
            parts = ", ".join(f"{count:,} to {part}" for part, count in passes.items())
            complain(f"{sum(passes.values()):,} forward passes of one example: {parts}")

    with ProgressBar(quiet=options.quiet, unit="passes") as bar:
        how = shared.execution_of(bar, options)
        request = PruneRequest.of(options, execution=how, told=bar.begin, begun=begun)
        done = prune(**vars(request))
    from headscope.experiments.ablation.pruned_checkpoint import note_of

    if done.run.path is not None:
        shared.make_report(done.run)
    summary = {**note_of(done.run, done.order, done.heads), "output": str(done.path)}
    last = f"checkpoint: {done.path} (heads and scores: pruned.json, figure: pruned.svg)"
    summary |= {"notes": list(done.run.notes)} if done.run.notes else {}
    doubts = (f"note: {one}" for one in done.run.notes)
    lines = chain(doubts, done.notes, _lines(done.run, done.order, len(done.heads)), [last])
    tell(lines, summary if options.as_json else None)


def _lines(run: Run, order: str, gone: int) -> Iterator[str]:
    from headscope.claims.reading import WITHHELD
    from headscope.experiments.ablation.terms import points_text

    pruning, size = run["pruning"], size_of(run.manifest["model"])
    allowance = points_text(pruning, float(pruning.attrs["allowance"]))
    if why := pruning.attrs.get(WITHHELD):
        yield str(why)
    yield f"{size} on {pruning.attrs['examples']} examples of {pruning.attrs['task']}"
    for at, name in enumerate(map(str, pruning["order"].values)):
        count, half = int(pruning["can_go"].values[at]), int(pruning["can_go_half"].values[at])
        cost = float(pruning["held_out"].values[at])
        held = (
            f" (by half of the examples {half}, which costs the other half "
            f"{points_text(pruning, cost, signed=True)})"
            if math.isfinite(cost)
            else "; too few examples to try it on another half"
        )
        yield f"  {name}: {count} of {pruning.attrs['heads']} heads can go at ≤ {allowance}{held}"
    yield f"removed: {gone} heads, in the order {order}"
    if not gone:
        yield "the checkpoint is as it was; --allowance allows more, --remove N insists"
