"""Encode documents as model inputs; split or skip those that are too long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from headscope.corpus.contents import WINDOWS, EncodeCounts, reading_of
from headscope.corpus.document import Document, Example, Passage, is_unicode
from headscope.corpus.equal_documents import content_name
from headscope.corpus.files import check_choice
from headscope.corpus.packing import fill, split_point, windows
from headscope.corpus.tokenizer import Ids, TokenizerReader, UnknownToken
from headscope.errors import CorpusError, InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


LONG = ("window", "skip", "error")
SEGMENT_IDS = ("auto", "zeros")
WORD_TOKENS = ("auto", "text", "alone")
AHEAD = 1 << 15  # ours: characters that the tokenizer reads in one call; they are held meanwhile
PACKED_LENGTH = 128  # Clark et al. (2019), section 3: segments of at most 128 tokens


@dataclass(frozen=True, slots=True)
class _Content:
    """The token ids of a passage, without special tokens."""

    first: Ids  # [token]
    second: Ids | None = None  # [token] of the second segment
    word_index: Ids | None = None  # [token]

    def __len__(self) -> int:
        return len(self.first) + (0 if self.second is None else len(self.second))

    def part(self, cut: slice) -> _Content:
        """The tokens of a slice, counted through both segments; one segment if it has one."""
        word_index = None if self.word_index is None else self.word_index[cut]
        if self.second is None:
            return _Content(self.first[cut], None, word_index)
        border = len(self.first)
        second = self.second[max(cut.start - border, 0) : max(cut.stop - border, 0)]
        if cut.start >= border:
            return _Content(second, None, word_index)
        return _Content(self.first[cut], second if len(second) else None, word_index)

    def windows(self, name: str, *, capacity: int) -> Iterator[tuple[str, _Content]]:
        """Consecutive parts of at most `capacity` tokens, each with its own name."""
        cuts = windows(len(self), capacity=capacity, word_index=self.word_index)
        return ((f"{name}#{count}", self.part(cut)) for count, cut in enumerate(cuts))


class Encoder:
    """Turns documents into examples with one tokenizer, and keeps counts.

    tokenizer     the model's
    model_limit   tokens that the model takes at most, special ones included
    limited_by    what sets that limit, for messages
    has_segments  whether the model has embeddings for a second segment (type_vocab_size > 1)
    max_length    tokens of an example at most, special ones included; where None, 128 for packed
                  text (or the model's limit, if that is less) and the model's limit for the rest
    long          what to do with a passage over the limit: read it in consecutive `window`s,
                  `skip` it (counted and named), or stop with an `error`
    segment_ids   `auto`: 0 up to and including the first separator, then 1, for a model that has
                  segments; `zeros`: all 0, as Clark et al.'s script did
    word_tokens   tokens of annotated words: those of their running `text`, each in the word where
                  it begins, or of each word `alone`, as Clark et al. read them; `auto`: of the
                  text where spaces change them (byte-level BPE, sentencepiece), else alone
                  (WordPiece)
    seed          decides where packed windows are split in two
    start         of a decoder beside an encoder, the token that its inputs start with, in place of
                  the sign that closes a text

    `counts` holds the totals of all documents encoded so far. Never cut silently: every token of
    every passage is in exactly one example, or its passage is counted as skipped.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        model_limit: int,
        has_segments: bool,
        limited_by: str = "",
        max_length: int | None = None,
        long: Literal["window", "skip", "error"] = "window",
        segment_ids: Literal["auto", "zeros"] = "auto",
        word_tokens: Literal["auto", "text", "alone"] = "auto",
        seed: int = 0,
        start: int | None = None,
    ) -> None:
        check_choice("long", long, *LONG)
        check_choice("segment_ids", segment_ids, *SEGMENT_IDS)
        check_choice("word_tokens", word_tokens, *WORD_TOKENS)
        self.reader = TokenizerReader(tokenizer)
        limit_words = limited_by and f": {limited_by}"
        self._takes = f"this model takes {model_limit}{limit_words}"
        self.limit = model_limit if max_length is None else max_length
        self.packed_limit = min(PACKED_LENGTH, model_limit) if max_length is None else max_length
        # Two tokens of content let every kind of window move on, one in each segment.
        least = max(self.reader.frame.room) + 2
        for limit in (self.limit, self.packed_limit):
            if not least <= limit <= model_limit:
                raise InputError(
                    f"a length of {limit} tokens; wanted {least} (special tokens and two more) to "
                    f"{model_limit} (what the model takes{limit_words})"
                )
        running = word_tokens == "text" or (word_tokens == "auto" and self.reader.sees_spaces)
        self._words = self.reader.running_words if running else self.reader.words
        self.long = long
        self.segments = has_segments and segment_ids == "auto"
        self.seed, self.start = seed, start
        self.counts = EncodeCounts()

    def encode(self, document: Document) -> list[Example]:
        """The examples of one document, in reading order; empty if nothing in it is readable.

        raises  CorpusError if ready tokens are not in the vocabulary, or, with long="error", for
                a passage over the limit
        """
        self.counts.documents += 1
        examples: list[Example] = []
        packed = 0
        for packable, group in groupby(document.passages, key=_packable):
            if packable:
                windowed = list(self._packed(document, list(group), start=packed))
                packed += len(windowed)
                examples += windowed
            else:
                examples += [e for passage in group for e in self._alone(document, passage)]
        if self.start is not None:
            examples = [_started(example, self.start) for example in examples]
        self.counts.examples += len(examples)
        self.counts.tokens += sum(map(len, examples))
        for example in examples:
            content = example.input_ids[~example.special]
            self.counts.content += len(content)
            self.counts.unknown += int((content == self.reader.tokenizer.unk_token_id).sum())
        if not examples:
            return []
        name = content_name(examples)
        return [replace(example, content=name) for example in examples]

    def encode_each(self, documents: Iterable[Document]) -> Iterator[list[Example]]:
        """As `encode` for each document; many are tokenized in one call."""
        for some in _portions(documents):
            texts, packed = list[str](), list[list[str]]()
            for document in some:
                for packable, group in groupby(document.passages, key=_packable):
                    each = [p for p in group if is_unicode(p.text or "", p.text_pair or "")]
                    if packable:
                        packed.append([p.text or "" for p in each])
                    else:
                        texts += [text for p in each for text in (p.text, p.text_pair) if text]
            self.reader.read_ahead(texts, packed)
            yield from map(self.encode, some)

    def _alone(self, document: Document, passage: Passage) -> Iterator[Example]:
        if passage.fault is not None:
            self.counts.skip(passage.fault, reason="malformed")
            return
        if not self._readable(passage):
            return
        if passage.tokens is not None:
            yield from self._ready(document, passage, passage.tokens)
            return
        for name, content in self._fitted(passage.id, self._content(passage), self.limit):
            example = self._example(name, document, content)
            yield replace(
                example,
                words=passage.words,
                mentions=passage.mentions,
                frames=passage.frames,
                reading=reading_of(passage),
            )

    def _content(self, passage: Passage) -> _Content:
        if passage.words is not None:
            glued = [i + 1 for i, word in enumerate(passage.words) if not word.space_after]
            ids, word_index = self._words([w.form for w in passage.words], glued=glued)
            self.counts.without_token += len(passage.words) - len(np.unique(word_index))
            return _Content(ids, None, word_index)
        first = self.reader.text(passage.text or "")
        # As the tokenizer itself does, an empty second text is no second segment.
        second = self.reader.text(passage.text_pair) if passage.text_pair else None
        return _Content(first, second)

    def _packed(
        self, document: Document, passages: Sequence[Passage], *, start: int
    ) -> Iterator[Example]:
        """Windows of consecutive sentences: two segments, where a sign stands between segments."""
        names, pieces = self._sentences(passages)
        frame = self.reader.frame
        capacity = self.packed_limit - frame.room[frame.separates]
        index = start
        for run in fill([len(piece) for piece in pieces], capacity=capacity):
            ids = [pieces[i] for i in run]
            if len(run) == 1:
                fitted = self._fitted(names[run[0]], _Content(ids[0]), self.packed_limit)
                contents = [content for _, content in fitted]
            elif frame.separates:
                cut = split_point(len(run), seed=self.seed, document=document.id, index=index)
                contents = [_Content(np.concatenate(ids[:cut]), np.concatenate(ids[cut:]))]
            else:
                contents = [_Content(np.concatenate(ids))]
            for content in contents:
                example = self._example(f"{document.id}#{index}", document, content)
                yield replace(example, reading=WINDOWS)
                index += 1

    def _sentences(self, passages: Sequence[Passage]) -> tuple[list[str], list[Ids]]:
        """Passage ids and token ids of the non-empty sentences.

        All are read in one call, each as if it were a word, so that a tokenizer to which spaces
        matter sees the one between two sentences.
        """
        usable = [p for p in passages if self._readable(p)]
        ids, sentence = self.reader.words([p.text or "" for p in usable])
        names, pieces, start = [], [], 0
        for passage, length in zip(
            usable, np.bincount(sentence, minlength=len(usable)).tolist(), strict=False
        ):
            if length:
                names.append(passage.id)
                pieces.append(ids[start : start + length])
            else:
                self.counts.skip(passage.id, reason="empty")
            start += length
        return names, pieces

    def _fitted(self, name: str, content: _Content, limit: int) -> Iterator[tuple[str, _Content]]:
        if not len(content):
            self.counts.skip(name, reason="empty")
            return
        room = self.reader.frame.room[content.second is not None]
        if len(content) + room <= limit:
            yield name, content
        elif self._windowed(name, len(content) + room, limit):
            yield from content.windows(name, capacity=limit - room)

    def _windowed(self, name: str, length: int, limit: int) -> bool:
        """Whether a passage over the limit is read in windows; counts it in any case."""
        if self.long == "error":
            raise CorpusError(
                f"{name} has {length} tokens and {limit} fit; choose long=window or long=skip, or "
                f"a larger max_length ({self._takes})"
            )
        if self.long == "skip":
            self.counts.skip(name, reason=f"longer than {limit} tokens")
            return False
        self.counts.windowed += 1
        return True

    def _ready(
        self, document: Document, passage: Passage, tokens: Sequence[str]
    ) -> Iterator[Example]:
        try:
            ids = self.reader.tokens(tokens)
        except UnknownToken as error:
            raise CorpusError(
                f"segments were cut with another vocabulary: {passage.id} holds {error.args[0]!r}, "
                "which this model's tokenizer does not know; give text_a and text_b instead"
            ) from error
        if np.isin(ids, self.reader.special).all():
            self.counts.skip(passage.id, reason="empty")
        elif len(ids) <= self.limit:
            yield self._ready_example(passage.id, document, ids)
        elif self._windowed(passage.id, len(ids), self.limit):
            content = _Content(*self.reader.frame.unwrap(ids, self.reader.separator))
            capacity = self.limit - self.reader.frame.room[content.second is not None]
            for name, part in content.windows(passage.id, capacity=capacity):
                whole, _, _ = self.reader.frame.wrap(part.first, part.second)
                yield self._ready_example(name, document, whole)

    def _ready_example(self, name: str, document: Document, ids: Ids) -> Example:
        separators = np.flatnonzero(ids == self.reader.separator)
        segment_ids = np.zeros_like(ids)
        if self.segments and len(separators):
            segment_ids[separators[0] + 1 :] = 1
        special = np.isin(ids, self.reader.special)
        return Example(name, document.id, ids, segment_ids, special)

    def _example(self, name: str, document: Document, content: _Content) -> Example:
        ids, special, segments = self.reader.frame.wrap(content.first, content.second)
        segment_ids = segments if self.segments else np.zeros_like(ids)
        word_index = None
        if content.word_index is not None:
            word_index = np.full(len(ids), -1, dtype=np.int64)  # [token]
            word_index[~special] = content.word_index
        return Example(name, document.id, ids, segment_ids, special, word_index)

    def _readable(self, passage: Passage) -> bool:
        texts = [passage.text or "", passage.text_pair or "", *(passage.tokens or ())]
        texts += [word.form for word in passage.words or ()]
        readable = is_unicode(*texts)
        if not readable:
            self.counts.skip(passage.id, reason="not valid Unicode")
        return readable


def _portions(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Lists of documents with a number of characters; documents before an error come first."""
    held, size = list[Document](), 0
    try:
        for document in documents:
            held.append(document)
            size += sum(len(p.text or "") + len(p.text_pair or "") for p in document.passages)
            if size >= AHEAD or len(held) >= AHEAD >> 5:
                yield held
                held, size = [], 0
    except CorpusError:
        yield held
        raise
    yield held


def _packable(passage: Passage) -> bool:
    return passage.packable and passage.text is not None and passage.text_pair is None


def _started(example: Example, start: int) -> Example:
    """As a decoder reads it: behind the token `start`, and without the sign that closes it."""
    end = len(example) - bool(example.special[-1:].any())
    firsts = {"input_ids": start, "segment_ids": 0, "special": True, "word_index": -1}
    parts: dict[str, Any] = {
        name: np.concatenate([np.full(1, first, own.dtype), own[:end]])
        for name, first in firsts.items()
        if (own := getattr(example, name)) is not None
    }
    return replace(example, **parts)
