"""What becomes of a part of a corpus that cannot be read: does it end the run, or is it left out?

Readers yield such a part as a passage with a `fault`; here it is decided what that means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from headscope.corpus.document import Document, Passage
from headscope.errors import CorpusError, InputError

OnError = Literal["stop", "skip"]
ON_ERROR = ("stop", "skip")


class LineFault(ValueError):
    """What is wrong with a part of a corpus, and in which line."""

    def __init__(self, reason: str, *, line: int) -> None:
        super().__init__(reason)
        self.line = line


def checked_policy(on_error: str) -> OnError:
    """The policy itself; raises InputError for one that does not exist."""
    if on_error not in ON_ERROR:
        raise InputError(f"on_error={on_error!r}; wanted one of {', '.join(ON_ERROR)}")
    return on_error  # type: ignore[return-value]


def obeyed(documents: Iterable[Document], on_error: OnError) -> Iterator[Document]:
    """The documents as they are (`skip`), or up to the first fault (`stop`: CorpusError)."""
    for document in documents:
        for passage in document.passages:
            if passage.fault is not None and on_error == "stop":
                raise CorpusError(passage.fault)
        yield document


def left_out(name: str, fault: str) -> Document:
    """A document of which nothing can be read."""
    return Document(name, (Passage(name, fault=fault),))


def described_policy(on_error: OnError) -> dict[str, Any]:
    """What a corpus's description says of it: nothing, if it is the default."""
    return {} if on_error == "stop" else {"on_error": on_error}
