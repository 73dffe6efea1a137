"""Is every document in exactly one partition, wherever the partitions end?"""

import bz2
import gzip
from itertools import chain

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headscope as hs
from headscope.cli.options import CorpusOptions, read_corpus
from headscope.corpus import Concatenation, MemoryCorpus, conllu, partitions
from headscope.corpus.columns import dataset_parts
from headscope.corpus.partitions import partitions_of
from headscope.errors import CorpusError, InputError

WORDS = [
    "The",
    "cat",
    "sat",
    "on",
    "the",
    "mat.",
    "It",
    "slept!",
    "Then",
    "a",
    "dog",
    "came,",
    "and",
    "the",
    "cat",
    "was",
    "gone.",
]
ROW = "1\t{form}\t_\tNOUN\tNN\t_\t0\troot\t_\t_\n"


@pytest.fixture
def ends_every(monkeypatch):
    def small(size):
        for module in (partitions, conllu):
            monkeypatch.setattr(module, "PARTITION", size)

    return small


def paragraphs():
    return [" ".join(WORDS[: 1 + n % 7]) + "\n" * (n % 3 == 0) + f"\nline {n}" for n in range(40)]


def text(separator="\n\n"):
    return separator.join(paragraphs()) + "\n"


def wikitext():
    return "".join(f" = Title {n % 9} = \n\n{p}\n" for n, p in enumerate(paragraphs()))


def trees(newdoc):
    blocks = [f"# sent_id = s{n}\n" + ROW.format(form=f"word{n}") for n in range(60)]
    marks = [f"# newdoc id = d{n}\n" if newdoc and n % 3 == 0 else "" for n in range(60)]
    return "\n".join(map("".join, zip(marks, blocks, strict=True))) + "\n"


def texts_of(documents):
    """What is read, without the names, which say where it was read."""
    return [
        [(p.text, p.text_pair, p.words and [w.form for w in p.words]) for p in d.passages]
        for d in documents
    ]


CASES = {
    "blank lines": ("a.txt", text(), hs.corpus.TextCorpus, {}),
    "wide gaps": ("a.txt", text(" \t\n\n \n\n\n"), hs.corpus.TextCorpus, {"passages": "line"}),
    "headings": ("a.txt", wikitext(), hs.corpus.TextCorpus, {"documents": "heading"}),
    "sentences": ("a.conllu", trees(False), hs.corpus.TreebankCorpus, {}),
    "newdoc": ("a.conllu", trees(True), hs.corpus.TreebankCorpus, {}),
    "segments": (
        "a.jsonl",
        "".join(f'{{"text_a": "cat {n}"}}\n\n' for n in range(50)),
        hs.corpus.SegmentsCorpus,
        {},
    ),
    "JSON lines": (
        "a.jsonl",
        "".join(f'{{"body": "cat {n}.\\nLine."}}\n' for n in range(50)),
        hs.corpus.ColumnCorpus,
        {"column": "body"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_partitions_hold_every_document_once_and_in_order(case, tmp_path, ends_every):
    name, content, kind, options = CASES[case]
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + content.encode())
    corpus = kind(tmp_path / name, **options)
    whole = list(corpus)
    assert len(partitions_of(corpus)) == 1
    assert len(whole) >= 20
    for size in (30, 31, 33, 37, 38, 44, 59, 111, 500):
        ends_every(size)
        parts = partitions_of(corpus)
        assert len(parts) == -(-(tmp_path / name).stat().st_size // size)
        read = [list(part) for part in reversed(parts)][::-1]
        assert texts_of(chain.from_iterable(read)) == texts_of(whole)
        names = [document.id for documents in read for document in documents]
        assert len(set(names)) == len(names)
        assert [document.id for document in corpus] == names


def test_small_files_share_a_partition_and_sizes_alone_decide(tmp_path, ends_every):
    for n, size in enumerate([40, 40, 30, 95, 250, 20, 20]):
        (tmp_path / f"{n}.txt").write_text("a" * size)
    ends_every(100)
    parts = hs.corpus.TextCorpus(tmp_path).partitions()
    assert [part.size for part in parts] == [80, 30, 95, 100, 100, 90]
    assert [part.name.rpartition("/")[2] for part in parts] == [
        "0.txt",
        "2.txt",
        "3.txt",
        "4.txt",
        "4.txt@100",
        "4.txt@200",
    ]
    assert [len(list(part)) for part in parts] == [2, 1, 1, 1, 0, 2]


def test_row_groups_of_parquet_are_opened_alone(tmp_path, ends_every):
    table = pa.table({"id": range(100), "text": [f"Row {n}.\nIt slept." for n in range(100)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    whole = list(hs.corpus.ColumnCorpus(tmp_path / "a.parquet"))
    assert [d.passages[0].text for d in whole] == [f"Row {n}." for n in range(100)]
    assert whole[41].id == "a.parquet:42"
    ends_every(256)
    read = [list(part) for part in hs.corpus.ColumnCorpus(tmp_path / "a.parquet").partitions()]
    assert sum(map(bool, read)) > 3
    assert [d.id.partition("/")[2] for d in chain.from_iterable(read)] == [d.id for d in whole]


def test_corpora_in_a_row_are_divided_where_they_are_large_together(tmp_path, ends_every):
    (tmp_path / "a.txt").write_text(text())
    few = Concatenation([hs.corpus.TextCorpus(tmp_path / "a.txt"), MemoryCorpus(["A cat."])])
    (one,) = partitions_of(few)
    assert list(one) == list(few)
    ends_every(300)
    parts = partitions_of(few)
    assert len(parts) > 3
    assert [d.id for d in chain.from_iterable(parts)] == [d.id for d in few]
    assert next(iter(parts[-1])).id == "1/text 0"


# --- where files are ---------------------------------------------------------------------------


def compressed(path, content):
    codec = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}[path.suffix]
    with pa.output_stream(str(path), compression=codec) as out:
        out.write(content.encode())


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2"])
def test_compressed_files_are_read_as_what_they_hold(tmp_path, suffix, ends_every):
    (tmp_path / "a.txt").write_text(text())
    compressed(tmp_path / f"a.txt{suffix}", text())
    plain, packed = (hs.corpus_of(tmp_path / name) for name in ("a.txt", f"a.txt{suffix}"))
    assert type(packed) is hs.corpus.TextCorpus
    assert texts_of(packed) == texts_of(plain)
    ends_every(50)
    assert len(packed.partitions()) == 1  # they can only be read from their beginning


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2"])
def test_a_truncated_file_is_named(tmp_path, suffix):
    compressed(tmp_path / f"a.txt{suffix}", text() * 50)
    whole = (tmp_path / f"a.txt{suffix}").read_bytes()
    (tmp_path / f"a.txt{suffix}").write_bytes(whole[:-9])
    with pytest.raises(CorpusError, match=rf"a.txt{suffix} cannot be read: Truncated .*copy it"):
        list(hs.corpus.TextCorpus(tmp_path / f"a.txt{suffix}"))


def test_what_follows_a_damaged_part_is_not_left_out_in_silence(tmp_path):
    one, other = (bz2.compress(f"{word} it is.\n".encode()) for word in ("here", "there"))
    (tmp_path / "a.txt.bz2").write_bytes(one + other)
    assert "there" in str(texts_of(hs.corpus.TextCorpus(tmp_path / "a.txt.bz2")))
    (tmp_path / "a.txt.bz2").write_bytes(one + b"X" + other[1:])
    with pytest.raises(CorpusError, match=r"a.txt.bz2 cannot be read"):
        list(hs.corpus.TextCorpus(tmp_path / "a.txt.bz2"))


def test_folders_and_patterns_are_read_in_the_order_of_names(tmp_path):
    for name in ("b.txt", "a.txt", "deep/c.md", ".hidden.txt", "_SUCCESS", "deep/.git/d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    for given in (tmp_path, str(tmp_path)):
        assert texts_of(hs.corpus_of(given)) == [
            [(name, None, None)] for name in ("a.txt", "b.txt", "deep/c.md")
        ]
    assert len(hs.corpus_of(f"{tmp_path}/*.txt").files) == 2
    assert len(hs.corpus.TextCorpus(f"{tmp_path}/**/[a-c].*").files) == 3
    with pytest.raises(CorpusError, match=r"x\*.txt matches no file"):
        hs.corpus_of(f"{tmp_path}/x*.txt")
    (tmp_path / "e.conllu").write_text(trees(False))
    with pytest.raises(CorpusError, match=r"several formats: text \(a.txt\), trees \(e.conllu\)"):
        hs.corpus.TextCorpus(tmp_path)


def test_a_corpus_of_thousands_of_files_names_the_first(tmp_path):
    for n in range(1003):
        (tmp_path / f"{n:04}.txt").write_text("A cat.\n")
    corpus = hs.corpus.TextCorpus(tmp_path)
    assert repr(corpus).count(".txt") <= 20
    assert len(corpus.facts()["files"].split(", ")) == 21
    assert corpus.facts()["files"].endswith("0019.txt, and 983 more")
    assert len(corpus.describe()["files"]) == 1003  # one partition: each with its sha256
    object.__setattr__(corpus, "sizes", (1 << 20,) * 1003)
    told = corpus.describe()
    assert (len(told["files"]), told["file_count"]) == (1000, 1003)
    assert told["files"][0] == {"name": "0000.txt", "bytes": 1 << 20}


def test_urls_are_read_through_fsspec(tmp_path, ends_every):
    memory = fsspec.filesystem("memory")
    memory.pipe("/books/a.txt", text().encode())
    memory.pipe("/books/b.txt.gz", gzip.compress(b"One.\n"))
    (tmp_path / "a.txt").write_text(text())
    here = texts_of(hs.corpus.TextCorpus(tmp_path / "a.txt"))
    assert texts_of(hs.corpus_of("memory://books/a.txt")) == here
    assert texts_of(hs.corpus.TextCorpus(f"file://{tmp_path}/a.txt")) == here
    ends_every(100)
    for given in ("memory://books", "memory://books/*"):
        corpus = hs.corpus_of(given)
        assert len(partitions_of(corpus)) > 8
        assert texts_of(corpus) == [*here, [("One.", None, None)]]
        assert corpus.describe()["files"][0] == {"name": "a.txt", "bytes": len(text())}


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("memory://books/gone.txt", "gone.txt does not exist"),
        ("memory://books/x*.txt", r"x\*.txt matches no file"),
        ("nowhere://a.txt", "nowhere://a.txt cannot be read .Protocol not known"),
    ],
)
def test_a_url_without_a_file_is_named(url, told):
    with pytest.raises(CorpusError, match=told):
        hs.corpus_of(url)


# --- columns -----------------------------------------------------------------------------------


@pytest.fixture
def tables(tmp_path):
    pq.write_table(pa.table({"id": [1, 2], "body": ["A cat.", None]}), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text('{"body": "A cat."}\n\n{"body": null}\n')
    (tmp_path / "a.txt").write_text("A cat.\n")
    return tmp_path


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_a_row_is_a_document_and_one_without_text_is_empty(tables, name):
    whole, empty = hs.corpus.ColumnCorpus(tables / name, column="body")
    assert [p.text for p in whole.passages] == ["A cat."]
    assert [p.text for p in empty.passages] == [""]


@pytest.mark.parametrize(
    ("name", "column", "told"),
    [
        (
            "a.parquet",
            "text",
            r"a.parquet has no column 'text' .* are id \(int64\), body \(str",
        ),
        ("a.parquet", "id", "a.parquet has no column 'id' of texts; there are id"),
        ("a.jsonl", "text", "a.jsonl:1: found no column 'text'; there are body"),
        ("a.txt", "text", "a.txt has no columns; wanted .parquet, or JSON lines"),
    ],
)
def test_a_column_that_is_not_there_is_named_with_those_that_are(tables, name, column, told):
    with pytest.raises(CorpusError, match=told):
        list(hs.corpus.ColumnCorpus(tables / name, column=column))


def test_a_table_is_no_text(tables):
    with pytest.raises(CorpusError, match=r"is a table; wanted plain text: name the column"):
        list(hs.corpus.TextCorpus(tables / "a.parquet"))
    with pytest.raises(CorpusError, match=r"several formats: JSON lines .*tables"):
        hs.corpus.ColumnCorpus([str(tables)])
    (tables / "a.parquet").write_bytes((tables / "a.parquet").read_bytes()[:-20])
    with pytest.raises(CorpusError, match=r"a.parquet is not a complete Parquet file"):
        list(hs.corpus.ColumnCorpus(tables / "a.parquet", column="body"))


# --- datasets ----------------------------------------------------------------------------------


def test_the_shards_of_a_dataset_are_partitions(tmp_path):
    pytest.importorskip("datasets")
    for shard in range(3):
        texts = [f"Row {shard}.{n}." for n in range(4)]
        pq.write_table(pa.table({"text": texts}), tmp_path / f"train-{shard}.parquet")
    corpus = hs.corpus.DatasetCorpus(str(tmp_path))
    read = [list(part) for part in corpus.partitions()]
    assert [[d.passages[0].text for d in part] for part in read] == [
        [f"Row {shard}.{n}." for n in range(4)] for shard in range(3)
    ]
    assert [d.id for d in corpus] == [d.id for d in chain.from_iterable(read)]
    assert len({d.id for d in corpus}) == 12
    with pytest.raises(CorpusError, match="found no column 'body'; there are text: give --column"):
        list(hs.corpus.DatasetCorpus(str(tmp_path), "body"))
    with pytest.raises(CorpusError, match=r"cannot be read .*Bad split: dev. Available splits"):
        list(hs.corpus.DatasetCorpus(f"{tmp_path}:dev"))


def test_a_dataset_that_cannot_be_reached_is_named(monkeypatch):
    pytest.importorskip("datasets")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(CorpusError, match=r"allenai/c4/en cannot be read .Couldn't reach"):
        list(hs.corpus.DatasetCorpus("allenai/c4/en"))


def test_the_parts_of_a_name(tmp_path):
    assert dataset_parts("imdb") == ("imdb", None, "train")
    assert dataset_parts("allenai/c4:validation") == ("allenai/c4", None, "validation")
    assert dataset_parts("allenai/c4/en:validation") == ("allenai/c4", "en", "validation")
    assert dataset_parts(f"{tmp_path}:test") == (str(tmp_path), None, "test")
    assert dataset_parts(f"{tmp_path}/en") == (str(tmp_path), "en", "train")


# --- the command line --------------------------------------------------------------------------


def test_the_options_name_columns_patterns_and_datasets(tables):
    def read(**given):
        return read_corpus(CorpusOptions(**given))

    column = read(text=(f"{tables}/*.jsonl",), column="body")
    assert column == hs.corpus.ColumnCorpus(tables / "a.jsonl", column="body")
    both = read(text=(str(tables / "a.txt"),), dataset=("imdb:test",), passages="line")
    assert both.corpora == (
        hs.corpus.TextCorpus(tables / "a.txt", passages="line"),
        hs.corpus.DatasetCorpus("imdb:test", "text", "line"),
    )
    with pytest.raises(InputError, match="found --column body; wanted --text or --dataset"):
        read(treebank=("a.conllu",), column="body")
    with pytest.raises(CorpusError, match=r"a.txt has no columns"):
        read(text=(str(tables / "a.jsonl"), str(tables / "a.txt")), column="body")
