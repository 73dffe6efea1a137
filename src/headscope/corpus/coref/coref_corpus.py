"""Read files with coreference in any of three formats, recognised by their content."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from headscope.corpus import conllu
from headscope.corpus.coref import conll2012, gap
from headscope.corpus.coref.corefud import document_passage
from headscope.corpus.document import Document, Passage
from headscope.corpus.files import FileCorpus, UniqueNames, read_lines

CONLLU_ROW = re.compile(r"\d+(?:[-.]\d+)?\s")
LOOKED_FOR = (
    "'#begin document' before the first row (CoNLL-2012, LitBank), numbered rows with Entity= "
    "marks (CorefUD), a header line ID, Text, Pronoun, … (GAP)"
)


@dataclass(frozen=True, init=False)
class CorefCorpus(FileCorpus):
    """Files with coreference; every document is one passage of bare words, with mentions.

    on_error  what to do with a malformed document, see `FileCorpus`

    The format of each file is recognised by its content: CoNLL-2012 columns and LitBank's variant
    (module `conll2012`), CoNLL-U with CorefUD's `Entity=` marks (`corefud`), GAP's table (`gap`). A
    document is a part in CoNLL-2012, a row in GAP, and what a `# newdoc` starts in CoNLL-U (the
    whole file, where there is none).

    Every mention has the index of its head word and a kind (`mentions`). Nested mentions are
    each a mention; of a discontinuous one the first part is kept; zero mentions are left out;
    entities of a single mention are kept. Words have no tags, heads and relations, so that
    analyses of trees and tags pass over them.
    """

    kind: ClassVar[str] = "coreference"

    def _documents(self, path: Path, label: str, names: UniqueNames) -> Iterator[Document]:
        for place, passage in _format(path)(path, label):
            name = names.of(passage.id, place=place)
            yield Document(name, (replace(passage, id=name),))


FormatReader = Callable[[Path, str], Iterator[tuple[str, Passage]]]


def _format(path: Path) -> FormatReader:
    """How to read a file, by its first line that is neither blank nor a comment."""
    for line in read_lines(path):
        if line.text.startswith(conll2012.BEGIN):
            return conll2012.documents
        if line.text.startswith("#") or not line.text.strip():
            continue
        if line.text.split()[0] == gap.COLUMNS[0] and gap.COLUMNS[3] in line.text:
            return gap.documents
        if CONLLU_ROW.match(line.text):
            return _corefud
        break
    return _neither


def _corefud(path: Path, label: str) -> Iterator[tuple[str, Passage]]:
    if not any("Entity=" in line.text for line in read_lines(path)):
        fault = f"{path} has rows like CoNLL-U and no Entity= mark; looked for {LOOKED_FOR}"
        yield label, Passage(label, fault=fault)
        return
    for name, found in conllu.documents(path, label, undivided=True):
        yield found[0].name, document_passage(name, found)


def _neither(path: Path, label: str) -> Iterator[tuple[str, Passage]]:
    first = next((line for line in read_lines(path) if line.text.strip()), None)
    found = f"{path}:{first.number}: found {first.text[:60]!r}" if first else f"{path} is blank"
    yield label, Passage(label, fault=f"{found}; looked for {LOOKED_FOR}")
