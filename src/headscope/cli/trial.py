"""`headscope trial`: does what the labels of a run say matter where they say so?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headscope.cli import options as shared
from headscope.cli.terminal_output import heads_given, size_of
from headscope.cli.typed_command import group, run_command
from headscope.experiments.trial.trial import TrialRequest, trial
from headscope.run.manifest_file import run_place

if TYPE_CHECKING:
    from headscope.run.store import Run


class _TrialOptions(shared.SharedRunOptions, TrialRequest):
    corpus: shared.CorpusOptions = group("What to read", before="limit")  # type: ignore[assignment]


@run_command("trial", _TrialOptions)
def trial_command(options: _TrialOptions) -> None:
    """Try the labels of RUN on a corpus: is what they say a cause of the output?

    The attention of each labelled head is moved from where its label says that it looks. What the
    output loses there is compared with the same by other queries, tokens and heads. The result is
    the run again, with a verdict beside each label.

    \b
    headscope trial run --demo -o tried
    headscope trial run --treebank dev.conllu -o tried
    headscope trial run --text wiki.txt --heads L3H9,L5H2 --rules mine.json -o tried
    """
    heads_given("--heads", *options.heads)
    run_place(str(options.run))
    with shared.reading_inputs(options) as (reading, notes):
        run = trial(**vars(TrialRequest.of(options, **reading)))
    shared.conclude(run, options, lines=[*notes, *_lines(run)], summary=_summary)


def _lines(run: Run) -> Iterator[str]:
    from headscope.claims.question import named
    from headscope.claims.reading import Reading

    yield size_of(run.manifest["model"])
    question = named("trial")
    assert question is not None
    reading = Reading(run.tree, question)
    for words in question.part("findings", ()):
        yield from reading.said(words)


def _summary(run: Run) -> dict[str, Any]:
    from headscope.claims.question import named
    from headscope.claims.reading import Reading
    from headscope.experiments.trial.verdicts import SIGNS, counts

    question = named("trial")
    assert question is not None
    number = counts(Reading(run.tree, question))
    return {"verdicts": {outcome: number[outcome] for outcome in SIGNS}}
