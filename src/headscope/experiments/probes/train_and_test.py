"""Trains one probe and collects what it answers on the test sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from headscope.core.accumulators import generator
from headscope.experiments.probes.feature_files import FeatureFolder
from headscope.experiments.probes.pair_scorers import (
    AttentionAndWordsProbe,
    AttentionProbe,
    DistancesAndWordsProbe,
    ProbeInput,
)
from headscope.experiments.probes.probe_plan import ProbeTraining
from headscope.experiments.probes.resumable_training import ProbeSchedule, drawn_with, train
from headscope.experiments.probes.settings import NEED_WORDS, NETWORK
from headscope.experiments.probes.tree_accuracy import (
    arborescence,
    undirected_right,
    undirected_weights,
)
from headscope.experiments.probes.treebank_splits import UNASKED, TreeSentence
from headscope.experiments.probes.word_vectors import WordVectors
from headscope.run.store import State

NO_ANSWER = -2  # as a head: never right
Looks = Callable[[int], ProbeInput]  # what the probe sees of a sentence, by its number


def trial(job: ProbeTraining, features: FeatureFolder) -> State:
    """Trains and tests a probe.

    returns  head [word of all test sentences] the likeliest; edges [sentence] arcs of the gold tree
             that the undirected tree has; with settings.tree, tree [word] heads in the likeliest
             directed tree; of the probe `attention`, weight [direction, unit]
    """
    asking, settings = features.asking, features.asking.settings
    vocabulary, shape = asking.model.vocabulary, asking.model.shape
    with drawn_with(settings.seed, job.probe, str(job.seed)):
        scorer = new_scorer(
            job.probe, shape.layers * shape.heads, asking.vectors,
            constant_root=vocabulary.cls is None and vocabulary.sep is None,
            legacy_root_shift=settings.legacy_root_shift,
        )  # fmt: skip
    splits = [split.sentences for split in asking.splits]
    looks = [_looks(job.probe, features, part) for part in range(len(splits))]
    drawn = generator(settings.seed, "training set").permutation(len(splits[0]))[: job.size]

    def loss_on_train(items: Sequence[int]) -> torch.Tensor:
        return _loss(scorer, looks[0], splits[0], drawn[list(items)].tolist())

    def loss_on_dev(items: Sequence[int]) -> torch.Tensor:
        return _loss(scorer, looks[1], splits[1], items)

    name = f"{job.probe}-{job.size}-{job.seed}"
    schedule = ProbeSchedule(
        settings.epochs, 1, settings.rate, settings.patience, seed=settings.seed + job.seed
    )
    train(
        scorer, (loss_on_train, loss_on_dev), (job.size, len(splits[1])), schedule,
        state=features.scratch(name), key=f"{features.key} {name}", progress=features.advance,
    )  # fmt: skip
    found = answers(scorer, looks[2], splits[2], tree=settings.tree)
    if isinstance(scorer, AttentionProbe):
        found["weight"] = scorer.weight.detach().numpy()
    return found


def new_scorer(
    probe: str,
    units: int,
    vectors: WordVectors | None,
    *,
    constant_root: bool,
    legacy_root_shift: bool,
) -> nn.Module:
    """The untrained probe of that name."""
    if probe == "attention":
        return AttentionProbe(units, constant_root=constant_root)
    assert vectors is not None
    if probe == "distances_words":
        return DistancesAndWordsProbe(vectors.dim, legacy_root_shift=legacy_root_shift)
    return AttentionAndWordsProbe(
        units, vectors.dim, constant_root=constant_root, legacy_root_shift=legacy_root_shift
    )


def answers(
    scorer: nn.Module, looks: Looks, sentences: Sequence[TreeSentence], *, tree: bool
) -> State:
    """What a trained probe says of sentences, see `trial`."""
    heads, edges, trees = [], [], []
    with torch.no_grad():
        for at, sentence in enumerate(sentences):
            scores = scorer(looks(at)).numpy()  # [dependent, candidate]
            heads.append(scores.argmax(1))
            edges.append(undirected_right(undirected_weights(scores), sentence))
            if tree:
                trees.append(arborescence(scores))
    found = {"head": _joined(heads), "edges": np.array(edges, np.int32)}
    return found | ({"tree": _joined(trees)} if tree else {})


def right_branching(sentences: Sequence[TreeSentence], *, tree: bool) -> State:
    """The answers of the rule that a word's head is the next word; the last word has none.

    Its undirected tree joins every word to the next, punctuation left out.
    """
    heads, edges = [], []
    for sentence in sentences:
        at = np.arange(len(sentence))
        heads.append(np.where(at + 1 < len(at), at + 2, NO_ANSWER))
        nearness = -np.abs(at[:, None] - at[None]).astype(np.float64)
        edges.append(undirected_right(nearness, sentence))
    found = {"head": _joined(heads), "edges": np.array(edges, np.int32)}
    return found | ({"tree": found["head"]} if tree else {})


def head_spread(features: FeatureFolder) -> State:
    """How far each head's attention differs between the candidates of a word, on the test set.

    returns  spread [direction, unit] the root of the mean over words of the variance over the other
             words: what all candidates have in common moves no softmax
    """
    store = features.of("model")[2]
    total, count = np.zeros(()), 0
    for at, sentence in enumerate(features.asking.splits[2].sentences):
        if len(sentence) < 3:
            continue
        maps = store.read(at).astype(np.float64)[1:-1, 1:-1]  # [word, word, unit]
        other = ~np.eye(len(sentence), dtype=bool)
        parts = []
        for one in (maps, maps.transpose(1, 0, 2)):
            rows = one[other].reshape(len(sentence), -1, one.shape[-1])  # [word, other word, unit]
            parts.append(rows.var(1).sum(0))
        total, count = total + np.stack(parts), count + len(sentence)  # [direction, unit]
    return {"spread": np.sqrt(total / max(count, 1))}


def _looks(probe: str, features: FeatureFolder, part: int) -> Looks:
    """What a probe sees of the sentences of one split."""
    sentences = features.asking.splits[part].sentences
    kind = NETWORK.get(probe)
    vectors = features.asking.vectors if probe in NEED_WORDS else None

    def look(at: int) -> ProbeInput:
        maps = rows = None
        if kind is not None:
            maps = torch.from_numpy(features.of(kind)[part].read(at).copy())
        if vectors is not None:
            rows = torch.from_numpy(vectors.table[vectors.rows(sentences[at].forms)])
        return ProbeInput(len(sentences[at]), maps, rows)

    return look


def _loss(
    scorer: nn.Module, looks: Looks, sentences: Sequence[TreeSentence], items: Sequence[int]
) -> torch.Tensor:
    """The sum of the cross-entropy over all words whose head can be asked for."""
    losses = [
        nn.functional.cross_entropy(
            scorer(looks(at)), torch.from_numpy(sentences[at].head), ignore_index=UNASKED,
            reduction="sum",
        )
        for at in items
    ]  # fmt: skip
    return torch.stack(losses).sum()


def _joined(heads: Sequence[npt.NDArray[np.integer]]) -> npt.NDArray[np.int32]:
    return np.concatenate(heads).astype(np.int32)
