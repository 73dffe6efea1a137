"""Compute and merge the shards of a run in processes that share only its folder.

Each process computes its share and what is left, and merges a node of the tree of sums once its
children are there, by leases as `shared_parts` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from headscope.core.progress import phase
from headscope.model.model import Model
from headscope.run.analysis import Analysis
from headscope.run.compute import Computer, ShardJob
from headscope.run.gather import Merging, shard_sums
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.merge_tree import FAN_IN, Span, children, parent
from headscope.run.plan import Plan
from headscope.run.shared_parts import Member


def gather_together(
    run: RunInProgress, model: Model, job: ShardJob, plan: Plan, meter: Meter
) -> Mapping[str, Analysis]:
    """Compute with other processes until all shards exist; the last process merges them.

    run      of this process and others; it keeps the lease on finishing
    returns  all analyses, merged
    raises   WrittenElsewhereError where another process has written the results
    """
    with phase("compute", sum(shard.examples for shard in plan.shards), "inputs") as advance:
        computer = Computer(model, job)

        def told(new: set[int]) -> None:
            advance(sum(plan.shards[number].examples for number in new))
            meter.advance(len(new))

        advance(sum(plan.shards[number].examples for number in run.done))
        member = _Member(
            run, range(len(plan.shards)), lambda at: shard_sums(computer, plan.shards[at]), told
        )
        member.tree = Merging(job, run)
        return member.together(member.finish)


def complete_nodes(spans: set[Span], shards: int) -> list[Span]:
    """Missing nodes below the root whose children all exist."""
    there = Counter(parent(span, shards) for span in spans)
    ready = {node for node, n in there.items() if n == FAN_IN or node[1] == shards - 1}
    ready -= {(0, shards - 1)}
    ready -= spans
    return sorted(node for node in ready if all(child in spans for child in children(node)))


class _Member(Member):
    """This process, which computes shards and merges nodes of the tree."""

    tree: Merging
    last: Span = (0, 0)  # what it computed or merged
    ready: list[Span]  # to be merged, as of the last look, and not tried since; from behind

    def all_there(self) -> bool:
        return all(child in self.run.spans for child in children((0, len(self.parts) - 1)))

    def finish(self) -> Mapping[str, Analysis] | None:
        """Merge the root, if all else is done and no other process does."""
        done = self.all_there() and self.finishing()
        return self.tree.merged((0, len(self.parts) - 1)) if done else None

    def merges(self) -> Iterator[Span]:
        shards, spans = len(self.parts), self.run.spans
        if self.fresh:
            self.ready = complete_nodes(spans, shards)[::-1]
        else:  # what it has completed itself
            above = parent(self.last, shards)
            yield from complete_nodes({*children(above), above} & spans, shards)
        while self.ready:
            yield self.ready.pop()

    def wanted(self, span: Span, spans: set[Span]) -> bool:
        ready = span[0] == span[1] or all(child in spans for child in children(span))
        return ready and super().wanted(span, spans)

    def work_on(self, span: Span) -> None:
        self.last = span
        if span[0] == span[1]:
            super().work_on(span)
            return
        self.own.tell(state="merging", doing=f"shards {span[0] + 1} to {span[1] + 1}")
        self.tree.keep(span)
