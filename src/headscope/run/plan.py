"""Plan a run: read the corpus once with the tokenizer alone and cut its documents into shards.

This pass reports everything that is wrong with a corpus before the model runs, and counts tokens
for their frequency ranks. Shards hold whole documents in reading order, so any process can compute
any shard by itself, and the merged result does not depend on who computed what.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.core.progress import one_by_one
from headscope.corpus import Corpus, Document, EncodeCounts, Encoder, Example
from headscope.corpus.contents import Annotations
from headscope.corpus.document import Passage
from headscope.corpus.input_sample import InputSample
from headscope.corpus.stored_inputs import StoredInputChoice
from headscope.errors import CorpusError, InputError
from headscope.model.model import Model
from headscope.run.settings import Settings

# Tokens of an input at most where --max-length is not given: the maps of a layer grow with its
# square, and published measurements use at most 512.
USUAL_LIMIT = 512
MOST_SAMPLED = 16_384  # ours: tokens that each network of a run's control reads


@dataclass(frozen=True)
class Shard:
    """Documents first … first + documents - 1 of the corpus; `digest` is over their inputs.

    examples  how many inputs they give
    """

    number: int
    first: int
    documents: int
    tokens: int
    digest: str
    examples: int = 0


@dataclass(frozen=True)
class Plan:
    """What a run reads of a corpus under some settings.

    shards        in reading order
    counts        documents, examples, tokens; what was skipped or windowed, and why
    token_counts  [vocabulary] how often each token id occurs
    annotations   which annotations the corpus has
    stored_inputs      a few inputs whose maps are shown
    listed        the first documents' places by their ids, as many as there are replicates
    digest        sha256 over all inputs in order: documents, ids, segment ids, annotations
    sample        inputs for the control of the run
    longest       tokens of the longest input
    """

    shards: tuple[Shard, ...]
    counts: EncodeCounts
    token_counts: npt.NDArray[np.int64]
    annotations: Annotations
    stored_inputs: tuple[Example, ...]
    listed: Mapping[str, int]
    digest: str
    sample: InputSample
    longest: int


def encoder_for(model: Model, settings: Settings) -> Encoder:
    """The encoder of a model under some settings."""
    limit, limited_by = model.positions
    if settings.max_length is None and limit > USUAL_LIMIT:
        limited_by = f"the default of max_length; it may be up to {limit}, {limited_by}"
        limit = USUAL_LIMIT
    return Encoder(
        model.tokenizer, model_limit=limit, limited_by=limited_by, has_segments=model.has_segments,
        max_length=settings.max_length, seed=settings.seed,
        long=settings.long, segment_ids=settings.segment_ids,  # type: ignore[arg-type]
        word_tokens=settings.word_tokens,  # type: ignore[arg-type]
    )  # fmt: skip


def encoded(model: Model, text: str, text_pair: str | None) -> Example:
    """The text as the model reads it; raises InputError for one that is empty or does not fit."""
    if not text.strip():
        raise InputError("found an empty text; wanted something to read")
    # Segments as the tokenizer cuts them, also where the model does not tell them apart.
    limit, limited_by = model.positions
    encoder = Encoder(
        model.tokenizer, model_limit=limit, limited_by=limited_by, has_segments=True, long="error"
    )
    document = Document("text", (Passage("the text", text=text, text_pair=text_pair),))
    try:
        examples = encoder.encode(document)
    except CorpusError as error:  # its advice is for corpora
        told = str(error).partition(";")[0]
        raise InputError(f"{told}; wanted a text that fits whole: shorten it") from error
    if not examples:
        raise InputError(
            f"the tokenizer gives no tokens for {text[:40]!r}; wanted text it can read"
        )
    return examples[0]


def make_plan(model: Model, corpus: Corpus, settings: Settings) -> Plan:
    """Read the whole corpus once; raises CorpusError if nothing in it can be shown to the model."""
    encoder = encoder_for(model, settings)
    token_counts = np.zeros(len(model.tokenizer), np.int64)
    digest, of_shard = hashlib.sha256(), hashlib.sha256()
    annotations, stored_inputs = Annotations(), StoredInputChoice(seed=settings.seed)
    sample = InputSample(seed=settings.seed, most=MOST_SAMPLED)
    shards: list[Shard] = []
    listed: dict[str, int] = {}
    first = tokens = read = inputs = longest = 0

    def shard() -> Shard:
        count = read - first
        return Shard(len(shards), first, count, tokens, of_shard.hexdigest(), inputs)

    for document in one_by_one(islice(corpus, settings.limit), "read", "documents"):
        examples = encoder.encode(document)
        read, inputs = read + 1, inputs + len(examples)
        for example in examples:
            tokens, longest = tokens + len(example), max(longest, len(example))
            token_counts += np.bincount(example.input_ids, minlength=len(token_counts))
            annotations.add(example)
            stored_inputs.consider(example)
            sample.consider(example)
            if len(listed) <= settings.replicates:
                listed.setdefault(example.document, len(listed))
            for each in (digest, of_shard):
                _feed(each, example)
        if tokens >= settings.shard_tokens:
            shards.append(shard())
            first, tokens, inputs, of_shard = read, 0, 0, hashlib.sha256()
    if tokens:
        shards.append(shard())
    if not shards:
        raise CorpusError(
            f"nothing to show to the model: {read} documents were read, none gave an input "
            f"({encoder.counts.skipped} passages skipped)"
        )
    return Plan(
        tuple(shards), encoder.counts, token_counts, annotations, stored_inputs.chosen(),
        listed, digest.hexdigest(), sample, longest,
    )  # fmt: skip


class Reader:
    """Encodes the documents of shards; cheap when the shards come in order."""

    def __init__(self, model: Model, corpus: Corpus, settings: Settings) -> None:
        self.encoder, self.corpus = encoder_for(model, settings), corpus
        self._stream: Iterator[Document] = iter(())
        self._next = -1

    def examples(self, shard: Shard) -> list[Example]:
        """All examples of a shard, in reading order.

        raises  CorpusError if they are not those that were planned
        """
        if self._next < 0 or self._next > shard.first:
            self._stream, self._next = iter(self.corpus), 0
        for _ in islice(self._stream, shard.first - self._next):
            pass
        documents = islice(self._stream, shard.documents)
        self._next = shard.first + shard.documents
        examples = [e for document in documents for e in self.encoder.encode(document)]
        digest = hashlib.sha256()
        for example in examples:
            _feed(digest, example)
        if digest.hexdigest() != shard.digest:
            last = shard.first + shard.documents
            raise CorpusError(
                f"the corpus has changed since this run was planned: documents {shard.first + 1} "
                f"to {last} are not what they were; nothing of them is kept\nput the old files "
                "back and give the same command again, or choose another folder with -o"
            )
        return examples


def corpus_ranks(token_counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """[vocabulary] frequency rank of every token id, 1 = most frequent; ties share their mean."""
    import pandas as pd  # scipy.stats would take half a second more to import

    return np.asarray(pd.Series(-token_counts).rank(method="average"), np.float64)


def read_ranks(path: Path, vocabulary: int) -> npt.NDArray[np.float64]:
    """[vocabulary] ranks from a file of lines "rank count token-id"; unlisted ids: last rank + 1.

    raises  CorpusError with file and line
    """
    rank_of: dict[int, int] = {}
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot read frequency ranks from {path}: {error}") from error
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if len(fields) != 3 or not all(f.isdecimal() and len(f) < 19 for f in fields):
            raise CorpusError(f"{path}:{number}: {line[:60]!r}; wanted 'rank count token-id'")
        rank_of[int(fields[2])] = int(fields[0])
    if not rank_of:
        raise CorpusError(f"{path} is empty; wanted lines 'rank count token-id'")
    ranks = np.full(vocabulary, max(rank_of.values()) + 1.0)
    for token, rank in rank_of.items():
        if token < vocabulary:
            ranks[token] = rank
    return ranks


def _feed(digest: Any, example: Example) -> None:
    digest.update(repr((example.id, example.document, len(example))).encode())
    digest.update(example.input_ids.astype("<i8").tobytes())
    digest.update(example.segment_ids.astype("<i8").tobytes())
    if example.words is not None:  # analyses may read the annotations
        digest.update(repr((example.words, example.mentions, example.frames)).encode())
        digest.update(b"" if example.word_index is None else example.word_index.tobytes())
