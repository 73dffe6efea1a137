"""Find and open the files that paths, folders, patterns and URLs name, compressed or not."""

import bz2
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from glob import glob, has_magic
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar

from headscope.core.plug_ins import announced
from headscope.errors import CorpusError, InputError, told_as

Files = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
GROUP = "headscope.formats"  # of entry points
TEXTS = (".txt", ".text", ".md", ".raw", ".tokens")
TABLES = (".csv", ".tsv", ".parquet", ".json", ".xlsx", ".arrow", ".feather", ".zip")
CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}  # as pyarrow names them
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://")


@dataclass(frozen=True)
class FileFormat:
    """A format of corpora, known by the suffixes of its files.

    name      in the plural, as messages have it: "trees"
    suffixes  in lower case, with their dot
    read      names of files -> their corpus
    begins    how the first line begins, of a format that shares its suffixes with another
    ours      whether headscope brings it; known when it is announced
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Sequence[str]], Any]
    begins: str = ""
    ours: bool = False


@cache
def formats() -> dict[str, FileFormat]:
    """The formats by name, ours and those of installed packages; plain text is what has none."""
    return announced(GROUP, "format", _checked_format)[0]


def format_of(suffix: str) -> str:
    """The name of the usual format with that suffix: "trees", "tables", "text" for the rest."""
    sharing = [one for one in formats().values() if suffix in one.suffixes]
    if sharing:
        return min(sharing, key=lambda one: len(one.begins)).name
    return "tables" if suffix in TABLES else "text"


def is_of_another_package(name: str) -> bool:
    """Whether a file's name has the suffix of a format that another package brings."""
    known = formats().get(format_of(suffix_of(name)))
    return known is not None and not known.ours


def is_known(suffix: str) -> bool:
    """Whether a name that ends so is that of a file."""
    return suffix in TEXTS or format_of(suffix) != "text"


def _checked_format(announced: object, ours: bool) -> FileFormat:
    if not isinstance(announced, FileFormat):
        raise InputError(f"found {announced!r:.80}; wanted a FileFormat")
    taken = {*TEXTS, *TABLES, *CODECS} & {*announced.suffixes}
    if taken:
        raise InputError(f"its suffix {min(taken)} is taken; wanted one that no format of ours has")
    return replace(announced, ours=ours)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file at a URL, read through fsspec, with the parts of Path's interface used here."""

    url: str
    size: int = field(compare=False)

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return PurePosixPath(self.url).name

    @property
    def suffix(self) -> str:
        """The suffix of the name, from the last dot on."""
        return PurePosixPath(self.url).suffix

    def open(self, mode: str = "rb") -> BinaryIO:
        """The file, seekable; raises OSError."""
        system, path = _system(self.url)
        return system.open(path, mode)  # type: ignore[no-any-return]


File = Path | RemoteFile
Some = TypeVar("Some", Path, File)


def suffix_of(name: str | File) -> str:
    """The suffix that names the format, in lower case: .txt for a.txt and for a.TXT.gz."""
    path = PurePosixPath(str(name).lower())
    return (path.with_suffix("") if path.suffix in CODECS else path).suffix


def is_place(text: str) -> bool:
    """Whether a text is a URL, or a pattern with a known suffix: data/*.txt."""
    return bool(_URL.match(text)) or (has_magic(text) and is_known(suffix_of(text)))


def size_of(file: File) -> int:
    """Size of a file in bytes, compressed or not."""
    return file.size if isinstance(file, RemoteFile) else file.stat().st_size


def found_files(files: Files) -> tuple[File, ...]:
    """The files, in the order given; those of a folder or a pattern in the order of their names.

    Of a folder all files at any depth, but those whose names begin with "." or "_".

    raises  CorpusError where there is none, one is no regular file or is empty, a pattern matches
            none, a place cannot be reached, or a folder or a pattern has several formats
    """
    places = [files] if isinstance(files, str | os.PathLike) else files
    return _checked(tuple(file for one in places for file in _found(os.fspath(one))))


def checked_files(files: Files) -> tuple[Path, ...]:
    """The files as paths, in the order given; one path alone is a list of one.

    raises  CorpusError if there is none, or one is missing, is no regular file, or is empty
    """
    places = [files] if isinstance(files, str | os.PathLike) else files
    return _checked(tuple(map(Path, places)))


def _checked(files: tuple[Some, ...]) -> tuple[Some, ...]:
    if not files:
        raise CorpusError("no corpus file was given; name at least one")
    for file in files:
        if isinstance(file, Path) and not file.is_file():
            if not file.exists():
                raise CorpusError(f"{file} does not exist; wanted a corpus file")
            raise CorpusError(
                f"{file} is not a regular file; wanted one that can be read more than once"
            )
        if size_of(file) == 0:
            raise CorpusError(f"{file} is empty (0 bytes); wanted a corpus file with content")
    return files


def _found(place: str) -> list[File]:
    files: list[File]
    several = True
    if _URL.match(place):
        files, several = _at_url(place)
    elif os.path.isdir(place):
        below = (path.relative_to(place) for path in sorted(Path(place).rglob("*")))
        files = [Path(place, path) for path in below if _shown(path.parts)]
    elif has_magic(place) and not os.path.exists(place):
        files = [Path(path) for path in sorted(glob(place, recursive=True))]
    else:
        return [Path(place)]
    files = [file for file in files if isinstance(file, RemoteFile) or file.is_file()]
    if not files:
        what = "is a folder without files" if os.path.isdir(place) else "matches no file"
        raise CorpusError(f"{place} {what}; wanted one file of a corpus at least")
    if several:
        _check_one_format(place, files)
    return files


def _shown(parts: Iterable[str]) -> bool:
    return not any(part.startswith((".", "_")) for part in parts)


def _at_url(url: str) -> tuple[list[File], bool]:
    with told_as(partial(_unreached, url)):
        system, path = _system(url)
        several = "*" in url or "[" in url  # "?" begins a query
        if several:
            entries = system.glob(path, detail=True)
        elif not system.exists(path):
            raise CorpusError(f"{url} does not exist; wanted a corpus file")
        else:
            several = bool(system.isdir(path))
            entries = system.find(path, detail=True) if several else {path: system.info(path)}
    return [
        RemoteFile(system.unstrip_protocol(name), int(entry["size"] or 0))
        for name, entry in sorted(entries.items())
        if entry["type"] == "file" and (not several or _shown([PurePosixPath(name).name]))
    ], several


def _system(url: str) -> tuple[Any, str]:
    import fsspec

    system, path = fsspec.core.url_to_fs(url)
    return system, path


def _unreached(url: str, said: str) -> CorpusError:
    return CorpusError(f"{url} cannot be read ({said}); wanted a URL that fsspec can open")


def _check_one_format(place: str, files: Iterable[File]) -> None:
    first: dict[str, File] = {}
    for file in files:
        first.setdefault(format_of(suffix_of(file)), file)
    if len(first) > 1:
        formats = ", ".join(f"{name} ({file.name})" for name, file in first.items())
        raise CorpusError(
            f"{place} has files of several formats: {formats}; wanted one: give a pattern, say "
            f"'{os.path.join(place.split('*', maxsplit=1)[0].rstrip('/'), '**', '*.txt')}'"
        )


def _decompressed(file: File, stored: BinaryIO, codec: str) -> Any:
    # Of a damaged file bz2 leaves out in silence what follows; the bundled one is whole, and
    # importing pyarrow takes longer than reading it.
    if isinstance(file, Path) and file.parent == Path(__file__).parent:
        return bz2.open(stored)
    import pyarrow as pa

    return pa.input_stream(stored, compression=codec)


@contextmanager
def opened(file: File) -> Iterator[BinaryIO]:
    """The bytes of a file, decompressed for .gz, .zst and .bz2.

    raises  CorpusError where they cannot be read, or are not whole
    """
    try:
        with closing(file.open("rb")) as stored:
            codec = CODECS.get(file.suffix.lower())
            if codec is None:
                yield stored
            else:
                with _decompressed(file, stored, codec) as plain:
                    yield io.BufferedReader(plain)
    except OSError as error:
        reason = error.strerror or f"{error}; wanted a whole file: copy it again"
        raise CorpusError(f"{file} cannot be read: {reason}") from error
