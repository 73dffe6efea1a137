"""Replays heads by rules: `headscope explain` and `hs.replay`.

    run = replay("demo-decoder", corpus="wiki.txt", output="run")
    run["replay"]["change"].sel(replacement="rules", order="explained", share=0.25)

Nothing heavy is imported before the request is known to be right; `replaying` computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.options import argument, keyword, option, required, takes, whole
from headscope.experiments.replay.of_atlas import atlas_of
from headscope.experiments.replay.rule_file import read_rules
from headscope.experiments.replay.settings import ReplaySettings
from headscope.model.request import Stack, refuse_length
from headscope.run.execution import Execution, run_option
from headscope.run.manifest_file import model_or_run
from headscope.tasks.task_request import Loading, stack_option

if TYPE_CHECKING:
    from headscope.corpus import CorpusLike
    from headscope.model.language_model import LanguageModel
    from headscope.model.model import Model
    from headscope.run.store import Run


class ReplayRequest(ReplaySettings, Loading, kw_only=False):
    """Which model reads what, and which heads are replaced by what."""

    model: LanguageModel | Model | Run | str | Path = argument(
        "A decoder, a masked language model, a classifier of texts or an encoder: a folder, a hub "
        "id, or `demo`. Or a finished run of atlas: its model, and the rules that it chose.",
        reads=model_or_run,
    )
    corpus: CorpusLike = required(
        "Texts, files, a column of a table, or a corpus: see `corpus_of`.", kind="keyword"
    )
    _: KW_ONLY
    stack: Stack | None = stack_option(heading="The model", before="device")
    output: str | Path | None = run_option("explain-{model}", before="batch_tokens")
    rules: str | Path | Mapping[str, Any] | None = option(
        "JSON of your own rules, tried beside those that are chosen: see docs/explain.md.",
        reads=Path,
        metavar="FILE",
        heading="What is replayed",
        before="shares",
        python="In Python also what such a file holds; a rule may be an AttentionRule.",
    )
    settings: ReplaySettings | None = whole(ReplaySettings)
    execution: Execution | None = keyword("Its progress is called with inputs done, and all.")


@takes(ReplayRequest)
def replay(request: ReplayRequest) -> Run:
    """Chooses rules for every head on one half of the documents and puts them in its place on the
    other, beside other replacements. Of an atlas, its rules are taken; one half orders the heads.

    Raises InputError and its kinds before anything is computed.
    """
    settings, model = ReplaySettings.of(request), request.model
    own = read_rules(request.rules)
    from headscope.corpus import corpus_of
    from headscope.run.store import Run, check_run_folder

    check_run_folder(request.output)
    atlas, loading, stack = atlas_of(model), Loading.of(request), request.stack
    if atlas is not None:
        stack = atlas.stack_with(stack)
        model, loading = str(atlas.model["name"]), atlas.loading(loading)
    assert not isinstance(model, Run)
    if isinstance(model, str | Path):
        refuse_length(str(model), settings.max_length)
    corpus = corpus_of(request.corpus)
    from headscope.experiments.replay.replaying import replay_run
    from headscope.experiments.replay.scored_model import scored_model

    with nullcontext() if atlas is None else atlas.loading_its_model():
        scored = scored_model(model, settings.score, loading, stack)
    if atlas is not None:
        atlas.refuse_other(scored.model)
    return replay_run(
        scored,
        corpus,
        settings,
        own,
        atlas=atlas,
        output=request.output,
        execution=request.execution,
    )
