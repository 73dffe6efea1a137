"""What do tiny decoders with a language-model head look like, and what are they asked?"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as T
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
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
def vocabulary() -> list[str]:
    """Every word and sign of the made prompts."""
    own = [value for name, value in vars(M).items() if name.isupper()]
    texts = [one for one in own if isinstance(one, str)]
    texts += [form for one in own if isinstance(one, tuple) for form in one]
    texts += [f"{thing}s" for thing in M.THINGS.split()]
    texts += ["The war lasted from the year to Q: A: Then she gave it to I met I see a The he she"]
    texts += ["On the table, I see a red cup and. What colour is the cup? Answer: 0123456789"]
    return list(dict.fromkeys(re.findall(r"[^\W\d]+|\d|[^\w\s]", " ".join(texts))))


def english() -> T.PreTrainedTokenizerFast:
    """A tokenizer that knows the words of the made prompts; digits, and no other word, are cut."""
    return made_tokenizer("words")


@cache
def made_tokenizer(kind: str) -> T.PreTrainedTokenizerFast:
    """A tokenizer of one of TOKENIZERS that keeps the words of the made prompts whole."""
    core, special = TOKENIZERS[kind]()
    return T.PreTrainedTokenizerFast(tokenizer_object=core, **special)


def _by_word() -> tuple[Tokenizer, dict[str, str]]:
    known = {word: at for at, word in enumerate(["[PAD]", "[UNK]", *vocabulary()])}
    core = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Punctuation(),
            pre_tokenizers.Digits(individual_digits=True),
        ]
    )
    return core, {"pad_token": "[PAD]", "unk_token": "[UNK]"}


def _by_bytes() -> tuple[Tokenizer, dict[str, str]]:
    """As GPT-2's: a space belongs to the word behind it; numbers of two digits are whole."""
    end, core = "<|endoftext|>", Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=9999, special_tokens=[end], initial_alphabet=letters, show_progress=False
    )
    core.train_from_iterator([f" {one}" for one in [*vocabulary(), *range(10, 100)]], trainer)
    return core, {"bos_token": end, "eos_token": end, "unk_token": end}


def _by_pieces() -> tuple[Tokenizer, dict[str, str]]:
    """As Llama 2's: a word mark, digits by themselves, and a token that opens each text."""
    letters = dict.fromkeys([*"".join(vocabulary()), "▁", "\n"])
    pieces = [("<unk>", 0.0), ("<s>", 0.0), *((f"▁{word}", -2.0) for word in vocabulary())]
    core = Tokenizer(models.Unigram([*pieces, *((one, -9.0) for one in letters)], unk_id=0))
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Digits(individual_digits=True)]
    )
    core.decoder = decoders.Metaspace()
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return core, {"bos_token": "<s>", "unk_token": "<unk>"}


def _by_word_pieces() -> tuple[Tokenizer, dict[str, str]]:
    """As BERT's: lower case, [CLS] text [SEP], and digits that go on a number."""
    words = [*(word.lower() for word in vocabulary()), *(f"##{digit}" for digit in range(10))]
    known = dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])
    core = Tokenizer(models.WordPiece({w: i for i, w in enumerate(known)}, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer()
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    special = ("pad", "[PAD]"), ("unk", "[UNK]"), ("cls", "[CLS]"), ("sep", "[SEP]")
    return core, {f"{name}_token": token for name, token in special}


TOKENIZERS: dict[str, Callable[[], tuple[Tokenizer, dict[str, str]]]] = {
    "words": _by_word,
    "byte-level BPE": _by_bytes,
    "SentencePiece": _by_pieces,
    "WordPiece": _by_word_pieces,
}


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
