"""Read the rows of GAP as documents with a pronoun and two names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from headscope.corpus.coref.mentions import PRONOUN, PROPER, surface_head
from headscope.corpus.document import Mention, Passage, Word
from headscope.corpus.files import FileLine, LineFault, read_lines

COLUMNS = (
    "ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset",
    "B-coref",
)  # fmt: skip
URL = "URL"  # the last column, which may be absent
TRUTH = {"TRUE": True, "FALSE": False}
CLITIC = r"['’](?i:s|d|m|ll|re|ve)\b"
WORD = re.compile(rf"{CLITIC}|\w+(?:(?!{CLITIC})[-'’]\w+)*|[^\w\s]")


def documents(path: Path, label: str) -> Iterator[tuple[str, Passage]]:
    """Place and passage of each row; a fault, where anything in it is wrong.

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
        found = f"found no column {missing[0]}" if missing else "found a column twice"
        reason = f"{found}; wanted {', '.join(COLUMNS)} and perhaps {URL}, separated by tabs"
        yield label, Passage(label, fault=f"{path}:{first.number}: {reason}")
        return
    for line in lines:
        place = f"{label}:{line.number}"
        try:
            passage = _passage(line, header)
        except LineFault as fault:
            passage = Passage(place, fault=f"{path}:{fault.line}: {fault}")
        yield place, passage


def _passage(line: FileLine, header: Sequence[str]) -> Passage:
    if line.fault:
        raise LineFault(line.fault, line=line.number)
    columns = line.text.split("\t")
    if len(columns) != len(header):
        raise LineFault(
            f"found {len(columns)} tab-separated columns; wanted {len(header)} as in the header",
            line=line.number,
        )
    row = dict(zip(header, columns, strict=True))
    try:
        return _read(row)
    except ValueError as error:
        raise LineFault(str(error), line=line.number) from error


def _read(row: Mapping[str, str]) -> Passage:
    text = row["Text"]
    places = [match.span() for match in WORD.finditer(text)]
    words = tuple(
        Word(text[start:end], space_after=not text[end : end + 1].strip()) for start, end in places
    )
    mentions = []
    for name, entity in (("Pronoun", PRONOUN), ("A", _entity(row, "A")), ("B", _entity(row, "B"))):
        first, last = _touched(places, *_span(row, name))
        head = first + surface_head([word.form for word in words[first : last + 1]])
        mentions.append(
            Mention(entity, first, last, head, PRONOUN if name == "Pronoun" else PROPER)
        )
    return Passage(
        row["ID"], words=words, mentions=tuple(sorted(mentions, key=lambda m: (m.first, -m.last)))
    )


def _entity(row: Mapping[str, str], name: str) -> str:
    stated = row[f"{name}-coref"].upper()
    if stated not in TRUTH:
        raise ValueError(f"found {name}-coref {row[f'{name}-coref']!r}; wanted TRUE or FALSE")
    return PRONOUN if TRUTH[stated] else name


def _span(row: Mapping[str, str], name: str) -> tuple[int, int]:
    """Where a name or pronoun begins and ends in the text, in characters."""
    wanted, stated, text = row[name], row[f"{name}-offset"], row["Text"]
    start = int(stated) if stated.isdecimal() and len(stated) <= len(str(len(text))) else len(text)
    there = text[start : start + len(wanted)]
    if not wanted.strip() or there != wanted:
        raise ValueError(
            f"{name} {wanted!r} does not stand at {name}-offset {stated!r} of the text; found "
            f"{there!r} there; wanted offsets in characters, from 0"
        )
    return start, start + len(wanted)


def _touched(places: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    """The first and the last of the words that share a character with start..end - 1."""
    shared = [i for i, (begin, stop) in enumerate(places) if begin < end and stop > start]
    return shared[0], shared[-1]
