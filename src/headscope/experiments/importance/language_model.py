"""Loads a checkpoint with its language-model head, and chooses the tokens that it is asked for.

As `headscope.load`: safetensors only, remote code off unless asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from headscope.core.accumulators import generator
from headscope.corpus.document import Example
from headscope.errors import CorpusError, ModelError
from headscope.experiments.importance.objectives import Ids, TokenLoss
from headscope.model.checkpoint import (
    Checkpoint,
    device_of,
    quietly,
    refuse_incomplete,
    weights_sha256,
)
from headscope.model.model import Model, checked

MASKED, CAUSAL = ("MaskedLM", "PreTraining"), ("CausalLM", "LMHead")
ASKED, HIDDEN, CHANGED = 0.15, 0.8, 0.1  # shares: of tokens; of those asked


@dataclass(eq=False)
class LanguageModel:
    """A model whose network has a language-model head.

    kind  "masked" or "causal"
    """

    model: Model
    kind: str


def load_language_model(
    name: str | Path,
    *,
    device: str = "cpu",
    dtype: str = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> LanguageModel:
    """A checkpoint with its language-model head, in evaluation mode.

    raises  ModelError as `headscope.load`; also without such a head, and for
            encoder-decoders
    """
    given, where = str(name), device_of(device)
    source = Checkpoint(given, revision=revision, trust_remote_code=trust_remote_code)
    with quietly():
        kind = _kind(given, source.config)
        auto: Any = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
        network, missing = source.network(auto, dtype)
    refuse_incomplete(given, missing)
    network.to(where).eval()
    digest = weights_sha256(source.place, network)
    model = Model(network, source.tokenizer, given, source.commit, digest)
    return LanguageModel(checked(model), kind)


def _kind(name: str, config: Any) -> str:
    """By the class that the weights were saved from."""
    classes = " ".join(config.architectures or [])
    if config.is_encoder_decoder:
        raise ModelError(
            f"{name!r} is an encoder-decoder ({config.model_type}); wanted an encoder or a decoder"
        )
    for kind, endings in (("masked", MASKED), ("causal", CAUSAL)):
        if any(ending in classes for ending in endings):
            return kind
    raise ModelError(
        f"{name!r} has no language-model head (it is a {classes or 'model of no known class'}), so "
        "it has no loss on plain text\nwanted a masked or a causal language model, such as "
        "bert-base-uncased; or a task that the checkpoint was fine-tuned for: --task NAME --data "
        "FOLDER"
    )


# --- the tokens asked for ---------------------------------------------------------------------


@dataclass(frozen=True)
class AskedTokens:
    """Examples as the model reads them, and the tokens that it must predict.

    left_out  examples in which nothing can be asked
    """

    examples: list[Example]
    objective: TokenLoss
    left_out: int


def masked(model: Model, examples: Sequence[Example], *, seed: int) -> AskedTokens:
    """Masks tokens for a masked language model, drawn by the seed and the example's id alone.

    raises  ModelError for a tokenizer without a mask token; CorpusError where nothing can be asked
    """
    mask = model.tokenizer.mask_token_id
    if mask is None:
        raise ModelError(
            f"the tokenizer of {model.name!r} has no mask token, and the model is a masked "
            "language model; wanted the tokenizer that it was trained with"
        )
    words = np.setdiff1d(np.arange(len(model.tokenizer)), model.tokenizer.all_special_ids)
    shown, asked, right = [], [], []
    for example in examples:
        own = np.flatnonzero(~example.special)
        if not len(own):
            continue
        rng = generator(seed, "masked tokens", example.document, example.id)
        places = np.sort(rng.choice(own, max(1, round(ASKED * len(own))), replace=False))
        how, other = rng.random(len(places)), rng.choice(words, len(places))
        ids = example.input_ids.copy()
        ids[places] = np.where(
            how < HIDDEN, mask, np.where(how < HIDDEN + CHANGED, other, ids[places])
        )
        shown.append(replace(example, input_ids=ids))
        asked.append(places)
        right.append(example.input_ids[places])
    return _told("masked-language-model loss", examples, shown, asked, right)


def causal(examples: Sequence[Example]) -> AskedTokens:
    """For a causal language model: each token is predicted from those before it."""
    shown = [example for example in examples if len(example) > 1]
    asked = [np.arange(len(example) - 1) for example in shown]
    right = [example.input_ids[1:] for example in shown]
    return _told("causal language-model loss", examples, shown, asked, right)


def _told(
    name: str, given: Sequence[Example], shown: list[Example], asked: list[Ids], right: list[Ids]
) -> AskedTokens:
    if not shown:
        raise CorpusError(
            f"found {len(given)} inputs, in none of which a token can be asked; wanted text"
        )
    return AskedTokens(shown, TokenLoss(name, asked, right), len(given) - len(shown))
