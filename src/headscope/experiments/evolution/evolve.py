"""What heads do over training, checkpoint by checkpoint: `headscope evolve`.

    run = hs.evolve(["out"], output="heads")  # a Trainer's folder
    run["evolution"]["value"].sel(measure="circuits.score.induction")

Nothing heavy is imported before the request is known to be right; `evolving` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.options import argument, keyword, option, required, takes
from headscope.errors import InputError
from headscope.experiments.evolution.settings import ANALYSES, Followed
from headscope.run.atlas import CorpusRequest, checked_corpus
from headscope.run.execution import Execution, control_option
from headscope.run.settings import Settings, analyses_option
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.corpus import CorpusLike
    from headscope.run.store import Run


class EvolveRequest(CorpusRequest, Followed, kw_only=False):
    """Which checkpoints read what, and what is followed over the steps."""

    checkpoints: Sequence[str | Path] = argument(
        "Folders of checkpoints, a Trainer's folder with checkpoint-N, or id@revision of the hub; "
        "STEP=NAME where a name does not end in its step. One is in memory at a time.",
        reads=str,
        many=True,
    )
    corpus: CorpusLike | None = keyword(
        "What all of them read, as for `atlas`; None: decoders read made inputs alone, encoders "
        "the bundled corpus."
    )
    _: KW_ONLY
    analyses: tuple[str, ...] | list[str] | None = analyses_option(
        f"by default {' and '.join(ANALYSES)}"
    )
    output: str | Path = required(
        "Run folder; re-running resumes, and adds checkpoints that came since.",
        names="-o --output",
        reads=Path,
        usual="evolve",
        heading="How to run",
        before="batch_tokens",
    )
    tokenizer: str | Path | None = option(
        "Folder or hub id of the tokenizer, where checkpoints have none.",
        reads=str,
        heading="The model",
    )
    control: str | Path | None = control_option("heads", heading="What to compute", before="seed")
    begin: Callable[[str], None] = keyword(
        "Called with the name of each checkpoint before it is measured.", lambda name: None
    )


@takes(EvolveRequest)
def evolve(request: EvolveRequest) -> Run:
    """Measures every head of every checkpoint on the same inputs: numbers and labels over steps.

    Raises InputError and its kinds before any model is loaded; RunStopped on Ctrl-C.
    """
    from headscope.experiments.evolution.checkpoints import listed_checkpoints
    from headscope.run.store import RunFolder

    if isinstance(request.checkpoints, str | Path):
        raise InputError(f"checkpoints is {request.checkpoints!r}; wanted several, in a list")
    if (place := its_folder(request.checkpoints)) is not None:
        from headscope.experiments.evolution.evolving import collected_again

        return collected_again(place, request.follow)
    listed, left_out = listed_checkpoints(request.checkpoints, request.revision)
    RunFolder(request.output, parts="steps").check()
    corpus = None if request.corpus is None else checked_corpus(request, request.corpus)
    if corpus is not None:
        request.before_loading(corpus)
    from headscope.experiments.evolution.evolving import EvolveJob, evolve_run

    job = EvolveJob(
        Path(request.output),
        corpus,
        with_analyses(Settings.of(request)),
        Followed.of(request),
        request.execution or Execution(),
        str(request.control or "none"),
        Loading.of(request),
        request.tokenizer,
    )
    return evolve_run(listed, left_out, job, request.begin)


def its_folder(names: Sequence[str | Path]) -> Path | None:
    """The folder of an evolution, where that alone is named in the place of checkpoints."""
    from headscope.run.manifest_file import MANIFEST

    place = Path(names[0]) if len(names) == 1 else None
    return place if place is not None and (place / MANIFEST).is_file() else None


def with_analyses(settings: Settings) -> Settings:
    """The same with the usual analyses where none are named."""
    from dataclasses import replace

    return settings if settings.analyses else replace(settings, analyses=ANALYSES)
