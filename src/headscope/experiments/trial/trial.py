"""Tries the labels of a run on other inputs: `headscope trial` and `hs.trial`.

    run = trial("atlas-run", corpus="wiki.txt", output="tried")
    run["trial"]["effect"]

Nothing heavy is imported before the request is known to be right; `trying` computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.options import argument, keyword, option, required, takes, whole
from headscope.experiments.replay.rule_file import read_rules
from headscope.experiments.trial.settings import TrialSettings
from headscope.model.request import refuse_length
from headscope.run.execution import Execution, run_option
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.corpus import CorpusLike
    from headscope.model.language_model import LanguageModel
    from headscope.model.model import Model
    from headscope.run.store import Run


class TrialRequest(TrialSettings, Loading, kw_only=False):
    """Which labels are tried on what."""

    run: Run | str | Path = argument("The run whose labels are tried.", reads=str)
    corpus: CorpusLike = required(
        "Texts, files, a column of a table, or a corpus: see `corpus_of`.", kind="keyword"
    )
    _: KW_ONLY
    output: str | Path | None = run_option("trial-{run}", before="batch_tokens")
    model: LanguageModel | Model | str | Path | None = option(
        "The model, where it lies elsewhere than when the run was made.",
        reads=Path,
        metavar="MODEL",
        heading="The model",
        before="device",
    )
    rules: str | Path | Mapping[str, Any] | None = option(
        "JSON of your own rules, tried beside the labels: see docs/trial.md.",
        reads=Path,
        metavar="FILE",
        heading="What is tried",
        before="inputs",
        python="In Python also what such a file holds; a rule may be an AttentionRule.",
    )
    settings: TrialSettings | None = whole(TrialSettings)
    execution: Execution | None = keyword("Its progress is called with inputs done, and all.")


@takes(TrialRequest)
def trial(request: TrialRequest) -> Run:
    """Moves the attention of labelled heads from where their labels say that they look, and
    measures what the output loses: beside the same at other queries, keys and heads.

    The result is the run with a group `trial`; labels have their verdicts beside them.

    Raises InputError and its kinds before anything is computed.
    """
    settings, source = TrialSettings.of(request), request.run
    own = read_rules(request.rules)
    from headscope.corpus import corpus_of
    from headscope.run.store import Run, check_run_folder, open_run

    check_run_folder(request.output)
    run, model = source if isinstance(source, Run) else open_run(source), request.model
    if isinstance(model, str | Path):
        refuse_length(str(model), settings.max_length)
    corpus = corpus_of(request.corpus)
    from headscope.experiments.trial.labels_of_run import try_labels

    return try_labels(
        run,
        model,
        corpus,
        settings,
        own=own,
        loading=Loading.of(request),
        output=request.output,
        execution=request.execution,
    )
