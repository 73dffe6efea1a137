"""Measure one step of a training: an atlas of its checkpoint, and for decoders its circuits.

Each is a run folder of its own below RUN/steps, so that a stopped evolution goes on, and every step
can be opened and reported by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from headscope.corpus import Corpus
from headscope.errors import InputError, RunFolderError
from headscope.experiments.circuits.circuits import circuits
from headscope.experiments.circuits.made_inputs import opening_token, plain_tokens
from headscope.experiments.circuits.settings import LEAST_LENGTH, CircuitSettings
from headscope.experiments.evolution.checkpoints import ListedCheckpoint, unlike
from headscope.experiments.evolution.settings import MadeInputs
from headscope.model.checkpoint import Checkpoint, revisions_of
from headscope.model.language_model import CAUSAL, LanguageModel, load_language_model
from headscope.model.model import Model, load
from headscope.run.atlas import atlas
from headscope.run.execution import Execution
from headscope.run.settings import Settings
from headscope.run.store import Run, RunFolder, open_run
from headscope.tasks.task_request import Loading

STEPS, BESIDE = "steps", "-circuits"  # where runs are, below the folder of an evolution
LENGTH = 50  # tokens of a made half, where the model takes as many
_FOLDER = re.compile(r"step-(\d+)")


@dataclass(frozen=True)
class StepMeasurement:
    """What is measured of every checkpoint, and where the runs are kept.

    folder  of the evolution
    corpus  None: decoders read made inputs alone; encoders have one
    """

    folder: Path
    corpus: Corpus | None
    settings: Settings
    made: MadeInputs
    execution: Execution

    def of(
        self, model: Model | LanguageModel, step: int, *, control: str, overwrite: bool = False
    ) -> list[Run]:
        """The runs of one step; finished ones of the same weights are opened.

        raises  RunFolderError where the folder holds the step of another training, unless it may
                be overwritten
        """
        own = model.model if isinstance(model, LanguageModel) else model
        place = self.folder / STEPS / f"step-{step:08}"
        execution = replace(self.execution, overwrite=overwrite, progress=None, shard=None)
        runs = list[Run]()
        try:
            if self.corpus is not None:
                how: dict[str, Any] = {"settings": self.settings, "control": control}
                runs.append(atlas(own, self.corpus, output=place, execution=execution, **how))
            if isinstance(model, LanguageModel):
                settings = circuit_settings(own, self.made, self.settings)
                beside = place.with_name(place.name + BESIDE)
                how = {"settings": settings, "control": control}
                runs.append(circuits(model, output=beside, execution=execution, **how))
        except RunFolderError as error:
            if "other settings" not in str(error):
                raise
            raise RunFolderError(
                f"{self.folder} holds step {step} of another training, or of other settings: "
                f"{str(error).partition('(')[2].partition(')')[0][:200]}; choose another folder, "
                "or overwrite it"
            ) from error
        return runs


def circuit_settings(model: Model, made: MadeInputs, settings: Settings) -> CircuitSettings:
    """Settings of made inputs, as long as the model takes: scores of attention and copying alone.

    raises  InputError for a model that takes too short inputs, or knows too few tokens
    """
    opening = 0 if opening_token(model) is None else 1
    fits = min((model.limit - opening) // 16 * 8, len(plain_tokens(model)) // 2)
    length = made.length or max(LEAST_LENGTH, min(LENGTH, fits))
    return CircuitSettings(
        sequences=made.sequences,
        length=length,
        haystack=0,
        successors=False,
        relations=0,
        composition=False,
        batch_tokens=settings.batch_tokens,
        replicates=settings.replicates,
        seed=settings.seed,
    )


def load_checkpoint(
    listed: ListedCheckpoint, loading: Loading, tokenizer: str | Path | None
) -> Model | LanguageModel:
    """The checkpoint in evaluation mode, with its head if it is a causal language model.

    tokenizer  place of the tokenizer, where checkpoints have none; None: their own
    raises     ModelError as `load`
    """
    code = loading.trust_remote_code
    how = asdict(replace(loading, revision=listed.revision))
    source = Checkpoint(listed.place, revision=listed.revision, trust_remote_code=code)
    words = None
    if tokenizer is not None:
        words = Checkpoint(str(tokenizer), revision=None, trust_remote_code=code).tokenizer
    classes = " ".join(source.config.architectures or [])
    if any(ending in classes for ending in CAUSAL) and not source.config.is_encoder_decoder:
        return load_language_model(listed.place, tokenizer=words, kind="causal", **how)
    return load(listed.place, tokenizer=words, **how)


def refuse_missing(listed: Sequence[ListedCheckpoint]) -> None:
    """Raises ModelError for a revision that its repository does not have, nor the cache.

    Each repository is asked for all its revisions at once, and for those that it does not list.
    """
    known = {one.place: revisions_of(one.place)[0] for one in listed if one.revision}
    for one in listed:
        names = known.get(one.place)
        if names and one.revision not in names:
            Checkpoint(one.place, revision=one.revision, trust_remote_code=False)


def refuse_unlike(name: str, model: Model | LanguageModel, folder: Path) -> None:
    """Raises InputError for a model of another shape than the steps that are measured already."""
    shape = (model.model if isinstance(model, LanguageModel) else model).shape
    for place in sorted((folder / STEPS).glob("step-*"))[:1]:
        other = (RunFolder(place).manifest() or {}).get("model", {})
        wanted = other.get("layers"), other.get("heads")
        if other and (shape.layers, shape.heads) != wanted:
            raise InputError(unlike(name, (shape.layers, shape.heads), str(place), wanted))


def step_folders(folder: Path, step: int) -> list[Path]:
    """The run folders of a step that are there, finished or not."""
    return sorted((folder / STEPS).glob(f"step-{step:08}*"))


def measured_steps(folder: Path) -> dict[int, list[Run]]:
    """The finished runs of every step in the folder of an evolution, in order.

    A step of which one run is not finished is left out: it is measured again.
    """
    steps = dict[int, list[Run]]()
    for place in sorted((folder / STEPS).glob("step-*")):
        match = _FOLDER.fullmatch(place.name.removesuffix(BESIDE))
        if match and _finished(place):
            steps.setdefault(int(match[1]), []).append(open_run(place))
    most = max(map(len, steps.values()), default=0)
    return {step: runs for step, runs in sorted(steps.items()) if len(runs) == most}


def _finished(place: Path) -> bool:
    manifest = RunFolder(place).manifest()
    return bool(manifest and manifest.get("results_sha256"))


def trees_of(steps: dict[int, list[Run]]) -> dict[int, Sequence[Any]]:
    """The results of every step."""
    return {step: [run.tree for run in runs] for step, runs in steps.items()}
