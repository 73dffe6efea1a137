"""What do tiny random translators, their tokenizers and a folder of gold links look like?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers as T
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizer, PreTrainedTokenizerFast

from headscope.experiments.alignment.translator import Translator
from model.families.tiny import FAMILIES, sharpened

PIECES = (
    "<pad>", "<unk>", "</s>", "der", "hund", "##e", "##n", "sieht", "katz", "##e", "nicht", ".",
    "the", "dog", "##s", "cat", "see", "does", "not", "translate", "german", "to", "english", ":",
)  # fmt: skip
VOCABULARY = {piece: at for at, piece in enumerate(dict.fromkeys(PIECES))}
SPECIAL = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
SENTENCES = (
    ("der hund sieht katzen .", "the dog sees cats ."),
    ("katze sieht hunde nicht .", "the cat does not see dogs ."),
    ("sieht der hund .", "does the dog see ."),
    ("hunde .", "dogs ."),
    ("der hund sieht der katze nicht .", "the dog does not see the cat ."),
)
LINKS = (
    "1-1 2-2 3p3 4-4 5-5",
    "1-2 1p1 2-5 3-6 4-4 4p3 5-7",
    "1p1 1-4 2-2 3-3 4-5",
    "1-1 2-2",
    "1-1 2-2 3-5 4-6 5-7 6-4 6p3 7-8",
)
NETWORKS = {
    "Marian": "MarianMTModel",
    "BART": "BartForConditionalGeneration",
    "mBART": "MBartForConditionalGeneration",
    "T5": "T5ForConditionalGeneration",
}


def fast() -> PreTrainedTokenizerFast:
    """WordPiece between spaces, and </s> behind."""
    core = Tokenizer(models.WordPiece(VOCABULARY, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", VOCABULARY["</s>"])]
    )
    return PreTrainedTokenizerFast(tokenizer_object=core, model_max_length=48, **SPECIAL)


class Slow(PreTrainedTokenizer):
    """The same in Python, which cannot say which word a token is of."""

    vocab_size = len(VOCABULARY)

    def __init__(self) -> None:
        super().__init__(model_max_length=48, **SPECIAL)

    def get_vocab(self) -> dict[str, int]:
        return dict(VOCABULARY)

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        found = []
        for word in text.split():
            start = 0
            while start < len(word):
                sign = "##" if start else ""
                ends = range(len(word), start, -1)
                end = next((end for end in ends if sign + word[start:end] in VOCABULARY), None)
                found.append(sign + word[start:end] if end else "<unk>")
                start = end or len(word)
        return found

    def _convert_token_to_id(self, token: str) -> int:
        return VOCABULARY[token]

    def _convert_id_to_token(self, index: int) -> str:
        return list(VOCABULARY)[index]

    def build_inputs_with_special_tokens(self, first: list[int], second: Any = None) -> list[int]:
        return [*first, *(second or []), VOCABULARY["</s>"]]


def network_of(name: str) -> T.PreTrainedModel:
    """A tiny random one of NETWORKS, sharp in its attention."""
    options: dict[str, Any] = {
        **FAMILIES[name].options,
        "vocab_size": len(VOCABULARY),
        "pad_token_id": 0,
        "eos_token_id": 2,
        "decoder_start_token_id": 0,
        "attn_implementation": "eager",
    }
    if "decoder_vocab_size" in options:
        options["decoder_vocab_size"] = len(VOCABULARY)
    config = getattr(T, f"{FAMILIES[name].name}Config")(**options)
    return sharpened(getattr(T, NETWORKS[name])(config)).eval()


def translator(name: str, tokenizer: Any = None) -> Translator:
    """One of NETWORKS, not from a file."""
    return Translator(network_of(name), tokenizer or fast(), name, "", name)


def saved(folder: Path, name: str = "T5") -> Path:
    """The same as a checkpoint."""
    network_of(name).save_pretrained(folder)
    fast().save_pretrained(folder)
    return folder


def gold_folder(folder: Path, links: tuple[str, ...] = LINKS) -> Path:
    """As the RWTH gold alignments are unpacked: three files of a name each, an empty last line."""
    folder.mkdir(exist_ok=True)
    texts = zip(*SENTENCES, strict=True)
    for name, lines in zip(("de", "en", "alignmentDeEn.talp"), (*texts, links), strict=True):
        (folder / name).write_text("\n".join(lines) + "\n\n", "latin-1")
    return folder
