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

    kinds      of ANNOTATIONS those that at least one example has
    relations  words per label, in inputs where the word itself is
    """

    kinds: set[str] = field(default_factory=set)
    relations: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, examples: Iterable[Example]) -> Annotations:
        """What all these examples have."""
        found = cls()
        for example in examples:
            found.add(example)
        return found

    def add(self, example: Example) -> None:
        """Take one example into account."""
        if example.words is None or example.word_index is None:
            return
        self.kinds.add("words")
        if any(word.upos or word.xpos for word in example.words):
            self.kinds.add("tags")
        if has_tree(example):
            self.kinds.add("trees")
            here = {int(index) for index in example.word_index if index >= 0}
            self.relations.update(label(example, index) for index in here)
        if example.mentions:
            self.kinds.add("mentions")
        if example.frames:
            self.kinds.add("frames")

    @property
    def labels(self) -> tuple[str, ...]:
        """The relations, the most frequent first."""
        return tuple(sorted(self.relations, key=lambda name: (-self.relations[name], name)))


def has_tree(example: Example) -> bool:
    """Whether the words of an example have heads and relations."""
    return example.words is not None and any(word.relation for word in example.words)


def label(example: Example, index: int) -> str:
    """The relation of one word to its head; ROOT for a word without head, whatever its label."""
    assert example.words is not None
    word = example.words[index]
    return ROOT if word.head < 0 else word.relation or UNLABELLED
