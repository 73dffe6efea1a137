"""Reduce a corpus to sums and counts that can be added and merged, by groups of documents."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

REPLICATES = 200  # groups of documents at most: more would hardly make an interval more exact


def groups_of(
    documents: Sequence[str],
    *,
    replicates: int,
    seed: int = 0,
    listed: Mapping[str, int] | None = None,
) -> Ints:
    """The group of each document; an interval comes from leaving out one group after another.

    documents   [example]  the id of the document that each example belongs to
    replicates  the number of groups; of none or one all are in group 0
    listed      the places of all documents where they are no more than groups: each is a group of
                its own. Else a document's group depends on nothing but the seed and its id, in any
                order, batch or process
    returns     [example] from 0 to replicates - 1
    """
    if replicates < 2:
        return np.zeros(len(documents), np.int64)
    known: dict[str, int] = dict(listed or {})
    for document in documents:
        if document not in known:
            known[document] = int(generator(seed, "group", document).integers(replicates))
    return np.array([known[document] % replicates for document in documents], np.int64)


def left_out(units: Sequence[str], *, replicates: int) -> Float64:
    """[unit, replicate + 1] weight 0/1 of each unit: in the data, then without each group of units.

    replicates  groups at most; units of one name are in one
    """
    listed = {name: place for place, name in enumerate(dict.fromkeys(units))}
    replicates = min(replicates, len(listed))
    groups = groups_of(units, replicates=replicates, listed=listed)
    kept = groups[:, None] != np.arange(replicates if replicates > 1 else 0)
    return np.concatenate([np.ones((len(units), 1)), kept], 1)  # [unit, replicate + 1]


def halves(documents: Sequence[str], *, seed: int) -> npt.NDArray[np.int64]:
    """[example] 0 or 1: the half of the corpus that its document belongs to.

    A head is chosen on one half and scored on the other. Depends on nothing but the seed and the
    document's id.
    """
    return np.array([generator(seed, "half", d).integers(2) for d in documents], np.int64)


def generator(seed: int, *names: str) -> np.random.Generator:
    """A random generator that depends on the seed and the names only (never on Python's hash)."""
    text = "\x1f".join((str(seed), *names)).encode("utf-8", "surrogatepass")
    return np.random.default_rng(
        int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
    )


@dataclass
class Accumulator:
    """The sums of an analysis: one array, its first field, is the whole state.

    nothing  what stands in a cell that has seen nothing
    """

    nothing: ClassVar[float] = 0
    join: ClassVar[Callable[..., Array]] = np.add  # the states of two into one

    @property
    def array(self) -> Array:
        """The whole state."""
        state: Array = getattr(self, fields(self)[0].name)
        return state

    def merge(self, other: Self) -> None:
        """Add the sums of another; ValueError for another shape, which numpy would broadcast."""
        mine, theirs = self.array, other.array
        if mine.shape != theirs.shape:
            raise ValueError(
                f"cannot merge {theirs.shape} into {mine.shape}: they belong to different runs"
            )
        self.join(mine, theirs, out=mine)


@dataclass
class Sums(Accumulator):
    """Sums over examples, cell by cell, separate for each group of documents.

    by_group  [group, *cell]
    """

    by_group: Float64

    @classmethod
    def zeros(cls, *cell: int, replicates: int) -> Sums:
        """Empty sums; with fewer than two replicates there is one group."""
        return cls(np.zeros((max(replicates, 1), *cell)))

    def add(self, values: Array, groups: Ints, *, at: tuple[int, ...] = ()) -> None:
        """Add one batch.

        values  [example, *cell[len(at):]]  one value per example; must be finite
        groups  [example]                   from `groups_of`; fewer groups may be kept
        at      the leading cell indices to add to, say (layer,)
        """
        target = self.by_group[(slice(None), *at)]  # type: ignore[arg-type]  # a view, not a mask
        kept, cell = groups % len(target), target.shape[1:]
        different = np.unique(kept)
        if len(different) == len(kept):  # the same in one step
            target[kept] += values.reshape(len(kept), *cell)
            return
        for group in different:
            target[group] += values[kept == group].sum(0, dtype=np.float64).reshape(cell)

    def folded(self, groups: int) -> Sums:
        """The same with fewer groups, as `add` would have made them."""
        if len(self.by_group) <= groups:
            return self
        fewer = Sums.zeros(*self.by_group.shape[1:], replicates=groups)
        for start in range(0, len(self.by_group), len(fewer.by_group)):
            part = self.by_group[start : start + len(fewer.by_group)]
            fewer.by_group[: len(part)] += part
        return fewer

    @property
    def total(self) -> Float64:
        """[*cell] the sum over all examples."""
        return np.asarray(self.by_group.sum(0))

    @property
    def sums(self) -> Float64:
        """[replicate + 1, *cell] the sum over all examples, then over all except each group."""
        total = self.total[None]
        return np.concatenate([total, total - self.by_group]) if len(self.by_group) > 1 else total


@dataclass
class Counts(Accumulator):
    """A histogram: number of observations per cell, [*cell] int64; no replicates."""

    counts: npt.NDArray[np.int64]

    @classmethod
    def zeros(cls, *cell: int) -> Counts:
        """An empty histogram."""
        return cls(np.zeros(cell, np.int64))

    def add(self, cells: npt.NDArray[np.int64]) -> None:
        """Count observations given as flat cell indices, any shape."""
        np.add.at(self.counts.reshape(-1), cells.ravel(), 1)


@dataclass
class Largest(Accumulator):
    """The largest value of each cell; without groups.

    The smallest of some values is the largest of their negatives, with its sign turned.

    values  [*cell]  -inf where nothing was seen
    """

    values: Float64
    nothing: ClassVar[float] = -np.inf
    join: ClassVar[Callable[..., Array]] = np.maximum

    @classmethod
    def empty(cls, *cell: int) -> Largest:
        """No values yet."""
        return cls(np.full(cell, cls.nothing))

    def add(self, values: Array, *, at: tuple[int, ...] = ()) -> None:
        """Consider values [*cell[len(at):]] in the leading cell indices `at`."""
        self.values[at] = np.maximum(self.values[at], values)

    @property
    def seen(self) -> Float64:
        """[*cell] the largest values; NaN for cells without any."""
        return np.where(np.isneginf(self.values), np.nan, self.values)


@dataclass
class TopRecords(Accumulator):
    """The best few records of each cell, in any order.

    rows    [*cell, rank, byte] uint8  the records, the best first
    record  their dtype: "score" (float64, above 0; 0 is an empty place), "key" (uint64, which
            decides between equal scores: the lower comes first), and what else is to be kept
    """

    rows: npt.NDArray[np.uint8]
    record: np.dtype[np.void]

    @classmethod
    def zeros(cls, *cell: int, record: np.dtype[np.void]) -> TopRecords:
        """No records yet; the last of the cell's sizes is the number of records."""
        return cls(np.zeros((*cell, record.itemsize), np.uint8), record)

    @property
    def records(self) -> Array:
        """[*cell, rank] the structured records."""
        return self.rows.view(self.record)[..., 0]  # [*cell, rank]

    def wanted(self, scores: Float64, key: int) -> Array:
        """[cell, axis] the cells in which a record with these scores [*cell] would be stored."""
        last = self.records[..., -1]
        better = scores > last["score"]
        return np.argwhere(
            better | ((scores == last["score"]) & (scores > 0) & (key < last["key"]))
        )

    def put(self, cell: tuple[int, ...], record: Array) -> None:
        """Store a `wanted` record in this cell, in place of the last one."""
        there = self.records[cell]
        there[-1] = record
        there[:] = there[_ranks(there)]

    def join(self, mine: Array, theirs: Array, *, out: Array) -> None:  # type: ignore[override]
        """Store the best of both in `out`; all are rows."""
        both = np.concatenate([mine, theirs], axis=-2)  # [*cell, 2·rank, byte]
        ranks = _ranks(both.view(self.record)[..., 0])[..., : mine.shape[-2]]
        out[...] = np.take_along_axis(both, ranks[..., None], axis=-2)


def _ranks(records: Array) -> npt.NDArray[np.intp]:
    """[*cell, rank] places of the records, the highest score first, then the lowest key."""
    return np.lexsort((records["key"], -records["score"]), axis=-1)


def ratio(numerator: Float64, denominator: Float64, *, absent: float = np.nan) -> Float64:
    """Numerator / denominator; `absent` where the denominator is 0."""
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    out = np.full(shape, absent, np.float64)
    np.divide(numerator, denominator, out=out, where=np.broadcast_to(denominator != 0, shape))
    return out


def means_over(kept: Float64, values: Array, of: Float64 | None = None) -> Float64:
    """[replicate + 1, …] Σ values / Σ of, over all units, then without each group of them.

    kept    [unit, replicate + 1] see `left_out`
    values  [unit, …]
    of      [unit] what their sum is a share of; by default the number of units
    """
    whole = kept.sum(0) if of is None else kept.T @ of
    total = np.tensordot(kept, values, (0, 0))
    return ratio(total, whole.reshape(-1, *[1] * (values.ndim - 1)))


def finite_mean(values: Float64, axes: int | tuple[int, ...] = -1) -> Float64:
    """The mean of the finite values over these axes; NaN without any."""
    there = np.isfinite(values)
    total, count = np.where(there, values, 0).sum(axes), there.sum(axes, dtype=np.float64)
    return ratio(np.asarray(total), np.asarray(count))


def correlation(first: Array, second: Array) -> Float64:
    """[...] Pearson's r over the last axis, Spearman's ρ of ranks; NaN where one is constant."""
    x, y = (side - side.mean(-1, keepdims=True) for side in (first, second))
    return ratio((x * y).sum(-1), np.sqrt((x * x).sum(-1) * (y * y).sum(-1)))


@dataclass(frozen=True)
class LogBins:
    """Bins of nearly equal relative width, for ranks over many orders of magnitude.

    octaves     from 2**first to 2**last; what lies outside falls into the first or last bin
    per_octave  a power of two; inside an octave the bins are equally wide

    The index is read off the bits of the float32, so it is exact, fast and monotone.
    """

    first: int
    last: int
    per_octave: int

    def __len__(self) -> int:
        """Number of bins, the one for everything below 2**first included."""
        return (self.last - self.first) * self.per_octave + 1

    @property
    def bits(self) -> tuple[int, int]:
        """The shift of a float32's bits, and the shifted bits of the first bin."""
        return 23 - (self.per_octave.bit_length() - 1), (self.first + 127) * self.per_octave - 1

    def index(self, values: Array) -> npt.NDArray[np.int64]:
        """The bin of each value: 0 below 2**first (and for 0), len - 1 from 2**last on."""
        shift, start = self.bits
        bits = np.ascontiguousarray(values, np.float32).view(np.int32) >> shift
        bins: npt.NDArray[np.int64] = np.clip(bits - start, 0, len(self) - 1).astype(np.int64)
        return bins

    def edges(self) -> Float64:
        """[len + 1] lower edges of the bins and the last upper one; the first is 0."""
        octave, step = np.divmod(np.arange(len(self)), self.per_octave)
        inner = 2.0 ** (self.first + octave) * (1 + step / self.per_octave)
        return np.concatenate([[0.0], inner])

    def coarsen(self, fine: LogBins) -> npt.NDArray[np.int64]:
        """[len(fine)] the bin here that contains each finer bin of the same octaves."""
        inside = (np.arange(len(fine)) - 1) // (fine.per_octave // self.per_octave) + 1
        return np.where(np.arange(len(fine)) == 0, 0, inside).astype(np.int64)


def spearman(joint: Array) -> Float64:
    """Spearman's rank correlation from a table of joint counts; values in one bin are ties.

    joint    [..., x_bin, y_bin]  counts or weights ≥ 0
    returns  [...]                in [-1, 1]; NaN where x or y has fewer than two occupied bins

    Exact for the binned data (mid-ranks, ties corrected); against the unbinned data the error
    falls with the square of the bin width.
    """
    joint = np.asarray(joint, np.float64)
    total = joint.sum((-2, -1))
    x, y = joint.sum(-1), joint.sum(-2)
    rank_x = np.cumsum(x, -1) - x / 2 - total[..., None] / 2  # centred mid-ranks
    rank_y = np.cumsum(y, -1) - y / 2 - total[..., None] / 2
    cross = np.einsum("...x,...xy,...y->...", rank_x, joint, rank_y)
    norm = np.einsum("...x,...x->...", x, rank_x**2) * np.einsum("...y,...y->...", y, rank_y**2)
    return ratio(cross, np.sqrt(norm))
