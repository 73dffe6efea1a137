"""Store annotated sentences in a CoNLL-U file beside the corpus, and find them again.

There is one file for each corpus, parser and way of reading:

    wiki.txt.spacy-en_core_web_sm-3.8.0-spaCy-3.8.18.1f0c9a6be5d2.conllu

Any reader of CoNLL-U takes it. Its first line holds a key (a hash of what was read, how, and by
which parser) and a hash of the rest. A name is only ever given to one content, so it does not
matter who writes it, or how many do.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope import __version__
from headscope.core.whole_file import write_whole
from headscope.corpus.annotate import Annotator, Tree
from headscope.corpus.treebank import TreebankCorpus

RULES = 1  # to be raised when texts are cut, or words written, in another way within a version
FIRST_LINE = "# headscope annotation {key} sha256 {digest}\n"
SOURCE, PARSER = 40, 60  # characters at most of either in a name; a folder takes 255 bytes


def cache_key(corpus: Mapping[str, Any], annotator: Annotator, limit: int | None) -> str:
    """Hex sha256 of all that the annotation depends on: content, reading options, parser, us."""
    parts = [RULES, __version__, corpus, annotator.name, annotator.version, limit]
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def cache_places(source: Path, annotator: Annotator, key: str) -> list[Path]:
    """Where the annotation may lie: best beside the source, else in the user's cache folder."""
    parser = re.sub(r"[^\w.]+", "-", f"{annotator.name}-{annotator.version}").strip("-")
    name = f"{source.name[:SOURCE]}.{parser[:PARSER]}.{key[:12]}.conllu"
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [source.parent / name, Path(base) / "headscope" / "annotations" / name]


def is_intact(path: Path, key: str) -> bool:
    """Whether the file holds all that was once written to it under this key."""
    try:
        with path.open("rb") as file:
            line = file.readline(1000)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return False
    return line == FIRST_LINE.format(key=key, digest=digest).encode()


def write_cache(
    path: Path, key: str, documents: Iterable[tuple[str, Sequence[list[Tree]]]]
) -> Path:
    """Writes the trees of each piece, whole; raises UnwrittenError, and what `documents` raises."""

    def write(draft: str) -> None:
        digest = hashlib.sha256()
        with open(draft, "wb") as file:
            file.write(FIRST_LINE.format(key=key, digest="0" * 64).encode())
            for number, (name, pieces) in enumerate(documents):
                text = "".join(_rows(number, name, pieces)).encode("utf-8", "backslashreplace")
                file.write(text)
                digest.update(text)
            file.seek(0)
            file.write(FIRST_LINE.format(key=key, digest=digest.hexdigest()).encode())

    return write_whole(path, write)


def read_cache(path: Path) -> Iterator[tuple[int, dict[int, list[Tree]]]]:
    """Number of each document that has any tree, and the trees of its pieces by their number."""
    with path.open("rb") as file:
        file.readline()
        if not file.read(1):
            return  # a treebank without sentences is none
    for document in TreebankCorpus(path):
        trees: dict[int, list[Tree]] = {}
        number = 0
        for passage in document.passages:
            number, piece, _ = map(int, passage.id.split("."))
            trees.setdefault(piece, []).append(passage.words or ())
        yield number, trees


def _rows(number: int, name: str, pieces: Sequence[list[Tree]]) -> Iterator[str]:
    newdoc = f"# newdoc id = {' '.join(name.split()) or number}\n"
    for piece, trees in enumerate(pieces):
        for place, tree in enumerate(trees):
            yield f"{newdoc}# sent_id = {number}.{piece}.{place}\n"
            newdoc = ""
            for row, word in enumerate(tree, start=1):
                tags = f"{word.upos or '_'}\t{word.xpos or '_'}\t_\t{word.head + 1}"
                space = "_" if word.space_after else "SpaceAfter=No"
                yield f"{row}\t{word.form}\t_\t{tags}\t{word.relation or '_'}\t_\t{space}\n"
            yield "\n"
