"""How does the simplest parser there can be answer, and which texts was it asked about?"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headscope.corpus import Word

SEEN: list[str] = []  # every text that the parser was given
LOADED: list[str] = []  # its name, each time it was loaded


@dataclass(frozen=True)
class Chain:
    """Sentences end at a full stop, words at spaces; each word hangs on the one before it."""

    name: str = "chain:en"
    version: str = "1.0"

    def load(self):
        LOADED.append(self.name)
        return lambda texts: [chained(text) for text in texts]


def chained(text: str) -> list[tuple[Word, ...]]:
    SEEN.append(text)
    sentences = [s.split() for s in re.split(r"(?<=\.) ", text)]
    return [
        tuple(
            Word(form, upos="X", xpos="XX", head=n - 1, relation="next" if n else "root")
            for n, form in enumerate(words)
        )
        for words in sentences
        if words
    ]


def forms(corpus) -> list[list[str]]:
    """The words of each passage that has any."""
    return [
        [" ".join(word.form for word in p.words) for p in document.passages if p.words is not None]
        for document in corpus
    ]
