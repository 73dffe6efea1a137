"""Holds what was claimed of one model against several: `headscope zoo`, `hs.zoo`.

    done = zoo(["bert-base-uncased", "gpt2"], TreebankCorpus("dev.conllu"), output="zoo")
    done.claims

Nothing heavy is imported before the request is known to be right; `run_zoo` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.options import argument, keyword, required, takes
from headscope.model.request import model_place
from headscope.run.atlas import CorpusRequest, checked_corpus
from headscope.run.execution import Execution, control_option
from headscope.run.settings import Settings, analyses_option
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.corpus import CorpusLike
    from headscope.model.model import Model
    from headscope.papers.zoo.run_zoo import Zoo


class ZooRequest(CorpusRequest, kw_only=False):
    """Which models read what, and what becomes of it."""

    models: Sequence[str | Path | Model] = argument(
        'Hub ids, local folders, "demo", or loaded models; one is in memory at a time.',
        reads=model_place,
        many=True,
    )
    corpus: CorpusLike = required(
        "What all of them read, as for `atlas`; with trees, relations are asked for too.",
        kind="keyword",
    )
    _: KW_ONLY
    analyses: tuple[str, ...] | list[str] | None = analyses_option(
        "by default those that the claims need"
    )
    output: str | Path = required(
        "Folder; re-running resumes.",
        names="-o --output",
        reads=Path,
        usual="zoo",
        heading="How to run",
        before="batch_tokens",
    )
    control: str | Path | None = control_option(
        "the claims", heading="What to compute", before="seed"
    )
    reports: bool = keyword("Whether every run gets its own page.", True)
    begin: Callable[[str], None] = keyword(
        "Called with the name of each model before it is run.", lambda label: None
    )


@takes(ZooRequest)
def zoo(request: ZooRequest) -> Zoo:
    """Runs the analyses on every model and holds the claims against each.

    Raises InputError and its kinds before any model is loaded, or if none could be read; RunStopped
    on Ctrl-C.
    """
    from headscope.papers.zoo.listed_models import MODELS, listed_models, refuse_control
    from headscope.run.store import RunFolder

    listed = listed_models(request.models)
    refuse_control(listed, request.control)
    folder = RunFolder(request.output, parts=MODELS)
    folder.check()
    corpus = checked_corpus(request, request.corpus)
    request.before_loading(corpus)
    from headscope.papers.zoo.run_zoo import ZooJob, annotations_in, run_zoo

    job = ZooJob(
        folder.path,
        corpus,
        Settings.of(request),
        request.execution or Execution(),
        Loading.of(request),
        request.reports,
        request.control,
        annotations_in(corpus, request.limit),
    )
    return run_zoo(listed, job, request.begin)
