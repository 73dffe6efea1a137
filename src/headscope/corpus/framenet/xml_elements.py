"""What does an XML file hold, and in which line does an element stand?

Files are hostile input: a document type declaration, where entities are defined that expand without
end or name other files, is refused before the file is parsed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

from headscope.errors import CorpusError

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
        """`file:line` of the element, found by reading the file again."""
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
