"""Load a model with what its output is scored by."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headscope.errors import InputError, ModelError
from headscope.experiments.replay.scores import VECTORS
from headscope.model.checkpoint import Checkpoint, quietly
from headscope.model.language_model import CAUSAL, MASKED, LanguageModel, load_language_model
from headscope.model.model import Model
from headscope.tasks.task_request import Loading, loaded


@dataclass(frozen=True)
class ScoredModel:
    """A model, and the kind of its score: "causal", "masked" or "vectors"."""

    model: Model
    kind: str

    @property
    def body(self) -> Model:
        """The model without its language-model head."""
        own = self.model
        body: Any = own.network.base_model
        if body is own.network:
            return own
        return Model(body, own.tokenizer, own.name, own.revision, own.sha256)


def scored_model(
    model: LanguageModel | Model | str | Path, score: str | None, loading: Loading
) -> ScoredModel:
    """The model with its head where the score needs it.

    score   "loss", "vectors", or None: the loss where it has a language-model head
    raises  ModelError as `load`; also for a loss without such a head, for a classifier, and for a
            model whose attention can be read only
    """
    made = _scored(model, score, loading)
    _refuse_what_cannot_be_replaced(made.model)
    return made


def _scored(
    model: LanguageModel | Model | str | Path, score: str | None, loading: Loading
) -> ScoredModel:
    if isinstance(model, LanguageModel):
        whole = ScoredModel(model.model, model.kind)
        return whole if score != VECTORS else ScoredModel(whole.body, VECTORS)
    if isinstance(model, Model):
        loaded(model, loading)
        kind = kind_of([model.architecture])
        if kind == VECTORS and score == "loss":
            raise ModelError(f"{model.name!r} is loaded without a language-model head; wanted one")
        whole = ScoredModel(model, kind)
        return whole if score != VECTORS else ScoredModel(whole.body, VECTORS)
    if score is None:
        path = str(model)
        source = Checkpoint(
            path, revision=loading.revision, trust_remote_code=loading.trust_remote_code
        )
        with quietly():
            kind = kind_of(source.config.architectures or [])
        score = VECTORS if kind == VECTORS else "loss"
    if score == VECTORS:
        return ScoredModel(loaded(model, loading), VECTORS)
    language = load_language_model(model, **asdict(loading))
    return ScoredModel(language.model, language.kind)


def kind_of(architectures: list[str]) -> str:
    """The kind of score, from the class that the weights were saved from.

    raises  InputError for a classifier
    """
    classes = " ".join(architectures)
    if "Classification" in classes:
        raise InputError(
            f"found {classes}, a classifier: answers of classifiers are not compared yet; wanted "
            "--score vectors, which compares the output vectors of its body"
        )
    if any(ending in classes for ending in MASKED):
        return "masked"
    return "causal" if any(ending in classes for ending in CAUSAL) else VECTORS


def _refuse_what_cannot_be_replaced(model: Model) -> None:
    if model.fallback:
        raise ModelError(
            f"{model.name!r} ({model.architecture}) computes attention outside transformers' "
            "registry: it can be read, not replaced; wanted a model on the registry, such as BERT, "
            "GPT-2 or Llama"
        )
    if "whole_rows" not in model.allows:
        raise ModelError(
            f"{model.name!r} ({model.architecture}) leaves a part of its attention for no token, "
            "and rules give all of it to tokens; wanted a model whose rows sum to 1"
        )
