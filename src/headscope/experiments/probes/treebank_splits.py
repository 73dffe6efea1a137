"""Reads the sentences that a run trains on, chooses by and tests on, and what is right in them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import generator
from headscope.corpus.contents import EncodeCounts, has_tree, label
from headscope.corpus.document import Document, Example, Passage
from headscope.corpus.encoder import Encoder
from headscope.corpus.files import UniqueNames
from headscope.corpus.treebank import TreebankCorpus
from headscope.errors import CorpusError, InputError
from headscope.experiments.probes.settings import ProbeSettings
from headscope.model.model import Model, file_sha256
from headscope.model.words import Words

ROOT = 0  # as a head; words count from 1
UNASKED = -1  # as a head: it is in another input, or has no token
PUNCTUATION = frozenset({"punct", "P"})  # relations: UD and Stanford; the CoNLL-X treebanks' P
# Tags of Hewitt and Manning (2019), whose trees never hold these words.
PUNCTUATION_TAGS = frozenset({"''", ",", ".", ":", "``", "-LRB-", "-RRB-"})

Ints = npt.NDArray[np.int64]
Shorts = npt.NDArray[np.int16]  # there are many
Bools = npt.NDArray[np.bool_]
DEV_SHARE = 10  # without --dev, a tenth of train is held out where dev is needed


@dataclass(frozen=True, eq=False)
class TreeSentence:
    """One model input, and the tree of the words that have a token in it.

    example     what the model reads; its document is the sentence that it is, or is a window of
    forms       [word]
    head        [word] 0 for a root, else the head's place from 1; UNASKED
    relations   [word]
    place       [word] the word's place among the words and special tokens of the input
    scored      [word] whether it counts without punctuation
    spanned     [word] whether it may be part of an undirected tree
    distance    [word, word] how many arcs lie between two words; through the root where there are
                several
    depth       [word] arcs from the root
    """

    example: Example
    forms: tuple[str, ...]
    head: Ints
    relations: tuple[str, ...]
    place: Ints
    scored: Bools
    spanned: Bools
    distance: Shorts
    depth: Shorts

    def __len__(self) -> int:
        """How many words there are."""
        return len(self.forms)


@dataclass(frozen=True)
class TreebankSplit:
    """The sentences of one part of the data.

    name         "train", "dev" or "test"
    sentences    in reading order
    counts       what became of the passages
    description  `kind` and `files`, as `Corpus.describe`
    """

    name: str
    sentences: tuple[TreeSentence, ...]
    counts: EncodeCounts = field(default_factory=EncodeCounts)
    description: dict[str, Any] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Of what is right: heads and relations of all words."""
        digest = hashlib.sha256()
        for sentence in self.sentences:
            digest.update(sentence.head.tobytes())
            text = "\x1f".join((*sentence.forms, *sentence.relations)) + "\x1e"
            digest.update(text.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


Splits = tuple[TreebankSplit, TreebankSplit, TreebankSplit]


def read_split(
    name: str, files: Sequence[Path], encoder: Encoder, *, limit: int | None = None, seed: int = 0
) -> TreebankSplit:
    """The sentences of treebank files, each a document of its own.

    encoder  has read nothing yet
    limit    sentences at most, drawn by the seed
    raises   CorpusError for a malformed file; InputError where no sentence has a tree
    """
    corpus = TreebankCorpus(files)
    names = UniqueNames()
    passages = [passage for document in corpus for passage in document.passages]
    if limit is not None and limit < len(passages):
        drawn = generator(seed, "limit", name).choice(len(passages), limit, replace=False)
        passages = [passages[at] for at in sorted(drawn.tolist())]
    sentences = [
        sentence
        for at, passage in enumerate(passages)
        for example in encoder.encode(_alone(passage, names, f"{name} {at + 1}"))
        if (sentence := sentence_of(example)) is not None
    ]
    if not sentences:
        shown = ", ".join(str(file) for file in files)
        raise InputError(
            f"no sentence of {shown} has a tree to learn or test; wanted CoNLL-U with heads "
            "(column 7) and relations (column 8)"
        )
    return TreebankSplit(name, tuple(sentences), encoder.counts, corpus.describe())


def _alone(passage: Passage, names: UniqueNames, place: str) -> Document:
    return Document(names.of(passage.id, place=place), (passage,))


def sentence_of(example: Example) -> TreeSentence | None:
    """The sentence of an example; None without a tree or without words."""
    if not has_tree(example):
        return None
    assert example.words is not None
    place = Words.of([example], tokens=len(example)).place[0]  # [word of the treebank]
    there = np.flatnonzero(place >= 0)
    if not len(there):
        return None
    gold = np.array([word.head for word in example.words], np.int64)
    number = np.full(len(gold), UNASKED, np.int64)
    number[there] = np.arange(1, len(there) + 1)
    head = np.where(gold[there] < 0, ROOT, number[gold[there]])
    relations = tuple(label(example, int(at)) for at in there)
    scored = np.array([r.partition(":")[0] not in PUNCTUATION for r in relations])
    tags = [example.words[at].xpos for at in there]
    spanned = scored & np.array([tag not in PUNCTUATION_TAGS for tag in tags])
    distance, depth = tree_metric(gold)
    return TreeSentence(
        example, tuple(example.words[at].form for at in there), head, relations, place[there],
        scored, spanned, distance[np.ix_(there, there)], depth[there],
    )  # fmt: skip


def tree_metric(head: Ints) -> tuple[Shorts, Shorts]:
    """Distances between the words of a tree, and their depths.

    head     [word] 0-based, below 0 for a root
    returns  [word, word] arcs between two words; [word] arcs to the root, 0 for a root

    Several roots are two arcs apart, as if they hung from one node above the sentence.
    """
    n = len(head)
    above = np.zeros((n, n), bool)  # [word, word] whether the second is the first or above it
    for word in range(n):
        at = word
        while at >= 0:
            above[word, at] = True
            at = int(head[at])
    depth = above.sum(1) - 1  # [word]
    shared = above.astype(np.int64) @ above.T.astype(np.int64)  # [word, word] nodes above both
    distance = (depth[:, None] + 1) + (depth[None, :] + 1) - 2 * shared
    return distance.astype(np.int16), depth.astype(np.int16)


# --- train, dev and test ----------------------------------------------------------------------


def read_splits(
    model: Model,
    files: Mapping[str, Sequence[Path]],
    settings: ProbeSettings,
    probes: Sequence[str],
) -> Splits:
    """Reads train, dev and test.

    files   of "train", "test" and, where there are any, "dev"; without these, a tenth of train is
            held out where it is needed: for several epochs, and for the structural probe
    raises  CorpusError and InputError, also for a file that is named twice
    """
    _check_distinct(files)

    def read(name: str, limit: int | None = None) -> TreebankSplit:
        encoder = Encoder(
            model.tokenizer, model_limit=model.limit, has_segments=model.has_segments,
            max_length=settings.max_length, long=settings.long,  # type: ignore[arg-type]
        )  # fmt: skip
        return read_split(name, files[name], encoder, limit=limit, seed=settings.seed)

    train, test = read("train", settings.limit), read("test", settings.test_limit)
    if settings.epochs == 1 and "structural" not in probes:
        return train, TreebankSplit("dev", ()), test
    if files.get("dev"):
        return train, read("dev"), test
    return (*_held_out(train, seed=settings.seed), test)


def corpus_of(splits: Splits) -> dict[str, Any]:
    """All files, as `Corpus.describe`."""
    files = [file for split in splits for file in split.description.get("files", [])]
    return {"kind": "treebank", "files": files, "counted": "sentences"}


def counts_of(splits: Splits) -> dict[str, Any]:
    """What became of long and unreadable sentences, for a manifest."""
    counts = EncodeCounts()
    for split in splits:
        counts.add(split.counts)
    every = counts.as_dict()
    return {name: every[name] for name in ("skipped", "windowed", "reasons")}


def _held_out(train: TreebankSplit, *, seed: int) -> tuple[TreebankSplit, TreebankSplit]:
    """Train without a tenth of its sentences, and these."""
    if len(train.sentences) < 2:
        raise InputError("found one sentence to train on; wanted two or more, or --dev FILE")
    order = generator(seed, "dev").permutation(len(train.sentences)).tolist()
    held = set(order[: max(1, len(order) // DEV_SHARE)])
    parts: tuple[list[TreeSentence], list[TreeSentence]] = ([], [])
    for at, sentence in enumerate(train.sentences):
        parts[at in held].append(sentence)
    kept = TreebankSplit("train", tuple(parts[0]), train.counts, train.description)
    return kept, TreebankSplit("dev", tuple(parts[1]))


def _check_distinct(files: Mapping[str, Sequence[Path]]) -> None:
    """Raises InputError where one file is in two parts, whatever its name."""
    seen: dict[str, tuple[str, Path]] = {}
    for name, paths in files.items():
        for path in paths:
            try:
                digest = file_sha256(path)
            except OSError as error:
                raise CorpusError(f"{path} cannot be read: {error.strerror}") from error
            if digest in seen:
                other, there = seen[digest]
                raise InputError(
                    f"--{other} {there} and --{name} {path} are the same file; wanted different "
                    "sentences to learn from and to be tested on"
                )
            seen[digest] = (name, path)
