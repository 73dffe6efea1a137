"""Reads sentence pairs and the gold alignment of their words.

    gold = read_gold([folder])    # de, en, alignmentDeEn.talp
    gold.pairs[0].sure            # {(0, 0), (1, 2)}: word of the source, word of the target

Read are the folder of the RWTH gold alignments as it is unpacked, a folder with NAME.src, NAME.tgt
and NAME.talp, or these three files. Texts are tokenised, a sentence per line, with spaces between
words, in UTF-8 or else Latin-1. Links stand a line per pair, `3-4` sure and `3p4` (or `3?4`)
possible, or in blocks: `SENT: 0`, then a line `S 3 4` or `P 3 4` for each link.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from headscope.core.whole_file import sha256_of
from headscope.corpus.files import BYTE_ORDER_MARK
from headscope.corpus.places import checked_files
from headscope.errors import CorpusError

Word = tuple[int, int]  # of the source and of the target, from 0
_RWTH = re.compile(r"alignment([A-Z][a-z])([A-Z][a-z])(?:\.talp)?")
_LINK = re.compile(r"(\d{1,9})([-p?])(\d{1,9})")
_ROW = re.compile(r"([SP])\s+(\d{1,9})\s+(\d{1,9})")
_SENTENCE = re.compile(r"SENT:\s*(\d{1,9})")
_ENDINGS = (".talp", ".gold", ".align")
WANTED = (
    "wanted a folder with de, en and alignmentDeEn.talp, or with NAME.src, NAME.tgt and NAME.talp; "
    "or three files: --data alignment=SOURCE --data alignment=TARGET --data alignment=LINKS"
)


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A sentence and its translation.

    id        the line that it stands on, from 1
    sure      links that any alignment must have
    possible  links that an alignment may have, the sure ones among them
    """

    id: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[Word]
    possible: frozenset[Word]


@dataclass(frozen=True)
class GoldAlignments:
    """Pairs of sentences with their links.

    languages  of source and target as the files are named, "de" and "en"; None where they are not
    first      what the first word was called in the file: 0 or 1
    """

    pairs: tuple[SentencePair, ...]
    files: tuple[Path, ...]
    languages: tuple[str, str] | None
    first: int

    @property
    def sha256(self) -> str:
        """Hex sha256 over all words and links in order."""
        return sha256_of(
            repr((p.source, p.target, sorted(p.sure), sorted(p.possible))) for p in self.pairs
        )


class _Link(NamedTuple):
    """A link as it is written in a file: its line, and its pair."""

    line: int
    pair: int
    source: int
    target: int
    sure: bool


def read_gold(paths: Sequence[str | Path]) -> GoldAlignments:
    """The pairs of a folder, or of the three files: source, target, links.

    raises  CorpusError: files that are not there or do not fit, a line that is no link, a word that
            the sentence has not, and links that leave open whether words count from 0 or from 1
    """
    files, languages = _found([Path(path) for path in paths])
    source, target, rows = (_lines(path) for path in files)
    texts = _texts(files, source, target)
    long = next((row for row in rows if row.strip()), "").startswith("SENT")
    written = list((_in_blocks if long else _on_lines)(files[2], rows, len(texts)))
    first = _first(files[2], written, texts)
    kept: list[tuple[set[Word], set[Word]]] = [(set(), set()) for _ in texts]  # sure, possible
    for link in written:
        word = (link.source - first, link.target - first)
        lengths = [len(side) for side in texts[link.pair]]
        if word[0] >= lengths[0] or word[1] >= lengths[1]:
            raise CorpusError(
                f"{files[2]}:{link.line}: found a link of word {link.source} to word "
                f"{link.target}; wanted words {first} to {lengths[0] - 1 + first} of the source "
                f"(first) and {first} to {lengths[1] - 1 + first} of the target of pair "
                f"{link.pair + 1}"
            )
        for links in kept[link.pair][0 if link.sure else 1 :]:
            links.add(word)
    pairs = tuple(
        SentencePair(str(at + 1), *texts[at], frozenset(sure), frozenset(possible))
        for at, (sure, possible) in enumerate(kept)
        if texts[at][0]
    )
    return GoldAlignments(pairs, files, languages, first)


# --- which files ----------------------------------------------------------------------------


def _found(paths: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[str, str] | None]:
    """The files of source, target and links; and the languages, if their names show them."""
    if len(paths) == 3:
        return checked_files(paths), None
    if len(paths) != 1 or not paths[0].is_dir():
        raise CorpusError(f"found {', '.join(map(str, paths)) or 'nothing'}; {WANTED}")
    folder = paths[0]
    # The short layout before the long one: it is the one that the paper's authors read.
    for name in sorted((p.name for p in folder.iterdir()), key=lambda n: (-len(n), n)):
        if named := _RWTH.fullmatch(name):
            languages = (named[1].lower(), named[2].lower())
            return checked_files(folder / one for one in (*languages, name)), languages
    stems = sorted(p.with_suffix("") for p in folder.glob("*.src"))
    matches = [(s, p) for s in stems for end in _ENDINGS if (p := Path(f"{s}{end}")).is_file()]
    if len(matches) != 1:
        many = f"{len(matches)} sets of files" if matches else "no such files"
        raise CorpusError(f"found {many} in {folder}; {WANTED}")
    stem, links = matches[0]
    return checked_files([f"{stem}.src", f"{stem}.tgt", links]), None


def _lines(path: Path) -> list[str]:
    """Lines without their ends; a file that is not UTF-8 is read as Latin-1."""
    try:
        raw = path.read_bytes().removeprefix(BYTE_ORDER_MARK)
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}") from error
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    # not splitlines: in Latin-1 it would cut at byte 0x85
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]


def _texts(
    files: Sequence[Path], source: Sequence[str], target: Sequence[str]
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """[line] words of both sides; a line empty on both sides is skipped."""
    # not split(): that would cut at no-break spaces too
    sides = [
        [tuple(filter(None, re.split(r"[ \t]", line))) for line in side]
        for side in (source, target)
    ]
    for side in sides:
        while side and not side[-1]:
            side.pop()
    if not sides[0] or len(sides[0]) != len(sides[1]):
        raise CorpusError(
            f"found {len(sides[0])} lines in {files[0]} and {len(sides[1])} in {files[1]}; wanted "
            "a sentence and its translation on the same line of each"
        )
    for number, (one, other) in enumerate(zip(*sides, strict=True), start=1):
        if bool(one) != bool(other):
            empty = files[1] if one else files[0]
            raise CorpusError(f"{empty}:{number}: empty, but not in the other text")
    return list(zip(*sides, strict=True))


def _on_lines(path: Path, rows: Sequence[str], pairs: int) -> Iterator[_Link]:
    """Links written as `3-4 3p5`, one line per pair."""
    if len(rows) < pairs or any(row.strip() for row in rows[pairs:]):
        raise CorpusError(
            f"found {len(rows)} lines in {path} for {pairs} pairs of sentences; wanted a line for "
            "each pair, empty where it has no links"
        )
    wanted = "links SOURCE-TARGET (sure) or SOURCEpTARGET (possible), such as 3-4 or 3p4"
    for at, row in enumerate(rows[:pairs]):
        for text in row.split():
            if (link := _LINK.fullmatch(text)) is None:
                raise _wrong(path, at + 1, text, wanted)
            yield _Link(at + 1, at, int(link[1]), int(link[3]), link[2] == "-")


def _in_blocks(path: Path, rows: Sequence[str], pairs: int) -> Iterator[_Link]:
    """Links written as `SENT: 0`, then `S 3 4` and `P 3 5`."""
    first = at = -1
    wanted = (
        "SENT: NUMBER, or S or P with a word of the source and one of the target, such as S 3 4"
    )
    for number, text in enumerate((row.strip() for row in rows), start=1):
        if sentence := _SENTENCE.fullmatch(text):
            first = int(sentence[1]) if first < 0 else first
            at, before = int(sentence[1]) - first, at
            if first > 1 or not before < at < pairs:
                order = f"the {pairs} pairs in order, counted from 0 or from 1"
                raise _wrong(path, number, text, order)
        elif row := _ROW.fullmatch(text):
            yield _Link(number, at, int(row[2]), int(row[3]), row[1] == "S")
        elif text:
            raise _wrong(path, number, text, wanted)


def _wrong(path: Path, line: int, text: str, wanted: str) -> CorpusError:
    return CorpusError(f"{path}:{line}: found {text[:40]!r}; wanted {wanted}")


def _first(path: Path, links: Iterable[_Link], texts: Sequence[tuple[Sequence[str], ...]]) -> int:
    """Whether words count from 0 or from 1, judged by links to a first or a last word."""
    zero = end = False
    for link in links:
        lengths = [len(side) for side in texts[link.pair]]
        zero |= 0 in (link.source, link.target)
        end |= link.source == lengths[0] or link.target == lengths[1]
    if not (zero or end):
        raise CorpusError(
            f"{path} links no first or last word, so words may count from 0 or from 1; wanted "
            "links SOURCE-TARGET of all pairs"
        )
    return 0 if zero else 1
