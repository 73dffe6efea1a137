"""Add words, tags and dependency trees to plain text.

corpus ─► pieces of running text ─► parser (once) ─► CoNLL-U in a cache ─► sentences

There is one file for each corpus, parser and way of reading:

    wiki.txt.spacy-en_core_web_sm-3.8.0-spaCy-3.8.18.1f0c9a6be5d2.conllu

Any reader of CoNLL-U takes it. Its first line holds a key (a hash of what was read, how, and by
which parser) and a hash of the rest. A name is only ever given to one content, so it does not
matter who writes it, or how many do.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import Any

from headscope import __version__
from headscope.core.display import Displayed
from headscope.core.whole_file import user_cache, write_whole
from headscope.corpus.annotate import Annotator, Tree
from headscope.corpus.annotate.parsers import annotator_of
from headscope.corpus.document import Corpus, Document, Passage, is_unicode
from headscope.corpus.files import described
from headscope.corpus.treebank import TreebankCorpus
from headscope.errors import InputError, UnwrittenError

RULES = 1  # to be raised when texts are cut, or words written, in another way within a version
FIRST_LINE = "# headscope annotation {key} sha256 {digest}\n"
SOURCE, PARSER = 40, 60  # characters at most of either in a name; a folder takes 255 bytes


def cache_key(corpus: Mapping[str, Any], annotator: Annotator, limit: int | None) -> str:
    """Hex sha256 of everything the annotation depends on: content, reading options, parser,
    headscope.
    """
    parts = [RULES, __version__, corpus, annotator.name, annotator.version, limit]
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def cache_place(source: Path, annotator: Annotator, key: str) -> Path:
    """The place of the annotation, in the user's cache folder."""
    parser = re.sub(r"[^\w.]+", "-", f"{annotator.name}-{annotator.version}").strip("-")
    name = f"{source.name[:SOURCE]}.{parser[:PARSER]}.{key[:12]}.conllu"
    return user_cache("annotations", name)


def is_intact(path: Path, key: str) -> bool:
    """Whether the file is complete and was written under this key."""
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
    """Writes the trees of each piece atomically; raises UnwrittenError, and what `documents`
    raises.
    """

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
    """Number of each document with trees, and the trees of its pieces by their number."""
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


Progress = Callable[[int], None]


class AnnotatedCorpus(Displayed):
    """A corpus of plain text, split into sentences, tagged and parsed by a parser.

    corpus     any corpus
    annotator  `spacy:MODEL`, `stanza:LANG`, or an object of your own (an `Annotator`)
    limit      annotate only the first documents, for a run that reads no more

    Each sentence of a plain text becomes a passage of words, an input of its own as in a treebank:
    it shares its window with no other, and of a pair each text is read by itself. Passages that
    have words already (a treebank's, or a coreference document's), ready tokens, and text that
    holds no word stay as they are.

    The parser runs once. Its answers are kept in a CoNLL-U file in the user's cache folder
    (`$XDG_CACHE_HOME`), and read from there in every pass, by every process and by later runs, as
    long as content, reading options, parser and its version are the same. The annotation of a
    corpus in memory stays in memory; so does that of several corpora in one: annotate each of
    them, then put them together.
    """

    def __init__(
        self, corpus: Corpus, annotator: Annotator | str, *, limit: int | None = None
    ) -> None:
        """Raises InputError where the parser is not installed, with the command to install it."""
        if limit is not None and limit < 1:
            raise InputError(f"limit is {limit!r}; wanted a whole number, at least 1")
        self.corpus = corpus
        self.annotator = annotator_of(annotator) if isinstance(annotator, str) else annotator
        self.limit = limit
        self._file: Path | None = None
        self._documents: tuple[Document, ...] | None = None

    def __iter__(self) -> Iterator[Document]:
        """Yields the documents in the order of the corpus; annotates them first if necessary.

        raises  InputError if the parser cannot be loaded, CorpusError as the corpus does
        """
        self.prepare()
        if self._documents is not None:
            yield from self._documents
        elif self._file is not None:
            yield from self._read(self._file)

    def facts(self) -> dict[str, object]:
        """The corpus, and its parser."""
        return {"corpus": self.corpus, "annotator": f"by {self.annotator.name}"}

    def describe(self) -> dict[str, Any]:
        """What was read, as the corpus describes it, and `annotator`: its `name` and `version`."""
        by = {"name": self.annotator.name, "version": self.annotator.version}
        return {**self.corpus.describe(), "annotator": by}

    def prepare(self, progress: Progress | None = None) -> Path | None:
        """Annotates the corpus, unless it is annotated already.

        progress  called with the number of documents that are annotated
        returns   the file that holds the annotation; None if it is held in memory
        """
        if self._documents is None and (self._file is None or not self._file.is_file()):
            self._file = self._find() or self._make(progress or (lambda count: None))
        return self._file

    @property
    def source(self) -> Path | None:
        """The corpus's first file, whose name the annotation bears; None if it has none."""
        files = getattr(self.corpus, "files", ())
        return files[0] if files and all(isinstance(file, Path) for file in files) else None

    def _places(self, *limits: int | None) -> list[tuple[Path, str]]:
        if self.source is None:
            return []
        files = described(getattr(self.corpus, "files", ()))  # large ones have no sha256 of theirs
        description = self.corpus.describe() | {"files": files}
        keys = [cache_key(description, self.annotator, limit) for limit in limits]
        return [(cache_place(self.source, self.annotator, key), key) for key in keys]

    def _find(self) -> Path | None:
        places = self._places(None, *([] if self.limit is None else [self.limit]))
        return next((path for path, key in places if is_intact(path, key)), None)

    def _make(self, progress: Progress) -> Path | None:
        for path, key in self._places(self.limit):
            try:
                annotated = ((document.id, trees) for document, trees in self._annotated(progress))
                return write_cache(path, key, annotated)
            except UnwrittenError:  # no right to write, no space left: the next place
                continue
        self._documents = tuple(
            _assembled(document, dict(enumerate(trees)))
            for document, trees in self._annotated(progress)
        )
        return None

    def _annotated(self, progress: Progress) -> Iterator[tuple[Document, list[list[Tree]]]]:
        parser = self.annotator.load()
        for count, document in enumerate(islice(self.corpus, self.limit), start=1):
            parts = pieces(document.passages)
            trees = iter(parser([text for piece in parts for text in piece.texts]))
            yield document, [[t for _ in piece.texts for t in next(trees)] for piece in parts]
            progress(count)

    def _read(self, path: Path) -> Iterator[Document]:
        kept = read_cache(path)
        following, trees = next(kept, (-1, {}))
        for number, document in enumerate(islice(self.corpus, self.limit)):
            mine: dict[int, list[Tree]] = {}
            if number == following:
                mine = trees
                following, trees = next(kept, (-1, {}))
            yield _assembled(document, mine)


def _assembled(document: Document, trees: dict[int, list[Tree]]) -> Document:
    passages: list[Passage] = []
    for number, piece in enumerate(pieces(document.passages)):
        if sentences := trees.get(number):
            first = piece.passages[0].id
            passages += [Passage(f"{first}/{n}", words=t) for n, t in enumerate(sentences, start=1)]
        else:
            passages += piece.passages
    return Document(document.id, tuple(passages))


MOST = 10_000  # characters parsed at once: a parser's memory grows with them
SENTENCE_END = re.compile(r"[.!?]['\"”’»)\]]*\s*$")


@dataclass(frozen=True, slots=True)
class Piece:
    """Neighbouring passages that are parsed as one text, or left unchanged.

    passages  the passages
    texts     what the parser is given, one after the other; none where there is nothing to parse
    """

    passages: tuple[Passage, ...]
    texts: tuple[str, ...] = ()


def pieces(passages: Sequence[Passage]) -> list[Piece]:
    """The passages of a document, in order, as pieces.

    Running text (packable passages) was cut into sentences only roughly ("Dr. | Smith"), so it is
    put together again, and the parser decides where sentences end. A passage that is an input of
    its own is parsed alone; of a pair, both texts. Ready tokens, words that are given, faults, and
    text that is not valid Unicode are left as they are.
    """
    result: list[Piece] = []
    for kind, group in groupby(passages, key=_kind):
        if kind == "running":
            for run in _runs(list(group)):
                text = " ".join(passage.text or "" for passage in run)
                result.append(Piece(run, tuple(_cut(text))))
        elif kind == "alone":
            result += [
                Piece((p,), tuple(t for text in _texts(p) for t in _cut(text))) for p in group
            ]
        else:
            result += [Piece((p,)) for p in group]
    return result


def _kind(passage: Passage) -> str:
    texts = _texts(passage)
    if not texts or not is_unicode(*texts):
        return "left"
    return "running" if passage.packable and passage.text_pair is None else "alone"


def _texts(passage: Passage) -> list[str]:
    return [text for text in (passage.text, passage.text_pair) if text]


def _runs(passages: Sequence[Passage]) -> Iterator[tuple[Passage, ...]]:
    """Groups of passages that belong together.

    A passage without a mark at its end was cut by the end of its line. In text that was wrapped at
    some width the sentence goes on; else the line was a heading or an item, all by itself.
    """
    wrapped = _wrapped(passages)
    run, size = [passages[0]], len(passages[0].text or "")
    for before, passage in pairwise(passages):
        size += 1 + len(passage.text or "")
        if size > MOST or not (wrapped or _ended(before)):
            yield tuple(run)
            run, size = [], len(passage.text or "")
        run.append(passage)
    yield tuple(run)


def _wrapped(passages: Sequence[Passage]) -> bool:
    """Whether most lines that end within a sentence are followed by a lower-case letter."""
    behind = [b for a, b in pairwise(passages) if not _ended(a)]
    return 2 * sum((b.text or "")[:1].islower() for b in behind) > len(behind)


def _ended(passage: Passage) -> bool:
    return SENTENCE_END.search((passage.text or "")[-20:]) is not None


def _cut(text: str) -> list[str]:
    if len(text) <= MOST:
        return [text]
    return textwrap.wrap(
        text,
        MOST,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
