"""Which parsers are known by name, and which are installed?"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from headscope.corpus.annotate.annotator import Annotator
from headscope.corpus.annotate.by_spacy import SpacyAnnotator, installed_pipelines
from headscope.corpus.annotate.by_stanza import StanzaAnnotator
from headscope.errors import InputError

WANTED = "wanted spacy:MODEL or stanza:LANG, say spacy:en_core_web_sm"


def annotator_of(name: str) -> Annotator:
    """The annotator that a name on the command line stands for; nothing is loaded yet.

    raises  InputError for an unknown kind, or with the command that installs what is missing
    """
    library, _, model = name.partition(":")
    if not model or library not in ("spacy", "stanza"):
        raise InputError(f"no annotator {name!r}; {WANTED}")
    if library == "spacy":
        return SpacyAnnotator.of(model)
    return StanzaAnnotator.of(model)


def installed_parsers() -> list[str]:
    """What `annotator_of` would take here, with versions; spaCy's pipelines and stanza as such."""
    pipelines = sorted(installed_pipelines().items()) if _version("spacy") else []
    stanza = _version("stanza")
    found = [f"spacy:{name} {version}" for name, version in pipelines]
    return [*found, *([f"stanza {stanza}"] if stanza else [])]


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
