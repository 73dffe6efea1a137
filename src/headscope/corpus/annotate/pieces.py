"""Which passages of a document are plain text, and what of it does the parser see at once?"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from headscope.corpus.document import Passage

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
    found: list[Piece] = []
    for kind, group in groupby(passages, key=_kind):
        if kind == "running":
            found += [Piece(run, tuple(_cut(_joined(run)))) for run in _runs(list(group))]
        elif kind == "alone":
            found += [
                Piece((p,), tuple(t for text in _texts(p) for t in _cut(text))) for p in group
            ]
        else:
            found += [Piece((p,)) for p in group]
    return found


def _kind(passage: Passage) -> str:
    texts = _texts(passage)
    if not texts or not all(map(_valid, texts)):
        return "left"
    return "running" if passage.packable and passage.text_pair is None else "alone"


def _texts(passage: Passage) -> list[str]:
    return [text for text in (passage.text, passage.text_pair) if text]


def _valid(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _joined(run: Sequence[Passage]) -> str:
    return " ".join(passage.text or "" for passage in run)


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
    """The text, in several parts if it is longer than MOST; cut only at white space."""
    if len(text) <= MOST:
        return [text]
    return textwrap.wrap(
        text, MOST, expand_tabs=False, replace_whitespace=False,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
