"""Use texts in memory as a corpus, and several corpora as one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from headscope.corpus.document import Corpus, Document, Passage
from headscope.errors import CorpusError, InputError


@dataclass(frozen=True, init=False)
class MemoryCorpus:
    """Documents, texts or pairs of texts held in memory; each text or pair is one document.

    documents  any mix of Document, str and (str, str); texts are named `text 0`, `text 1`, … by
               their place in the list
    """

    documents: tuple[Document, ...]

    def __init__(self, documents: Iterable[Document | str | tuple[str, str]]) -> None:
        if isinstance(documents, str):
            raise InputError("found one text; wanted a list of texts: put it in [ ]")
        read = tuple(_document(item, count) for count, item in enumerate(documents))
        if not read:
            raise CorpusError("found an empty list; wanted at least one text or document")
        object.__setattr__(self, "documents", read)

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` (none), and the `sha256` of the documents' content."""
        digest = hashlib.sha256()
        for document in self.documents:
            digest.update(repr(document).encode("utf-8", "backslashreplace") + b"\n")
        return {"kind": "memory", "files": [], "sha256": digest.hexdigest()}


@dataclass(frozen=True, init=False)
class Concatenation:
    """Several corpora read one after the other, as if they were one.

    Each document's id gets the place of its corpus in front: two corpora may use the same ids, and
    documents of one id would be resampled together.
    """

    corpora: tuple[Corpus, ...]

    def __init__(self, corpora: Iterable[Corpus]) -> None:
        object.__setattr__(self, "corpora", tuple(corpora))
        if not self.corpora:
            raise CorpusError("found no corpus to read; wanted at least one")

    def __iter__(self) -> Iterator[Document]:
        for place, corpus in enumerate(self.corpora):
            for document in corpus:
                yield replace(document, id=f"{place}/{document.id}")

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` of all, and the description of each of the `parts`."""
        parts = [corpus.describe() for corpus in self.corpora]
        files = [file for part in parts for file in part["files"]]
        return {"kind": "several", "files": files, "parts": parts}


def _document(item: object, count: int) -> Document:
    name = f"text {count}"
    match item:
        case Document():
            return item
        case str():
            return Document(name, (Passage(name, text=item),))
        case (str() as first, str() as second):
            return Document(name, (Passage(name, text=first, text_pair=second),))
    raise InputError(
        f"item {count} of the corpus is a {type(item).__name__}; wanted a text, a pair of texts "
        "or a Document"
    )
