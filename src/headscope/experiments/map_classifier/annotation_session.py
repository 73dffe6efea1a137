"""A labelling session: its maps, the labels of each annotator, and their agreement.

    SESSION/maps.npz          the maps, flat, with their sizes
    SESSION/provenance.csv    number, model, sha256, text, document, example, layer, head, boundary,
                              special, punctuation (places of such tokens)
    SESSION/labels-NAME.csv   number,label: one line per decision, appended; "undo" takes one back
    SESSION/sheets/           contact sheets

A label is on disk before it is answered, and the last line for a number counts. A file of labels
may be written by hand: a class by its key or name, with or without a first line "number,label". A
last line that a full disk or a power loss cut off is no decision, and the next one takes its place.
"""

import csv
import errno
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from headscope.analyses.patterns import CLASSES
from headscope.analyses.patterns.classes import CONTENT, NAMES, PUNCTUATION, SPECIAL, Kinds
from headscope.core.accumulators import Ints
from headscope.core.whole_file import clear_drafts, sync_folder, write_whole
from headscope.errors import InputError

Map = npt.NDArray[np.float16]

UNDO = "undo"
FIELDS = (
    "number",
    "model",
    "sha256",
    "text",
    "document",
    "example",
    "layer",
    "head",
    "boundary",
    "special",
    "punctuation",
)
_NAME = re.compile(r"[\w.-]{1,40}")
_MEANT = {**{c.key: c.name for c in CLASSES}, **{n: n for n in (*NAMES, UNDO)}}


@dataclass(frozen=True)
class Drawn:
    """One map that was drawn, with where it comes from.

    map          [query, key] attention of real tokens
    boundary     the first token of the second segment; -1 for none
    special      places of special tokens; none: the first counts as one
    punctuation  places of tokens of punctuation alone
    """

    model: str
    sha256: str
    text: str
    document: str
    example: str
    layer: int
    head: int
    boundary: int
    map: Map
    special: tuple[int, ...] = ()
    punctuation: tuple[int, ...] = ()


class Session:
    """A folder of maps to label; see the module's docstring."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.is_one(folder):
            raise InputError(
                f"{folder} is no labelling session: it has no maps.npz; make one with "
                "`headscope patterns annotate MODEL CORPUS-OPTION -o SESSION`"
            )
        try:
            with (
                (self.folder / "maps.npz").open("rb") as maps,
                np.load(maps, allow_pickle=False) as kept,
            ):
                self.sizes = [int(size) for size in kept["sizes"]]
                self._flat = kept["weights"]
            with (self.folder / "provenance.csv").open(encoding="utf-8", newline="") as file:
                self.provenance = list(csv.DictReader(file))
            for row in self.provenance:
                _ = [row[field] for field in FIELDS[:-2]]  # of before, without the last two
            self._boundaries = [int(row["boundary"]) for row in self.provenance]
        except (
            OSError,
            EOFError,
            ValueError,
            LookupError,
            TypeError,
            csv.Error,
            zlib.error,
            zipfile.BadZipFile,
            RuntimeError,
        ) as error:
            raise InputError(
                f"{folder}: maps.npz or provenance.csv cannot be read ({error}); wanted them as "
                "`headscope patterns annotate` wrote them"
            ) from error
        self._starts = np.concatenate([[0], np.cumsum(np.square(self.sizes))])
        weights = int(self._starts[-1])
        if len(self.provenance) != len(self.sizes) or self._flat.shape != (weights,):
            raise InputError(
                f"{folder}: {len(self.sizes)} maps of {weights} weights; found "
                f"{self._flat.size} weights and {len(self.provenance)} lines of provenance"
            )

        try:
            rows = zip(self.sizes, self.provenance, strict=True)
            self._kinds = [_kinds(size, row) for size, row in rows]
            for size, boundary in zip(self.sizes, self._boundaries, strict=True):
                _ = range(-1, size).index(boundary)
        except (ValueError, IndexError) as error:
            raise InputError(
                f"{folder}: provenance.csv does not say which tokens of a map are special or "
                f"punctuation, or where its second part begins ({str(error)[:80]}); wanted places "
                "below its size"
            ) from error

    @staticmethod
    def is_one(folder: str | Path) -> bool:
        """Whether the folder holds a session."""
        return (Path(folder) / "maps.npz").is_file()

    @classmethod
    def create(cls, folder: str | Path, drawn: Sequence[Drawn]) -> Self:
        """A new session, its maps numbered as they are given; `shuffled` hides what is of what."""
        path = Path(folder)
        if cls.is_one(path):
            raise InputError(f"{folder} holds a session already; wanted a new folder, or resume it")
        if not drawn:
            raise InputError("found no maps to label; wanted a model and a text")
        clear_drafts(path)
        # The maps come last: with them, the folder is a session.
        write_whole(path / "provenance.csv", partial(_write_provenance, drawn))
        write_whole(path / "maps.npz", partial(_write_maps, drawn))
        return cls(path)

    def __len__(self) -> int:
        return len(self.sizes)

    def map(self, number: int) -> Map:
        """[query, key] one of the maps."""
        flat: Map = self._flat[self._starts[number] : self._starts[number + 1]]
        return flat.reshape(self.sizes[number], -1)  # [query, key]

    def boundary(self, number: int) -> int:
        """The first token of the second segment; -1 for none."""
        return self._boundaries[number]

    def kinds(self, number: int) -> Kinds | None:
        """[token] of which kind each token is; None in sessions of before this was kept."""
        return self._kinds[number]

    def labels(self, annotator: str) -> dict[int, str]:
        """number → label of what this annotator has said so far, the latest decision last.

        raises  InputError with file and line for what is no decision; see `torn` for a last line
                that was cut off
        """
        standing: dict[int, str] = {}
        for number, label in self._decisions(self.label_file(annotator)):
            standing.pop(number, None)
            if label != UNDO:
                standing[number] = label
        return standing

    def label(self, annotator: str, number: int, label: str) -> None:
        """Append one decision, or "undo"; it is on disk when this returns.

        raises  OSError where the disk is full; then the file is as it was
        """
        if label not in (*NAMES, UNDO) or not 0 <= number < len(self):
            raise InputError(
                f"found the label {label!r} for map {number}; wanted one of {', '.join(NAMES)} for "
                f"0 to {len(self) - 1}"
            )
        path = self.label_file(annotator)
        with path.open("a+b", buffering=0) as file:
            if torn := self._torn(path):
                file.truncate(path.stat().st_size - len(torn))
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            end = b"" if file.read() in (b"", b"\n") else b"\n"  # by hand it need not have one
            line = end + f"{number},{label}\n".encode("ascii")
            try:
                if file.write(line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
                if size == 0:
                    sync_folder(path.parent)  # the file's name, too
            except OSError:
                file.truncate(size)
                raise

    def undo(self, annotator: str) -> int | None:
        """Take back the latest decision that stands; the number of its map, None if none stands."""
        latest = next(reversed(self.labels(annotator)), None)
        if latest is not None:
            self.label(annotator, latest, UNDO)
        return latest

    def annotators(self) -> list[str]:
        """Who has labelled, by name."""
        names = [p.stem.removeprefix("labels-") for p in self.folder.glob("labels-*.csv")]
        return sorted(name for name in names if _NAME.fullmatch(name))

    def label_file(self, annotator: str) -> Path:
        """Where an annotator's decisions are; raises InputError for what is no name."""
        return self.folder / f"labels-{checked_name(annotator)}.csv"

    def torn(self) -> list[str]:
        """A sentence for each annotator whose last line was cut off."""
        return [
            f"{path}: the last line was cut off at {torn.decode('utf-8', 'replace')[:60]!r} and is "
            "left out; label that map again"
            for path in map(self.label_file, self.annotators())
            if (torn := self._torn(path))
        ]

    def _torn(self, path: Path) -> bytes:
        """The last line where it has no end and is no decision, or may be the half of one."""
        last = _content(path).rpartition(b"\n")[2]
        text = last.decode("utf-8-sig", "replace")
        number, _, label = (part.strip() for part in text.partition(","))
        longer = any(meant.startswith(label) and meant != label for meant in _MEANT)
        whole = self._is_number(number) and label in _MEANT and not longer
        return b"" if whole or text.strip() in ("", "number,label") else last

    def _decisions(self, path: Path) -> Iterator[tuple[int, str]]:
        """(number, label) of each line."""
        content = _content(path)
        try:
            lines = content.removesuffix(self._torn(path)).decode("utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise InputError(f"cannot read labels from {path}: {error}") from error
        for place, line in enumerate(lines, 1):
            fields = [field.strip() for field in line.split(",")]
            if fields == [""] or (place == 1 and fields == ["number", "label"]):
                continue
            if not (len(fields) == 2 and self._is_number(fields[0]) and fields[1] in _MEANT):
                raise InputError(
                    f"{path}:{place}: found {line[:60]!r}; wanted 'number,label', a number below "
                    f"{len(self)} and one of {', '.join(NAMES)}"
                )
            yield int(fields[0]), _MEANT[fields[1]]

    def _is_number(self, text: str) -> bool:
        return re.fullmatch("[0-9]{1,9}", text) is not None and int(text) < len(self)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError(f"cannot read labels from {path}: {error}") from error


def _kinds(size: int, row: Mapping[str, str]) -> Kinds | None:
    if row.get("special") is None or row.get("punctuation") is None:
        return None
    kinds = np.full(size, CONTENT, np.int8)
    kinds[[int(place) for place in row["punctuation"].split()]] = PUNCTUATION
    kinds[[int(place) for place in row["special"].split()] or [0]] = SPECIAL
    return kinds


def checked_name(annotator: str) -> str:
    """The name of an annotator, if it can be part of a file's; else InputError."""
    if not _NAME.fullmatch(annotator):
        raise InputError(
            f"found the annotator {annotator[:60]!r}; wanted up to 40 letters, digits, '-', '_' "
            "and '.'"
        )
    return annotator


def shuffled(drawn: Iterable[Drawn], *, seed: int) -> list[Drawn]:
    """In an order that says nothing of model, text or layer."""
    maps = list(drawn)
    order = np.random.default_rng(seed).permutation(len(maps))
    return [maps[place] for place in order]


def _write_provenance(drawn: Sequence[Drawn], path: str) -> None:
    # Names of files may hold half of a surrogate pair, which is no text.
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        for number, one in enumerate(drawn):
            values = (getattr(one, field) for field in FIELDS[1:])
            writer.writerow(
                [number, *(" ".join(map(str, v)) if isinstance(v, tuple) else v for v in values)]
            )


def _write_maps(drawn: Sequence[Drawn], path: str) -> None:
    sizes = np.array([len(one.map) for one in drawn], np.int64)
    with open(path, "wb") as file:
        weights = np.concatenate([one.map.ravel() for one in drawn])
        np.savez_compressed(file, sizes=sizes, weights=weights)


@dataclass(frozen=True)
class Agreement:
    """Two annotators on the maps that both labelled.

    count      how many those are
    same       on how many they agree
    kappa      Cohen's kappa (1960), at most 1; NaN where chance alone would agree everywhere
    confusion  [label of the first, label of the second] counts in the order of NAMES
    """

    count: int
    same: int
    kappa: float
    confusion: Ints


def agreement(first: Mapping[int, str], second: Mapping[int, str]) -> Agreement:
    """How far they agree; each given as number → label."""
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    both = sorted(first.keys() & second.keys())
    if not both:
        return Agreement(0, 0, float("nan"), np.zeros((len(NAMES), len(NAMES)), np.int64))
    pair = [first[number] for number in both], [second[number] for number in both]
    confusion = confusion_matrix(*pair, labels=list(NAMES)).astype(np.int64)
    alone = len({*pair[0], *pair[1]}) == 1  # one class for all: nothing beyond chance
    kappa = float("nan") if alone else float(cohen_kappa_score(*pair, labels=list(NAMES)))
    return Agreement(len(both), int(np.trace(confusion)), kappa, confusion)
