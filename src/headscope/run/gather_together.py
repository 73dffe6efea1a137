"""Compute and merge the shards of a run in many processes that share nothing but its folder.

Each process begins with its own share of the shards and then takes what is left. It claims a shard,
a node of the tree of sums, or the end of the run, by a lease; leases save work and decide nothing:
two that compute the same shard, or merge the same node, write the same bits.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headscope.core.progress import Advance, phase
from headscope.core.whole_file import names_in
from headscope.errors import RunFolderError, UnwrittenError
from headscope.model.model import Model
from headscope.run.analysis import Analysis
from headscope.run.compute import Computer, ShardJob
from headscope.run.gather import OnDisk, shard_sums
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.merge_tree import Span, children, parent, text_of
from headscope.run.plan import Plan
from headscope.run.processes import FINISH, LEASE, TakingPart
from headscope.run.shard_files import LostShardError

LONGEST_PAUSE = 5.0  # seconds between two looks at what others do
LOOKED_AT = 16  # leases of others at each look: the last of many processes would look at all of all


def gather_together(
    run: RunInProgress, model: Model, job: ShardJob, plan: Plan, meter: Meter
) -> list[Analysis] | None:
    """Compute with other processes until all shards are there; merge them if this is the last.

    run      of this process and others; it keeps the lease on finishing
    returns  all analyses, merged; None where another process has written the results
    """
    own = run.own
    assert own is not None
    with phase("compute", sum(shard.examples for shard in plan.shards), "inputs") as advance:
        member = _Member(run, plan, own, Computer(model, job), OnDisk(job, run), meter, advance)
        while not run.refreshed():
            member.count()
            try:
                merged = member.finish() if member.all_there() else None
                if merged is not None:
                    return list(merged.values())
                if member.step():
                    continue
            except LostShardError:  # damaged, or merged by another
                run.verify()
            except UnwrittenError:  # another has finished, and cleared away what was half written
                if not run.refreshed():
                    raise
            member.wait()
    return None


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


def complete_nodes(spans: set[Span], shards: int) -> list[Span]:
    """The nodes below the root that can be merged: not there, and all of their children are."""
    ready = {parent(span, shards) for span in spans} - spans - {(0, shards - 1)}
    return sorted(node for node in ready if all(child in spans for child in children(node)))


def _pauses() -> Iterator[float]:
    pause = 0.05
    while True:
        yield pause
        pause = min(1.5 * pause, LONGEST_PAUSE)


@dataclass
class _Member:
    """This process at work."""

    run: RunInProgress
    plan: Plan
    own: TakingPart
    computer: Computer
    tree: OnDisk
    meter: Meter
    advance: Advance
    begun: float = field(default_factory=time.monotonic)
    pauses: Iterator[float] = field(default_factory=_pauses)
    counted: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.order = order_of_work(len(self.plan.shards), self.own.shard)
        self.counted = self.there = self.run.done
        self.advance(sum(self.plan.shards[number].examples for number in self.counted))

    def count(self) -> None:
        """Tell how many shards there are by now, of all processes."""
        self.there = self.run.done
        new = self.there - self.counted
        self.counted |= new
        if new:
            self.advance(sum(self.plan.shards[number].examples for number in new))
            self.meter.advance(len(new))

    def all_there(self) -> bool:
        return all(child in self.run.spans for child in children((0, len(self.order) - 1)))

    def finish(self) -> Mapping[str, Analysis] | None:
        """Merge the whole, if no other process does."""
        if not self.own.claim(FINISH) or self.run.refreshed():
            return None
        self.own.tell(state="finishing", doing="merging, intervals, control")
        try:
            return self.tree.merged((0, len(self.order) - 1))
        except LostShardError:
            self.own.release(FINISH)
            raise

    def step(self) -> bool:
        """Merge a node or compute a shard, if one is to be had."""
        nodes = complete_nodes(self.run.spans, len(self.order))
        for span in [*nodes, *((number, number) for number in self._left())]:
            with self.own.leased(text_of(span)) as mine:
                if mine and self._wanted(span):
                    if span[0] < span[1]:
                        doing = f"shards {span[0] + 1} to {span[1] + 1}"
                        self.own.tell(state="merging", doing=doing)
                        self.tree.keep(span)
                    else:
                        self._compute(span[0])
                    return True
        return False

    def _wanted(self, span: Span) -> bool:
        """Whether it is not there; another may have finished it since the last look."""
        assert self.run.folder is not None
        spans = self.run.folder.named_spans()
        if span[0] < span[1]:
            return span not in spans and all(child in spans for child in children(span))
        return not any(first <= span[0] <= last for first, last in spans)

    def _left(self) -> list[int]:
        """Shards that are not there: those that nobody has claimed, and a few of the others."""
        leased = {name for name in names_in(self.own.place) if name.endswith(LEASE)}
        left = [number for number in self.order if number not in self.there]
        taken = {number for number in left if text_of((number, number)) + LEASE in leased}
        few = random.sample(sorted(taken), min(LOOKED_AT, len(taken)))
        return [*(number for number in left if number not in taken), *few]

    def _compute(self, number: int) -> None:
        self.own.tell(state="computing", doing=f"shard {number + 1}")
        self.run.keep(number, shard_sums(self.computer, self.plan.shards[number]))
        done, seconds = self.own.told["shards"] + 1, time.monotonic() - self.begun
        self.own.tell(shards=done, seconds=round(seconds, 3), doing="")
        self.pauses = _pauses()

    def wait(self) -> None:
        if not self.own.file.exists() and not self.run.refreshed():
            raise RunFolderError(
                f"{self.own.file} was deleted: another command has taken the run over, or somebody "
                "has cleared the folder; give the same command again: what is finished is kept"
            )
        self.own.tell(state="waiting", doing="for what other processes compute")
        time.sleep(next(self.pauses))
