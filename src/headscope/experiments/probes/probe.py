"""Trains probes that predict syntactic heads from attention, words or hidden states.

    run = probe("demo", "train.conllu", "test.conllu", output="run")
    run["probes"]["uas"].sel(probe="attention")

Nothing heavy is imported before the request is known to be right; `probing` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.options import argument, keyword, option, required, several, takes, whole
from headscope.experiments.probes.settings import FeaturePlace, ProbeSettings
from headscope.model.request import model_place
from headscope.run.execution import Execution, run_option
from headscope.run.manifest_file import run_place
from headscope.tasks.task_request import Loading, loaded

if TYPE_CHECKING:
    from headscope.model.model import Model
    from headscope.run.store import Run

Labels = Sequence[Sequence[str]]
Files = str | Path | Sequence[str | Path]


class ProbeRequest(Loading, ProbeSettings, kw_only=False, heading="The data"):
    """Which probes are trained on what."""

    model: Model | str | Path = argument("A model, or what `load` takes.", reads=model_place)
    train: Files = required(
        "CoNLL-U or CoNLL-X to learn from; repeatable.", reads=Path, many=True, before="limit"
    )
    test: Files = required(
        "CoNLL-U or CoNLL-X to be scored on; repeatable.", reads=Path, many=True, before="limit"
    )
    _: KW_ONLY
    dev: Files = several(
        "To choose the best epoch by; by default a tenth of --train.", reads=Path, before="limit"
    )
    words: str | Path | None = option(
        "Word vectors: GloVe, word2vec (text, binary), fastText's .vec, gzipped or not; or "
        "glove-6b-50d, the package.",
        reads=str,
        metavar="FILE",
        before="limit",
        python="None: probes on words are left out.",
    )
    output: str | Path | None = run_option("probe-{model}")
    settings: ProbeSettings | None = whole(ProbeSettings)
    place: FeaturePlace | None = keyword("Where the features are kept.")
    atlas: Run | str | Path | None = option(
        "A run of `headscope atlas`, to name the heads.",
        reads=run_place,
        metavar="RUN",
        heading="The probes",
        before="batch_tokens",
    )
    labels: Labels | None = keyword("Instead: [layer][head] what is known of each head.")
    execution: Execution | None = keyword(
        "Its progress is called with sentences read and trained on, and all."
    )
    tell: Callable[[str], object] = keyword(
        "Called with what is to be said before the work begins.", lambda text: None
    )


@takes(ProbeRequest)
def probe(request: ProbeRequest) -> Run:
    """Trains and tests all probes that can be run.

    Raises InputError and its kinds before anything is computed.
    """
    settings = ProbeSettings.of(request)
    settings.run_probes(words=request.words is not None)  # raises for one that lacks them
    from headscope.run.store import check_run_folder

    check_run_folder(request.output)
    from headscope.corpus.places import checked_files

    for files_of_part in (request.train, request.test, request.dev or ()):
        if files_of_part:
            checked_files(files_of_part)
    model = loaded(request.model, Loading.of(request))
    from headscope.experiments.probes.probing import probe_run

    files = {"train": request.train, "test": request.test}
    return probe_run(
        model,
        files | ({"dev": request.dev} if request.dev else {}),
        settings,
        words=request.words,
        output=request.output,
        place=request.place,
        atlas=request.atlas,
        labels=request.labels,
        execution=request.execution,
        tell=request.tell,
    )
