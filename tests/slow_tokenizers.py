"""What do models look like whose tokenizer transformers runs in Python, and knows no words?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as T

from headscope.model.checkpoint import quietly

TEXT = "the cat sat on the mat, because it wasn't tired."
SENTENCES = (TEXT, "a dog ate the cakes, didn't it?", "no, the cats ate the warm cakes!")
WIDE: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 130,
}
BOTH: dict[str, Any] = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "decoder_start_token_id": 2,
    "max_position_embeddings": 128,
}
XLM: dict[str, Any] = {"emb_dim": 16, "n_layers": 2, "n_heads": 2, "max_position_embeddings": 128}


def _esm(folder: Path) -> Any:
    letters = "<cls> <pad> <eos> <unk> L A G V S E R T I D P K Q N F Y M H W C X B U Z O . - <mask>"
    (folder / "vocab.txt").write_text("\n".join(letters.split()))
    return T.EsmTokenizer(str(folder / "vocab.txt"))


def _byt5(_folder: Path) -> Any:
    return T.ByT5Tokenizer()


def _pieces() -> list[str]:
    """Each word, and its letters, those inside a word with the sign that it goes on."""
    words = {word for text in SENTENCES for word in text.replace(",", " ,").split()}
    letters = sorted({letter for word in words for letter in word})
    return [*letters, *(f"{letter}@@" for letter in letters), "the", "ca@@"]


def _bpe(kind: str) -> Callable[[Path], Any]:
    def made(folder: Path) -> Any:
        (folder / "vocab.txt").write_text("".join(f"{piece} 1\n" for piece in _pieces()))
        (folder / "bpe.codes").write_text("t h 9\nth e</w> 8\nc a 7\n")
        return getattr(T, f"{kind}Tokenizer")(str(folder / "vocab.txt"), str(folder / "bpe.codes"))

    return made


def _moses(kind: str) -> Callable[[Path], Any]:
    def made(folder: Path) -> Any:
        pytest.importorskip("sacremoses", reason=f"{kind}'s tokenizer needs sacremoses")
        special = ["<s>", "</s>", "<pad>", "<unk>", *(f"<special{i}>" for i in range(10))]
        ends = [f"{piece}</w>" for piece in _pieces() if "@@" not in piece]
        plain = [piece.replace("@@", "") for piece in _pieces() if "@@" in piece]
        vocabulary = dict.fromkeys([*special, *plain, *ends])
        (folder / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(vocabulary)}))
        (folder / "merges.txt").write_text("t h\nth e</w>\nc a\n")
        tokenizer = getattr(T, f"{kind}Tokenizer")
        return tokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))

    return made


def _sentencepiece(folder: Path) -> tuple[Path, list[str]]:
    """A tiny model, and its pieces; whoever asks is skipped without the package."""
    package = pytest.importorskip("sentencepiece", reason="needs sentencepiece (extra translate)")
    package.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20),
        model_prefix=str(folder / "sp"),
        vocab_size=60,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    model = package.SentencePieceProcessor(model_file=str(folder / "sp.model"))
    return folder / "sp.model", [model.id_to_piece(i) for i in range(model.get_piece_size())]


def _marian(folder: Path) -> Any:
    path, pieces = _sentencepiece(folder)
    vocabulary = dict.fromkeys(["</s>", "<unk>", *pieces, "<pad>"])
    (folder / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(vocabulary)}))
    return T.MarianTokenizer(str(path), str(path), str(folder / "vocab.json"))


def _m2m100(folder: Path) -> Any:
    path, pieces = _sentencepiece(folder)
    vocabulary = dict.fromkeys(["<s>", "<pad>", "</s>", "<unk>", *pieces])
    (folder / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(vocabulary)}))
    kind = T.M2M100Tokenizer
    return kind(str(folder / "vocab.json"), str(path), src_lang="en", tgt_lang="de")


def _plbart(folder: Path) -> Any:
    return T.PLBartTokenizer(str(_sentencepiece(folder)[0]), src_lang="en_XX", tgt_lang="python")


# The tokenizer, the class of its network, and the options of a tiny one.
KINDS: dict[str, tuple[Callable[[Path], Any], str, dict[str, Any]]] = {
    "ESM": (_esm, "Esm", {**WIDE, "mask_token_id": 31}),
    "ByT5": (
        _byt5,
        "T5",
        {
            "d_model": 16,
            "d_kv": 8,
            "d_ff": 24,
            "num_layers": 2,
            "num_heads": 2,
            "decoder_start_token_id": 0,
        },
    ),
    "PhoBERT": (_bpe("Phobert"), "Roberta", {**WIDE}),
    "BERTweet": (_bpe("Bertweet"), "Roberta", {**WIDE}),
    "XLM": (_moses("XLM"), "XLM", XLM),
    "FlauBERT": (_moses("Flaubert"), "Flaubert", XLM),
    "Marian": (_marian, "Marian", BOTH),
    "M2M100": (_m2m100, "M2M100", BOTH),
    "PLBart": (_plbart, "PLBart", BOTH),
}


def saved(folder: Path, kind: str) -> Path:
    """A checkpoint with random weights and the tokenizer of that kind; skips what is missing."""
    (folder / "made").mkdir()
    tokenizer_of, network, options = KINDS[kind]
    with quietly():
        tokenizer = tokenizer_of(folder / "made")
        languages = getattr(tokenizer, "lang_code_to_id", {})  # M2M100's are not in its vocabulary
        rows = max([*tokenizer.get_vocab().values(), *languages.values()]) + 1
        ids = {"pad_token_id": tokenizer.pad_token_id, "vocab_size": rows, "n_words": rows}
        config = getattr(T, f"{network}Config")(**options, **ids)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            made = getattr(T, f"{network}Model")(config)
        made.save_pretrained(folder / kind)
        tokenizer.model_max_length = 100
        tokenizer.save_pretrained(folder / kind)
    return folder / kind
