"""Read dependency treebanks: CoNLL-U, CoNLL-X, `head-label` lines, and the bundled texts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from headscope.corpus.conllu import blocks, documents, has_newdoc, is_newdoc
from headscope.corpus.coref.corefud import document_passage
from headscope.corpus.document import Document, Passage, Word
from headscope.corpus.files import FileCorpus, FileLine, OnError, UniqueNames, read_lines
from headscope.corpus.partitions import Begins, FilePart
from headscope.corpus.places import File, Files
from headscope.corpus.plain_text import is_blank


@dataclass(frozen=True, init=False, repr=False)
class TreebankCorpus(FileCorpus):
    """CoNLL-U or CoNLL-X files; every sentence is a passage of syntactic words.

    on_error     what to do with a malformed sentence, see `FileCorpus`
    coreference  whether each document is read once more, behind its sentences, as one passage
                 `…/document` of bare words with the mentions that CorefUD `Entity=` marks give

    A document starts at each `# newdoc`. In a file without any, each sentence is a document of
    its own. Words are the numbered rows: multiword ranges and empty nodes are left out. Labels may
    be anything; a sentence may have several roots. The sentences have no mentions: coreference
    needs whole documents.
    """

    kind: ClassVar[str] = "treebank"
    empty: ClassVar[str] = "holds no sentence; wanted CoNLL-U rows"
    coreference: bool

    def __init__(
        self, files: Files, *, on_error: OnError = "stop", coreference: bool = False
    ) -> None:
        super().__init__(files, on_error=on_error)
        object.__setattr__(self, "coreference", coreference)

    def _options(self) -> dict[str, Any]:
        return {"coreference": True} if self.coreference else {}

    @property
    def _divisible(self) -> bool:
        return not self.coreference

    def _begins(self, file: File) -> Begins:
        return is_newdoc if has_newdoc(file) else is_blank

    def _documents(self, part: FilePart, label: str, names: UniqueNames) -> Iterator[Document]:
        for name, sentences in documents(part, label):
            unique = names.of(name, place=sentences[0].name)
            passages = [
                Passage(s.name, words=None if s.fault else s.words, fault=s.fault)
                for s in sentences
            ]
            if self.coreference:
                whole = document_passage(name, sentences)
                passages.append(replace(whole, id=f"{unique}/document"))
            yield Document(unique, tuple(passages))


_ROW = re.compile(r"(\S+)\s+(\d{1,9})-(\S+)")


@dataclass(frozen=True, init=False, repr=False)
class HeadLabelCorpus(FileCorpus):
    """Trees written as a word and `head-label` per line; every sentence is a document.

    The layout of the released code of Clark et al. (2019): a blank line between sentences, heads
    count from 1, head 0 is the root. Labels may hold "-" here, and the last sentence needs no
    blank line.
    """

    kind: ClassVar[str] = "treebank"

    def _documents(self, part: FilePart, label: str, names: UniqueNames) -> Iterator[Document]:
        for rows in blocks(part):
            name = f"{label}:{rows[0].number}"
            try:
                words = tuple(_word(row, len(rows), label) for row in rows)
                yield Document(name, (Passage(name, words=words),))
            except ValueError as fault:
                yield Document(name, (Passage(name, fault=str(fault)),))


def is_head_label(path: Path) -> bool:
    """Whether the first non-blank line is a word and `head-label`."""
    first = next((line.text for line in read_lines(path) if line.text.strip()), "")
    return _ROW.fullmatch(first.strip()) is not None


def _word(line: FileLine, words: int, label: str) -> Word:
    match = _ROW.fullmatch(line.text.strip())
    if line.fault or match is None or int(match[2]) > words:
        reason = line.fault or f"found {line.text.strip()[:60]!r}"
        raise ValueError(
            f"{label}:{line.number}: {reason}; wanted a word and head-label, say 'cat 3-nsubj', "
            f"with a head from 0 (the root) to {words}"
        )
    return Word(match[1], head=int(match[2]) - 1, relation=match[3])


def demo_corpus() -> TreebankCorpus:
    """The bundled English documents.

    Each gives its sentences, with UD trees, and then the whole document once more, with mentions.
    They were written for headscope and stand under its licence.
    """
    folder = Path(str(files("headscope.corpus")))
    return TreebankCorpus(folder / "demo.conllu.bz2", coreference=True)
