"""Read texts from a column: of JSON lines and Parquet files, or of a dataset that is streamed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Literal

from headscope.core.display import Displayed
from headscope.corpus.document import Document, Passage
from headscope.corpus.files import FileCorpus, OnError, UniqueNames, check_choice
from headscope.corpus.partitions import PARTITION, Begins, FilePart, Partition
from headscope.corpus.places import File, Files, opened, suffix_of
from headscope.corpus.plain_text import Row, is_blank, json_rows, line_passages
from headscope.errors import CorpusError, InputError

PARQUET, JSON_LINES = ".parquet", (".jsonl", ".ndjson", ".json")
Passages = Literal["packed", "line"]


@dataclass(frozen=True, init=False, repr=False)
class ColumnCorpus(FileCorpus):
    """Texts in a column of Parquet files or JSON lines; each row is a document.

    column    the column, or the key
    passages  as of `TextCorpus`, of the lines of each text

    Row groups of a Parquet file are read one by one, and are what a large one is cut into. A row
    without text is counted as empty.
    """

    kind: ClassVar[str] = "column"
    empty: ClassVar[str] = "holds no row; wanted one text at least"
    column: str
    passages: Passages

    def __init__(
        self,
        files: Files,
        *,
        column: str = "text",
        passages: Passages = "packed",
        on_error: OnError = "stop",
    ) -> None:
        """Raises CorpusError for a file of another format."""
        check_choice("passages", passages, "packed", "line")
        super().__init__(files, on_error=on_error)
        for file in self.files:
            if file.suffix.lower() != PARQUET and suffix_of(file) not in JSON_LINES:
                raise CorpusError(
                    f"{file} has no columns; wanted {PARQUET}, or JSON lines in "
                    f"{', '.join(JSON_LINES)} (.gz, .zst): give other files without a column"
                )
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "passages", passages)

    def _options(self) -> dict[str, Any]:
        return {"column": self.column, "passages": self.passages}

    @property
    def _divisible(self) -> bool:
        return True

    def _begins(self, file: File) -> Begins:
        return bool

    def _whole_units(self, part: FilePart) -> FilePart | None:
        return part if part.path.suffix.lower() == PARQUET else super()._whole_units(part)

    def _documents(self, part: FilePart, label: str, names: UniqueNames) -> Iterator[Document]:
        if part.path.suffix.lower() != PARQUET:
            rows = json_rows(part, label, self._json)
        else:
            rows = (
                self._row(text, f"{label}:{at}") for at, text in parquet_rows(part, self.column)
            )
        for name, passages in rows:
            yield Document(names.of(name, place=name), passages)

    def _json(self, row: object, place: str) -> Row:
        if not isinstance(row, dict):
            raise ValueError(f"found a JSON {type(row).__name__}; wanted an object")
        if self.column not in row:
            raise ValueError(f"found no {self.column!r}; there are {', '.join(row) or 'no keys'}")
        return self._row(row[self.column], place)

    def _row(self, text: Any, place: str) -> Row:
        return place, row_passages(text, place, self.passages)


def row_passages(text: Any, place: str, passages: Passages) -> tuple[Passage, ...]:
    """The passages of a row's text; raises ValueError for what is none."""
    if text is not None and not isinstance(text, str):
        raise ValueError(f"found {str(text)[:40]!r}, a {type(text).__name__}; wanted text")
    lines = enumerate((text or "").splitlines(), start=1)
    texts = [(f"{place}.{number}", line.strip()) for number, line in lines if not is_blank(line)]
    found = (line_passages(line, name, passages) for name, line in texts)
    return tuple(chain.from_iterable(found)) or (Passage(place, text="", packable=True),)


def parquet_rows(part: FilePart, column: str) -> Iterator[tuple[int, Any]]:
    """Number, from 1, and value of each row of the row groups that begin in a part of a file.

    raises  CorpusError for a file that is no Parquet, or has no such column of texts
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    with opened(part.path) as file:
        try:
            table = ParquetFile(file)
            _check_column(part.path, table.schema_arrow, column)
            before = 0
            for number in range(table.num_row_groups):
                group = table.metadata.row_group(number)
                first = group.column(0)  # pages of a dictionary lie before those of the data
                begin = first.dictionary_page_offset or first.data_page_offset
                if part.start <= begin and (part.stop is None or begin < part.stop):
                    batches = table.iter_batches(1024, row_groups=[number], columns=[column])
                    texts = chain.from_iterable(batch.column(0).to_pylist() for batch in batches)
                    yield from enumerate(texts, start=before + 1)
                before += group.num_rows
        except pa.ArrowInvalid as error:
            reason = str(error).splitlines()[0]
            raise CorpusError(f"{part.path} is no whole Parquet file: {reason}") from error


def _check_column(file: File, schema: Any, column: str) -> None:
    if column not in schema.names:
        raise CorpusError(
            f"{file} has no column {column!r}; there are {', '.join(schema.names)}: say --column"
        )
    kind = str(schema.field(column).type)
    if "string" not in kind:
        raise CorpusError(f"the column {column!r} of {file} holds {kind}; wanted texts")


@dataclass(frozen=True, repr=False)
class DatasetCorpus(Displayed):
    """Texts in a column of a dataset that Hugging Face `datasets` streams; each row is a document.

    name      NAME[/CONFIG][:SPLIT]: of the hub, ORGANISATION/NAME, or a folder; the split is
              `train` where it is not said
    column    the column
    passages  as of `TextCorpus`, of the lines of each text

    Each shard of the dataset (as a rule, a file) is a partition. A partition is read from its
    beginning: where shards are large, name their Parquet files (hf://datasets/…/*.parquet) and
    read them with `ColumnCorpus`, which opens row groups.
    """

    name: str
    column: str = "text"
    passages: Passages = "packed"

    def __iter__(self) -> Iterator[Document]:
        """Yields the documents, shard by shard; raises CorpusError where it cannot be reached."""
        return chain.from_iterable(self.partitions())

    def partitions(self) -> list[Partition]:
        """The shards of the dataset."""
        count = self._stream().num_shards
        return [
            Partition(f"shard {n + 1} of {self.name}", partial(self._read, n, count), PARTITION)
            for n in range(count)
        ]

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` (the name), shards, options; the plan has the digest."""
        shards = self._stream().num_shards
        options = {"column": self.column, "passages": self.passages}
        return {"kind": "dataset", "files": [{"name": self.name}], "shards": shards, **options}

    def facts(self) -> dict[str, object]:
        """Its name and column."""
        return {"name": self.name, "column": f"column={self.column}"}

    def _read(self, shard: int, shards: int) -> Iterator[Document]:
        rows = iter(self._stream().shard(num_shards=shards, index=shard))
        place = f"{self.name}/{shard}" if shards > 1 else self.name
        number = 0
        while (row := self._next(rows)) is not None:
            number += 1
            name = f"{place}:{number}"
            if self.column not in row:
                raise CorpusError(
                    f"{name} has no column {self.column!r}; there are {', '.join(row)}: say "
                    "--column"
                )
            try:
                yield Document(name, row_passages(row[self.column], name, self.passages))
            except ValueError as error:
                raise CorpusError(f"{name}: {error}") from error

    def _next(self, rows: Iterator[dict[str, Any]]) -> dict[str, Any] | None:
        try:
            return next(rows, None)
        except Exception as error:  # of the network, of any file format, of a dataset's own code
            raise self._unreached(error) from error

    def _stream(self) -> Any:
        try:
            import datasets
        except ImportError as error:
            raise InputError(
                "--dataset needs the package datasets: pip install 'headscope[data]'"
            ) from error
        place, config, split = dataset_parts(self.name)
        try:
            return datasets.load_dataset(place, config, split=split, streaming=True)
        except Exception as error:  # as above
            raise self._unreached(error) from error

    def _unreached(self, error: Exception) -> CorpusError:
        told = f"{type(error).__name__}: {error}".splitlines()[0]
        return CorpusError(
            f"the dataset {self.name} cannot be read ({told}); wanted NAME[/CONFIG][:SPLIT] of a "
            "dataset that is on this machine or can be reached"
        )


def dataset_parts(name: str) -> tuple[str, str | None, str]:
    """Place, configuration and split of NAME[/CONFIG][:SPLIT].

    A third part of a hub's name is the configuration, or what follows an existing folder.
    """
    place, mark, split = name.rpartition(":")
    if not mark or set(split) & {"/", os.sep} or os.path.exists(name):
        place, split = name, "train"
    folder, _, last = place.rpartition("/")
    local = os.path.isabs(place) and os.path.isdir(folder)
    if not os.path.exists(place) and (local or place.count("/") == 2):
        return folder, last, split
    return place, None, split
