"""`headscope plan`: how much a run with `--until` will read, from a small first sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.cli import options as shared
from headscope.cli.terminal_output import ProgressBar, annotate, complain, tell
from headscope.cli.typed_command import group, run_command
from headscope.core.options import flag
from headscope.run.execution import Linears, Threads
from headscope.run.forecast import ForecastRequest, forecast

if TYPE_CHECKING:
    from headscope.corpus import Corpus


class _PlanOptions(Linears, Threads, ForecastRequest):
    corpus: shared.CorpusOptions = group("What to read", before="limit")  # type: ignore[assignment]
    quiet: bool = flag("No progress bar.", heading="How to run")
    as_json: bool = shared.json_flag()


@run_command("plan", _PlanOptions)
def plan_command(options: _PlanOptions) -> None:
    """Say before a run with --until how many tokens and core hours it will take.

    MODEL is a hub id, a local folder, or `demo`. A small random sample of the corpus is measured;
    nothing is written. The forecast is as rough as the sample is small.

    \b
    headscope plan demo --text wiki.txt --until labels
    headscope plan bert-base-uncased --text wiki.txt --until 0.02 --analyses surface,entropy
    """

    def annotated(corpus: Corpus) -> None:
        for note in annotate(corpus, quiet=options.quiet):
            complain(note)

    with ProgressBar(quiet=options.quiet) as progress:
        request = ForecastRequest.of(
            options,
            corpus=shared.read_corpus(options.corpus, limit=options.limit),
            execution=shared.execution_of(progress, options),
            before_loading=annotated,
        )
        result = forecast(**vars(request))
    tell(result.lines(), result.as_dict() if options.as_json else None)
