"""What do tiny decoders with a language-model head look like, and what are they asked?"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as T
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn

from headscope.experiments.circuits import made_prompts as M
from headscope.experiments.circuits.prompts import Prompt
from headscope.model.checkpoint import quietly
from headscope.model.language_model import LanguageModel
from headscope.model.model import Model
from model.families.tiny import FAMILIES, UNLISTED, VOCABULARY, sharpened

# Layers that add attention and an MLP to the residual stream, before it or after, side by side too.
ADDING = [
    "GPT-2",
    "GPT-NeoX",
    "OPT",
    "Llama",
    "Mistral",
    "Qwen2",
    "Qwen3",
    "Gemma",
    "Gemma2",
    "Gemma3",
    "Phi3",
    "SmolLM3",
    "OLMo 2",
    "Cohere",
    "Starcoder 2",
]


def words() -> T.PreTrainedTokenizerFast:
    """A tokenizer that knows the words w2 to w89, each one token."""
    known = {"[PAD]": 0, "[UNK]": 1} | {f"w{at}": at for at in range(2, VOCABULARY)}
    core = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return T.PreTrainedTokenizerFast(tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]")


def network(name: str, *, exact: bool = False, seed: int = 0, **changes: Any) -> Any:
    """A tiny random decoder; exact: float64 throughout, where families compute norms in float32."""
    family = {**FAMILIES, **UNLISTED}[name]
    options = {"attn_implementation": "eager", "pad_token_id": 0, **family.options, **changes}
    special = dict.fromkeys(("bos_token_id", "eos_token_id"), 1)
    kind = getattr(T, {"GPT-2": "GPT2LMHeadModel"}.get(name, f"{family.name}ForCausalLM"), None)
    kind = kind or T.Gemma3ForCausalLM
    made = sharpened(kind(getattr(T, f"{family.name}Config")(**options, **special)), seed=seed)
    if exact:
        made.double()
        for module in made.modules():
            if "Norm" in type(module).__name__ and not isinstance(module, nn.LayerNorm):
                module.forward = _in_float64(module)
    return made.eval()


def _in_float64(norm: Any) -> Any:
    """The norm's own formula, without its detour through float32."""
    own, name = norm.weight, type(norm).__name__
    scale = 1 + own if name.startswith("Gemma") else own
    epsilon = getattr(norm, "variance_epsilon", getattr(norm, "eps", None))

    def forward(x: torch.Tensor) -> torch.Tensor:
        if name == "CohereLayerNorm":
            x = x - x.mean(-1, keepdim=True)
        return scale * x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt()

    return forward


def decoder(name: str, **changes: Any) -> LanguageModel:
    """That network as a language model, with the tokenizer of its words."""
    return LanguageModel(Model(network(name, **changes), words(), name, "", name), "causal")


def pairs(*lengths: int, seed: int = 0, item: int = 1, common: int = 0) -> list[Prompt]:
    """Random prompts of these lengths beside others, answers drawn; so many make one item.

    common  first tokens that both have
    """
    rng = np.random.default_rng(seed)

    def text(ids: Any) -> str:
        return " ".join(f"w{at}" for at in ids)

    told = []
    for at, length in enumerate(lengths):
        clean, corrupted = rng.integers(5, VOCABULARY, (2, length))
        corrupted[:common] = clean[:common]
        right, wrong = rng.choice(np.arange(5, VOCABULARY), 2, replace=False)
        told.append(
            Prompt(text(clean), f" w{right}", f" w{wrong}", text(corrupted), f"item {at // item}")
        )
    return told


@cache
def english() -> T.PreTrainedTokenizerFast:
    """A tokenizer that knows the words of the made prompts; digits, and no other word, are cut."""
    forms = [*M.IOI, *M.ANTONYM_FORMS, *M.CAPITAL_FORMS, M.NAMES, M.PLACES, M.OBJECTS, M.EVENTS]
    forms += [*M.PRONOUN_FORMS, *M.AGREEMENT_FORMS, *M.SUM_FORMS, *M.VERBS, M.DOCSTRING, M.COLOURS]
    forms += [M.MEN, M.WOMEN, M.THINGS, *(f"{thing}s" for thing in M.THINGS.split()), "he she"]
    forms += ["On the table, I see a red cup and. What colour is the? Answer: ' \" ( ) + ="]
    forms += [M.ANTONYMS, M.CAPITALS, "The war lasted from the year to Q A gave it Then she : . ,"]
    text = re.sub(r"\{\w*\}|[,.]", " ", " ".join(forms)) + " , . 0 1 2 3 4 5 6 7 8 9"
    known = {word: at for at, word in enumerate(dict.fromkeys(["[PAD]", "[UNK]", *text.split()]))}
    core = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Punctuation(),
            pre_tokenizers.Digits(individual_digits=True),
        ]
    )
    return T.PreTrainedTokenizerFast(tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]")


def english_decoder(name: str, **changes: Any) -> LanguageModel:
    """A random decoder that reads the made prompts."""
    size = {"vocab_size": len(english())}
    made = network(name, **size, **changes)
    return LanguageModel(Model(made, english(), name, "", name), "causal")


def saved_english(folder: Path) -> Path:
    """One in a folder."""
    with quietly():
        network("GPT-2", vocab_size=len(english())).save_pretrained(folder)
        english().save_pretrained(folder)
    return folder
