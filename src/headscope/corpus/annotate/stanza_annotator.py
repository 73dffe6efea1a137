"""Annotate text with a stanza pipeline."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from headscope.corpus.annotate import Parser, Tree
from headscope.corpus.document import Word
from headscope.errors import InputError

LIBRARY = 'pip install "stanza>=1.12.2"'
OLDEST = (1, 12, 2)  # earlier ones fall back to unpickling, which can run code
PROCESSORS = ("tokenize", "mwt", "pos", "lemma", "depparse")
LANGUAGE = re.compile(r"[a-z][a-z0-9-]{1,20}")


@dataclass(frozen=True)
class StanzaAnnotator:
    """stanza's default models of one language, as far as they make words, tags and trees.

    form = word.text, upos, xpos, relation = deprel in lower case. The words of a multiword token
    have no space between them where their forms spell it.
    """

    language: str
    version: str

    @classmethod
    def of(cls, language: str) -> StanzaAnnotator:
        """The annotator of a language; raises InputError with what to install."""
        if not LANGUAGE.fullmatch(language):
            raise InputError(f"no language {language!r}; wanted a code of stanza's, say en or de")
        try:
            library = version("stanza")
        except PackageNotFoundError as error:
            raise InputError(f"annotating text needs stanza; install it: {LIBRARY}") from error
        if tuple(map(int, re.findall(r"\d+", library)[:3])) < OLDEST:
            raise InputError(
                f"stanza {library} may run code that is in a model's file; install a later one: "
                f"{LIBRARY}"
            )
        return cls(language, f"{library} ({_models_digest(language)})")

    @property
    def name(self) -> str:
        """As on the command line."""
        return f"stanza:{self.language}"

    def load(self) -> Parser:
        """Loads the models; nothing is fetched."""
        stanza: Any = import_module("stanza")
        processors = ",".join(p for p in PROCESSORS if p != "mwt")  # added where a language has it
        try:
            pipeline = stanza.Pipeline(
                self.language, processors=processors, download_method=None, use_gpu=False,
                logging_level="ERROR",
            )  # fmt: skip
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError(f"{reason[:300]}\n{_missing(self.language)}") from error
        return lambda texts: _parsed(pipeline, texts)


def _missing(language: str) -> str:
    command = f"import stanza; stanza.download('{language}')"
    return f'stanza\'s models of {language!r} are not here; fetch them: python -c "{command}"'


def _models_digest(language: str) -> str:
    """Hash of the model files that are used; InputError if they are not here."""
    common: Any = import_module("stanza.resources.common")
    folder = Path(common.DEFAULT_MODEL_DIR) / language
    files = sorted(path for name in PROCESSORS for path in (folder / name).glob("*.pt"))
    if not any(path.parent.name == "depparse" for path in files):
        raise InputError(_missing(language))
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def _parsed(pipeline: Any, texts: Sequence[str]) -> list[list[Tree]]:
    return [
        [_tree(sentence) for sentence in pipeline(text).sentences] if text.strip() else []
        for text in texts
    ]


def _tree(sentence: Any) -> Tree:
    words, ends = list[Any](), set[int]()
    for token, following in zip(sentence.tokens, [*sentence.tokens[1:], None], strict=True):
        forms = [word.text for word in token.words]
        if "".join(forms) != token.text:  # "du" = "de" + "le": read as separate words
            ends.update(range(len(words), len(words) + len(forms)))
        words += token.words
        if following is None or following.start_char != token.end_char:
            ends.add(len(words) - 1)
    return tuple(
        Word(
            form=" ".join(word.text.split()),
            upos=word.upos or None,
            xpos=word.xpos or None,
            head=word.head - 1,
            relation=(word.deprel or "").lower() or None,
            space_after=n in ends,
        )
        for n, word in enumerate(words)
    )
