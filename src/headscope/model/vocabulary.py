"""Which tokens of a vocabulary are special, punctuation or marks."""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Any

PUNCTUATION = (".", ",")  # Clark et al. (2019) and Kobayashi et al. (2020) count exactly these
MARKERS = "Ġ▁"  # of a word that follows a space, in byte-level and SentencePiece vocabularies
WORD_END = "</w>"  # of a word's last token, in the vocabularies of XLM, FlauBERT and the first GPT
_LETTERS = re.compile("[A-Za-z0-9]")
MOST_BYTES = 4  # of a character in UTF-8


@dataclass(frozen=True)
class Vocabulary:
    """Which token ids count as what.

    cls, sep      id of the opening and of the separating special token; None where there is none
    punctuation   ids of the tokens that are exactly "." or ","
    marks         ids of all tokens of punctuation and symbols alone (Unicode's P and S)
    pad           id to fill with (any: it is masked)
    """

    cls: int | None
    sep: int | None
    punctuation: tuple[int, ...]
    pad: int = 0
    marks: frozenset[int] = frozenset()


def vocabulary_of(tokenizer: Any) -> Vocabulary:
    """The vocabulary of a tokenizer, with the special tokens that it adds by itself."""
    t = tokenizer
    closing = t.sep_token_id if t.sep_token_id is not None else t.eos_token_id
    added = set(t("a b")["input_ids"]) | set(t("a", "b")["input_ids"])
    opening = t.cls_token_id
    xlm = opening == closing and t.bos_token_id in added  # its cls_token closes, <s> opens
    opening = t.bos_token_id if opening is None or xlm else opening
    marks = [
        ids[0]
        for mark in PUNCTUATION
        for text in (mark, f"a{mark}", f"a {mark}")  # with and without a word-start marker
        if (ids := t(text, add_special_tokens=False)["input_ids"][-1:])
        and bare(t.convert_ids_to_tokens(ids)[0]) == mark
    ]
    return Vocabulary(
        cls=opening if opening in added else None,
        sep=closing if closing in added else None,
        punctuation=tuple(sorted(set(marks))),
        pad=t.pad_token_id if t.pad_token_id is not None else 0,
        marks=_marks(t),
    )


def bare(token: str) -> str:
    """A token without the markers of a leading space and of a word's end."""
    return token.lstrip(MARKERS).removesuffix(WORD_END)


def _marks(tokenizer: Any) -> frozenset[int]:
    """Ids of the tokens that are punctuation or symbols and nothing else, whatever their script."""
    marks, vocabulary = [], tokenizer.get_vocab()
    for name in vocabulary:
        if _LETTERS.search(word := name.removesuffix(WORD_END)):
            continue  # most of a vocabulary
        text = word.lstrip(MARKERS)
        text = text[2:] if text[:2] == "##" and len(text) > 2 else text
        if not text.isascii() and len(text) <= MOST_BYTES:  # byte-level names are no text
            text = tokenizer.convert_tokens_to_string([name]).strip()
        if text and all(unicodedata.category(letter)[0] in "PS" for letter in text):
            marks.append(vocabulary[name])
    return frozenset(marks)


def bytes_as_text(name: str) -> str:
    """A token of a byte-level vocabulary as text: whole characters, and `\\xd7` for a byte that is
    a part of one; any other name as it is.

    The vocabulary writes unseen bytes as characters from U+0100 on (GPT-2's `encoder.py`).
    """
    table = _byte_of_character()
    if name.isascii() or not set(name) <= table.keys():
        return name
    return bytes(table[one] for one in name).decode("utf-8", errors="backslashreplace")


@cache
def _byte_of_character() -> dict[str, int]:
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(0x100) if byte not in seen]
    written = {chr(byte): byte for byte in seen}
    return written | {chr(0x100 + at): byte for at, byte in enumerate(hidden)}
