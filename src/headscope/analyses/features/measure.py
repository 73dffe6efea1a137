"""How much attention do nouns, verbs, subjects, negation and other kinds of tokens receive?

Per head and token the mean over all queries of the input, special tokens included; of these the
largest among the tokens of the kind; then the mean over the inputs that have such tokens (Kovaleva
et al. 2019, §4.4). Departures from the authors' notebook, which finds tokens by their text: a token
counts if it belongs to a word of the kind, negation is compared with whole words, and an input
without the kind is left out instead of counted as 0.

What does [CLS] attend to in the last layer, where classifiers read it? Per head of that layer the
largest attention from [CLS] to tokens of each kind; then the mean over inputs that have any (§4.5).
Of pairs of subjects and verbs, or nouns and pronouns, see `Pairs` (§4.5). The authors' code pairs
the first token of the one kind with the first of the other, and so on: `pairing="zip"`. It has no
nouns and pronouns, takes inputs without a pair for 0, and leaves out subjects of passives.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from headscope.analyses.features import CLS_QUESTION, PAIRS_QUESTION, QUESTION
from headscope.analyses.features.claims import PAIRS
from headscope.analyses.features.groups import Groups
from headscope.analyses.features.references import GIVEN, MASSES, mass_weights, pair_sums
from headscope.analyses.features.word_types import (
    NOUN,
    PRONOUN,
    TYPES,
    negation_words,
    subjects_of_verbs,
    word_types,
)
from headscope.analyses.language.specific import against_rivals
from headscope.analyses.language.weighted_pairs import WeightedPairs
from headscope.core.accumulators import Bools, Sums
from headscope.core.intervals import SHARE, Estimate, estimate
from headscope.core.results import Variable, labelled
from headscope.corpus.contents import has_tags
from headscope.corpus.document import Example
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope, bounds_of, ratio_of, sizes_of

FEATURES = (*TYPES, "punctuation", "cls", "sep")
CLS_FEATURES = tuple(name for name in FEATURES if name != "cls")


class Features(Analysis, question=QUESTION):
    """Attention to the most attended noun, verb, pronoun, …, punctuation mark, [CLS] and [SEP].

    absent    an input without the kind is left out ("skip"), or counts as 0, as in the authors'
              notebook, which skips it for negation alone ("zero")
    language  whose list of negation words is used; "none": no list
    negation  further negation words, separated by commas
    measure   "attention" or "weighted_norm"

    Only inputs with tags count, for special tokens and punctuation too. Subjects and objects need
    trees as well. What is which: see `word_types` and `negation`; punctuation is exactly "." or
    ",". NaN for a kind that never occurs, [CLS] where the tokenizer has none among them.
    """

    whole_maps: ClassVar[bool] = False

    def __init__(
        self,
        scope: Scope,
        *,
        absent: str = "skip",
        language: str = "en",
        negation: str = "",
        measure: str = "attention",
    ) -> None:
        super().__init__(scope)
        self.checked(absent=absent, measure=measure)
        self.negation = negation_words(language, negation)
        self.options = {"absent": absent, "language": language, "negation": negation}
        self.options["measure"] = measure
        self.total = self.sums(scope.layers, scope.heads, len(FEATURES))
        self.inputs = self.sums(len(FEATURES))  # that the mean is over
        self.count = self.sums(len(FEATURES), replicates=0)
        self.mass = self.sums(scope.layers, scope.heads, len(MASSES), len(TYPES))
        self.with_kind = self.sums(len(TYPES))
        self._groups: Groups | None = None
        self._masses: torch.Tensor | None = None  # [example, token, MASSES · type]

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each input's largest column mean of every kind."""
        if layer.index == 0:
            self._begin(batch)
        if self._groups is not None:
            columns = layer.column_sums(batch).sum(2)  # [example, head, key]
            if self.options["measure"] == "weighted_norm":
                columns = columns * layer.value_norm
            means = self._groups.largest(columns) / batch.lengths[:, None, None]
            self.total.add(means, batch.groups, at=(layer.index,))
            assert self._masses is not None
            masses = to_float64(columns @ self._masses.to(columns)) / batch.lengths[:, None, None]
            self.mass.add(masses, batch.groups, at=(layer.index,))

    def _begin(self, batch: Batch) -> None:
        tagged = np.array([has_tags(e) for e in batch.examples])
        self._groups = None
        if tagged.any():
            features = token_features(batch, self.negation)
            self._groups = groups = token_groups(features)
            self._weigh(features[:, : len(TYPES)], batch)
            counted = groups.present
            self.count.add(counted, batch.groups)
            if self.options["absent"] == "zero":
                always = np.array([name != "negation" for name in FEATURES])
                counted = counted | tagged[:, None] & always
            self.inputs.add(counted, batch.groups)

    def _weigh(self, types: Bools, batch: Batch) -> None:
        """The weights of all tokens; types [example, type, token]."""
        weights = np.zeros((len(types), len(MASSES), *types.shape[1:]), np.float32)
        for row, example in enumerate(batch.examples):
            if types[row].any():
                weights[row] = mass_weights(types[row], example)
        self.with_kind.add(np.asarray(weights[:, 0].any(-1)), batch.groups)
        flat = torch.from_numpy(weights).flatten(1, 2)  # [example, MASSES · type, token]
        self._masses = flat.transpose(1, 2)

    def result(self) -> xr.Dataset:
        """attention[layer, head, feature]; count[feature], the inputs that have such tokens.

        And, of attention, mass[layer, head, kind]: what all tokens of the kind get together.
        """
        mean = self.mean(self.total, self.inputs, bounds=bounds_of(self.options["measure"]))
        for array in (mean.value, mean.low, mean.high):
            array[..., self.count.total == 0] = np.nan
        words = ("attention received", "weighted norm received")
        kinds = {"feature": FEATURES}
        dataset = by_kind(mean, self.count, kinds, words, options=self.options, source=self.source)
        rivals = "what words beside those of the kind get, or the kind for the sake of other kinds"
        every = ("layer", "head", "kind")
        words = ("attention of all tokens to all words of the kind", rivals)
        mass = beyond(self.mass, self.with_kind, every, words, measure=self.options["measure"])
        return dataset.merge(labelled(mass, coords={"kind": TYPES}))


class ClsAttention(Analysis, question=CLS_QUESTION):
    """Attention of [CLS] in the last layer to the most attended noun, verb, …, mark and [SEP].

    language, negation, measure  as of `Features`

    Only inputs with tags count, and only those that open with [CLS]: a model whose tokenizer has
    none gets NaN everywhere.
    """

    whole_maps: ClassVar[bool] = False

    def __init__(
        self, scope: Scope, *, language: str = "en", negation: str = "", measure: str = "attention"
    ) -> None:
        super().__init__(scope)
        self.checked(measure=measure)
        self.negation = negation_words(language, negation)
        self.options = {"language": language, "negation": negation, "measure": measure}
        self.total = self.sums(scope.heads, len(CLS_FEATURES))
        self.count = self.sums(len(CLS_FEATURES))

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each input's largest weight from [CLS] to every kind, in the last layer."""
        if layer.index != self.scope.layers - 1:
            return
        features = token_features(batch, self.negation)  # [example, feature, token]
        features[~batch.is_cls.any(-1).cpu().numpy()] = False
        if not features.any():
            return
        groups = token_groups(np.delete(features, FEATURES.index("cls"), 1))
        at = batch.is_cls.int().argmax(-1)  # [example]
        rows = layer.rows(at[:, None], measure=self.options["measure"])[:, :, 0]
        self.total.add(groups.largest(rows), batch.groups)
        self.count.add(groups.present, batch.groups)

    def result(self) -> xr.Dataset:
        """attention[head, feature]; count[feature], the inputs that have such tokens."""
        mean = self.mean(self.total, self.count, bounds=bounds_of(self.options["measure"]))
        last = "[CLS] in the last layer"
        words = (f"attention of {last}", f"weighted norm into {last}")
        kinds = {"feature": CLS_FEATURES}
        return by_kind(mean, self.count, kinds, words, options=self.options, source=self.source)


def token_features(batch: Batch, negation: frozenset[str]) -> Bools:
    """[example, feature, token] whether each token is of each of FEATURES; none without tags."""
    examples, tokens = batch.input_ids.shape
    features = np.zeros((examples, len(FEATURES), tokens), bool)
    special = torch.stack([batch.is_punctuation, batch.is_cls, batch.is_sep], 1).cpu().numpy()
    for row, example in enumerate(batch.examples):
        if example.words is not None and example.word_index is not None and has_tags(example):
            types = np.zeros((len(example.words) + 1, len(TYPES)), bool)
            types[:-1] = word_types(example.words, negation)
            # Special tokens have word -1, the last row: of no type.
            features[row, : len(TYPES), : len(example)] = types[example.word_index].T
            features[row, len(TYPES) :] = special[row]
    return features


def token_groups(features: Bools) -> Groups:
    """The tokens of every feature; features [example, feature, token]."""
    example, feature, token = np.nonzero(features)
    return Groups.of(feature, np.stack([example, token]), size=features.shape[:2])  # [2, entry]


def by_kind(
    mean: Estimate,
    count: Sums,
    kinds: Mapping[str, tuple[str, ...]],
    words: tuple[str, str],
    *,
    options: Mapping[str, str],
    source: str,
) -> xr.Dataset:
    """attention[…, kind] by one of MEASURES; count[kind], the inputs that have such tokens.

    mean   [layer, head, kind], or [head, kind] of one layer
    kinds  the name of the dimension, and its coordinate
    words  what is measured by attention, and what by weighted norm
    """
    (dim,) = kinds
    dims = ("layer", "head", dim)[-mean.value.ndim :]
    weighted = options["measure"] == "weighted_norm"
    unit = "1" if weighted else "probability"
    number = count.total.astype(np.int64)
    what = "such a pair" if dim == "pair" else "such tokens"
    variables = {
        "attention": Variable(mean, dims, words[weighted], unit, source),
        "count": Variable(number, (dim,), f"inputs that have {what}", "1", source),
    }
    return labelled(variables, coords=kinds).assign_attrs(options)


def beyond(
    total: Sums, count: Sums, dims: tuple[str, ...], words: tuple[str, str], *, measure: str
) -> dict[str, Variable]:
    """`mass`, and what it is compared with, of sums [layer, head, one of three, kind].

    words    what the first of the three is, and the largest of the others
    measure  nothing of any but attention: norms are on no common scale
    """
    if measure != "attention":
        return {}
    draws, sizes = ratio_of(total, count), sizes_of(total, count)
    mass, *rivals = np.moveaxis(draws, 3, 0)  # [replicate + 1, layer, head, kind] each
    sizes = sizes[:, :, 0]
    share = Variable(
        estimate(mass, bounds=SHARE, sizes=sizes), dims, words[0], "probability", "ours", tidy=False
    )
    return {"mass": share, **against_rivals(mass, rivals, dims, words[1], sizes=sizes)}


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
        self.mass = self.sums(scope.layers, scope.heads, len(GIVEN), len(PAIRS))
        self.words = self.sums(len(PAIRS))
        self._groups: Groups | None = None
        self._sums: WeightedPairs | None = None

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each input's largest weight of every kind of pair."""
        if layer.index == 0:
            self._groups = _groups(batch, self.options["pairing"])
            self.count.add(self._groups.present, batch.groups)
            members = self._groups.members()
            self._sums, queries = pair_sums(members, _words_of(batch), kinds=len(PAIRS))
            self.words.add(queries, batch.groups)
        groups = self._groups
        if groups is not None and len(groups.start):
            entries = torch.from_numpy(groups.entries).to(batch.mask.device)  # [3, entry]
            largest = groups.largest_of(layer.pairs(*entries, measure=self.options["measure"]))
            self.total.add(largest, batch.groups, at=(layer.index,))
            assert self._sums is not None
            sums = self._sums.sums(layer, batch, measure=self.options["measure"])
            shape = (len(batch.groups), len(PAIRS), len(GIVEN), -1)
            mass = sums.reshape(shape).transpose(0, 3, 2, 1)  # [example, head, way, pair]
            self.mass.add(mass, batch.groups, at=(layer.index,))

    def result(self) -> xr.Dataset:
        """attention[layer, head, pair]; count[pair], the inputs that have such a pair.

        And, of attention, mass[layer, head, pair]: from such a token to all it is paired with.
        """
        mean = self.mean(self.total, self.count, bounds=bounds_of(self.options["measure"]))
        words = ("attention between words", "weighted norm between words")
        kinds = {"pair": PAIRS}
        dataset = by_kind(mean, self.count, kinds, words, options=self.options, source=self.source)
        rivals = "what words beside the first give to the second, or such a pair moved by a token"
        words = ("attention from a token of the one word to all of the other", rivals)
        every = ("layer", "head", "pair")
        mass = beyond(self.mass, self.words, every, words, measure=self.options["measure"])
        return dataset.merge(labelled(mass, coords=kinds))


def _words_of(batch: Batch) -> list[Bools]:
    """[token] of each example: what is part of a word."""
    none = np.zeros(0, bool)
    return [none if e.word_index is None else e.word_index >= 0 for e in batch.examples]


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
