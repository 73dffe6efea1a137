"""Load a model with what its output is scored by."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headscope.errors import InputError, ModelError
from headscope.experiments.replay import scores
from headscope.experiments.replay.scores import ANSWERS, VECTORS
from headscope.model.checkpoint import Checkpoint, quietly
from headscope.model.decoder_stack import alike
from headscope.model.language_model import (
    CAUSAL,
    MASKED,
    WRITTEN,
    LanguageModel,
    load_language_model,
)
from headscope.model.model import Model, of_stack
from headscope.model.request import Stack
from headscope.tasks.task import own_task
from headscope.tasks.task_model import class_names, load_for_task, with_task_head
from headscope.tasks.task_request import Loading, language_model, loaded


@dataclass(frozen=True)
class ScoredModel:
    """A model, and the kind of its score: "causal", "masked", "answers" or "vectors"."""

    model: Model
    kind: str

    @property
    def body(self) -> Model:
        """The model without its head."""
        own = self.model
        base: Any = own.network.base_model
        body = alike(base, own.network)
        if body is own.network:
            return own
        return Model(body, own.tokenizer, own.name, own.revision, own.sha256)


def scored_model(
    model: LanguageModel | Model | str | Path,
    score: str | None,
    loading: Loading,
    stack: Stack | None = None,
) -> ScoredModel:
    """The model with its head where the score needs it.

    stack   of an encoder-decoder, the one whose heads are replaced: "decoder", or its encoder
    score   "loss", "answers", "vectors", or None: what the head of its class gives
    raises  ModelError as `load`; also for a loss or answers without such a head, for a model that
            does not choose one class, and for a model whose attention can be read only
    """
    read = model.model if isinstance(model, LanguageModel) else model
    if isinstance(read, Model) and read.start is not None:
        stack = stack or "decoder"
    if stack == "decoder" and _config(model, loading).is_encoder_decoder:
        made = _of_decoder(model, score, loading)
    else:
        made = _scored(model, score, loading)
        of_stack(made.model, stack)
    _refuse_what_cannot_be_replaced(made.model)
    return made


def _of_decoder(
    model: LanguageModel | Model | str | Path, score: str | None, loading: Loading
) -> ScoredModel:
    """The same of the decoder of an encoder-decoder, whose loss is that of the text it reads."""
    if isinstance(model, Model) and model.load_options is not None and score != VECTORS:
        loading = Loading(**model.head_options)
        model = model.name
    if isinstance(model, str | Path):
        classes = " ".join(_config(model, loading).architectures or [])
        wants = score or ("loss" if any(ending in classes for ending in WRITTEN) else VECTORS)
        model = (
            loaded(model, loading)
            if wants == VECTORS
            else load_language_model(model, **asdict(loading), kind="written")
        )
    own = of_stack(model.model if isinstance(model, LanguageModel) else model, "decoder")
    head = own.network.get_output_embeddings()  # type: ignore[no-untyped-call]
    if score == VECTORS and head is not None and own.network.base_model is own.network:
        raise ModelError(
            f"found {own.name!r} as a loaded {own.architecture}, which gives no output vectors; "
            "wanted its name, or the network without its language-model head"
        )
    return _loaded(own, VECTORS if head is None else scores.CAUSAL, score)


def _scored(
    model: LanguageModel | Model | str | Path, score: str | None, loading: Loading
) -> ScoredModel:
    if isinstance(model, LanguageModel):
        return _loaded(model.model, model.kind, score)
    own = None if isinstance(model, str | Path) else loaded(model, loading)
    if own is not None and (score == VECTORS or own.load_options is None):
        return _loaded(own, VECTORS if score == VECTORS else kind_of([own.architecture]), score)
    config = _config(own or model, loading)
    if score is None:
        kind = kind_of(config.architectures or [])
        score = kind if kind in (ANSWERS, VECTORS) else "loss"
    if score == VECTORS:
        return ScoredModel(own or loaded(model, loading), VECTORS)
    if score == ANSWERS:
        _refuse_other_answers(own.name if own else str(model), config)
        task = own_task("classes of the checkpoint", class_names(config.id2label))
        made = (
            with_task_head(own, task) if own else load_for_task(str(model), task, **asdict(loading))
        )
        return ScoredModel(made.model, ANSWERS)
    language = language_model(own or model, loading)
    return ScoredModel(language.model, language.kind)


def _config(model: LanguageModel | Model | str | Path, loading: Loading) -> Any:
    if not isinstance(model, str | Path):
        own = model.model if isinstance(model, LanguageModel) else model
        return own.network.config
    code = loading.trust_remote_code
    with quietly():
        return Checkpoint(str(model), revision=loading.revision, trust_remote_code=code).config


def _loaded(model: Model, kind: str, score: str | None) -> ScoredModel:
    if score == VECTORS:
        return ScoredModel(ScoredModel(model, kind).body, VECTORS)
    lacks_loss = score == "loss" and kind not in (scores.CAUSAL, scores.MASKED)
    if lacks_loss or (score == ANSWERS and kind != ANSWERS):
        head = "language-model" if lacks_loss else "classification"
        raise ModelError(f"{model.name!r} is loaded without a {head} head; wanted one")
    if kind == ANSWERS:
        _refuse_other_answers(model.name, model.network.config)
    made = ScoredModel(model, kind)
    return made if kind != VECTORS else ScoredModel(made.body, VECTORS)


def kind_of(architectures: list[str]) -> str:
    """The kind of score, from the class that the weights were saved from.

    raises  InputError for what classifies no whole texts
    """
    classes = " ".join(architectures)
    if "SequenceClassification" in classes:
        return ANSWERS
    if "Classification" in classes:
        raise InputError(
            f"found {classes}: only answers on whole texts are compared; wanted --score vectors, "
            "which compares the output vectors of its body"
        )
    if any(ending in classes for ending in MASKED):
        return scores.MASKED
    return scores.CAUSAL if any(ending in classes for ending in CAUSAL) else VECTORS


def _refuse_other_answers(name: str, config: Any) -> None:
    """Raise ModelError for outputs that are no choice of one class: numbers, or several labels; and
    for those of a decoder that stands behind the encoder that is read.
    """
    if config.is_encoder_decoder:
        raise ModelError(
            f"{name!r} is an encoder-decoder ({config.model_type}) that answers from its decoder, "
            "and the attention of its encoder is replaced; wanted --score vectors, which compares "
            "the encoder's output vectors"
        )
    kind = getattr(config, "problem_type", None)
    if len(config.id2label) < 2 or kind in ("regression", "multi_label_classification"):
        raise ModelError(
            f"{name!r} answers with numbers, or several labels; wanted a model that chooses one "
            "class, or --score vectors"
        )


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
