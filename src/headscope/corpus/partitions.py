"""Divide a corpus into partitions that can be read independently.

Sizes alone decide where partitions end, so everybody finds the same ones without reading. Small
files share one; a large file is cut into ranges of bytes, and a range holds the documents that
begin in it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from headscope.corpus.document import Concatenation, Corpus, Document
from headscope.corpus.places import CODECS, File, opened

# Bytes, ours: a million or two tokens of text. To reach the last shard of a partition all of it is
# read, in a second; what a partition costs beside (ids, counts, a sample) is far less than a shard.
PARTITION = 8 << 20
PIECE = 1 << 20  # bytes of a line that are held at once
Begins = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file, or the documents that begin at bytes start … stop - 1 of it; `label` is its short
    name.
    """

    path: File
    label: str = ""
    start: int = 0
    stop: int | None = None

    def __str__(self) -> str:
        return f"{self.path}@{self.start}" if self.start else str(self.path)


@dataclass(frozen=True)
class Partition:
    """Documents that can be read independently of earlier ones; `size` in bytes, approximately."""

    name: str
    read: Callable[[], Iterator[Document]]
    size: int = 0

    def __iter__(self) -> Iterator[Document]:
        return self.read()


def partitions_of(corpus: Corpus) -> Sequence[Partition]:
    """The partitions of a corpus, in reading order; one for a corpus that cannot be divided."""
    if isinstance(corpus, Concatenation):
        parts = [
            replace(part, read=partial(_placed, place, part))
            for place, one in enumerate(corpus.corpora)
            for part in partitions_of(one)
        ]
        if sum(part.size for part in parts) > PARTITION:
            return parts
    elif hasattr(corpus, "partitions"):
        divided: Sequence[Partition] = corpus.partitions()
        return divided
    return [Partition("the corpus", partial(iter, corpus))]


def _placed(place: int, part: Iterable[Document]) -> Iterator[Document]:
    for document in part:
        yield replace(document, id=f"{place}/{document.id}")


def file_parts(
    files: Iterable[tuple[File, str, int]], divisible: bool
) -> Iterator[tuple[tuple[FilePart, ...], int]]:
    """The files of each partition, and their total bytes.

    files      (file, label, bytes) of each
    divisible  whether files that are not compressed may be cut
    """
    held: list[FilePart] = []
    size = 0
    for file, label, whole in files:
        cut = divisible and whole > PARTITION and file.suffix.lower() not in CODECS
        for start in range(0, whole if cut else 1, PARTITION):
            last = start + PARTITION >= whole or not cut
            more = whole - start if last else PARTITION
            if held and size + more > PARTITION:
                yield tuple(held), size
                held, size = [], 0
            held.append(FilePart(file, label, start, None if last else start + PARTITION))
            size += more
    if held:
        yield tuple(held), size


def whole_units(part: FilePart, of_file: Callable[[File], Begins]) -> FilePart | None:
    """The part from the first document that begins in it to the end of its last; None without one.

    of_file  gives of a file what tells whether a document begins with, or behind, a line
    """
    if not part.start and part.stop is None:
        return part
    begins = of_file(part.path)
    start = _first(part.path, part.start, begins, before=part.stop) if part.start else 0
    if start is None:
        return None
    stop = None if part.stop is None else _first(part.path, part.stop, begins)
    return FilePart(part.path, f"{part.label}@{start}" if start else part.label, start, stop)


def _first(file: File, at: int, begins: Begins, before: int | None = None) -> int | None:
    """The first position, from byte `at` on, at which a file may be divided."""
    with opened(file) as lines:
        lines.seek(at - 1)
        place, begun = at - 1, False  # `at` itself may be where a line begins
        for raw in iter(partial(lines.readline, PIECE), b""):
            if begun and before is not None and place >= before:
                return None
            if begun and begins(raw.decode("utf-8", "surrogateescape")):
                return place
            place += len(raw)
            begun = raw.endswith(b"\n")
    return None
