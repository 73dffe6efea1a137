"""What is annotated in a corpus: trees, tags, mentions, frames, and with which labels?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from headscope.corpus.document import Example

ANNOTATIONS = ("words", "tags", "trees", "mentions", "frames")
ROOT = "root"
UNLABELLED = "_"


@dataclass
class Annotations:
    """Which annotations occur, and how often each relation does.

    documents  how many documents have each of ANNOTATIONS; those of none are not there
    relations  words per label, in inputs where the word itself is
    """

    documents: Counter[str] = field(default_factory=Counter)
    relations: Counter[str] = field(default_factory=Counter)
    _last: dict[str, str] = field(default_factory=dict)  # the document last counted for each

    @classmethod
    def of(cls, examples: Iterable[Example]) -> Annotations:
        """What all these examples have."""
        found = cls()
        for example in examples:
            found.add(example)
        return found

    def add(self, example: Example) -> None:
        """Take one example into account; those of a document come one after the other."""
        if example.words is None or example.word_index is None:
            return
        there = {
            "words": True,
            "tags": has_tags(example),
            "trees": has_tree(example),
            "mentions": bool(example.mentions),
            "frames": bool(example.frames),
        }
        for kind, found in there.items():
            if found and self._last.get(kind) != example.document:
                self._last[kind] = example.document
                self.documents[kind] += 1
        if there["trees"]:
            here = {int(index) for index in example.word_index if index >= 0}
            self.relations.update(label(example, index) for index in here)

    @property
    def labels(self) -> tuple[str, ...]:
        """The relations, the most frequent first."""
        return tuple(sorted(self.relations, key=lambda name: (-self.relations[name], name)))


def has_tags(example: Example) -> bool:
    """Whether the words of an example have tags."""
    return example.words is not None and any(word.upos or word.xpos for word in example.words)


def has_tree(example: Example) -> bool:
    """Whether the words of an example have heads and relations."""
    return example.words is not None and any(word.relation for word in example.words)


def label(example: Example, index: int) -> str:
    """The relation of one word to its head; ROOT for a word without head, whatever its label."""
    assert example.words is not None
    word = example.words[index]
    return ROOT if word.head < 0 else word.relation or UNLABELLED
