"""Keeps what all sentences look like to one network in flat files in half precision.

They are written batch by batch and read sentence by sentence, so that no more than a batch is ever
in memory. Reads go through the system's file cache and not through a memory map, whose pages would
count as the process's own.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.corpus.packing import batches
from headscope.errors import HeadscopeError, InputError
from headscope.experiments.probes.probe_plan import ProbePlan
from headscope.experiments.probes.treebank_splits import TreebankSplit
from headscope.experiments.probes.word_features import (
    Extract,
    Features,
    Shape,
    attention_of,
    attention_shape,
    hidden_of,
    hidden_shape,
    randomised,
)
from headscope.model.linears import linears
from headscope.model.model import Model, evaluating
from headscope.run.store import put, why_unwritten

LIMIT_GB = 20.0  # ours
FOLDER = "features"  # in a run folder
KIND = np.dtype(np.float16)
NOTE_SECONDS = 5.0  # so much work is lost at most when the process is killed


class FeatureFile:
    """Arrays of float16 in a file, numbered as their shapes are.

    path     of the file; beside it stands `….json`, which says how much of it is whole
    shapes   of each array
    batches  numbers of the arrays that are computed together, in the order of writing
    key      names what is in it: a file of another key is written anew
    """

    def __init__(
        self, path: Path, shapes: Sequence[Shape], batches: Sequence[Sequence[int]], key: str
    ) -> None:
        self.path, self.shapes, self.batches, self.key = path, shapes, batches, key
        self._note = path.with_suffix(".json")
        self._starts = np.zeros(len(shapes), np.int64)
        at = 0
        for number in (n for batch in batches for n in batch):
            self._starts[number] = at
            at += prod(shapes[number]) * KIND.itemsize
        self._file: int | None = None

    def fill(
        self,
        compute: Callable[[Sequence[int]], Sequence[Features]],
        *,
        progress: Callable[[int], None] = lambda count: None,
    ) -> None:
        """Compute and write what is not there yet.

        compute   from the numbers of a batch, its arrays
        progress  called with how many arrays have been written since the last call
        raises    HeadscopeError where the disk is full
        """
        done = self._whole()
        progress(sum(map(len, self.batches[:done])))
        if done == len(self.batches):
            return
        noted = time.monotonic()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("r+b" if done else "wb") as file:
                for at in range(done, len(self.batches)):
                    batch = self.batches[at]
                    file.seek(int(self._starts[batch[0]]))
                    for number, array in zip(batch, compute(batch), strict=True):
                        file.write(self._bytes(number, array))
                    progress(len(batch))
                    last = at + 1 == len(self.batches)
                    if last or time.monotonic() - noted > NOTE_SECONDS:
                        file.flush()
                        os.fsync(file.fileno())
                        note = {"key": self.key, "batches": at + 1}
                        put(self._note, json.dumps(note).encode())
                        noted = time.monotonic()
        except OSError as error:
            raise why_unwritten(error, self.path) from error

    def read(self, number: int, part: int | None = None) -> Features:
        """An array, or one part of it along its first axis."""
        if self._file is None:
            self._file = os.open(self.path, os.O_RDONLY)
        shape, start = self.shapes[number], int(self._starts[number])
        if part is not None:
            shape = shape[1:]
            start += part * prod(shape) * KIND.itemsize
        wanted = prod(shape) * KIND.itemsize
        content = os.pread(self._file, wanted, start)
        if len(content) != wanted:
            raise HeadscopeError(f"{self.path} has been cut; run the same command again")
        return np.frombuffer(content, KIND).reshape(shape)  # as `shapes` says

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _bytes(self, number: int, array: npt.NDArray[Any]) -> bytes:
        if array.shape != self.shapes[number]:
            raise ValueError(f"found an array {array.shape}; wanted {self.shapes[number]}")
        return np.ascontiguousarray(array, KIND).tobytes()

    def _whole(self) -> int:
        """How many batches are written and were synced."""
        try:
            note = json.loads(self._note.read_bytes())
            done, size = int(note["batches"]), self.path.stat().st_size
        except (OSError, ValueError, KeyError, TypeError):
            return 0
        if note["key"] != self.key or not 0 < done <= len(self.batches):
            return 0
        last = self.batches[done - 1][-1]
        end = int(self._starts[last]) + prod(self.shapes[last]) * KIND.itemsize
        return done if size >= end else 0


def size_of(shapes: Sequence[Shape]) -> int:
    """Bytes of such arrays on disk."""
    return sum(prod(shape) for shape in shapes) * KIND.itemsize


Stores = tuple[FeatureFile, FeatureFile, FeatureFile]


# --- the features of a run --------------------------------------------------------------------


@dataclass(frozen=True)
class FeaturePlace:
    """Where features are kept, and how large they may get.

    folder  a folder of their own is made in it; None: in the run folder, or a temporary one
    limit   GB at most
    keep    whether they stay when the run has finished
    """

    folder: Path | None = None
    limit: float = LIMIT_GB
    keep: bool = False


def shapes_of(kind: str, model: Model, split: TreebankSplit) -> list[Shape]:
    """[sentence] the shapes of one kind of features."""
    shape = hidden_shape if kind == "hidden" else attention_shape
    return [shape(sentence, model) for sentence in split.sentences]


def check_size(
    kinds: Sequence[str],
    model: Model,
    splits: Sequence[TreebankSplit],
    place: FeaturePlace,
    run: Path | None,
) -> str:
    """A sentence on how large the features get; "" where there are none.

    run     folder of the run; None: in memory
    raises  InputError for more than is allowed or free

    Only one kind is there at a time, so the largest counts, unless all are kept.
    """
    sizes = [sum(size_of(shapes_of(kind, model, split)) for split in splits) for kind in kinds]
    if not sizes:
        return ""
    size = sum(sizes) if place.keep else max(sizes)
    count = sum(len(split.sentences) for split in splits)
    told = f"features of {count:,} sentences take {_bytes(size)} on disk (half precision)"
    advice = "give fewer sentences (--limit) or shorter ones (--max-length 64 --long skip)"
    if size > place.limit * 1e9:
        raise InputError(
            f"{told}, and --features-limit allows {place.limit:g} GB\n{advice}, or a higher limit"
        )
    where = place.folder or run or Path(tempfile.gettempdir())
    while not where.exists() and where != where.parent:
        where = where.parent
    free = shutil.disk_usage(where).free
    written = (run / FOLDER).glob("*.bin") if run is not None else ()  # by a run that was stopped
    if size > free + sum(file.stat().st_size for file in written):
        raise InputError(
            f"{told}, and {where} has {_bytes(free)} free\n"
            f"{advice}, or name another folder: --features FOLDER"
        )
    return told if place.keep else f"{told}; they are deleted at the end"


class FeatureFolder:
    """The features of one run; each kind is computed when it is first asked for.

    folder   holds the files; `scratch` names more of them
    key      names the run: files of another are written anew
    linears  how the network is run
    keep     whether `drop` lets go of files without deleting them
    advance  called with how many more sentences were read
    """

    def __init__(
        self,
        folder: Path,
        key: str,
        asking: ProbePlan,
        linears: str,
        *,
        keep: bool = False,
        advance: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.folder, self.key, self.asking = folder, key, asking
        self.linears, self.keep, self.advance = linears, keep, advance
        self._open: dict[str, Stores] = {}

    def __enter__(self) -> FeatureFolder:
        return self

    def __exit__(self, *_: object) -> None:
        for kind in list(self._open):
            self._close(kind)

    def of(self, kind: str) -> Stores:
        """The stores of train, dev and test, one array for each sentence."""
        if kind not in self._open:
            self._open[kind] = self._filled(kind)
        return self._open[kind]

    def drop(self, kind: str) -> None:
        """Deletes one kind of features, to make room for the next."""
        self._close(kind)
        for file in () if self.keep else self.folder.glob(f"{kind}-*"):
            file.unlink(missing_ok=True)

    def scratch(self, name: str) -> Path:
        """A file for the state of a training."""
        return self.folder / f"training-{name}"

    def _close(self, kind: str) -> None:
        for store in self._open.pop(kind, ()):
            store.close()

    def _filled(self, kind: str) -> Stores:
        asking, settings = self.asking, self.asking.settings
        model = asking.model
        if kind == "random":
            model = randomised(model, seed=settings.seed)
        extract = hidden_of(model) if kind == "hidden" else attention_of(model, settings.pieces)
        with evaluating(model.network), linears(model.network, self.linears):
            first, second, third = (self._store(kind, split, extract) for split in asking.splits)
        return first, second, third

    def _store(self, kind: str, split: TreebankSplit, extract: Extract) -> FeatureFile:
        sentences, shapes = split.sentences, shapes_of(kind, self.asking.model, split)
        examples = [sentence.example for sentence in sentences]
        order = list(batches(examples, budget=self.asking.settings.batch_tokens))
        path = self.folder / f"{kind}-{split.name}.bin"
        store = FeatureFile(path, shapes, order, f"{self.key} {kind}")
        store.fill(lambda some: extract([sentences[at] for at in some]), progress=self.advance)
        return store


@contextmanager
def folder_of(place: FeaturePlace, run: Path | None, key: str) -> Iterator[Path]:
    """The folder for the features of a run; deleted when the run has finished, unless kept."""
    if place.folder is None and run is None:
        with tempfile.TemporaryDirectory(prefix="headscope-features-") as made:
            yield Path(made)
        return
    folder = place.folder / f"headscope-{key[:12]}" if place.folder else Path(run or "") / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make {folder}: {error.strerror}; choose another folder with --features"
        ) from error
    yield folder
    if not place.keep:  # not when it was interrupted: the next run goes on from here
        shutil.rmtree(folder, ignore_errors=True)


def _bytes(size: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size / 1e3:.0f} kB"
