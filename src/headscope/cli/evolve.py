"""`headscope evolve`: what heads do over training, checkpoint by checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headscope.cli import options as shared
from headscope.cli.terminal_output import ProgressBar, annotate, complain
from headscope.cli.typed_command import group, run_command
from headscope.experiments.evolution.evolve import EvolveRequest, evolve
from headscope.run.processes import noting_failure

if TYPE_CHECKING:
    from headscope.corpus import Corpus
    from headscope.run.store import Run


class _EvolveOptions(shared.SharedRunOptions, EvolveRequest):
    corpus: shared.CorpusOptions = group("What to read", before="limit")  # type: ignore[assignment]


@run_command("evolve", _EvolveOptions, headings={"The model": "The checkpoints"})
def evolve_command(options: _EvolveOptions) -> None:
    """Follow every head over training: numbers and labels at each checkpoint, births and ends.

    CHECKPOINTS are folders, a Trainer's folder with checkpoint-N, or revisions of the hub. The
    folder -o of an evolution by itself is collected again: of a training that goes on.

    \b
    headscope evolve out -o heads
    headscope evolve gpt2-a/step-100 gpt2-a/step-200 --text wiki.txt -o heads
    headscope evolve EleutherAI/pythia-70m@step1000 EleutherAI/pythia-70m@step2000 -o heads
    """
    with (
        noting_failure(options.output, options.shard),
        ProgressBar(quiet=options.quiet, unit="inputs") as bar,
    ):

        def begin(name: str) -> None:
            if not options.quiet:
                complain(name)

        def annotated(corpus: Corpus) -> None:
            for note in annotate(corpus, quiet=options.quiet):
                complain(note)

        named = options.corpus.named
        request = EvolveRequest.of(
            options,
            corpus=shared.read_corpus(options.corpus, limit=options.limit) if named else None,
            execution=shared.execution_of(bar, options),
            before_loading=annotated,
            begin=begin,
        )
        run = evolve(**vars(request))
    shared.conclude(run, options, lines=_lines(run), summary=_summary)


def _lines(run: Run) -> Iterator[str]:
    from headscope.cli.terminal_output import size_of
    from headscope.report.build import first_findings

    steps = run["evolution"]["step"].values
    yield f"{size_of(run.manifest['model'])}, {len(steps)} steps, {steps[0]:,} to {steps[-1]:,}"
    yield from (one.text for one in first_findings(run.tree, {}))


def _summary(run: Run) -> dict[str, Any]:
    from headscope.experiments.evolution.spells import spells

    evolution = run["evolution"]
    return {
        "steps": evolution["step"].values.tolist(),
        "measures": evolution["measure"].values.tolist(),
        "labels": [vars(one) | {"lasts": one.lasts} for one in spells(evolution)],
    }
