"""Which loss does this checkpoint know of plain text: that of masked tokens, or of the next one?

As `headscope.load`, with the network's language-model head: safetensors only, remote code off
unless asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from headscope.errors import ModelError
from headscope.model.checkpoint import (
    Checkpoint,
    device_of,
    quietly,
    refuse_incomplete,
    weights_sha256,
)
from headscope.model.model import Model, checked

MASKED, CAUSAL = ("MaskedLM", "PreTraining"), ("CausalLM", "LMHead")


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
