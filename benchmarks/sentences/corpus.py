"""Read a treebank into the inputs of a model, with nothing of headscope."""

from __future__ import annotations

import bz2
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ENTITY = re.compile(r"\(?[^()]+\)?")


@dataclass(frozen=True)
class Word:
    """A row of a treebank; head counts from 0 within the sentence, -1 is the root."""

    form: str
    upos: str
    xpos: str
    head: int
    relation: str
    glued: bool
    entities: str = ""


@dataclass(frozen=True)
class Sentence:
    document: str
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Mention:
    """Of an entity, from word to word of the document, by its head word."""

    entity: str
    first: int
    last: int
    head: int
    kind: str


@dataclass(frozen=True)
class Input:
    """What the model reads at once.

    word      [token] the word that it is of, -1 for a token that the tokenizer added
    words     of the sentence or document
    mentions  of a document
    """

    document: str
    ids: list[int]
    segments: list[int]
    word: NDArray[np.int64]
    tokens: list[str]
    words: tuple[Word, ...]
    mentions: tuple[Mention, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def special(self) -> NDArray[np.bool_]:
        return self.word < 0

    def tokens_of(self, word: int) -> list[int]:
        return np.flatnonzero(self.word == word).tolist()


def read_treebank(path: Path) -> list[Sentence]:
    """The sentences of a CoNLL-U file, with the document that each is of."""
    text = bz2.decompress(path.read_bytes()) if path.suffix == ".bz2" else path.read_bytes()
    sentences, document, words = list[Sentence](), "", list[Word]()
    for line in [*text.decode("utf-8").splitlines(), ""]:
        if line.startswith("# newdoc"):
            document = line.partition("=")[2].strip()
        elif not line.strip():
            if words:
                sentences.append(Sentence(document, tuple(words)))
            words = []
        elif not line.startswith("#"):
            _, form, _, upos, xpos, _, head, relation, _, misc = line.split("\t")
            number = line.split("\t")[0]
            if "-" in number or "." in number:  # a multiword range, an empty node
                continue
            marks = dict(one.split("=", 1) for one in misc.split("|") if "=" in one)
            words.append(
                Word(
                    form,
                    upos,
                    xpos,
                    int(head) - 1,
                    relation,
                    marks.get("SpaceAfter") == "No",
                    marks.get("Entity", ""),
                )
            )
    return sentences


def mentions_of(sentences: Sequence[Sentence]) -> tuple[Mention, ...]:
    """The mentions of a document, as CorefUD writes them: `(e1-person-1-` … `e1)`."""
    found, start = list[Mention](), 0
    for sentence in sentences:
        open_ones = list[tuple[str, str, int]]()
        local = list[Mention]()
        for at, word in enumerate(sentence.words):
            for piece in ENTITY.findall(word.entities):
                name, *parts = piece.strip("()").split("-")
                if piece.startswith("("):
                    open_ones.append((name, parts[1] if len(parts) > 1 else "1", at))
                if piece.endswith(")"):
                    place = max(i for i, one in enumerate(open_ones) if one[0] == name)
                    entity, head, first = open_ones.pop(place)
                    head_at = first + int(head) - 1
                    kind = _kind(sentence.words[head_at])
                    local.append(Mention(entity, start + first, start + at, start + head_at, kind))
        found += sorted(local, key=lambda m: (m.first, -m.last))
        start += len(sentence.words)
    return tuple(found)


def _kind(word: Word) -> str:
    return {"PRON": "pronoun", "PROPN": "proper"}.get(word.upos, "nominal")


def inputs_of_sentences(sentences: Sequence[Sentence], tokenizer: Any) -> list[Input]:
    """Each sentence by itself."""
    return [_input(one.document, one.words, tokenizer) for one in sentences]


def inputs_of_documents(sentences: Sequence[Sentence], tokenizer: Any) -> list[Input]:
    """Each document as one input, with its mentions."""
    return [
        _input(name, tuple(w for s in own for w in s.words), tokenizer, mentions_of(own))
        for name, own in _documents(sentences)
    ]


def _documents(sentences: Sequence[Sentence]) -> Iterator[tuple[str, list[Sentence]]]:
    for name in dict.fromkeys(one.document for one in sentences):
        yield name, [one for one in sentences if one.document == name]


def _input(
    document: str, words: tuple[Word, ...], tokenizer: Any, mentions: tuple[Mention, ...] = ()
) -> Input:
    if tokenizer.cls_token is not None:  # a vocabulary of word pieces: words one by one
        read = tokenizer([word.form for word in words], is_split_into_words=True)
        of_word = [-1 if one is None else one for one in read.word_ids()]
    else:  # running text
        pieces = [
            word.form if not at or words[at - 1].glued else f" {word.form}"
            for at, word in enumerate(words)
        ]
        starts = np.cumsum([0, *map(len, pieces)])
        read = tokenizer("".join(pieces), return_offsets_mapping=True)
        of_word = [
            int(np.searchsorted(starts, first, side="right")) - 1
            for first, _ in read["offset_mapping"]
        ]
    ids = list(read["input_ids"])
    tokens = tokenizer.convert_ids_to_tokens(ids)
    segments = list(read.get("token_type_ids", [0] * len(ids)))
    return Input(document, ids, segments, np.array(of_word), tokens, words, mentions)
