"""Plan a run in processes that share only its folder; each plans some partitions.

    RUN/processes/plan-KEY/shards/00003-HASH.shard   what partition 3 gives to the plan

The key names all that decides a plan. One process merges all partitions in their order, so that
plan and digest are those of one process, and keeps that as if it were one partition more: a
thousand processes that each read a thousand files would take longer than to plan. A killed process
costs the partition that it planned.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from headscope.core.accumulators import Ints
from headscope.core.progress import phase
from headscope.corpus import Corpus, EncodeCounts, Example
from headscope.corpus.contents import Annotations, Reason
from headscope.corpus.document import Frame, FrameElement, Mention, Word
from headscope.corpus.equal_documents import EqualDocuments
from headscope.corpus.partitions import partitions_of
from headscope.model.model import Model
from headscope.run.manifest import deciding_versions, identity_of
from headscope.run.manifest_file import RESULTS
from headscope.run.plan import (
    Plan,
    PlanPart,
    Shard,
    encoder_for,
    joined,
    make_plan,
    merged,
    plan_partition,
)
from headscope.run.processes import PLAN, TakingPart
from headscope.run.readings import CorpusReading
from headscope.run.settings import Settings, fingerprint
from headscope.run.shard_files import ShardFiles, State
from headscope.run.shared_parts import KeptParts, WrittenElsewhereError


def shared_plan(model: Model, corpus: Corpus, settings: Settings, own: TakingPart) -> Plan:
    """The plan of `make_plan`, made with other processes where there are partitions."""
    partitions = partitions_of(corpus)
    if len(partitions) == 1 or settings.limit is not None:
        return make_plan(model, corpus, settings)
    key = fingerprint(
        {
            "versions": deciding_versions(),
            "model": identity_of(model),
            "corpus": corpus.describe(),
            "partitions": [[one.name, one.size] for one in partitions],
            "settings": settings.as_dict(),
        }
    )
    encoder = encoder_for(model, settings)
    parts = _PlanParts(ShardFiles(own.place / f"{PLAN}{key[:16]}"), key, own)
    count = len(partitions)

    def planned(at: int) -> State:
        return state_of_part(plan_partition(encoder, partitions[at], settings))

    def whole(_: int) -> State:
        states = (parts.part(at, partial(planned, at)) for at in range(count))
        return state_of_part(joined(part_of_state(state, settings) for state in states))

    with phase("read", count, "partitions") as advance:
        try:
            if count not in parts.done:
                parts.together(range(count), planned, lambda at: advance(1), what="partition")
            (state,) = parts.parts([count], whole, lambda at: None, what="partition")
            return merged([part_of_state(state, settings)])
        except WrittenElsewhereError:  # and what was planned is deleted
            return make_plan(model, corpus, settings)


_COUNTED = ("number", "first", "documents", "tokens", "examples", "partition")  # of a shard


class _PlanParts(KeptParts):
    def refreshed(self) -> bool:
        """As in `KeptParts`; nothing is planned together once the run has results."""
        assert self.own is not None
        return super().refreshed() or (self.own.place.parent / RESULTS).is_file()


def state_of_part(part: PlanPart) -> State:
    """The plan of a partition as arrays for a file."""
    packed = {
        "counts": part.counts.as_dict(),
        "listed": [*part.listed],
        "digests": part.digests,
        "readings": {kind: _told(reading) for kind, reading in part.readings.items()},
    }
    text = np.frombuffer(json.dumps(packed).encode(), np.uint8)
    shards = [[getattr(shard, name) for name in _COUNTED] for shard in part.shards]
    digests = bytes.fromhex("".join(shard.digest for shard in part.shards))
    return {
        "told": text,
        **{kind: one.token_counts for kind, one in part.readings.items()},
        "shards": np.array(shards, np.int64).reshape(-1, len(_COUNTED)),
        "shard_digests": np.frombuffer(digests, np.uint8).reshape(-1, 32),  # of sha256
    }


def part_of_state(state: State, settings: Settings) -> PlanPart:
    """The plan that `state_of_part` packed."""
    packed = json.loads(state["told"].tobytes())
    counts = EncodeCounts(**packed["counts"])
    counts.reasons = {
        name: Reason(**reason) for name, reason in packed["counts"]["reasons"].items()
    }
    readings = {
        kind: _reading(one, state[kind], seed=settings.seed)
        for kind, one in packed["readings"].items()
    }
    digests = map(bytes.hex, map(bytes, state["shard_digests"]))
    shards = [
        Shard(number, first, documents, tokens, digest, examples, partition)
        for (number, first, documents, tokens, examples, partition), digest in zip(
            state["shards"].tolist(), digests, strict=True
        )
    ]
    listed = dict.fromkeys(map(tuple, packed["listed"]))
    return PlanPart(shards, counts, settings.replicates, readings, listed, packed["digests"])


def _told(reading: CorpusReading) -> dict[str, Any]:
    return {
        "counts": reading.counts,
        "longest": reading.longest,
        "lengths": reading.lengths,
        "annotated": reading.annotations.documents,
        "relations": reading.annotations.relations,
        "stored": [_plain(example) for example in reading.stored_inputs.held],
        "sample": [_plain(example) for example in reading.sample.held],
        "below": reading.sample.below,
        "equal": reading.equal.state(),
    }


def _reading(packed: dict[str, Any], token_counts: Ints, *, seed: int) -> CorpusReading:
    reading = CorpusReading.new(0, seed=seed)
    reading.token_counts, reading.sample.below = token_counts, packed["below"]
    for choice, examples in (
        (reading.stored_inputs, packed["stored"]),
        (reading.sample, packed["sample"]),
    ):
        for one in examples:
            choice.consider(_example(one))
    reading.annotations = Annotations(Counter(packed["annotated"]), Counter(packed["relations"]))
    reading.counts, reading.lengths = Counter(packed["counts"]), Counter(packed["lengths"])
    reading.longest, reading.equal = packed["longest"], EqualDocuments.of_state(packed["equal"])
    return reading


def _plain(example: Example) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in asdict(example).items()
    }


def _example(packed: dict[str, Any]) -> Example:
    for name in ("input_ids", "segment_ids", "special", "word_index"):
        if packed[name] is not None:
            packed[name] = np.array(packed[name], np.bool_ if name == "special" else np.int64)
    if packed["words"] is not None:
        packed["words"] = tuple(Word(**word) for word in packed["words"])
    packed["mentions"] = tuple(Mention(**mention) for mention in packed["mentions"])
    for frame in packed["frames"]:
        frame["elements"] = tuple(FrameElement(**element) for element in frame["elements"])
    packed["frames"] = tuple(Frame(**frame) for frame in packed["frames"])
    return Example(**packed)
