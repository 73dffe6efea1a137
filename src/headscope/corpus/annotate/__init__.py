"""Cut, tag and parse plain text with spaCy or stanza, and keep the result."""

from collections.abc import Callable, Sequence
from typing import Protocol

from headscope.corpus.document import Word

Tree = tuple[Word, ...]  # the words of one sentence, with tags, heads and relations
Parser = Callable[[Sequence[str]], list[list[Tree]]]  # texts to the sentences of each


class Annotator(Protocol):
    """Names a parser and loads it when it is needed; any object with these three members will do.

    The same text must always give the same sentences, so that annotations can be kept under the
    name and version. An annotator must pickle.
    """

    @property
    def name(self) -> str:
        """Which parser with which model, as on the command line: `spacy:en_core_web_sm`."""
        ...

    @property
    def version(self) -> str:
        """Versions of model and library: whatever changes the answers changes this."""
        ...

    def load(self) -> Parser:
        """The parser itself; raises InputError if it cannot be loaded or gives no trees.

        Sentences have at least one word and exactly one root (head -1); forms hold no white space
        but single spaces.
        """
        ...
