"""Convert what a user passes as a corpus (texts, files, table columns) into a `Corpus`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope.corpus.document import Concatenation, Corpus, Document, MemoryCorpus
from headscope.corpus.files import read_lines
from headscope.corpus.framenet import INDICES, FramesCorpus
from headscope.corpus.places import (
    TABLES,
    File,
    formats,
    found_files,
    is_known,
    is_place,
    suffix_of,
)
from headscope.corpus.plain_text import TextCorpus
from headscope.corpus.treebank import demo_corpus
from headscope.errors import CorpusError, InputError

# Either kind of column: pandas, polars, numpy; pyarrow. A `datasets` column is a sequence.
LISTS = ("to_list", "to_pylist", "tolist")
WANTED = (
    "a text, texts, (text, text) pairs, a file or files, a column of a table, or a corpus such as "
    "headscope.corpus.TextCorpus"
)
# What `corpus_of` takes; a column is any object that has texts in it.
CorpusLike = (
    Corpus
    | str
    | os.PathLike[str]
    | Iterable[str | os.PathLike[str] | tuple[str, str] | Document | Corpus]
)


def corpus_of(given: CorpusLike) -> Corpus:
    """Make a corpus from texts, files, a table or other corpora.

    given    a corpus    as it is; several in a list are read one after the other
             "demo"      the bundled documents
             a str       the name of an existing file, or else one text; what only looks like a file
                         (it ends in a known suffix, or holds / or \\ and no space) is refused
             a Path      a file, a folder of files of one format, or of a FrameNet release
             a URL, or a pattern such as data/*.txt: files
             a list      files if every item looks like one, else texts, pairs of texts, Documents;
                         a mixture of files and texts is refused
             a column    of pandas, polars, `datasets`, pyarrow, numpy: texts, never names of files
    returns  of files a reader by their suffix: .conllu, .conllx trees; .conll trees, or coreference
             that begins with #begin document; .jsonl segments; plain text for the rest; .gz,
             .zst and .bz2 may stand behind
    raises   CorpusError, or InputError for an object that holds no texts
    """
    if isinstance(given, str | os.PathLike):
        return _of_one(given)
    if columns := _columns(given):
        raise InputError(
            f"found a table ({type(given).__name__}) with the columns {', '.join(columns[:12])}; "
            f"wanted one column of it, say table[{columns[0]!r}]"
        )
    make = next((getattr(given, name) for name in LISTS if hasattr(given, name)), None)
    if make is not None:
        return MemoryCorpus(make())
    if hasattr(given, "describe") and hasattr(given, "__iter__"):
        return given  # type: ignore[return-value]
    if isinstance(given, bytes | Mapping) or not hasattr(given, "__iter__"):
        raise InputError(f"found a {type(given).__name__} for a corpus; wanted {WANTED}")
    items: list[Any] = list(given)
    if not isinstance(given, list | tuple):
        return MemoryCorpus(items)
    if items and all(hasattr(item, "describe") for item in items):
        return Concatenation(items)
    return _of_several(items)


def _columns(table: Any) -> list[str]:
    """Names of a table's columns; none for anything else."""
    names = getattr(table, "column_names", None) or getattr(table, "columns", None)
    return [] if names is None or callable(names) else [str(name) for name in names]


def _of_one(name: str | os.PathLike[str]) -> Corpus:
    if not isinstance(name, str) or (name != "demo" and os.path.exists(name)) or is_place(name):
        return _of_files([name])
    if name == "demo":
        return demo_corpus()
    if not name.strip():
        raise CorpusError("found an empty text; wanted at least one word")
    if _named_like_a_file(name) or (not any(map(str.isspace, name)) and {*"/\\"} & {*name}):
        raise CorpusError(
            f"{name} does not exist; it looks like a file's name: if it is a text, put it in a "
            "list: headscope.corpus.MemoryCorpus([text])"
        )
    return MemoryCorpus([name])


def _of_several(items: Sequence[Any]) -> Corpus:
    places = [n for n, item in enumerate(items) if _is_file(item)]
    if not places:
        return MemoryCorpus(items)
    if len(places) < len(items):
        text = next(n for n in range(len(items)) if n not in places)
        raise CorpusError(
            f"found {str(items[places[0]])!r}, a file, and {str(items[text])[:60]!r}, which is no "
            "file (or does not exist), in one list; wanted only files, or only texts: "
            "headscope.corpus.MemoryCorpus([...]) takes all for texts"
        )
    return _of_files(items)


def _is_file(item: object) -> bool:
    if isinstance(item, str):
        return os.path.isfile(item) or is_place(item) or _named_like_a_file(item)
    return isinstance(item, os.PathLike)


def refuse_file_name(text: str) -> None:
    """Raises InputError for the name of a file where a text is wanted."""
    if os.path.isfile(text) or _named_like_a_file(text):
        raise InputError(
            f"found {text!r}, which names a file; wanted a text: what the file holds, say "
            f'"$(cat {text})"'
        )


def _named_like_a_file(text: str) -> bool:
    return is_known(suffix_of(text)) and not any(map(str.isspace, text))


def _of_files(files: Iterable[str | os.PathLike[str]]) -> Corpus:
    """One reader for each kind of file, in the order in which the kinds occur."""
    kinds: dict[Any, list[File]] = {}
    for place in files:
        if (Path(place) / INDICES[0]).is_file():
            kinds.setdefault(FramesCorpus, []).append(Path(place))
            continue
        for file in found_files(place):
            kinds.setdefault(_reader(file), []).append(file)
    parts: list[Corpus] = []
    for kind, some in kinds.items():
        places = [str(one) for one in some]
        parts += [kind(one) for one in places] if kind is FramesCorpus else [kind(places)]
    return parts[0] if len(parts) == 1 else Concatenation(parts)


def _reader(file: File) -> Callable[[Sequence[str]], Corpus]:
    suffix = suffix_of(file)
    if suffix in TABLES:
        raise CorpusError(
            f"{file} is a table or an archive; wanted text: read it, and give one column, say "
            "pandas.read_csv(file)['text'], or headscope.corpus.ColumnCorpus(file, column='text') "
            "of Parquet and JSON lines"
        )
    sharing = [one for one in formats().values() if suffix in one.suffixes]
    if len(sharing) > 1:
        first = next((line.text for line in read_lines(file) if line.text.strip()), "")
        sharing = [one for one in sharing if first.startswith(one.begins)]
        sharing.sort(key=lambda one: -len(one.begins))
    return sharing[0].read if sharing else TextCorpus
