"""What the options of a run ask for: its corpus, its settings, its share (`--shard I/N`)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from headscope.cli.options import (
    AnalysisOptions,
    CorpusRunOptions,
    RunOptions,
    read_corpus,
)
from headscope.cli.terminal_output import complain
from headscope.core.options import comma_separated
from headscope.errors import InputError
from headscope.run.execution import Sharing

if TYPE_CHECKING:
    from headscope.corpus import Corpus
    from headscope.run.settings import Settings
    from headscope.run.store import Run


def asked_corpus(options: CorpusRunOptions) -> Corpus:
    """The corpus of a run; raises InputError for --relations that a treebank does not have."""
    corpus = read_corpus(options.corpus, limit=options.limit)
    if options.asked.relations and not options.corpus.annotate:
        from headscope.corpus.contents import check_relations

        fold = options.asked.subtypes == "fold"
        check_relations(corpus, options.asked.relations, fold=fold, limit=options.limit)
    return corpus


def run_settings(options: CorpusRunOptions, *models: str) -> Settings:
    """The settings of a run over a corpus; InputError for longer inputs than these models take."""
    from headscope.model.request import refuse_length
    from headscope.run.settings import Settings

    for model in models:
        refuse_length(model, options.max_length)
    names = None if options.asked.analyses is None else comma_separated(options.asked.analyses)
    return Settings.of(
        options,
        analyses=names,
        options=analysis_options(options.asked, names),
    )


def analysis_options(
    wanted: AnalysisOptions, analyses: Sequence[str] | None
) -> dict[str, dict[str, Any]]:
    """What --set, --relations, --subtypes and --measure say together: {analysis: {option: value}}.

    analyses  names of those that are run; None for all
    raises    InputError if two of them contradict each other, or no analysis has the option
    """
    from headscope.run.analysis import choose, measured_questions

    options = parse_options(wanted.options)
    names = choose(None if analyses is None else tuple(analyses))
    for name in ("relations", "subtypes", "measure"):
        value = getattr(wanted, name)
        if value is None:
            continue
        takers = [one.name for one in measured_questions() if name in one.options]
        if not set(takers) & set(names):
            raise InputError(
                f"found --{name} {value}, but no requested analysis has this option; add "
                f"{' or '.join(takers)} to --analyses"
            )
        for analysis in filter(takers.__contains__, names):
            if options.setdefault(analysis, {}).setdefault(name, value) != value:
                raise InputError(
                    f"--{name} {value} contradicts --set {analysis}.{name}="
                    f"{options[analysis][name]}; give one of them"
                )
    return options


def parse_options(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`--set flow.layers=3` as {"flow": {"layers": 3}}."""
    options: dict[str, dict[str, Any]] = {}
    for text in texts:
        place, equals, value = text.partition("=")
        analysis, dot, name = place.partition(".")
        if not (equals and dot and analysis and name):
            raise InputError(f"--set {text!r}; wanted ANALYSIS.OPTION=VALUE")
        options.setdefault(analysis, {})[name] = _parsed(value)
    return options


def _parsed(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class SharedRunOptions(Sharing, RunOptions, heading="How to run"):
    """The same, of a command whose work processes can share."""

    def reporting(self, run: Run) -> Self:
        """The same without a report where another process writes it, or is still there."""
        if self.shard is None or self.no_report or run.path is None:
            return self
        last = not run.elsewhere and is_free(run.path, f"headscope report {run.path}")
        return replace(self, no_report=not last)


def is_free(output: Path, instead: str) -> bool:
    """Whether a run folder is free within a minute: processes that have shared it soon see its end.

    Else says what to do `instead`.
    """
    from headscope.core.whole_file import held

    with suppress(InputError), held(output, patience=60):
        return True
    complain(f"another process is in {output}; when it has ended: {instead}")
    return False
