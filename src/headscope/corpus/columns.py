"""Read texts from a column of JSON lines, Parquet files or a streamed dataset."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, Literal

from headscope.core.display import Displayed
from headscope.corpus.document import Document, Passage
from headscope.corpus.files import FileCorpus, OnError, UniqueNames, check_choice
from headscope.corpus.partitions import PARTITION, FilePart, Partition
from headscope.corpus.places import File, Files, opened, suffix_of
from headscope.corpus.plain_text import Row, is_blank, json_rows, line_passages
from headscope.corpus.read_apart import check_parquet
from headscope.errors import CorpusError, InputError, told_as

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
                    f"{', '.join(JSON_LINES)} (.gz, .zst, .bz2): give other files without a column"
                )
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "passages", passages)

    def _options(self) -> dict[str, Any]:
        return {"column": self.column, "passages": self.passages}

    @property
    def _named_by_place(self) -> bool:
        return True

    @property
    def _divisible(self) -> bool:
        return True

    def _whole_units(self, part: FilePart) -> FilePart | None:
        return part if part.path.suffix.lower() == PARQUET else super()._whole_units(part)

    def _documents(self, part: FilePart, label: str, names: UniqueNames) -> Iterator[Document]:
        if part.path.suffix.lower() == PARQUET:
            rows: Iterator[Row] = (
                self._row({self.column: text}, f"{label}:{number}")
                for number, text in parquet_rows(part, self.column)
            )
        else:
            rows = json_rows(part, label, self._row)
        for name, passages in rows:
            yield Document(names.of(name, place=name), passages)

    def _row(self, row: object, place: str) -> Row:
        return place, row_passages(row, self.column, place, self.passages)


def row_passages(row: Any, column: str, place: str, passages: Passages) -> tuple[Passage, ...]:
    """The passages of the text in a column; raises ValueError for a row without text."""
    if not isinstance(row, dict):
        raise ValueError(f"found a JSON {type(row).__name__}; wanted an object")
    if column not in row:
        there = ", ".join(row) or "none"
        raise ValueError(f"found no column {column!r}; there are {there}: give --column")
    text = row[column]
    if text is not None and not isinstance(text, str):
        raise ValueError(f"found {str(text)[:40]!r}, a {type(text).__name__}; wanted text")
    lines = enumerate((text or "").splitlines(), start=1)
    texts = [(f"{place}.{number}", line.strip()) for number, line in lines if not is_blank(line)]
    passages_of_texts = (line_passages(line, name, passages) for name, line in texts)
    return tuple(chain.from_iterable(passages_of_texts)) or (
        Passage(place, text="", packable=True),
    )


def parquet_rows(part: FilePart, column: str) -> Iterator[tuple[int, Any]]:
    """Number, from 1, and value of each row of the row groups that begin in a part of a file.

    raises  CorpusError for a file that is no Parquet, or has no such column of texts
    """
    from pyarrow.parquet import ParquetFile

    with opened(part.path) as file, told_as(partial(_no_parquet, part.path)):
        if isinstance(part.path, Path):
            check_parquet(part.path, column)
        table, before = ParquetFile(file), 0
        kinds = {field.name: str(field.type) for field in table.schema_arrow}
        if not re.search(r"^(large_)?string|values=(large_)?string", kinds.get(column, "")):
            there = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
            raise CorpusError(
                f"{part.path} has no column {column!r} of texts; there are {there}: give --column"
            )
        for number in range(table.num_row_groups):
            group = table.metadata.row_group(number)
            first = group.column(0)  # pages of a dictionary lie before those of the data
            begin = first.dictionary_page_offset or first.data_page_offset
            if part.start <= begin and (part.stop is None or begin < part.stop):
                batches = table.iter_batches(1024, row_groups=[number], columns=[column])
                texts = chain.from_iterable(batch.column(0).to_pylist() for batch in batches)
                yield from enumerate(texts, start=before + 1)
            before += group.num_rows


def _no_parquet(file: File, said: str) -> CorpusError:
    return CorpusError(f"{file} is not a complete Parquet file: {said}")


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
        place = f"{self.name}/{shard}" if shards > 1 else self.name
        with told_as(self._unread):
            rows = self._stream().shard(num_shards=shards, index=shard)
            for number, row in enumerate(rows, start=1):
                name = f"{place}:{number}"
                yield Document(name, row_passages(row, self.column, name, self.passages))

    def _stream(self) -> Any:
        with told_as(self._unread):
            return _streamed(self.name)

    def _unread(self, said: str) -> CorpusError:
        return CorpusError(
            f"the dataset {self.name} cannot be read ({said}); wanted NAME[/CONFIG][:SPLIT] of a "
            "dataset on this machine or the hub"
        )


@cache  # every process asks the hub once
def _streamed(name: str) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise InputError(
            "--dataset needs the package datasets: pip install 'headscope[data]'"
        ) from error
    # The lock of its bars is a semaphore, which would outlive a worker that is killed.
    datasets.utils.tqdm.set_lock(RLock())
    place, config, split = dataset_parts(name)
    return datasets.load_dataset(place, config, split=split, streaming=True)


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
