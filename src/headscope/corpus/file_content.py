"""What a file is, by its first bytes: plain text, or something that only looks like it."""

import json
import re
from itertools import islice

from headscope.corpus.places import CODECS, File, formats, opened, suffix_of

HEAD = 1 << 16  # bytes that are looked at
BINARY, MOST_NULS = 0.01, 10  # of the bytes, and in all: more NULs are no text
ROWS = 5  # lines that make a table, if they have as many tabs each
GARBLED = 2  # lines whose letters were decoded wrongly: fewer may be about such letters
OVERRULED = "; --format text (format='text') reads it as it is"
AS_INPUTS = "wanted plain text: give it as --segments, or name a column with --column"
STARTS = {
    b"%PDF": "a PDF",
    b"PK\x03\x04": "a ZIP archive, or a document of an office program",
    b"PAR1": "a table",
    b"\x1f\x8b": "compressed by gzip, but not called .gz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd, but not called .zst",
    b"BZh9": "compressed by bzip2, but not called .bz2",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"\x89HDF": "an HDF5 file",
    b"SQLite format": "a database",
    b"\x7fELF": "a program",
    b"#!": "a program",
    b"{\\rtf": "rich text",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
NAMES = {
    "a table": (".csv", ".tsv", ".xlsx", ".parquet", ".arrow", ".feather"),
    "a web page or markup": (".html", ".htm", ".xhtml", ".xml", ".tex", ".ipynb"),
    "a program": (".py", ".js", ".java", ".c", ".h", ".cpp", ".rs", ".go", ".sh"),
    "a document of an office program": (".docx", ".doc", ".odt", ".rtf", ".epub"),
    "JSON": (".json", ".jsonl", ".ndjson"),
    "a treebank": (".conllu", ".conllx"),
}
INSTEAD = {
    "JSON": AS_INPUTS,
    "a treebank": "wanted plain text: give it as --treebank",
    "coreference": "wanted plain text: give it as --coref",
    "a table": "wanted plain text: name the column with the texts, --column or ColumnCorpus",
}
_MARKUP = re.compile(r"\s*(<!doctype html|<html|<\?xml)", re.IGNORECASE)
_TREE = re.compile(r"(#[^\n]*\n)*1(-\d+)?\t([^\t\n]*\t){8}[^\t\n]*\n")


def other_than_text(file: File) -> str:
    """What is wrong with a file that is read as plain text, in half a sentence; "" for nothing.

    Its first 64 KiB are looked at, then its name.
    """
    with opened(file) as content:
        head = content.read(HEAD)
    wrong = _bytes(head) or _text(head.decode("utf-8", "ignore"))
    if wrong and file.suffix.lower() in CODECS:
        wrong = f"{wrong} (inside)"
    return wrong or _name(suffix_of(file))


def _says(kind: str) -> str:
    return f"is {kind}; {INSTEAD.get(kind, 'wanted plain text: convert it to UTF-8 text')}"


def _bytes(head: bytes) -> str:
    for start, kind in STARTS.items():
        if head.startswith(start):
            return _says(kind) + OVERRULED * (start == b"#!")
    if head.count(b"\0") > max(MOST_NULS, BINARY * len(head)):
        return _says("UTF-16 without a mark, or binary")
    if head.count(b"\r") > 2 * head.count(b"\n"):
        return "has lines that end in CR alone; wanted LF or CR LF: convert its line ends"
    return ""


def _text(head: str) -> str:
    lines = [line for line in islice(head.split("\n"), 200) if line.strip()]
    garbled = [line for line in lines if _is_garbled(line)]
    if kind := _kind(head, lines):
        return _says(kind) + OVERRULED
    if len(garbled) >= GARBLED:
        return (
            f"holds text that was decoded wrongly ({garbled[0].strip()[:40]!r}: UTF-8 taken for "
            "Windows-1252); wanted the text itself: decode it again" + OVERRULED
        )
    return ""


def _kind(head: str, lines: list[str]) -> str:
    """What a text is that is no prose; "" for prose."""
    for kind, begins in ((one.name, one.begins) for one in formats().values()):
        if begins and head.startswith(begins):
            return kind
    tabs = {line.count("\t") for line in lines[:ROWS]}
    kinds = {
        "a web page or markup": _MARKUP.match(head),
        "a treebank": _TREE.match(head.lstrip("\n")),
        "JSON": lines and _is_json(lines),
        "a table": len(lines) >= ROWS and len(tabs) == 1 and tabs != {0},
    }
    return next((kind for kind, holds in kinds.items() if holds), "")


def _name(suffix: str) -> str:
    kind = next((kind for kind, suffixes in NAMES.items() if suffix in suffixes), "")
    return kind and f"is {kind} by its name; {_says(kind).partition('; ')[2]}" + OVERRULED


def _is_json(lines: list[str]) -> bool:
    """Whether the first line is an object, or an object begins that lines share."""
    first = lines[0].strip()
    if first in ("{", "[", "[{"):
        return len(lines) > 1 and lines[1].lstrip()[:1] in ('"', "{")
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return first.startswith('{"') and len(lines) == 1  # longer than what is looked at


def _is_garbled(line: str) -> bool:
    if line.isascii():
        return False
    for wrong in ("cp1252", "latin-1"):
        try:
            line.encode(wrong).decode("utf-8")
        except UnicodeError:
            continue
        return True
    return False
