"""Compute the parts of a run in processes that share only its folder.

Each process begins with its own share of the parts and then takes what is left. It claims a part by
a lease; leases save work and decide nothing: two that compute the same part write the same bits.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from headscope.core.whole_file import names_in
from headscope.errors import HeadscopeError, RunFolderError, UnwrittenError
from headscope.run.merge_tree import Span, text_of
from headscope.run.processes import FINISH, LEASE, TakingPart
from headscope.run.shard_files import (
    LostShardError,
    ShardFiles,
    State,
    numbers_in,
    spans_over,
)

# Ours: so often a second all processes of a run together list its folder, those that work and
# those that wait; a list of a great run is long, and one server may answer all.
LOOKS, WAITING_LOOKS = 2.0, 20.0
LONGEST_PAUSE = 5.0, 60.0  # seconds between two looks of one that waits, of few processes and many
COUNTED = ("shard", "model")  # parts of a run
LOOKED_AT = 16  # leases of others at each look: the last of many processes would look at all of all
T = TypeVar("T")


class WrittenElsewhereError(HeadscopeError):
    """Another process has written the results: nothing is left to do."""


def order_of_work(shards: int, shard: tuple[int, int]) -> list[int]:
    """Numbers of all shards in the order in which a process takes them.

    Its own share first; then those of the others, from the next on, each from its middle: what
    follows is read on from there, and its owner comes there last.

    shard  i and n: the process has the i-th of n shares
    """
    at, of = shard[0] - 1, shard[1]
    shares = [range(k * shards // of, (k + 1) * shards // of) for k in range(of)]
    order = [*shares[at]]
    for share in shares[at + 1 :] + shares[:at]:
        order += [*share[len(share) // 2 :], *share[: len(share) // 2]]
    return order


def _pauses(of: int) -> Iterator[float]:
    least, most = LONGEST_PAUSE
    longest = min(max(of / WAITING_LOOKS, least), most)
    pause = min(max(longest / 100, of / WAITING_LOOKS / 4), longest)  # few looks before the longest
    while True:
        yield pause
        pause = min(1.5 * pause, longest)


class KeptParts:
    """The parts of a run that are finished.

    folder  where they are kept; None: in memory
    owner   fingerprint of the run
    own     this process, of several that fill the folder together; else None
    spans   what is finished: parts, each by itself, and nodes of the tree that merges shards
    """

    def __init__(self, folder: ShardFiles | None, owner: str, own: TakingPart | None) -> None:
        self.folder, self.own, self.spans = folder, own, set[Span]()
        if folder is not None:
            folder.owner = owner
            self.spans = folder.named_spans() if own else folder.finished_spans()

    @property
    def done(self) -> set[int]:
        """Numbers of the parts that are finished."""
        return numbers_in(self.spans)

    def look(self, near: Span | None = None) -> set[Span]:
        """Parts that exist now, by name, of any process; at least those within one span."""
        assert self.folder is not None
        return self.folder.named_spans(near)

    def refreshed(self) -> bool:
        """Look for newly finished parts of any process; returns whether nothing is left to do."""
        assert self.folder is not None
        self.spans = self.look()
        self.folder.drop_merged(self.spans)  # a shard may have been computed twice
        return False

    def verify(self) -> None:
        """Delete parts that are damaged or belong to another run."""
        assert self.folder is not None
        self.spans = self.folder.finished_spans()

    def part(self, number: int, make: Callable[[], State]) -> State:
        """The stored arrays of this number, else those of `make`, which are then stored."""
        if self.folder is None:
            return make()
        if (number, number) in self.spans:
            try:
                return self.kept(number)
            except LostShardError:  # damaged, or the results are there and it is gone
                if self.own is None:
                    raise
                self.verify()
                if self.refreshed():
                    raise WrittenElsewhereError from None
        self.keep(number, make())
        return self.kept(number)

    def parts(
        self,
        numbers: Collection[int],
        make: Callable[[int], State],
        done: Callable[[int], object],
        *,
        what: str = "shard",
        last: bool = False,
        member: type[Member] | None = None,
    ) -> Iterator[State]:
        """Yield several parts in order, as `part` returns each.

        Of several processes each computes some of them first, until all are there.

        make    gives one by its number
        done    called with the number of each that is there
        what    they are, as for `Member`
        member  how this process works
        last    only results are left to compute then: of several processes one goes on
        raises  WrittenElsewhereError in the others, once the results are there
        """
        if self.own is not None:
            self.together(numbers, make, done, what=what, last=last, member=member)
        for number in numbers:
            yield self.part(number, partial(make, number))
            if self.own is None:
                done(number)

    def together(
        self,
        numbers: Collection[int],
        make: Callable[[int], State],
        done: Callable[[int], object],
        *,
        what: str = "shard",
        last: bool = False,
        member: type[Member] | None = None,
    ) -> None:
        """Compute several parts with other processes until all are there; as `parts`."""
        assert self.own is not None
        if what in COUNTED:
            self.own.tell(parts=len(self.done.union(numbers)))
        for number in self.done.intersection(numbers):
            done(number)
        one = (member or Member)(self, [*numbers], make, lambda new: [*map(done, new)], what)
        one.together(lambda: (one.all_there() and (not last or one.finishing())) or None)

    def keep(self, number: int, state: State) -> None:
        """Write the named arrays of a part to the folder, if there is one."""
        if self.folder is not None:
            self.folder.put_shard(number, state)
        self.spans.add((number, number))

    def kept(self, number: int) -> State:
        """The named arrays of a finished part, from the folder."""
        assert self.folder is not None
        return self.folder.shard(number)


@dataclass
class Member:
    """This process, which computes parts of a run.

    parts  their numbers, in reading order
    make   computes one
    told   called with the numbers of those that came since the last call, whoever computed them
    what   "shard" or "model"; or a means to these: "partition" of a corpus, "model-features"
    """

    run: KeptParts
    parts: Sequence[int]
    make: Callable[[int], State]
    told: Callable[[set[int]], object]
    what: str = "shard"
    fresh: bool = False  # whether what is there was looked at just now
    next_look: float = 0.0

    def __post_init__(self) -> None:
        assert self.run.own is not None
        self.own: TakingPart = self.run.own
        self.begun, self.pauses = time.monotonic(), _pauses(self.own.shard[1])
        parts = np.array(self.parts, np.int32)
        self.order = parts[order_of_work(len(parts), self.own.shard)]
        self.size = 1 + int(parts.max(initial=-1))
        self.there = self._mask(self.run.spans)
        self.untold = ~self.there
        self.untold[np.delete(np.arange(self.size), parts)] = False

    def _mask(self, spans: Iterable[Span]) -> npt.NDArray[np.bool_]:
        """[number] whether it lies in a span; an array, as a set of 100,000 parts takes 100 times
        more.
        """
        return spans_over(spans, self.size) > 0

    def together(self, end: Callable[[], T | None]) -> T:
        """Work with the others until `end` returns something.

        raises  WrittenElsewhereError once another process has written the results
        """
        while not self.refreshed():
            self.count()
            try:
                if (result := end()) is not None:
                    return result
                if self.step():
                    continue
            except LostShardError:  # damaged, or merged by another
                self.own.release(FINISH)
                self.run.verify()
            except UnwrittenError:  # another has finished, and cleared away what was half written
                if not self.run.refreshed():
                    raise
            self.next_look = 0.0
            if self.fresh:
                self.wait()
        raise WrittenElsewhereError("another process has written the results")

    def refreshed(self) -> bool:
        """Look for newly finished parts, if it is time to; return whether nothing is left."""
        now = time.monotonic()
        self.fresh = now >= self.next_look
        if not self.fresh:
            return False
        self.next_look = now + self.own.shard[1] / LOOKS
        over = self.run.refreshed()
        self.there = self._mask(self.run.spans)
        return over

    def all_there(self) -> bool:
        """Whether everything except the results is finished."""
        return bool(self.there[self.order].all())

    def finishing(self) -> bool:
        """Whether this process, and no other, writes the results."""
        if not self.own.claim(FINISH) or self.run.refreshed():
            return False
        self.own.tell(state="finishing", doing="merging, intervals, control")
        return True

    def count(self) -> None:
        """Report the parts finished so far, of all processes."""
        new = np.flatnonzero(self.there[: self.size] & self.untold[: self.size])
        if len(new):
            self.untold[new] = False
            self.told(set(new.tolist()))

    def step(self) -> bool:
        """Compute a part or merge some, if any can be."""
        for span in chain(self.merges(), ((number, number) for number in self._left())):
            with self.own.leased(self.lease(span)) as mine:
                if mine and self.wanted(span, self.run.look(span)):
                    self.work_on(span)
                    self.pauses = _pauses(self.own.shard[1])
                    return True
            if mine and not self.fresh:  # another has finished it since the last look
                return False
        return False

    def lease(self, span: Span) -> str:
        """The name of the lease on a part, or on a node of the tree."""
        return text_of(span) if self.what == "shard" else f"{self.what}-{text_of(span)}"

    def merges(self) -> Iterable[Span]:
        """Parts that can be merged now: none."""
        return ()

    def work_on(self, span: Span) -> None:
        """Compute a part."""
        counted = self.what in COUNTED
        state = "planning" if self.what == "partition" else "computing"
        self.own.tell(state=state, doing=f"{self.what} {span[0] + 1}")
        self.run.keep(span[0], self.make(span[0]))
        self.there[span[0]] = True
        if counted:
            now, record = time.monotonic(), self.own.told
            seconds, self.begun = record["seconds"] + now - self.begun, now
            self.own.tell(shards=record["shards"] + 1, seconds=round(seconds, 3), doing="")

    def wanted(self, span: Span, spans: set[Span]) -> bool:
        """Whether a part is missing; another process may have finished it since the last look."""
        return not any(first <= span[0] and span[1] <= last for first, last in spans)

    def _left(self) -> Iterator[int]:
        """Missing parts: unclaimed ones, and a few of the others'."""
        left = self.order[~self.there[self.order]]
        if not self.fresh:  # one after another of its own share, as a rule
            yield from left[:1].tolist()
        before = self.lease((0, 0)).removesuffix(text_of((0, 0)))
        names = [n for n in names_in(self.own.place) if n.endswith(LEASE) and n.startswith(before)]
        claimed = [name[len(before) : -len(LEASE)] for name in names]
        leased = self._mask((int(name), int(name)) for name in claimed if name.isdecimal())
        yield from map(int, left[~leased[left]])
        taken: list[int] = left[leased[left]].tolist()
        for number in random.sample(taken, min(LOOKED_AT, len(taken))):
            if self.own.abandoned(self.lease((number, number))):
                yield number

    def wait(self) -> None:
        """Wait a moment for the others."""
        if not self.own.file.exists() and not self.run.refreshed():
            raise RunFolderError(
                f"{self.own.file} was deleted: another command has taken over the run, or the "
                "folder was cleared; run the same command again: finished parts are kept"
            )
        self.own.tell(state="waiting", doing="for what other processes compute")
        time.sleep(next(self.pauses))
