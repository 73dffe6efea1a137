"""Where do the features of thousands of sentences wait to be read, a sentence at a time?

In one flat file in half precision, written batch by batch and read sentence by sentence, so that no
more than a batch is ever in memory. Reads go through the system's file cache and not through a
memory map, whose pages would count as the process's own.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.errors import HeadscopeError
from headscope.run.store import put, why_unwritten

KIND = np.dtype(np.float16)
NOTE_SECONDS = 5.0  # so much work is lost at most when the process is killed

Features = npt.NDArray[np.float16]
Shape = tuple[int, ...]


class Store:
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
        """Let go of the file."""
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
