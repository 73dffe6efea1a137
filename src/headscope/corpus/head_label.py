"""How do trees written as a word and `head-label` per line become documents?

The layout of the released code of Clark et al. (2019): a blank line between sentences, heads count
from 1, head 0 is the root. Labels may hold "-" here, and the last sentence needs no blank line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from headscope.corpus.document import Document, Passage, Word
from headscope.corpus.files import Files, Line, checked_files, described, labels, read_lines
from headscope.errors import CorpusError

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


def _word(line: Line, words: int, label: str) -> Word:
    found = _ROW.fullmatch(line.text.strip())
    if line.fault or found is None or int(found[2]) > words:
        told = line.fault or f"found {line.text.strip()[:60]!r}"
        raise CorpusError(
            f"{label}:{line.number}: {told}; wanted a word and head-label, say 'cat 3-nsubj', "
            f"with a head from 0 (the root) to {words}"
        )
    return Word(found[1], head=int(found[2]) - 1, relation=found[3])
