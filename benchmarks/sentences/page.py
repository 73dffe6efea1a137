"""The text of a report as a reader sees it, with the section that it stands in."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "wbr")
)
HIDDEN = frozenset(("script", "style", "svg", "nav", "template", "button", "head"))
PARTS = frozenset(("sentence", "more", "finding"))
HEAD = re.compile(r"L\d+·H\d+")
BLOCKS = frozenset(["p", "li", "figcaption", "tr", "summary", "dd", "caption", "h1", "td"])


@dataclass(frozen=True)
class Said:
    """A piece of text of a report.

    where  section, or file, that it stands in
    cells  of a row of a table
    """

    where: str
    text: str
    cells: tuple[str, ...] = ()


@dataclass
class _Open:
    tag: str
    kind: str
    text: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[Said] = []
        self.stack: list[_Open] = []
        self.hidden = 0
        self.section: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in VOID:
            return
        self.hidden += tag in HIDDEN
        if tag in ("section", "header") and not self.hidden:
            self.section.append(given.get("id") or "")
        self.stack.append(_Open(tag, given.get("class") or ""))

    def handle_endtag(self, tag: str) -> None:
        while self.stack:
            one = self.stack.pop()
            self.hidden -= one.tag in HIDDEN
            self._close(one)
            if one.tag == tag:
                break
        if tag in ("section", "header") and self.section and not self.hidden:
            self.section.pop()

    def _close(self, one: _Open) -> None:
        text = " ".join("".join(one.text).split())
        if one.tag in ("td", "th"):
            for row in reversed(self.stack):
                if row.tag == "tr":
                    row.cells.append(text)
                    break
            return
        where = next((s for s in reversed(self.section) if s), "")
        if PARTS & set(one.kind.split()):
            row = next((row for row in reversed(self.stack) if row.tag == "li"), None)
            head = HEAD.match("".join(row.text).strip()) if row else None
            self.said.append(Said(where, f"{head[0]} {text}" if head else text))
            return
        if one.cells or (text and one.tag in BLOCKS):
            self.said.append(Said(where, " | ".join(one.cells) or text, tuple(one.cells)))
        if self.stack and one.tag not in BLOCKS:
            apart = one.tag in ("div", "code", "span", "small")
            self.stack[-1].text.append(f" {text} " if apart else "".join(one.text))
        elif self.stack:
            self.stack[-1].text.append(" ")

    def handle_data(self, data: str) -> None:
        if self.stack and not self.hidden:
            self.stack[-1].text.append(data)


def read_page(path: Path) -> list[Said]:
    """Every piece of text of a page, in its order."""
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.said


def read_labels(path: Path) -> list[Said]:
    """The labels of all heads as the table of a run says them: `L1·H3 attends to …`."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [
            Said(
                "head_labels.csv",
                f"L{int(row['layer']) + 1}·H{int(row['head']) + 1} {row['sentence']}",
            )
            for row in csv.DictReader(file)
            if row["sentence"]
        ]
    return rows
