"""Read corpus files line by line, and decide whether a malformed part is skipped or an error.

Readers yield such a part as a passage with a `fault`: it ends the run, or is counted as left out.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from headscope.core.display import Displayed
from headscope.core.whole_file import file_sha256
from headscope.corpus.document import Document, Passage
from headscope.corpus.partitions import FilePart, Partition, file_parts, whole_units
from headscope.corpus.places import File, Files, found_files, opened, size_of
from headscope.errors import CorpusError, InputError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST = 64 << 20  # bytes of a line: a compressed file may hold one without end
LISTED, SHOWN = 1000, 20  # files of a corpus that its description names, and that are shown


def labels(paths: tuple[File, ...]) -> list[str]:
    """A short name for each file: its own, or the path as given where two share a name."""
    names = Counter(path.name for path in paths)
    return [path.name if names[path.name] == 1 else str(path) for path in paths]


def described(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Name and sha256 of each file, read in pieces."""
    return [{"name": path.name, "sha256": file_sha256(path)} for path in paths]


class FileLine(NamedTuple):
    """One line of a file; invalid UTF-8 bytes are lone surrogates."""

    number: int
    text: str
    fault: str | None = None  # what is wrong with its bytes

    def check(self) -> None:
        """Raises Fault for bytes that are not UTF-8."""
        if self.fault:
            raise Fault(self.fault, at=self.number)


def read_lines(file: File | FilePart) -> Iterator[FileLine]:
    """Lines of a file with their numbers from 1, line ends and a byte order mark removed.

    Of a part the lines that begin in it, numbered from its start.
    """
    part = file if isinstance(file, FilePart) else FilePart(file)
    offset = part.start
    with opened(part.path) as lines:
        if offset:
            lines.seek(offset)
        for number, raw in enumerate(iter(partial(lines.readline, LONGEST + 1), b""), start=1):
            if part.stop is not None and offset >= part.stop:
                return
            body = raw if offset else raw.removeprefix(BYTE_ORDER_MARK)
            fault = None
            if len(raw) > LONGEST:
                raise CorpusError(
                    f"{part}:{number} is a line of more than {LONGEST >> 20} MiB; wanted text in "
                    "shorter lines"
                )
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


class UniqueNames:
    """Makes document names unique within a corpus: a second use of a name gets its place added.

    scope   stands before every name, where each partition of a corpus has names of its own
    differ  the names differ anyway: none is held
    """

    def __init__(self, scope: str = "", *, differ: bool = False) -> None:
        self._used: set[str] = set()
        self._scope, self._differ = scope, differ

    def of(self, name: str, *, place: str) -> str:
        """The name itself the first time, `name (place)` after that."""
        if self._differ:
            return self._scope + name
        unique = f"{name} ({place})" if name in self._used else name
        self._used.add(unique)
        return self._scope + unique


OnError = Literal["stop", "skip"]


class Fault(ValueError):
    """A malformed part of a corpus: what is wrong, and its line (from 1), row or place (from 0)."""

    def __init__(self, reason: str, *, at: int) -> None:
        super().__init__(reason)
        self.reason, self.at = reason, at


def check_choice(name: str, value: str, *choices: str) -> None:
    """Raises InputError for an invalid value of an option."""
    if value not in choices:
        raise InputError(f"{name}={value!r}; wanted one of {', '.join(choices)}")


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

    files     files, folders, patterns, and URLs that fsspec opens; .gz, .zst and .bz2 are read
              as what was compressed
    on_error  what to do with a malformed part: `stop`, or `skip` it and go on (the encoder counts
              it as malformed, with its place)

    Files of more than 8 MiB together are several partitions. Their documents have the number of
    the partition before their names, so that these are unique; lines of a partition in the middle
    of a file are counted from where it begins, `wiki.txt@8388731:1`.
    """

    files: tuple[File, ...]
    on_error: OnError
    sizes: tuple[int, ...] = field(compare=False)  # bytes of each file
    kind: ClassVar[str]
    empty: ClassVar[str] = ""  # what is wrong with a file without documents, if anything is

    def __init__(self, files: Files, *, on_error: OnError = "stop") -> None:
        check_choice("on_error", on_error, "stop", "skip")
        object.__setattr__(self, "files", found_files(files))
        object.__setattr__(self, "sizes", tuple(map(size_of, self.files)))
        object.__setattr__(self, "on_error", on_error)

    def __iter__(self) -> Iterator[Document]:
        """Yields the documents of all files, in order.

        raises  CorpusError with file and line (and sentence) for what is malformed, and for a file
                that holds nothing to read, unless on_error is `skip`
        """
        return chain.from_iterable(self.partitions())

    def partitions(self) -> list[Partition]:
        """The partitions, in reading order."""
        files = zip(self.files, labels(self.files), self.sizes, strict=True)
        groups = list(file_parts(files, self._divisible))
        return [
            Partition(str(parts[0]), partial(self._read, parts, f"{n}/" * (len(groups) > 1)), size)
            for n, (parts, size) in enumerate(groups)
        ]

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` (name and sha256 of each), and reading options.

        Of several partitions the files have `bytes` instead: a digest of all would be one more
        pass, by one process. Of more than 1,000 files the first stand there, and `file_count`.
        """
        policy, count = described_policy(self.on_error), len(self.files)
        sizes = list(zip(self.files, self.sizes, strict=True))[:LISTED]
        paths = tuple(file for file in self.files if isinstance(file, Path))
        files: list[dict[str, Any]] = [{"name": f.name, "bytes": size} for f, size in sizes]
        if len(paths) == count and len(self.partitions()) == 1:
            files = described(paths)
        more = {"file_count": count} if count > len(files) else {}
        return {"kind": self.kind, "files": files, **more, **self._options(), **policy}

    def facts(self) -> dict[str, object]:
        """Its files and options; nothing is opened."""
        more = self._options() | described_policy(self.on_error)
        facts = {name: f"{name}={value}" for name, value in more.items()}
        names, more_files = labels(self.files)[:SHOWN], len(self.files) - SHOWN
        more_told = f", and {more_files:,} more" if more_files > 0 else ""
        return {"files": ", ".join(names) + more_told, **facts}

    def _read(self, parts: Sequence[FilePart], scope: str) -> Iterator[Document]:
        return stopped_at_faults(self._all_documents(parts, scope), self.on_error)

    def _all_documents(self, parts: Sequence[FilePart], scope: str) -> Iterator[Document]:
        # A file may be given twice, and the name of one be that of a part of another.
        alike = len({p.label for p in parts}) < len(parts) or any("@" in p.label for p in parts)
        names = UniqueNames(scope, differ=self._named_by_place and not alike)
        for part_file in parts:
            part = self._whole_units(part_file)
            if part is None:
                continue
            is_empty = part.start == 0 and part.stop is None
            for document in self._documents(part, part.label, names):
                is_empty = False
                yield document
            if is_empty and self.empty:
                fault = f"{part} {self.empty}"
                yield Document(part.label, (Passage(part.label, fault=fault),))

    def _documents(self, part: FilePart, label: str, names: UniqueNames) -> Iterator[Document]:
        """The documents of one file; a malformed part is a passage with a fault."""
        raise NotImplementedError

    @property
    def _named_by_place(self) -> bool:
        """Whether every document is named by the file and the line or row where it begins."""
        return False

    @property
    def _divisible(self) -> bool:
        """Whether files may be divided."""
        return False

    def _begins(self, file: File) -> Callable[[str], bool]:
        """For divisible files: whether a document begins with, or after, a line."""
        return bool  # with every line

    def _whole_units(self, part: FilePart) -> FilePart | None:
        """The part, extended to whole documents; None if none begins in it."""
        return whole_units(part, self._begins)

    def _options(self) -> dict[str, Any]:
        return {}
