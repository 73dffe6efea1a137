"""What the options of a run over a corpus ask for: its corpus and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headscope.cli.options import (
    AnalysisOptions,
    CorpusRunOptions,
    comma_separated,
    read_corpus,
    settings_from,
)
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.corpus import Corpus
    from headscope.run.settings import Settings


def asked_corpus(given: CorpusRunOptions) -> Corpus:
    """The corpus of a run; raises InputError for --relations that a treebank does not have."""
    corpus = read_corpus(given.corpus, limit=given.limit)
    if given.asked.relations and not given.corpus.annotate:
        from headscope.corpus.contents import check_relations

        fold = given.asked.subtypes == "fold"
        check_relations(corpus, given.asked.relations, fold=fold, limit=given.limit)
    return corpus


def run_settings(given: CorpusRunOptions, *models: str) -> Settings:
    """The settings of a run over a corpus; InputError for longer inputs than these models take."""
    from headscope.model.request import refuse_length
    from headscope.run.settings import Settings

    for model in models:
        refuse_length(model, given.lengths.max_length)
    names = None if given.asked.analyses is None else comma_separated(given.asked.analyses)
    return settings_from(
        Settings, given, given.batches, given.chance, given.lengths,
        analyses=names, options=analysis_options(given.asked, names),
    )  # fmt: skip


def analysis_options(
    given: AnalysisOptions, analyses: Sequence[str] | None
) -> dict[str, dict[str, Any]]:
    """What --set, --relations, --subtypes and --measure say together: {analysis: {option: value}}.

    analyses  names of those that are run; None for all
    raises    InputError if two of them contradict each other, or no analysis has the option
    """
    from headscope.run.analysis import choose, measured_questions

    options = parse_options(given.options)
    names = choose(None if analyses is None else tuple(analyses))
    for name in ("relations", "subtypes", "measure"):
        value = getattr(given, name)
        if value is None:
            continue
        takers = [asked.name for asked in measured_questions() if name in asked.options]
        if not set(takers) & set(names):
            raise InputError(
                f"found --{name} {value}, and no analysis that has it is run; add "
                f"{' or '.join(takers)} to --analyses"
            )
        for analysis in filter(takers.__contains__, names):
            if options.setdefault(analysis, {}).setdefault(name, value) != value:
                raise InputError(
                    f"--{name} {value} contradicts --set {analysis}.{name}="
                    f"{options[analysis][name]}; give one of them"
                )
    return options


def parse_options(given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`--set flow.layers=3` as {"flow": {"layers": 3}}."""
    options: dict[str, dict[str, Any]] = {}
    for text in given:
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
