"""Dependency treebanks as corpora: CoNLL-U, CoNLL-X, `head-label` lines, and the bundled texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from headscope.corpus.conllu import ConlluSentence, documents
from headscope.corpus.coref.corefud import document_passage
from headscope.corpus.document import Document, Passage, Word
from headscope.corpus.files import (
    FileLine,
    Files,
    OnError,
    UniqueNames,
    checked_files,
    checked_policy,
    described,
    described_policy,
    labels,
    left_out,
    obeyed,
    read_lines,
)
from headscope.errors import CorpusError


@dataclass(frozen=True, init=False)
class TreebankCorpus:
    """CoNLL-U or CoNLL-X files; every sentence is a passage of syntactic words.

    on_error     what to do with a malformed sentence: `stop`, or `skip` it and go on (the encoder
                 counts it as malformed, with its place)
    coreference  whether each document is read once more, behind its sentences, as one passage
                 `…/document` of bare words with the mentions that CorefUD `Entity=` marks give

    A document starts at each `# newdoc`. In a file without any, each sentence is a document of
    its own. Words are the numbered rows: multiword ranges and empty nodes are left out. Labels may
    be anything; a sentence may have several roots. The sentences carry no mentions: coreference is
    asked of whole documents.
    """

    files: tuple[Path, ...]
    on_error: OnError
    coreference: bool

    def __init__(
        self, files: Files, *, on_error: OnError = "stop", coreference: bool = False
    ) -> None:
        object.__setattr__(self, "files", checked_files(files))
        object.__setattr__(self, "on_error", checked_policy(on_error))
        object.__setattr__(self, "coreference", coreference)

    def __iter__(self) -> Iterator[Document]:
        """Yields the documents of all files, in order.

        raises  CorpusError with file, line and sentence for a row, head or tree that is malformed,
                unless on_error is `skip`
        """
        return obeyed(self._documents(), self.on_error)

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` (name and sha256 of each), options beside the default."""
        extra = {"coreference": True} if self.coreference else {}
        policy = described_policy(self.on_error)
        return {"kind": "treebank", "files": described(self.files), **extra, **policy}

    def _documents(self) -> Iterator[Document]:
        names = UniqueNames()
        for path, label in zip(self.files, labels(self.files), strict=True):
            found = False
            for name, sentences in documents(path, label):
                found = True
                unique = names.of(name, place=sentences[0].name)
                passages = [_passage(sentence) for sentence in sentences]
                if self.coreference:
                    whole = document_passage(name, sentences)
                    passages.append(replace(whole, id=f"{unique}/document"))
                yield Document(unique, tuple(passages))
            if not found:
                yield left_out(label, f"{path} holds no sentence; wanted CoNLL-U rows")


def _passage(sentence: ConlluSentence) -> Passage:
    if sentence.fault is not None:
        return Passage(sentence.name, fault=sentence.fault)
    return Passage(sentence.name, words=sentence.words)


_ROW = re.compile(r"(\S+)\s+(\d+)-(\S+)")


@dataclass(frozen=True, init=False)
class HeadLabelCorpus:
    """Files of such trees; every sentence is a document of its own."""

    files: tuple[Path, ...]

    def __init__(self, files: Files) -> None:
        object.__setattr__(self, "files", checked_files(files))

    def __iter__(self) -> Iterator[Document]:
        """Yields the sentences in order; raises CorpusError with file and line."""
        for path, label in zip(self.files, labels(self.files), strict=True):
            for filled, lines in groupby(
                read_lines(path), key=lambda line: bool(line.text.strip())
            ):
                if filled:
                    rows = list(lines)
                    name = f"{label}:{rows[0].number}"
                    words = tuple(_word(row, len(rows), label) for row in rows)
                    yield Document(name, (Passage(name, words=words),))

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` (name and sha256 of each)."""
        return {"kind": "treebank", "files": described(self.files)}


def is_head_label(path: Path) -> bool:
    """Whether the first line with anything on it is a word and `head-label`."""
    first = next((line.text for line in read_lines(path) if line.text.strip()), "")
    return _ROW.fullmatch(first.strip()) is not None


def _word(line: FileLine, words: int, label: str) -> Word:
    found = _ROW.fullmatch(line.text.strip())
    if line.fault or found is None or int(found[2]) > words:
        told = line.fault or f"found {line.text.strip()[:60]!r}"
        raise CorpusError(
            f"{label}:{line.number}: {told}; wanted a word and head-label, say 'cat 3-nsubj', "
            f"with a head from 0 (the root) to {words}"
        )
    return Word(found[1], head=int(found[2]) - 1, relation=found[3])


DEMO_FOLDER = "demo"


def demo_corpus() -> TreebankCorpus:
    """The bundled English documents, in the order of their names.

    Each gives its sentences, with UD trees, and then the whole document once more, with mentions.
    They were written for headscope and stand under its licence.
    """
    folder = Path(str(files("headscope.corpus"))) / DEMO_FOLDER
    return TreebankCorpus(sorted(folder.glob("*.conllu")), coreference=True)
