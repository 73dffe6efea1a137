"""How much do subjects and verbs, nouns and pronouns attend to each other?

Per head the largest weight among all pairs of a token of the one word and a token of the other;
then the mean over the inputs that have such a pair (Kovaleva et al. 2019, §4.5). The authors' code
pairs the first token of the one kind with the first of the other, the second with the second, and
so on, whichever belong together: `pairing="zip"`. It has no nouns and pronouns, of which the paper
speaks, takes inputs without a pair for 0, and leaves out subjects of passives.
"""

from itertools import product
from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from headscope.analyses.features import PAIRS_QUESTION
from headscope.analyses.features.claims import PAIRS
from headscope.analyses.features.measure import Groups, by_kind
from headscope.analyses.features.word_types import NOUN, PRONOUN, subjects_of_verbs, word_types
from headscope.corpus.document import Example
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope, bounds_of

Tokens = list[tuple[int, int]]  # pairs of tokens


class Pairs(Analysis, question=PAIRS_QUESTION):
    """Attention from subject to verb and back, and between the nouns and pronouns of a sentence.

    pairing  "product": every token of the one word with every token of the other; "zip": the
             tokens of all subjects with those of all their verbs, each sorted by position, one by
             one, until one side has no more (likewise nouns and pronouns)
    measure  "attention" or "weighted_norm"

    A subject is a word whose relation is a nominal subject and whose head is a verb; nouns and
    pronouns are all those of the sentence, whatever they refer to. Only inputs with tags count;
    subjects need trees as well. NaN for a kind of pair that never occurs.
    """

    whole_maps: ClassVar[bool] = False

    def __init__(
        self, scope: Scope, *, pairing: str = "product", measure: str = "attention"
    ) -> None:
        super().__init__(scope)
        self.options = self.checked(pairing=pairing, measure=measure)
        self.total = self.sums(scope.layers, scope.heads, len(PAIRS))
        self.count = self.sums(len(PAIRS))
        self._groups: Groups | None = None

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each input's largest weight of every kind of pair."""
        if layer.index == 0:
            self._groups = _groups(batch, self.options["pairing"])
            self.count.add(self._groups.present, batch.groups)
        groups = self._groups
        if groups is not None and len(groups.start):
            entries = torch.from_numpy(groups.entries).to(batch.mask.device)  # [3, entry]
            largest = groups.largest_of(layer.pairs(*entries, measure=self.options["measure"]))
            self.total.add(largest, batch.groups, at=(layer.index,))

    def result(self) -> xr.Dataset:
        """attention[layer, head, pair]; count[pair], the inputs that have such a pair."""
        mean = self.mean(self.total, self.count, bounds=bounds_of(self.options["measure"]))
        words = ("attention between words", "weighted norm between words")
        kinds = {"pair": PAIRS}
        return by_kind(mean, self.count, kinds, words, options=self.options, source=self.source)


def _groups(batch: Batch, pairing: str) -> Groups:
    entries = [np.empty((4, 0), np.int64)]
    for row, example in enumerate(batch.examples):
        for kind, pairs in enumerate(_pairs_of(example, pairing)):
            there = np.array(pairs, np.int64).reshape(-1, 2).T  # [2, pair]
            for way, both in enumerate((there, there[::-1])):
                head = np.full((2, len(pairs)), [[2 * kind + way], [row]])
                entries.append(np.concatenate([head, both]))  # [kind row query key, pair]
    every = np.concatenate(entries, 1)
    return Groups.of(every[0], every[1:], size=(len(batch.examples), len(PAIRS)))


def _pairs_of(example: Example, pairing: str) -> tuple[Tokens, Tokens]:
    """Pairs (token of a subject, token of its verb), and (token of a noun, token of a pronoun)."""
    words, index = example.words, example.word_index
    if words is None or index is None:
        return [], []
    tokens = [np.flatnonzero(index == word).tolist() for word in range(len(words))]
    types = word_types(words, frozenset())
    nouns, pronouns = (np.flatnonzero(types[:, kind]).tolist() for kind in (NOUN, PRONOUN))
    pairs = subjects_of_verbs(words, types), [*product(nouns, pronouns)]
    join = _product if pairing == "product" else _zip
    return join(pairs[0], tokens), join(pairs[1], tokens)


def _product(pairs: Tokens, tokens: list[list[int]]) -> Tokens:
    return [both for one, other in pairs for both in product(tokens[one], tokens[other])]


def _zip(pairs: Tokens, tokens: list[list[int]]) -> Tokens:
    whole = [pair for pair in pairs if tokens[pair[0]] and tokens[pair[1]]]
    sides = [sorted({t for pair in whole for t in tokens[pair[way]]}) for way in (0, 1)]
    return list(zip(*sides, strict=False))
