"""Give plain text words, tags and trees.

corpus ─► pieces of running text ─► parser (once) ─► CoNLL-U beside the corpus ─► sentences
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import Any

from headscope.core.display import Displayed
from headscope.corpus.annotate import Annotator, Tree
from headscope.corpus.annotate.annotation_cache import (
    cache_key,
    cache_places,
    is_intact,
    read_cache,
    write_cache,
)
from headscope.corpus.annotate.parsers import annotator_of
from headscope.corpus.document import Corpus, Document, Passage, is_unicode
from headscope.corpus.files import described
from headscope.errors import InputError, UnwrittenError

Progress = Callable[[int], None]


class AnnotatedCorpus(Displayed):
    """A corpus whose plain text a parser has cut into sentences, tagged and parsed.

    corpus     any corpus
    annotator  `spacy:MODEL`, `stanza:LANG`, or an object of your own (an `Annotator`)
    limit      annotate only the first so many documents, for a run that reads no more

    Each sentence of a plain text becomes a passage of words, an input of its own as in a treebank:
    it shares its window with no other, and of a pair each text is read by itself. Passages that
    have words already (a treebank's, or a coreference document's), ready tokens, and text that
    holds no word stay as they are.

    The parser runs once. Its answers are kept in a CoNLL-U file beside the corpus's first file
    (or in the user's cache folder, where that cannot be written) and read from there in every
    pass, by every process, and by later runs, as long as content, reading options, parser and its
    version are the same. The annotation of a corpus in memory stays in memory; so does that of
    several corpora in one: annotate each of them, then put them together.
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
        """Yields the documents, in the order of the corpus; annotates them if that is to be done.

        raises  InputError if the parser cannot be loaded, CorpusError as the corpus does
        """
        self.prepare()
        if self._documents is not None:
            yield from self._documents
        elif self._file is not None:
            yield from self._read(self._file)

    def facts(self) -> dict[str, object]:
        """The corpus, and who annotates it."""
        return {"corpus": self.corpus, "annotator": f"by {self.annotator.name}"}

    def describe(self) -> dict[str, Any]:
        """What was read, as the corpus describes it, and `annotator`: its `name` and `version`."""
        by = {"name": self.annotator.name, "version": self.annotator.version}
        return {**self.corpus.describe(), "annotator": by}

    def prepare(self, progress: Progress | None = None) -> Path | None:
        """Annotates the corpus, unless that has been done.

        progress  called with the number of documents that are annotated
        returns   the file that holds the annotation; None if it is held in memory
        """
        if self._documents is None and (self._file is None or not self._file.is_file()):
            self._file = self._find() or self._make(progress or (lambda count: None))
        return self._file

    @property
    def source(self) -> Path | None:
        """The corpus's first file, beside which the annotation is kept; None if it has none."""
        files = getattr(self.corpus, "files", ())
        return files[0] if files and all(isinstance(file, Path) for file in files) else None

    def _places(self, *limits: int | None) -> list[tuple[Path, str]]:
        if self.source is None:
            return []
        files = described(getattr(self.corpus, "files", ()))  # large ones have no sha256 of theirs
        description = self.corpus.describe() | {"files": files}
        keys = [cache_key(description, self.annotator, limit) for limit in limits]
        return [(p, key) for key in keys for p in cache_places(self.source, self.annotator, key)]

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
    """Neighbouring passages that are parsed as one, or left as they are.

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
    """Passages that belong together.

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
        text, MOST, expand_tabs=False, replace_whitespace=False,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
