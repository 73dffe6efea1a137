"""How are corpus files opened, named and fingerprinted, and how does bad UTF-8 get its place?"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from headscope.errors import CorpusError

Files = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def checked_files(files: Files) -> tuple[Path, ...]:
    """The files as paths, in the order given; one path alone is a list of one.

    raises  CorpusError if there is none, or one is missing, is no regular file, or is empty
    """
    given = [files] if isinstance(files, str | os.PathLike) else files
    paths = tuple(Path(file) for file in given)
    if not paths:
        raise CorpusError("no corpus file was given; name at least one")
    for path in paths:
        if not path.is_file():
            found = "is not a regular file" if path.exists() else "does not exist"
            raise CorpusError(f"{path} {found}; wanted a file that can be read more than once")
        if path.stat().st_size == 0:
            raise CorpusError(f"{path} is empty (0 bytes); wanted a corpus file with content")
    return paths


def labels(paths: tuple[Path, ...]) -> list[str]:
    """A short name for each file: its own, or the path as given where two share a name."""
    names = Counter(path.name for path in paths)
    return [path.name if names[path.name] == 1 else str(path) for path in paths]


def described(paths: tuple[Path, ...]) -> list[dict[str, str]]:
    """Name and sha256 of each file, read in pieces."""
    found = []
    for path in paths:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        found.append({"name": path.name, "sha256": digest})
    return found


class Line(NamedTuple):
    """One line of a file; of one that is not UTF-8, the bad bytes as lone surrogates."""

    number: int
    text: str
    fault: str | None = None  # what is wrong with its bytes


def read_lines(path: Path) -> Iterator[Line]:
    """Lines of a file with their numbers from 1, line ends and a byte order mark removed."""
    offset = 0
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                body = raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
                fault = None
                try:
                    text = body.decode("utf-8")
                except UnicodeDecodeError as error:
                    text = body.decode("utf-8", "surrogateescape")
                    place = offset + len(raw) - len(body) + error.start
                    fault = (
                        f"byte 0x{body[error.start]:02x} at offset {place} is not valid UTF-8; "
                        "convert the file to UTF-8"
                    )
                yield Line(number, text.rstrip("\r\n"), fault)
                offset += len(raw)
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}") from error


class UniqueNames:
    """Makes document names unique within a corpus: a second use of a name gets its place added."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, name: str, *, place: str) -> str:
        """The name itself the first time, `name (place)` after that."""
        unique = f"{name} ({place})" if name in self._used else name
        self._used.add(unique)
        return unique
