"""The data of a corpus: documents, their passages with annotations, and the model inputs.

Corpus  ─► Document ─► Passage (one text, pair, token list or annotated sentence) ─► Example
The document is the unit that intervals are over; a passage becomes one or more model inputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from headscope.core.display import Displayed
from headscope.core.wording import how_many
from headscope.errors import CorpusError, InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Word:
    """One syntactic word of an annotated sentence (a numbered row of CoNLL-U)."""

    form: str
    upos: str | None = None
    xpos: str | None = None
    head: int = -1  # 0-based index of the head word within the sentence; -1 for the root
    relation: str | None = None
    space_after: bool = True


@dataclass(frozen=True, slots=True)
class Mention:
    """One coreference mention of a passage: words first..last (0-based, inclusive).

    kind  "pronoun", "proper" or "nominal"; None where the reader does not know
    """

    entity: str
    first: int
    last: int
    head: int  # 0-based index of the head word
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class FrameElement:
    """One role of a frame: words first..last (0-based, inclusive); core as the frame declares."""

    name: str
    first: int
    last: int
    core: bool = True


@dataclass(frozen=True, slots=True)
class Frame:
    """One evoked frame: the words first..last that evoke it, and its elements."""

    name: str
    first: int
    last: int
    elements: tuple[FrameElement, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """One thing to read: exactly one of text, tokens and words is given.

    text        running text; with text_pair, the two segments of one input
    tokens      pre-tokenised input, special tokens included, used as it is
    words       an annotated sentence, or a document of which mentions or frames are known
    packable    whether neighbouring passages of the document may share a window
    fault       instead of all of them: what is malformed in its source and where; a reader with
                on_error="skip" goes on, and the passage is counted as skipped
    """

    id: str
    text: str | None = None
    text_pair: str | None = None
    tokens: tuple[str, ...] | None = None
    words: tuple[Word, ...] | None = None
    mentions: tuple[Mention, ...] = ()
    frames: tuple[Frame, ...] = ()
    packable: bool = False
    fault: str | None = None

    @property
    def begin(self) -> str:
        """Its first words, about a line."""
        words = self.tokens or [word.form for word in self.words or ()]
        return (self.text or " ".join(words[:20]))[:80]


@dataclass(frozen=True, slots=True)
class Document:
    """Passages that belong together: an article, a file, one segment pair."""

    id: str
    passages: tuple[Passage, ...]


def is_unicode(*texts: str) -> bool:
    """Whether texts are valid Unicode: without half of a surrogate pair."""
    try:
        for text in texts:
            if not text.isascii():
                text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Corpus(Protocol):
    """Documents that can be read again in the same order, without holding all of them in memory."""

    def __iter__(self) -> Iterator[Document]:
        """Yields the documents; every call starts from the first."""
        ...

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` (name and sha256 of each), and reading options."""
        ...


@dataclass(frozen=True, slots=True)
class Example:
    """One model input: the tokens of a passage, or of a window of several.

    input_ids     [token] int64, special tokens included
    segment_ids   [token] int64, 0 for the first segment and 1 for the second
    special       [token] bool, True for tokens that the tokenizer added; in pre-tokenised input,
                  for those that frame an input ([CLS], [SEP], ...; not [UNK] and [MASK])
    word_index    [token] int64, the word of each token within `words`; -1 where there is none
    document      id of the document it belongs to: the unit of intervals
    reading       the kind of inputs that it is of, one of `contents.READINGS`
    content       a name of what that document says, the same for all that say the same; "" where
                  it is not known. Documents of one content are one unit
    """

    id: str
    document: str
    input_ids: npt.NDArray[np.int64]
    segment_ids: npt.NDArray[np.int64]
    special: npt.NDArray[np.bool_]
    word_index: npt.NDArray[np.int64] | None = None
    words: tuple[Word, ...] | None = None
    mentions: tuple[Mention, ...] = ()
    frames: tuple[Frame, ...] = ()
    reading: str = "texts"
    content: str = ""

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def content_bytes(self) -> bytes:
        """Everything that a model or an analysis reads, as bytes for a hash."""
        parts = [
            repr((self.id, self.document, len(self), self.reading)).encode(),
            self.input_ids.astype("<i8").tobytes(),
            self.segment_ids.astype("<i8").tobytes(),
        ]
        if self.words is not None:  # analyses may read the annotations
            parts.append(repr((self.words, self.mentions, self.frames)).encode())
            parts.append(b"" if self.word_index is None else self.word_index.tobytes())
        return b"".join(parts)

    def leading(self, tokens: int) -> Example:
        """Its first tokens only; words beyond them have no token, as in a window."""
        if len(self) <= tokens:
            return self
        parts = {
            name: getattr(self, name)[:tokens] for name in ("input_ids", "segment_ids", "special")
        }
        index = None if self.word_index is None else self.word_index[:tokens]
        return replace(self, **parts, word_index=index)

    def window(self, tokens: int) -> Example:
        """Its first tokens, closed by the special tokens that close it: [SEP] of an encoder."""
        plain = (~self.special).nonzero()[0]
        closing = len(self) - 1 - int(plain[-1]) if len(plain) else 0
        if len(self) <= tokens or closing >= tokens:
            return self.leading(tokens)
        at = [*range(tokens - closing), *range(len(self) - closing, len(self))]
        parts = {name: getattr(self, name)[at] for name in ("input_ids", "segment_ids", "special")}
        index = None if self.word_index is None else self.word_index[at]
        return replace(self, **parts, word_index=index)


@dataclass(frozen=True, init=False, repr=False)
class MemoryCorpus(Displayed):
    """Documents, texts or pairs of texts held in memory; each text or pair is one document.

    documents  any mix of Document, str and (str, str); texts are named `text 0`, `text 1`, … by
               their place in the list
    """

    documents: tuple[Document, ...]

    def __init__(self, documents: Iterable[Document | str | tuple[str, str]]) -> None:
        if isinstance(documents, str):
            raise InputError("found one text; wanted a list of texts: put it in [ ]")
        read = tuple(_document(item, count) for count, item in enumerate(documents))
        if not read:
            raise CorpusError("found an empty list; wanted at least one text or document")
        object.__setattr__(self, "documents", read)

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def facts(self) -> dict[str, object]:
        """The number of documents, and the beginnings of the first ones."""
        count, first = len(self.documents), self.documents[0]
        return {
            "documents": how_many(count, "document"),
            "first": first.passages[0].begin if first.passages else "",
        }

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` (none), and the `sha256` of the documents' content."""
        digest = hashlib.sha256()
        for document in self.documents:
            digest.update(repr(document).encode("utf-8", "backslashreplace") + b"\n")
        return {"kind": "memory", "files": [], "sha256": digest.hexdigest()}


@dataclass(frozen=True, init=False, repr=False)
class Concatenation(Displayed):
    """Several corpora read one after the other, as if they were one.

    Each document's id gets the place of its corpus in front: two corpora may use the same ids, and
    documents of one id would be left out together.
    """

    corpora: tuple[Corpus, ...]

    def __init__(self, corpora: Iterable[Corpus]) -> None:
        object.__setattr__(self, "corpora", tuple(corpora))
        if not self.corpora:
            raise CorpusError("found no corpus to read; wanted at least one")

    def facts(self) -> dict[str, object]:
        """The corpora, in their order."""
        return {str(place): corpus for place, corpus in enumerate(self.corpora)}

    def __iter__(self) -> Iterator[Document]:
        for place, corpus in enumerate(self.corpora):
            for document in corpus:
                yield replace(document, id=f"{place}/{document.id}")

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` of all, and the description of each of the `parts`."""
        parts = [corpus.describe() for corpus in self.corpora]
        files = [file for part in parts for file in part["files"]]
        return {"kind": "several", "files": files, "parts": parts}


def _document(item: object, count: int) -> Document:
    name = f"text {count}"
    match item:
        case Document():
            return item
        case str():
            return Document(name, (Passage(name, text=item),))
        case (str() as first, str() as second):
            return Document(name, (Passage(name, text=first, text_pair=second),))
    raise InputError(
        f"item {count} of the corpus is {_named(item)}; wanted a text, a pair of texts "
        "or a Document"
    )


def _named(item: object) -> str:
    missing = item is None or item != item  # noqa: PLR0124  NaN, of a table
    return "missing (say column.dropna())" if missing else f"a {type(item).__name__}"
