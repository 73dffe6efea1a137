"""Reads gold trees from treebanks, and builds trees from the scores of a probe."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import log_softmax

from headscope.core.accumulators import Bools, Ints, generator
from headscope.core.whole_file import sha256_of
from headscope.corpus.contents import EncodeCounts, has_tree, label
from headscope.corpus.document import Document, Example
from headscope.corpus.encoder import Encoder
from headscope.corpus.files import UniqueNames
from headscope.corpus.treebank import TreebankCorpus
from headscope.errors import InputError
from headscope.model.batch import Words

ROOT = 0  # as a head; words count from 1
UNASKED = -1  # as a head: it is in another input, or has no token
PUNCTUATION = frozenset({"punct", "P"})  # relations: UD and Stanford; the CoNLL-X treebanks' P
# Tags of Hewitt and Manning (2019), whose trees never hold these words.
PUNCTUATION_TAGS = frozenset({"''", ",", ".", ":", "``", "-LRB-", "-RRB-"})

Floats = npt.NDArray[np.floating]
Shorts = npt.NDArray[np.int16]  # there are many


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
        """Hash of the gold heads and relations of all words."""
        return sha256_of(
            part
            for s in self.sentences
            for part in (s.head.tobytes(), "\x1f".join((*s.forms, *s.relations)) + "\x1e")
        )


def read_split(
    name: str, files: Sequence[Path], encoder: Encoder, *, limit: int | None = None, seed: int = 0
) -> TreebankSplit:
    """The sentences of treebank files, each a document of its own.

    encoder  has read nothing yet
    limit    sentences at most, drawn by the seed
    raises   CorpusError for a malformed file; InputError where no sentence has a tree
    """
    corpus, names = TreebankCorpus(files), UniqueNames()
    passages = [passage for document in corpus for passage in document.passages]
    if limit is not None and limit < len(passages):
        drawn = generator(seed, "limit", name).choice(len(passages), limit, replace=False)
        passages = [passages[at] for at in sorted(drawn.tolist())]
    sentences = []
    for number, passage in enumerate(passages, start=1):
        alone = Document(names.of(passage.id, place=f"{name} {number}"), (passage,))
        sentences += [s for x in encoder.encode(alone) if (s := sentence_of(x)) is not None]
    if not sentences:
        shown = ", ".join(str(file) for file in files)
        raise InputError(
            f"no sentence of {shown} has a tree for training or testing; wanted CoNLL-U with heads "
            "(column 7) and relations (column 8)"
        )
    return TreebankSplit(name, tuple(sentences), encoder.counts, corpus.describe())


def sentence_of(example: Example) -> TreeSentence | None:
    """The sentence of an example; None without tree or words."""
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
        example,
        tuple(example.words[at].form for at in there),
        head,
        relations,
        place[there],
        scored,
        spanned,
        distance[np.ix_(there, there)],
        depth[there],
    )


def tree_metric(head: Ints) -> tuple[Shorts, Shorts]:
    """Distances between the words of a tree, and their depths.

    head     [word] 0-based, below 0 for a root
    returns  [word, word] arcs between two words; [word] arcs to the root, 0 for a root

    Several roots are two arcs apart, as if they hung from one node above the sentence.
    """
    above = np.zeros((len(head), len(head)), np.int64)  # [word, word] 1: the same word, or above it
    for word in range(len(head)):
        at = word
        while at >= 0:
            above[word, at] = 1
            at = int(head[at])
    depth = above.sum(1) - 1  # [word]
    shared = above @ above.T  # [word, word] nodes above both
    distance = depth[:, None] + depth[None, :] + 2 - 2 * shared
    return distance.astype(np.int16), depth.astype(np.int16)


# --- trees of a probe's scores ----------------------------------------------------------------


def undirected_weights(scores: Floats) -> Floats:
    """[word, word] log(p(j | i) + p(i | j)) from scores [dependent, candidate]; without ROOT.

    How likely there is an arc between two words, whichever is the head (ours; Clark et al. make no
    trees).
    """
    log = log_softmax(np.asarray(scores, np.float64), axis=1)[:, 1:]  # [dependent, word]
    return np.asarray(np.logaddexp(log, log.T))


def spanning_edges(weights: Floats, kept: Bools) -> list[tuple[int, int]]:
    """Edges of the maximum spanning tree over the kept words, the smaller index first.

    weights  [word, word] symmetric, finite
    """
    words = np.flatnonzero(kept)
    if len(words) < 2:
        return []
    inner = np.asarray(weights, np.float64)[np.ix_(words, words)]
    cost = inner.max() - inner + 1  # scipy takes 0 for no edge; a constant changes no tree
    tree = minimum_spanning_tree(cost).tocoo()
    pairs = zip(words[tree.row].tolist(), words[tree.col].tolist(), strict=True)
    return sorted((min(pair), max(pair)) for pair in pairs)


def gold_edges(sentence: TreeSentence) -> set[tuple[int, int]]:
    """The gold arcs between words of an undirected tree, the smaller index first."""
    spanned = sentence.spanned
    edges = set()
    for word, head in enumerate((sentence.head - 1).tolist()):
        if head >= 0 and spanned[word] and spanned[head]:
            edges.add((min(word, head), max(word, head)))
    return edges


def undirected_right(weights: Floats, sentence: TreeSentence) -> int:
    """Number of gold arcs in the maximum spanning tree."""
    return len(gold_edges(sentence) & set(spanning_edges(weights, sentence.spanned)))


def arborescence(scores: Floats) -> Ints:
    """[word] heads of the maximum directed tree from ROOT (Chu and Liu; Edmonds); 0 is ROOT.

    scores  [dependent, candidate]; several words may hang from ROOT
    """
    log = log_softmax(np.asarray(scores, np.float64), axis=1)
    graph = nx.DiGraph()
    for (dependent, head), weight in np.ndenumerate(log):
        if head != dependent + 1:
            graph.add_edge(head, dependent + 1, weight=float(weight))
    heads = np.zeros(len(log), np.int64)
    for head, dependent in nx.maximum_spanning_arborescence(graph).edges:
        heads[dependent - 1] = head
    return heads
