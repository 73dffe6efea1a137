"""What do tiny classifiers of many families look like, and what are they shown?"""

from __future__ import annotations

from typing import Any

import numpy as np
import transformers as T
from transformers import PreTrainedModel

from headscope.corpus.document import Example
from headscope.model.batch import Batch
from headscope.model.vocabulary import Vocabulary
from model.families.tiny import FAMILIES, UNLISTED, VOCABULARY, sharpened

# Those of which transformers has a classifier, without the encoder-decoders.
NAMES = [
    "BERT", "RoBERTa", "XLM-R XL", "DistilBERT", "ALBERT", "ALBERT groups", "ELECTRA", "ModernBERT",
    "GPT-2", "GPT-NeoX", "OPT", "OPT post-norm", "Llama", "Mistral", "Qwen3", "Gemma2", "Gemma3",
    "Phi3", "ERNIE", "OLMo 2",
]  # fmt: skip
CAUSAL = ("GPT-2", "Llama")
PAD = 0


def classifier(name: str, *, seed: int = 0) -> PreTrainedModel:
    """A tiny random classifier of three classes whose attention is sharp."""
    family = {**FAMILIES, **UNLISTED}[name]
    options: dict[str, Any] = {"attn_implementation": "eager", **family.options}
    special = dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 1)
    config = getattr(T, f"{family.name}Config")(
        **{**options, **special, "pad_token_id": PAD, "num_labels": 3}
    )
    kind = getattr(T, f"{family.name}ForSequenceClassification")
    return sharpened(kind(config), seed=seed).eval()


def examples(*lengths: int, seed: int = 0) -> list[Example]:
    rng = np.random.default_rng(seed)
    return [
        Example(
            str(at),
            str(at),
            rng.integers(5, VOCABULARY, n),
            np.zeros(n, np.int64),
            np.zeros(n, bool),
        )
        for at, n in enumerate(lengths)
    ]


def batch(*lengths: int, seed: int = 0) -> Batch:
    return Batch.of(examples(*lengths, seed=seed), Vocabulary(None, None, (), PAD), replicates=0)


def sizes(network: PreTrainedModel) -> tuple[int, int]:
    """Layers and heads."""
    return network.config.num_hidden_layers, network.config.num_attention_heads
