"""Plan a run: read the corpus once with the tokenizer, and divide its documents into shards.

This pass reports everything that is wrong with a corpus before the model runs, and counts tokens
for their frequency ranks. Shards hold whole documents in reading order, so any process can compute
any shard by itself. Partitions are planned one by one, in several processes, and merged in order.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from multiprocessing import get_context
from multiprocessing.queues import Queue
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headscope.core.progress import Advance, phase
from headscope.core.wording import how_many
from headscope.corpus import Corpus, Document, EncodeCounts, Encoder, Example
from headscope.corpus.contents import Annotations
from headscope.corpus.document import Passage
from headscope.corpus.input_sample import InputSample
from headscope.corpus.partitions import Partition, partitions_of
from headscope.errors import CorpusError, HeadscopeError, InputError
from headscope.run.readings import (
    CorpusReading,
    general_reading,
    merge_readings,
    reading_with,
    shown_inputs,
)
from headscope.run.settings import Settings
from headscope.run.worker_processes import follow_parent, shielded, stop_at_once

if TYPE_CHECKING:
    from headscope.model.model import Model  # torch: a process that plans does without

# Tokens of an input at most where --max-length is not given: the maps of a layer grow with its
# square, and published measurements use at most 512.
USUAL_LIMIT = 512
MOST_COPIES = 32  # ours: of each replicate, documents that may be on a list


@dataclass(frozen=True)
class Shard:
    """Documents first … first + documents - 1 of a partition; `digest` is a hash of their inputs.

    examples   how many inputs they give
    partition  its number in the corpus
    """

    number: int
    first: int
    documents: int
    tokens: int
    digest: str
    examples: int = 0
    partition: int = 0


@dataclass(frozen=True)
class Plan:
    """What a run reads from a corpus under its settings.

    shards        in reading order
    counts        documents, examples, tokens; what was skipped or windowed, and why
    readings      what the inputs of each kind give
    listed        the documents' places by their ids, those of equal content in one; empty where
                  they have more places than there are replicates
    digest        sha256 over all inputs in order: documents, ids, segment ids, annotations; of
                  several partitions, over the digests of each
    whole         of the first documents of a corpus, the plan of all: it decides what is read by
                  which question
    """

    shards: tuple[Shard, ...]
    counts: EncodeCounts
    readings: Mapping[str, CorpusReading]
    listed: Mapping[str, int]
    digest: str
    whole: Plan | None = None

    @cached_property
    def reading(self) -> str:
        """The general reading: inputs for all questions that need no annotation."""
        return general_reading((self.whole or self).readings)

    def reading_with(self, annotations: Collection[str]) -> tuple[str, CorpusReading]:
        """The reading for questions that need these annotations."""
        kind = reading_with((self.whole or self).readings, annotations)
        return kind, self.readings[kind]

    @property
    def token_counts(self) -> npt.NDArray[np.int64]:
        """[vocabulary] count of each token id in the general reading."""
        return self.readings[self.reading].token_counts

    @property
    def sample(self) -> InputSample:
        """Inputs of the general reading for the control of the run."""
        return self.readings[self.reading].sample

    @cached_property
    def annotations(self) -> Annotations:
        """The annotations of the corpus."""
        every = Annotations()
        for reading in self.readings.values():
            every.merge(reading.annotations)
        return every

    @cached_property
    def stored_inputs(self) -> tuple[Example, ...]:
        """A few inputs whose maps are stored."""
        return shown_inputs(self.readings)

    @property
    def longest(self) -> int:
        """Length of the longest input, in tokens."""
        return max(reading.longest for reading in self.readings.values())

    def counted(self) -> dict[str, Any]:
        """The counts for a manifest: of the general reading, and of each reading if there are more.

        Documents of equal content count as one.
        """
        each = {kind: reading.counted() for kind, reading in self.readings.items()}
        counts = self.counts.as_dict() | each[self.reading] | {"reading": self.reading}
        return counts | ({"readings": each} if len(each) > 1 else {})


def encoder_for(model: Model, settings: Settings) -> Encoder:
    """The encoder of a model under some settings."""
    limit, limited_by = model.positions
    if settings.max_length is None and limit > USUAL_LIMIT:
        limited_by = f"the default of max_length; it may be up to {limit}, {limited_by}"
        limit = USUAL_LIMIT
    return Encoder(
        model.tokenizer,
        model_limit=limit,
        limited_by=limited_by,
        has_segments=model.has_segments,
        max_length=settings.max_length,
        seed=settings.seed,
        long=settings.long,
        segment_ids=settings.segment_ids,
        word_tokens=settings.word_tokens,
        start=model.start,
    )


def encoded(model: Model, text: str, text_pair: str | None) -> Example:
    """The text as the model reads it; raises InputError for one that is empty or does not fit."""
    if not text.strip():
        raise InputError("found an empty text; wanted at least one word")
    # Segments as the tokenizer cuts them, also where the model does not tell them apart.
    limit, limited_by = model.positions
    encoder = Encoder(
        model.tokenizer,
        model_limit=limit,
        limited_by=limited_by,
        has_segments=True,
        long="error",
        start=model.start,
    )
    document = Document("text", (Passage("the text", text=text, text_pair=text_pair),))
    try:
        examples = encoder.encode(document)
    except CorpusError as error:  # its advice is for corpora
        reason = str(error).partition(";")[0]
        raise InputError(f"{reason}; wanted a text that fits whole: shorten it") from error
    if not examples:
        raise InputError(
            f"the tokenizer gives no tokens for {text[:40]!r}; wanted text it can read"
        )
    return examples[0]


def make_plan(model: Model, corpus: Corpus, settings: Settings, *, workers: int = 1) -> Plan:
    """Read the whole corpus once; raises CorpusError if it has no usable input.

    workers  processes, where the corpus has several partitions and is read to its end
    """
    partitions, encoder = partitions_of(corpus), encoder_for(model, settings)
    if workers > 1 and len(partitions) > 1 and settings.limit is None:
        parts = _in_processes(encoder, corpus, settings, len(partitions), workers=workers)
    else:
        parts = _one_after_another(encoder, partitions, settings)
    return merged(parts)


@dataclass
class PlanPart:
    """The plan of one partition, or of several consecutive ones.

    shards, counts, readings  as of `Plan`
    listed  (id, content) of the first documents, in order and with no value: as many as may be on a
            list, and one more
    digests  of the inputs of each partition
    """

    shards: list[Shard]
    counts: EncodeCounts
    replicates: int
    readings: dict[str, CorpusReading] = field(default_factory=dict)
    listed: dict[tuple[str, str], None] = field(default_factory=dict)
    digests: list[str] = field(default_factory=list)

    def list(self, document: tuple[str, str]) -> None:
        """Add an id with its content to the list, while there is room."""
        if len(self.listed) <= MOST_COPIES * self.replicates:
            self.listed.setdefault(document)

    def places(self) -> dict[str, int]:
        """Places of all documents by id; empty for more documents than replicates."""
        if len(self.listed) > MOST_COPIES * self.replicates:
            return {}
        places, of_content = dict[str, int](), dict[str, int]()
        for document, content in self.listed:
            new = len(set(places.values()))
            place = places.setdefault(document, of_content.get(content, new))
            of_content.setdefault(content, place)
        return places if len(set(places.values())) <= self.replicates else {}

    def merge(self, after: PlanPart) -> None:
        """Append the next partition, as if both had been read together."""
        place, before = len(self.digests), len(self.shards)
        self.shards += [
            replace(shard, number=before + shard.number, partition=place) for shard in after.shards
        ]
        self.counts.add(after.counts)
        merge_readings(self.readings, after.readings)
        for document in after.listed:
            self.list(document)
        self.digests += after.digests


def plan_partition(encoder: Encoder, documents: Iterable[Document], settings: Settings) -> PlanPart:
    """Read the documents of one partition; its shards count from 0."""
    counts = encoder.counts = EncodeCounts()
    part = PlanPart([], counts, settings.replicates)
    digest, of_shard, vocabulary = hashlib.sha256(), hashlib.sha256(), encoder.reader.ids
    first = tokens = 0
    ids: dict[str, list[npt.NDArray[np.int64]]] = {}  # of each input of the shard, by reading

    def close() -> None:
        at = len(part.shards), first, counts.documents - first
        examples = sum(map(len, ids.values()))
        part.shards.append(Shard(*at, tokens, of_shard.hexdigest(), examples))
        for kind, some in ids.items():
            each = part.readings[kind].token_counts
            each += np.bincount(np.concatenate(some), minlength=len(each))

    for examples in encoder.encode_each(documents):
        if examples:
            part.list((examples[0].document, examples[0].content))
        for kind in dict.fromkeys(example.reading for example in examples):
            if kind not in part.readings:
                part.readings[kind] = CorpusReading.new(vocabulary, seed=settings.seed)
            part.readings[kind].add([one for one in examples if one.reading == kind])
        for example in examples:
            tokens += len(example)
            ids.setdefault(example.reading, []).append(example.input_ids)
            digest.update(example.content_bytes)
            of_shard.update(example.content_bytes)
        if tokens >= settings.shard_tokens:
            close()
            first, tokens, ids, of_shard = counts.documents, 0, {}, hashlib.sha256()
    if tokens:
        close()
    part.digests = [digest.hexdigest()]
    return part


def joined(parts: Iterable[PlanPart]) -> PlanPart:
    """The plan of consecutive partitions."""
    following = iter(parts)
    whole = next(following)
    for part in following:
        whole.merge(part)
    return whole


def merged(parts: Iterable[PlanPart]) -> Plan:
    """The plan of all partitions in order; CorpusError if they have no input."""
    whole = joined(parts)
    if not whole.shards:
        raise CorpusError(
            f"no input for the model: {how_many(whole.counts.documents, 'document')} read, none "
            f"with an input ({how_many(whole.counts.skipped, 'passage')} skipped)"
        )
    unknown, content = whole.counts.unknown, whole.counts.content
    if unknown and unknown == content:
        raise CorpusError(
            f"the tokenizer cannot read this text: all {content:,} tokens are unknown to it; "
            "wanted text in a language and an encoding that the model was trained on"
        )
    digest = whole.digests[0]
    if len(whole.digests) > 1:
        digest = hashlib.sha256("\n".join(whole.digests).encode()).hexdigest()
    return Plan(tuple(whole.shards), whole.counts, whole.readings, whole.places(), digest)


def _one_after_another(
    encoder: Encoder, partitions: Sequence[Partition], settings: Settings
) -> Iterator[PlanPart]:
    with phase("read", unit="documents") as advance:
        left = settings.limit
        for partition in partitions:
            documents = islice(partition, left)
            part = plan_partition(encoder, _counted(documents, advance), settings)
            yield part
            left = None if left is None else left - part.counts.documents
            if left == 0:
                return


def _counted(documents: Iterable[Document], advance: Advance) -> Iterator[Document]:
    for document in documents:
        yield document
        advance(1)


def _in_processes(
    encoder: Encoder, corpus: Corpus, settings: Settings, count: int, *, workers: int
) -> Iterator[PlanPart]:
    """The parts in order; at most two per worker are in memory."""
    context, workers = get_context("spawn"), min(workers, count)
    handed: Queue[bytes] = context.Queue()  # not as arguments, as `gather.run_workers` says
    handed.cancel_join_thread()
    packed = pickle.dumps((encoder, corpus, settings))
    for _ in range(workers):
        handed.put(packed)
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(handed,))
    ahead = deque[Future[PlanPart]]()
    try:
        with phase("read", unit="documents") as advance:
            with shielded():
                ahead += [pool.submit(_plan, n) for n in range(min(2 * workers, count))]
            for following in range(len(ahead), count + len(ahead)):
                part = ahead.popleft().result()
                if following < count:
                    ahead.append(pool.submit(_plan, following))
                advance(part.counts.documents)
                yield part
        pool.shutdown()  # libraries that stream leave nothing behind
    except BrokenProcessPool as error:
        raise HeadscopeError(
            "a process that read the corpus died (out of memory? killed?): run the same command "
            "again, with fewer --workers. In a script of your own, call atlas below "
            '`if __name__ == "__main__":`'
        ) from error
    finally:
        stop_at_once(pool)


_WORKER: list[Any] = []  # in a worker process: the queue, then encoder, partitions and settings


def _begin(handed: Queue[bytes]) -> None:
    follow_parent()
    _WORKER[:] = [handed]


def _plan(number: int) -> PlanPart:
    if len(_WORKER) == 1:  # unpacked here, where what goes wrong reaches the parent
        encoder, corpus, settings = pickle.loads(_WORKER[0].get())
        _WORKER[:] = [encoder, partitions_of(corpus), settings]
    encoder, partitions, settings = _WORKER
    return plan_partition(encoder, partitions[number], settings)
