"""Read files with coreference in any of three formats, recognised by their content."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from headscope.corpus import conllu
from headscope.corpus.coref import conll2012
from headscope.corpus.coref.corefud import document_passage
from headscope.corpus.coref.mentions import PRONOUN, PROPER, surface_head
from headscope.corpus.document import Document, Mention, Passage, Word
from headscope.corpus.files import Fault, FileCorpus, FileLine, UniqueNames, read_lines
from headscope.corpus.partitions import FilePart

CONLLU_ROW = re.compile(r"\d+(?:[-.]\d+)?\s")
LOOKED_FOR = (
    "'#begin document' before the first row (CoNLL-2012, LitBank), numbered rows with Entity= "
    "marks (CorefUD), a header line ID, Text, Pronoun, … (GAP)"
)
COLUMNS = (
    "ID",
    "Text",
    "Pronoun",
    "Pronoun-offset",
    "A",
    "A-offset",
    "A-coref",
    "B",
    "B-offset",
    "B-coref",
)
URL = "URL"  # the last column, which may be absent
TRUTH = {"TRUE": True, "FALSE": False}
CLITIC = r"['’](?i:s|d|m|ll|re|ve)\b"
WORD = re.compile(rf"{CLITIC}|\w+(?:(?!{CLITIC})[-'’]\w+)*|[^\w\s]")


@dataclass(frozen=True, init=False, repr=False)
class CorefCorpus(FileCorpus):
    """Files with coreference; each document is one passage of words, with mentions.

    on_error  what to do with a malformed document, see `FileCorpus`

    The format of each file is recognised by its content: CoNLL-2012 columns and LitBank's variant
    (module `conll2012`), CoNLL-U with CorefUD's `Entity=` marks (`corefud`), GAP's table. A
    document is a part in CoNLL-2012, a row in GAP, and what a `# newdoc` starts in CoNLL-U (the
    whole file, where there is none).

    Every mention has the index of its head word and a kind (`mentions`). Nested mentions are
    each a mention; of a discontinuous one the first part is kept; zero mentions are left out;
    entities of a single mention are kept. Words have no tags, heads and relations, so that
    analyses of trees and tags pass over them.
    """

    kind: ClassVar[str] = "coreference"

    def _documents(self, path: FilePart, label: str, names: UniqueNames) -> Iterator[Document]:
        for place, passage in _format(path)(path, label):
            name = names.of(passage.id, place=place)
            yield Document(name, (replace(passage, id=name),))


FormatReader = Callable[[FilePart, str], Iterator[tuple[str, Passage]]]


def _format(path: FilePart) -> FormatReader:
    for line in read_lines(path):
        if line.text.startswith(conll2012.BEGIN):
            return conll2012.documents
        if line.text.startswith("#") or not line.text.strip():
            continue
        if line.text.split()[0] == COLUMNS[0] and COLUMNS[3] in line.text:
            return gap_documents
        if CONLLU_ROW.match(line.text):
            return _corefud
        break
    return _neither


def _corefud(path: FilePart, label: str) -> Iterator[tuple[str, Passage]]:
    if not any("Entity=" in line.text for line in read_lines(path)):
        fault = f"{path} has rows like CoNLL-U and no Entity= mark; looked for {LOOKED_FOR}"
        yield label, Passage(label, fault=fault)
        return
    for name, sentences in conllu.documents(path, label, undivided=True):
        yield sentences[0].name, document_passage(name, sentences)


def _neither(path: FilePart, label: str) -> Iterator[tuple[str, Passage]]:
    first = next((line for line in read_lines(path) if line.text.strip()), None)
    fault = f"{path}:{first.number}: found {first.text[:60]!r}" if first else f"{path} is blank"
    yield label, Passage(label, fault=f"{fault}; looked for {LOOKED_FOR}")


def gap_documents(path: FilePart, label: str) -> Iterator[tuple[str, Passage]]:
    """Place and passage of each row, or its fault.

    Every row is a document of its own, with three mentions: the pronoun and the names A and B. A
    name that corefers with the pronoun is of the entity `pronoun`, another of its own. Offsets
    count the characters of the text from 0. Fields are never quoted (Webster et al. 2018).

    A word is a run of letters and digits, with hyphens and apostrophes inside it, without a clitic
    's, 'd, 'm, 'll, 're, 've, which is a word of its own as is every other mark: "O'Hara 's". A
    mention that ends within a word is widened to all words it touches. The heads of names go by
    their words.
    """
    lines = (line for line in read_lines(path) if line.text.strip())
    first = next(lines)
    header = first.text.split("\t")
    missing = [name for name in COLUMNS if name not in header]
    if missing or len(header) != len(set(header)):
        columns_fault = f"found no column {missing[0]}" if missing else "found a column twice"
        reason = (
            f"{columns_fault}; wanted {', '.join(COLUMNS)} and perhaps {URL}, separated by tabs"
        )
        yield label, Passage(label, fault=f"{path}:{first.number}: {reason}")
        return
    for line in lines:
        place = f"{label}:{line.number}"
        try:
            passage = _gap_passage(line, header)
        except Fault as fault:
            passage = Passage(place, fault=f"{path}:{fault.at}: {fault}")
        yield place, passage


def _gap_passage(line: FileLine, header: Sequence[str]) -> Passage:
    line.check()
    columns = line.text.split("\t")
    if len(columns) != len(header):
        raise Fault(
            f"found {len(columns)} tab-separated columns; wanted {len(header)} as in the header",
            at=line.number,
        )
    row = dict(zip(header, columns, strict=True))
    try:
        return _gap_row(row)
    except ValueError as error:
        raise Fault(str(error), at=line.number) from error


def _gap_row(row: Mapping[str, str]) -> Passage:
    text = row["Text"]
    places = [match.span() for match in WORD.finditer(text)]
    words = tuple(
        Word(text[start:end], space_after=not text[end : end + 1].strip()) for start, end in places
    )
    mentions = []
    names = {"Pronoun": PRONOUN, "A": _gap_entity(row, "A"), "B": _gap_entity(row, "B")}
    for name, entity in names.items():
        first, last = _touched(places, *_gap_span(row, name))
        head = first + surface_head([word.form for word in words[first : last + 1]])
        mentions.append(
            Mention(entity, first, last, head, PRONOUN if name == "Pronoun" else PROPER)
        )
    return Passage(
        row["ID"], words=words, mentions=tuple(sorted(mentions, key=lambda m: (m.first, -m.last)))
    )


def _gap_entity(row: Mapping[str, str], name: str) -> str:
    stated = row[f"{name}-coref"].upper()
    if stated not in TRUTH:
        raise ValueError(f"found {name}-coref {row[f'{name}-coref']!r}; wanted TRUE or FALSE")
    return PRONOUN if TRUTH[stated] else name


def _gap_span(row: Mapping[str, str], name: str) -> tuple[int, int]:
    wanted, stated, text = row[name], row[f"{name}-offset"], row["Text"]
    start = int(stated) if stated.isdecimal() and len(stated) <= len(str(len(text))) else len(text)
    there = text[start : start + len(wanted)]
    if not wanted.strip() or there != wanted:
        raise ValueError(
            f"{name} {wanted!r} is not at {name}-offset {stated!r} of the text; found "
            f"{there!r} there; wanted offsets in characters, from 0"
        )
    return start, start + len(wanted)


def _touched(places: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    shared = [i for i, (begin, stop) in enumerate(places) if begin < end and stop > start]
    return shared[0], shared[-1]
