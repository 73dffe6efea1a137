"""What is asked of a parser, and which parsers are known by name?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from headscope.corpus.document import Word
from headscope.errors import InputError

Tree = tuple[Word, ...]  # the words of one sentence, with tags, heads and relations
Parser = Callable[[Sequence[str]], list[list[Tree]]]  # texts to the sentences of each

WANTED = "wanted spacy:MODEL or stanza:LANG, say spacy:en_core_web_sm"


class Annotator(Protocol):
    """Names a parser and loads it when it is needed. Anything with these three will do.

    An annotator says nothing of the texts: the same text always gives the same sentences, so that
    what was once annotated can be kept under the name and version. It must pickle.
    """

    @property
    def name(self) -> str:
        """Which parser with which model, as on the command line: `spacy:en_core_web_sm`."""
        ...

    @property
    def version(self) -> str:
        """Of the model and of the library: whatever changes the answers changes this."""
        ...

    def load(self) -> Parser:
        """The parser itself; raises InputError if it cannot be loaded or gives no trees.

        Sentences have at least one word and exactly one root (head -1); forms hold no white space
        but single spaces.
        """
        ...


def annotator_of(name: str) -> Annotator:
    """The annotator that a name on the command line stands for; nothing is loaded yet.

    raises  InputError for an unknown kind, or with the command that installs what is missing
    """
    library, _, model = name.partition(":")
    if not model or library not in ("spacy", "stanza"):
        raise InputError(f"no annotator {name!r}; {WANTED}")
    if library == "spacy":
        from headscope.corpus.annotate.by_spacy import SpacyAnnotator

        return SpacyAnnotator.of(model)
    from headscope.corpus.annotate.by_stanza import StanzaAnnotator

    return StanzaAnnotator.of(model)


def installed_parsers() -> list[str]:
    """What `annotator_of` would take here, with versions; spaCy's pipelines and stanza as such."""
    from headscope.corpus.annotate.by_spacy import installed_pipelines

    pipelines = sorted(installed_pipelines().items()) if _version("spacy") else []
    stanza = _version("stanza")
    found = [f"spacy:{name} {version}" for name, version in pipelines]
    return [*found, *([f"stanza {stanza}"] if stanza else [])]


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
