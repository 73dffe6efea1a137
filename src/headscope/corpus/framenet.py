"""Read a FrameNet release: short sentences with a frame, its target and its elements."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

from headscope.core.display import Displayed
from headscope.core.whole_file import file_sha256
from headscope.corpus.document import Document, Passage
from headscope.corpus.files import OnError, check_choice, described_policy, stopped_at_faults
from headscope.corpus.framenet_exemplars import (
    ExemplarFault,
    FrameFilters,
    frames_of,
    sentences_of,
    text_of,
    word_spans,
    words_at,
)
from headscope.errors import CorpusError

INDICES, FOLDERS = ("luIndex.xml", "frameIndex.xml"), ("frame", "lu")
WHOLE = (
    "wanted a release folder of FrameNet 1.5 or 1.7 (fndata-1.x, or NLTK's framenet_v1x) with "
    "luIndex.xml, frameIndex.xml, frame/*.xml and lu/lu*.xml"
)


@dataclass(frozen=True, init=False, repr=False)
class FramesCorpus(Displayed):
    """The exemplar sentences of a FrameNet release that pass the filters of Kovaleva et al. (2019).

    folder    a release folder of 1.5 or 1.7, as ICSI ships it and NLTK unpacks it
    core      which frame elements are linked to the target: those that the frame "declared" as
              core, as the paper says, or those of its core "sets" (FEcoreSet), as the authors' code
              does, which most frames do not have
    filters   lengths and distance, see `FrameFilters`
    on_error  "stop" at a malformed file or exemplar, or "skip" it and go on (the encoder counts it
              as malformed, with its place); an incomplete folder always stops
    absent    lexical units that the index lists as annotated, and whose files are not there

    The authors' code looks words up by their letters, so that a target that occurs twice is taken
    where it stands first; here offsets decide. It keeps 473 sentences of release 1.7.

    One document is one text. Of exemplars with the same text and the same target only the first is
    read (another sense of the word would weigh the same words twice); those with another target
    are further documents of the same name, hence left out together. A passage is named by the
    sentence's number and the lexical unit. Its words are those of `word_spans`, without tags or
    trees.
    """

    folder: Path
    core: Literal["declared", "sets"]
    filters: FrameFilters
    on_error: OnError
    absent: int
    _units: tuple[str, ...]
    _frames: frozenset[str]

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        core: Literal["declared", "sets"] = "declared",
        filters: FrameFilters | None = None,
        on_error: OnError = "stop",
    ) -> None:
        """Raises CorpusError for an incomplete folder, InputError for an unknown option."""
        check_choice("core", core, "declared", "sets")
        check_choice("on_error", on_error, "stop", "skip")
        root = Path(folder)
        _check_parts(root)
        units, absent = _units(root)
        for name, value in {
            "folder": root,
            "core": core,
            "filters": filters or FrameFilters(),
            "on_error": on_error,
            "absent": absent,
            "_units": units,
            "_frames": _frames(root),
        }.items():
            object.__setattr__(self, name, value)

    def __iter__(self) -> Iterator[Document]:
        """Yields the documents, lexical unit by lexical unit in the order of the index.

        raises  CorpusError with file and line for what is malformed, unless on_error is `skip`
        """
        return stopped_at_faults(self._documents(), self.on_error)

    def facts(self) -> dict[str, object]:
        """The folder, and the options of reading."""
        return {"folder": self.folder, "lexical units": f"{len(self._units):,} lexical units"}

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` (the folder, with one sha256 over all it holds), options.

        `lexical_units` are those read, `absent` those listed as annotated whose file is not there.
        """
        digest = hashlib.sha256()
        frames = (f"frame/{name}.xml" for name in sorted(self._frames))
        for name in (*INDICES, *frames, *(f"lu/{unit}" for unit in self._units)):
            part = file_sha256(self.folder / name)
            digest.update(f"{name} {part}\n".encode("utf-8", "surrogateescape"))
        return {
            "kind": "frames",
            "files": [{"name": self.folder.resolve().name, "sha256": digest.hexdigest()}],
            "core": self.core,
            **asdict(self.filters),
            "lexical_units": len(self._units),
            "absent": self.absent,
            **described_policy(self.on_error),
        }

    def _documents(self) -> Iterator[Document]:
        first: dict[str, str] = {}  # by text, the number of the first sentence that has it
        seen: set[tuple[str, tuple[int, ...]]] = set()
        for passage in self._passages():
            if passage.words is None:
                yield Document(passage.id, (passage,))
                continue
            text = " ".join(word.form for word in passage.words)
            targets = tuple(frame.first for frame in passage.frames)
            if (text, targets) not in seen:
                seen.add((text, targets))
                yield Document(first.setdefault(text, passage.id.partition(" ")[0]), (passage,))

    def _passages(self) -> Iterator[Passage]:
        core: dict[str, frozenset[str]] = {}
        for name in self._units:
            path = self.folder / "lu" / name
            try:
                file = XmlFile.read(path, root="lexUnit")
                frame = file.root.get("frame", "")
                if frame not in core:
                    core[frame] = self._core(frame, path)
            except CorpusError as error:
                yield Passage(name, fault=str(error))
            else:
                yield from _exemplars(file, frame, core[frame], self.filters)

    def _core(self, frame: str, path: Path) -> frozenset[str]:
        if frame not in self._frames:
            raise CorpusError(f"{path}: its frame {frame[:60]!r} is not listed in frameIndex.xml")
        tree = XmlFile.read(self.folder / "frame" / f"{frame}.xml", root="frame").root
        if self.core == "declared":
            core = (e for e in tree.iterfind("{*}FE") if e.get("coreType") == "Core")
        else:
            core = tree.iterfind("{*}FEcoreSet/{*}memberFE")
        return frozenset(element.get("name", "") for element in core)


def _exemplars(
    file: XmlFile, frame: str, core: frozenset[str], filters: FrameFilters
) -> Iterator[Passage]:
    for sentence in sentences_of(file.root):
        number = sentence.get("ID", "")
        name = f"{number} {file.root.get('name', '')}"
        try:
            frames = frames_of(sentence, name=frame, core=core, filters=filters)
        except ExemplarFault as fault:
            yield Passage(name, fault=f"{file.place(fault.at)}: sentence {number}: {fault}")
            continue
        if frames:
            text = text_of(sentence)
            yield Passage(name, words=words_at(text, word_spans(text)), frames=frames)


def _check_parts(root: Path) -> None:
    missing = [name for name in INDICES if not (root / name).is_file()]
    missing += [f"{name}/" for name in FOLDERS if not (root / name).is_dir()]
    if missing:
        problem = "has no " + ", ".join(missing) if root.is_dir() else "is not a folder"
        raise CorpusError(f"{root} {problem}; {WHOLE}")


def _units(root: Path) -> tuple[tuple[str, ...], int]:
    index = XmlFile.read(root / "luIndex.xml", root="luIndex").root
    there = {entry.name for entry in (root / "lu").iterdir()}
    annotated = (lu for lu in index.iterfind("{*}lu") if lu.get("hasAnnotation") != "false")
    listed = [f"lu{lu.get('ID')}.xml" for lu in annotated]
    units = tuple(dict.fromkeys(name for name in listed if name in there))
    if not units:
        raise CorpusError(
            f"{root}/lu holds none of the {len(listed)} annotated lexical units that luIndex.xml "
            f"lists; {WHOLE}"
        )
    return units, len(set(listed)) - len(units)


def _frames(root: Path) -> frozenset[str]:
    index = XmlFile.read(root / "frameIndex.xml", root="frameIndex").root
    names = [frame.get("name", "") for frame in index.iterfind("{*}frame")]
    there = {entry.name for entry in (root / "frame").iterdir()}
    missing = [name for name in names if f"{name}.xml" not in there]
    if missing or not names:
        fault = f"has no frame/{missing[0]}.xml" if missing else "lists no frame in frameIndex.xml"
        more = f" and misses {len(missing) - 1} more of {len(names)} frames" if missing[1:] else ""
        raise CorpusError(f"{root} {fault}{more}; {WHOLE}")
    return frozenset(names)


DECLARATION = b"<!DOCTYPE"  # where every entity of one's own is defined


@dataclass(frozen=True)
class XmlFile:
    """One parsed file."""

    path: Path
    root: Element

    @classmethod
    def read(cls, path: Path, *, root: str) -> XmlFile:
        """Parse one file in UTF-8, the namespace of whose root does not matter.

        raises  CorpusError with file and line for a file that cannot be read, is not well-formed,
                declares a document type, or has another root
        """
        content = _content(path)
        before, declaration, _ = content.partition(DECLARATION)
        if declaration:
            line = before.count(b"\n") + 1
            raise CorpusError(
                f"{path}:{line}: found a document type declaration (<!DOCTYPE), wanted none: it "
                "may define entities, which are not read; remove it"
            )
        parser = ElementTree.XMLParser(encoding="utf-8")
        try:
            parser.feed(content)
            tree = parser.close()
        except ElementTree.ParseError as error:
            line = error.position[0]
            reason = expat.ErrorString(error.code)
            raise CorpusError(
                f"{path}:{line}: not well-formed XML in UTF-8 ({reason}); unpack the file again"
            ) from error
        if local_name(tree) != root:
            raise CorpusError(f"{path}: found <{local_name(tree)[:40]}>, wanted <{root}>")
        return cls(path, tree)

    def place(self, element: Element) -> str:
        """`file:line` of the element, located by reading the file again."""
        wanted = next(i for i, other in enumerate(self.root.iter()) if other is element)
        parser = expat.ParserCreate("utf-8")
        lines: list[int] = []
        parser.StartElementHandler = lambda *_: lines.append(parser.CurrentLineNumber)
        parser.Parse(_content(self.path), True)
        return f"{self.path}:{lines[wanted]}"


def local_name(element: Element) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}") from error
