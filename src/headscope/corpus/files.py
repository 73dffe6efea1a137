"""Open corpus files, name and fingerprint them, and decide what a malformed part of one means.

Readers yield such a part as a passage with a `fault`: it ends the run, or is counted as left out.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from headscope.core.display import Displayed
from headscope.core.whole_file import file_sha256
from headscope.corpus.document import Document, Passage
from headscope.errors import CorpusError, InputError

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
            if not path.exists():
                raise CorpusError(f"{path} does not exist; wanted a corpus file")
            raise CorpusError(
                f"{path} is not a regular file; wanted one that can be read more than once"
            )
        if path.stat().st_size == 0:
            raise CorpusError(f"{path} is empty (0 bytes); wanted a corpus file with content")
    return paths


def labels(paths: tuple[Path, ...]) -> list[str]:
    """A short name for each file: its own, or the path as given where two share a name."""
    names = Counter(path.name for path in paths)
    return [path.name if names[path.name] == 1 else str(path) for path in paths]


def described(paths: tuple[Path, ...]) -> list[dict[str, str]]:
    """Name and sha256 of each file, read in pieces."""
    return [{"name": path.name, "sha256": file_sha256(path)} for path in paths]


class FileLine(NamedTuple):
    """One line of a file; of one that is not UTF-8, the bad bytes as lone surrogates."""

    number: int
    text: str
    fault: str | None = None  # what is wrong with its bytes

    def check(self) -> None:
        """Raises Fault if its bytes are no text."""
        if self.fault:
            raise Fault(self.fault, at=self.number)


def read_lines(path: Path) -> Iterator[FileLine]:
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
                yield FileLine(number, text.rstrip("\r\n"), fault)
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


OnError = Literal["stop", "skip"]


class Fault(ValueError):
    """What is wrong with a part of a corpus, and where: line (from 1), row or place (from 0)."""

    def __init__(self, reason: str, *, at: int) -> None:
        super().__init__(reason)
        self.reason, self.at = reason, at


def check_choice(name: str, given: str, *choices: str) -> None:
    """Raises InputError for a value of an option that does not exist."""
    if given not in choices:
        raise InputError(f"{name}={given!r}; wanted one of {', '.join(choices)}")


def described_policy(on_error: OnError) -> dict[str, Any]:
    """The policy as an entry of a corpus's description; nothing for the default."""
    return {} if on_error == "stop" else {"on_error": on_error}


def stopped_at_faults(documents: Iterable[Document], on_error: OnError) -> Iterator[Document]:
    """All documents (`skip`), or those before the first fault (`stop`: then CorpusError)."""
    for document in documents:
        for passage in document.passages:
            if passage.fault is not None and on_error == "stop":
                raise CorpusError(passage.fault)
        yield document


@dataclass(frozen=True, init=False, repr=False)
class FileCorpus(Displayed):
    """A corpus of one or more files; a subclass reads the documents of one file.

    on_error  what to do with a malformed part: `stop`, or `skip` it and go on (the encoder counts
              it as malformed, with its place)
    """

    files: tuple[Path, ...]
    on_error: OnError
    kind: ClassVar[str]
    empty: ClassVar[str] = ""  # what is wrong with a file without documents, if anything is

    def __init__(self, files: Files, *, on_error: OnError = "stop") -> None:
        check_choice("on_error", on_error, "stop", "skip")
        object.__setattr__(self, "files", checked_files(files))
        object.__setattr__(self, "on_error", on_error)

    def __iter__(self) -> Iterator[Document]:
        """Yields the documents of all files, in order.

        raises  CorpusError with file and line (and sentence) for what is malformed, and for a file
                that holds nothing to read, unless on_error is `skip`
        """
        return stopped_at_faults(self._all_documents(), self.on_error)

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` (name and sha256 of each), and reading options."""
        policy = described_policy(self.on_error)
        return {"kind": self.kind, "files": described(self.files), **self._options(), **policy}

    def facts(self) -> dict[str, object]:
        """Its files, and how it reads them; nothing is opened."""
        more = self._options() | described_policy(self.on_error)
        told = {name: f"{name}={value}" for name, value in more.items()}
        return {"files": ", ".join(labels(self.files)), **told}

    def _all_documents(self) -> Iterator[Document]:
        names = UniqueNames()
        for path, label in zip(self.files, labels(self.files), strict=True):
            is_empty = True
            for document in self._documents(path, label, names):
                is_empty = False
                yield document
            if is_empty and self.empty:
                yield Document(label, (Passage(label, fault=f"{path} {self.empty}"),))

    def _documents(self, path: Path, label: str, names: UniqueNames) -> Iterator[Document]:
        """The documents of one file; what is malformed as a passage with a fault."""
        raise NotImplementedError

    def _options(self) -> dict[str, Any]:
        return {}
