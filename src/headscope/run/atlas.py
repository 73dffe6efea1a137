"""Run all analyses over a corpus: `hs.atlas`, and what `headscope atlas` may be asked.

    run = atlas("demo", ["The cat sat on the mat.", "It slept."])
    run["flow"]

Nothing heavy is imported before the request is known to be right; `corpus_run` computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.options import argument, keyword, option, required, takes, whole
from headscope.errors import InputError
from headscope.model.request import Stack, model_place, refuse_length
from headscope.run.execution import (
    Execution,
    checked_until,
    control_option,
    run_option,
    until_option,
)
from headscope.run.processes import taking_part
from headscope.run.settings import CorpusSettings, Settings
from headscope.tasks.task_request import Loading, loaded, stack_option

if TYPE_CHECKING:
    from headscope.corpus import Corpus, CorpusLike
    from headscope.model.model import Model
    from headscope.run.store import Run


class CorpusRequest(Loading, CorpusSettings):
    """What every run of analyses over a corpus takes, whichever models read it."""

    settings: Settings | None = whole(Settings)
    execution: Execution | None = keyword("How to run it.")
    before_loading: Callable[[Corpus], object] = keyword(
        "Called with the corpus when the request is known to be right.", lambda corpus: None
    )


class OneModelRequest(CorpusRequest, kw_only=False):
    """Which model reads what."""

    model: Model | str | Path = argument(
        'A loaded model, or what `load` takes: "demo", a hub id, a folder.', reads=model_place
    )
    corpus: CorpusLike = required(
        "Texts, files, a column of a table, or a corpus: see `corpus_of`.", kind="keyword"
    )
    _: KW_ONLY
    stack: Stack | None = stack_option(heading="The model", before="device")


class AtlasRequest(OneModelRequest):
    """Which model reads what, and what is computed of it."""

    output: str | Path | None = run_option("atlas-{model}", before="batch_tokens")
    frequency: str | Path | None = option(
        "File of frequency ranks, lines 'rank count token-id'.",
        reads=Path,
        python="None: they are counted in the corpus.",
        heading="What to compute",
        before="seed",
    )
    control: str | Path | None = control_option(
        "the heads", heading="What to compute", before="seed"
    )
    until: float | str | None = until_option(
        "Read documents in random order, and stop when every interval is narrower than this, say "
        "0.02; or when every label is decided: labels."
    )

    def __post_init__(self) -> None:
        """Raise InputError also for what no run can stop at."""
        super().__post_init__()
        if self.until is not None:
            checked_until(self.until)


@takes(AtlasRequest)
def atlas(request: AtlasRequest) -> Run:
    """Run all analyses over a corpus in one pass; an unfinished run of the same spec goes on.

    Raises InputError and its kinds before anything is computed; RunStopped on Ctrl-C.
    """
    from headscope.run.store import folder_of

    settings, execution = Settings.of(request), request.execution or Execution()
    if request.until is not None and execution.shard is not None:
        raise InputError(
            "found --until and --shard; wanted one of them: a run that stops early reads little; "
            "use --workers"
        )
    folder = folder_of(request.output, execution, divided=True)
    if isinstance(request.model, str | Path):
        refuse_length(model_place(str(request.model)), settings.max_length)
    corpus = checked_corpus(request, request.corpus)
    if request.frequency is not None:
        from headscope.corpus.places import checked_files

        checked_files(request.frequency)
        from headscope.run.frequency_ranks import read_ranks

        read_ranks(Path(request.frequency), 1)
    request.before_loading(corpus)
    from headscope.run.corpus_run import corpus_run
    from headscope.run.stopping import Goal

    with taking_part(Path(request.output or "."), execution.shard) as own:
        return corpus_run(
            loaded(request.model, Loading.of(request), request.stack),
            corpus,
            folder,
            settings,
            execution,
            frequency=request.frequency,
            control=request.control,
            own=own,
            goal=None if request.until is None else Goal(request.until),
        )


def checked_corpus(request: CorpusRequest, texts: CorpusLike) -> Corpus:
    """The corpus of a run; InputError for `relations` that its trees do not have."""
    from headscope.corpus import AnnotatedCorpus, Concatenation, corpus_of
    from headscope.corpus.contents import check_relations

    corpus = corpus_of(texts)
    parts = corpus.corpora if isinstance(corpus, Concatenation) else (corpus,)
    if request.relations and not any(isinstance(part, AnnotatedCorpus) for part in parts):
        fold = request.subtypes == "fold"
        check_relations(corpus, request.relations, fold=fold, limit=request.limit)
    return corpus
