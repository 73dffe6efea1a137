"""`headscope ablate`: which heads and layers a fine-tuned model needs for its task."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from headscope.cli import options as shared
from headscope.cli.terminal_output import ProgressBar, heads_given, size_of
from headscope.cli.typed_command import run_command
from headscope.experiments.ablation.ablate import AblateRequest, ablate
from headscope.run.processes import noting_failure

if TYPE_CHECKING:
    from headscope.run.store import Run


class _AblateOptions(shared.SharedRunOptions, AblateRequest):
    pass


@run_command("ablate", _AblateOptions)
def ablate_command(options: _AblateOptions) -> None:
    """Switch off every head and every layer of CHECKPOINT in turn, and measure how a task suffers.

    CHECKPOINT has a head for the task, as `headscope finetune` makes it. Heads count from 1,
    and with a dot from 0: 4-1 and 3.0 are head 1 of layer 4.

    \b
    headscope ablate bert-rte --task rte --data glue -o ablated
    headscope ablate bert-rte --task rte --data glue --replacement zero -o zeroed
    headscope ablate bert-rte --task rte --data glue --together 4-1+2-12 --pairs 6 -o pairs
    """
    for group in options.groups:
        heads_given("--together", *group)
    notes: list[str] = []
    with (
        noting_failure(options.output, options.shard),
        ProgressBar(quiet=options.quiet, unit="examples") as bar,
    ):
        how = shared.execution_of(bar, options)
        run = ablate(**vars(AblateRequest.of(options, execution=how, tell=notes.append)))
    shared.conclude(run, options, lines=chain(notes, _lines(run)), summary=_summary)


def _lines(run: Run) -> Iterator[str]:
    from headscope.claims.reading import run_findings
    from headscope.experiments.ablation.ablate import note_of

    ablation, n = run["ablation"], run["ablation"].sizes["example"]
    yield f"{size_of(run.manifest['model'])} on {n} examples of {ablation.attrs['task']}"
    if cut := run.manifest["counts"]["cut"]:
        yield f"{cut} of {n} examples were cut"
    if note := note_of(run):
        yield note
    yield from run_findings(run.tree)


def _summary(run: Run) -> dict[str, Any]:
    from headscope.claims.reading import WITHHELD
    from headscope.experiments.ablation.terms import verdict_counts

    ablation = run["ablation"]
    kept: tuple[str, ...] = ("task", "metric", "replacement", "way", "way_reason")
    verdicts = ("verdict", "loss_verdict", "layer_verdict", "layer_loss_verdict")
    kept += (WITHHELD,) if WITHHELD in ablation.attrs else ()
    return {
        **{key: ablation.attrs[key] for key in kept},
        "baseline": float(ablation["baseline"]),
        **{name: verdict_counts(ablation, name) for name in verdicts},
    }
