"""Files of partial sums: one for each shard, and for each node of the merge tree.

    RUN/shards/00000/00012-HASH.shard         the sums of shard 12
    RUN/shards/00000/00008..00015-HASH.shard  the sums of shards 8 to 15, merged; then theirs go

A folder holds the files of consecutive shards, and is named by the first. Every file is
written whole and named by the hash of its content, which begins with the fingerprint of its run, so
with the identity of the model that computed it; one of another run, or one that does not match its
name, is deleted and made again.
"""

from __future__ import annotations

import hashlib
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.core.inside import drop_inside, read_inside
from headscope.core.whole_file import names_in, write_whole
from headscope.errors import HeadscopeError, RunFolderError, told_as
from headscope.run.merge_tree import FAN_IN, Span, children, text_of

SHARDS = "shards"
IN_A_FOLDER = FAN_IN**4  # shards; with their nodes 4,681 files, where 10,000 are many
State = dict[str, np.ndarray[Any, Any]]
# Histograms of millions of bins, few of them used: of arrays of so MANY counts of which less than
# one in RARE is not 0, a file has these, their places, and the shape (of MOST at most).
_MANY, _RARE, _MOST = 1 << 16, 8, 1 << 31
_LARGEST = 1 << 32  # bytes of a state, unpacked: a file of a thousandth can say that it is more
_PLACES, _COUNTS, _SHAPE = "#places", "#counts", "#shape"


def joined(states: Sequence[State]) -> State:
    """The arrays of several parts, one behind the other, by name."""
    return {name: np.concatenate([one[name] for one in states]) for name in states[0]}


class LostShardError(HeadscopeError):
    """A file of finished shards is damaged or gone: the shards must be computed again."""


class ShardFiles:
    """The files of a run's shards.

    path         the run folder
    keep_shards  whether shards stay once they are merged, and once the results are written
    owner        fingerprint of the run whose shards are written and taken; set when it begins
    """

    def __init__(self, path: Path | str, *, keep_shards: bool = False) -> None:
        self.path, self.keep_shards, self.owner = Path(path), keep_shards, ""

    def finished_spans(self) -> set[Span]:
        """Complete shards and nodes of the owner; damaged files, and others', are deleted.

        So are the children of a node: a process was killed before it did that.
        """
        whole, damaged = self.shards()
        for name in damaged:
            drop_inside(self.path, f"{SHARDS}/{name}")
        self.drop_merged(whole)
        return whole

    def finished_shards(self) -> set[int]:
        """Numbers of the owner's complete shards, alone or in a node; likewise."""
        return numbers_in(self.finished_spans())

    def shards(self) -> tuple[set[Span], list[str]]:
        """Complete files of the owner in the folder of shards; damaged files, and others', are
        deleted.
        """
        whole, damaged = set[Span](), list[str]()
        for name in self._shard_files():
            span = _span(name)
            if span is not None and self._opened(name) is not None:
                whole.add(span)
            elif os.path.lexists(self.path / name):  # no other process has deleted it meanwhile
                damaged.append(name.partition("/")[2])
        return whole, damaged

    def named_spans(self, near: Span | None = None) -> set[Span]:
        """Existing spans by file name; nothing is read.

        near  look only where this would be, its children and what it would lie in
        """
        place = self.path / SHARDS
        folders = names_in(place) if near is None else _folders_near(near)
        return {span for part in folders for span in map(_span, names_in(place / part)) if span}

    def put_shard(self, number: int, state: State) -> None:
        """Write the state of one finished shard."""
        self.put_span((number, number), state)

    def put_span(self, span: Span, state: State) -> None:
        """Write the merged state of shards first … last; their own files can be deleted then."""
        content = self._seal + pack(state)
        place = self.path / self._place(span)
        write_whole(place / f"{text_of(span)}-{_digest(content)}.shard", content)

    def drop_merged(self, spans: Iterable[Span]) -> None:
        """Delete files within another of the spans, except shards to keep."""
        spans = [*spans]
        if spans_over(spans).max(initial=0) < 2:
            return
        end, inner = -1, set[Span]()
        for first, last in sorted(spans, key=lambda span: (span[0], -span[1])):
            if last > end:
                end = last
            else:
                inner.add((first, last))
        self.drop(inner)

    def drop(self, spans: Iterable[Span]) -> None:
        """Delete merged files, except shards to keep."""
        gone = {span for span in spans if span[0] < span[1] or not self.keep_shards}
        for place in {self._place(span) for span in gone}:
            for name in names_in(self.path / place):
                if _span(name) in gone:
                    with suppress(OSError):  # what stays is deleted with the next
                        drop_inside(self.path, f"{place}/{name}")

    def drop_shards(self) -> None:
        """Delete all shards that need not be kept, as far as the system allows."""
        with suppress(OSError):
            for name in self._shard_files():
                span = _span(name)
                if not self.keep_shards or (span is not None and span[0] < span[1]):
                    drop_inside(self.path, name)
            for name in [*names_in(self.path / SHARDS), ""]:
                if not (self.path / SHARDS / name).is_file():
                    with suppress(OSError):  # something else lies there
                        drop_inside(self.path, f"{SHARDS}/{name}")

    def shard(self, number: int) -> State:
        """The state of a finished shard; LostShardError if it is gone or has changed."""
        return self.span((number, number))

    def span(self, span: Span) -> State:
        """The merged state of several shards, likewise."""
        return next(self.states([span]))

    def states(self, spans: Sequence[Span]) -> Iterator[State]:
        """Several states, one after another; each folder is listed once."""
        wanted = set(spans)
        files = {
            _span(name): f"{place}/{name}"
            for place in {self._place(span) for span in spans}
            for name in sorted(names_in(self.path / place), reverse=True)  # of two, the first
            if _span(name) in wanted
        }
        for span in spans:
            if (name := files.get(span)) is None:
                raise LostShardError(
                    f"shard {text_of(span)} of {self.path} has vanished; run the command again"
                )
            yield self._state(name)

    def _state(self, name: str) -> State:
        """The state in a file; one that holds none is deleted: no digest would ever tell of it."""
        damaged = f"{self.path / name} is damaged; run the command again: it is recomputed"
        try:
            with told_as(lambda said: LostShardError(damaged)):
                if (content := self._opened(name)) is not None:
                    return unpack(content)
        except LostShardError:
            drop_inside(self.path, name)
            raise
        raise LostShardError(damaged)

    @property
    def _seal(self) -> bytes:
        return self.owner.encode() + b"\n"

    def _opened(self, name: str) -> bytes | None:
        """The content of a shard of the owner; None if it is another run's, damaged or gone."""
        try:
            content = read_inside(self.path, name)
        except (FileNotFoundError, RunFolderError):  # merged by another process; a link
            return None
        except OSError as error:
            raise RunFolderError(f"cannot read {self.path / name}: {error.strerror}") from error
        own = _digest(content) == PurePosixPath(name).stem.rpartition("-")[2]
        return content.removeprefix(self._seal) if own and content.startswith(self._seal) else None

    def _place(self, span: Span) -> str:
        return f"{SHARDS}/{_folder(span[0])}"

    def _shard_files(self) -> list[str]:
        """Names below the run folder, listed again, as other processes write too."""
        places = [f"{SHARDS}/{part}" for part in names_in(self.path / SHARDS)]
        every = (f"{place}/{name}" for place in places for name in names_in(self.path / place))
        return sorted(name for name in every if name.endswith(".shard"))


def numbers_in(spans: Iterable[Span]) -> set[int]:
    """The numbers of all shards in the spans."""
    return {number for first, last in spans for number in range(first, last + 1)}


def spans_over(spans: Iterable[Span], size: int = 0) -> npt.NDArray[np.int64]:
    """[number] how many of the spans contain it; of at least `size` numbers, without a loop."""
    first, last = np.fromiter(chain.from_iterable(spans), np.int64).reshape(-1, 2).T
    size = max(size, 1 + int(last.max(initial=-1)))
    change = np.bincount(first, minlength=size + 1) - np.bincount(last + 1, minlength=size + 1)
    over: npt.NDArray[np.int64] = change.cumsum()[:size]
    return over


def _folder(first: int) -> str:
    return f"{first // IN_A_FOLDER * IN_A_FOLDER:05d}"


def _folders_near(span: Span) -> set[str]:
    folders, width = {_folder(first) for first, _ in children(span)}, IN_A_FOLDER
    while width <= span[0]:
        width *= FAN_IN
        folders.add(_folder(span[0] // width * width))
    return folders


@lru_cache(1 << 16)  # all names are looked at again and again
def _span(name: str) -> Span | None:
    """The shards of a file; None for a foreign file."""
    if not name.endswith(".shard"):
        return None
    ends = name.rpartition("/")[2].partition("-")[0].split("..")
    if len(ends) > 2 or not all(end.isdecimal() for end in ends):
        return None
    return int(ends[0]), int(ends[-1])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def pack(state: State) -> bytes:
    """Named arrays as compressed safetensors bytes; sparse counts store only non-zero entries."""
    from safetensors.numpy import save

    arrays = dict[str, np.ndarray[Any, Any]]()
    for name, array in sorted(state.items()):
        arrays[name] = np.ascontiguousarray(array)
        if array.dtype.kind in "iu" and array.size > _MANY:
            flat = arrays[name].ravel()
            there = np.flatnonzero(flat)
            if there.size * _RARE < flat.size:
                del arrays[name]
                arrays |= {
                    name + _PLACES: there,
                    name + _COUNTS: flat[there],
                    name + _SHAPE: np.array(array.shape),
                }
    return zlib.compress(save(arrays), level=1)


def unpack(content: bytes) -> State:
    """The arrays that `pack` packed."""
    from safetensors.numpy import load

    packed = zlib.decompressobj()
    state: State = load(packed.decompress(content, _LARGEST))
    if not packed.eof:
        raise ValueError(f"it is cut, or holds more than {_LARGEST:,} bytes")
    for name in [name.removesuffix(_SHAPE) for name in state if name.endswith(_SHAPE)]:
        there, counts, shape = (state.pop(name + part) for part in (_PLACES, _COUNTS, _SHAPE))
        if math.prod(shape.tolist()) > _MOST:
            raise ValueError(f"{name} has the shape {shape.tolist()}")
        state[name] = np.zeros(shape, counts.dtype)
        state[name].ravel()[there] = counts
    return state
