"""Which sentences of a treebank can a probe be asked about, and what is right in them?"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
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
from headscope.errors import InputError
from headscope.model.words import Words

ROOT = 0  # as a head; words count from 1
UNASKED = -1  # as a head: it is in another input, or has no token
PUNCTUATION = frozenset({"punct", "P"})  # relations: UD and Stanford; the CoNLL-X treebanks' P
# Tags of Hewitt and Manning (2019), whose trees never hold these words.
PUNCTUATION_TAGS = frozenset({"''", ",", ".", ":", "``", "-LRB-", "-RRB-"})

Ints = npt.NDArray[np.int64]
Shorts = npt.NDArray[np.int16]  # there are many
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sentence:
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
class Split:
    """The sentences of one part of the data.

    name         "train", "dev" or "test"
    sentences    in reading order
    counts       what became of the passages
    description  `kind` and `files`, as `Corpus.describe`
    """

    name: str
    sentences: tuple[Sentence, ...]
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


def read_split(
    name: str, files: Sequence[Path], encoder: Encoder, *, limit: int | None = None, seed: int = 0
) -> Split:
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
    return Split(name, tuple(sentences), encoder.counts, corpus.describe())


def _alone(passage: Passage, names: UniqueNames, place: str) -> Document:
    return Document(names.of(passage.id, place=place), (passage,))


def sentence_of(example: Example) -> Sentence | None:
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
    return Sentence(
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
