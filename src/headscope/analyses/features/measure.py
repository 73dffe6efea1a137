"""How much attention do nouns, verbs, subjects, negation and other kinds of tokens receive?

Per head and token the mean over all queries of the input, special tokens included; of these the
largest among the tokens of the kind; then the mean over the inputs that have such tokens (Kovaleva
et al. 2019, §4.4). Departures from the authors' notebook, which finds tokens by their text: a token
counts if it belongs to a word that is of the kind, negation is compared with whole words (theirs
finds "nor" in "normal"), and an input without the kind is left out instead of counted as 0.

And what does [CLS] attend to in the last layer, where classifiers read it? Per head of that layer
the attention from [CLS] to the tokens of each kind, the largest of them; then the mean over the
inputs that have such tokens (§4.5, on the heads of fine-tuned models).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from headscope.analyses.features import CLS_QUESTION, QUESTION
from headscope.analyses.features.word_types import TYPES, negation_words, word_types
from headscope.core.accumulators import Bools, Float64, Ints, Sums
from headscope.core.intervals import Estimate
from headscope.core.results import Variable, labelled
from headscope.corpus.contents import has_tags
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope, bounds_of

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
        self, scope: Scope, *, absent: str = "skip", language: str = "en", negation: str = "",
        measure: str = "attention",
    ) -> None:  # fmt: skip
        super().__init__(scope)
        self.checked(absent=absent, measure=measure)
        self.negation = negation_words(language, negation)
        self.options = {"absent": absent, "language": language, "negation": negation}
        self.options["measure"] = measure
        self.total = self.sums(scope.layers, scope.heads, len(FEATURES))
        self.inputs = self.sums(len(FEATURES))  # that the mean is over
        self.count = self.sums(len(FEATURES), replicates=0)
        self._groups: Groups | None = None

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

    def _begin(self, batch: Batch) -> None:
        tagged = np.array([has_tags(e) for e in batch.examples])
        self._groups = None
        if tagged.any():
            self._groups = groups = token_groups(token_features(batch, self.negation))
            counted = groups.present
            self.count.add(counted, batch.groups)
            if self.options["absent"] == "zero":
                always = np.array([name != "negation" for name in FEATURES])
                counted = counted | tagged[:, None] & always
            self.inputs.add(counted, batch.groups)

    def result(self) -> xr.Dataset:
        """attention[layer, head, feature]; count[feature], the inputs that have such tokens."""
        mean = self.mean(self.total, self.inputs, bounds=bounds_of(self.options["measure"]))
        for array in (mean.value, mean.low, mean.high):
            array[..., self.count.total == 0] = np.nan
        words = ("attention received", "weighted norm received")
        kinds = {"feature": FEATURES}
        return by_kind(mean, self.count, kinds, words, options=self.options, source=self.source)


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


@dataclass(frozen=True)
class Groups:
    """Entries of a batch, of which only the largest of every example and kind counts.

    entries  [axis, entry] the example, then its token, or its query and its key; entries of one
             group stand together
    start    [group] the first entry of each group
    cell     [group] example · kinds + kind
    size     examples and kinds
    """

    entries: Ints
    start: Ints
    cell: Ints
    size: tuple[int, int]

    @classmethod
    def of(cls, kind: Ints, entries: Ints, *, size: tuple[int, int]) -> Groups:
        """Groups of entries in any order; kind [entry]."""
        cell = entries[0] * size[1] + kind
        order = np.argsort(cell, kind="stable")
        cell, start = np.unique(cell[order], return_index=True)
        return cls(entries[:, order], start, cell, size)

    @property
    def present(self) -> Bools:
        """[example, kind] whether the example has any entry of the kind."""
        return np.isin(np.arange(np.prod(self.size)), self.cell).reshape(self.size)

    def largest(self, values: torch.Tensor) -> Float64:
        """[example, head, kind] the largest of values [example, head, token] ≥ 0; 0 for none."""
        example, token = torch.from_numpy(self.entries).to(values.device)
        return self.largest_of(values[example, :, token])

    def largest_of(self, picked: torch.Tensor) -> Float64:
        """[example, head, kind] the largest of what was picked at the entries [entry, head] ≥ 0."""
        examples, kinds = self.size
        most = np.zeros((examples * kinds, picked.shape[1]))
        if len(self.start):
            most[self.cell] = np.maximum.reduceat(to_float64(picked), self.start)  # [group, head]
        return most.reshape(examples, kinds, -1).swapaxes(1, 2)  # [example, head, kind]


def by_kind(
    mean: Estimate, count: Sums, kinds: Mapping[str, tuple[str, ...]], words: tuple[str, str], *,
    options: Mapping[str, str], source: str,
) -> xr.Dataset:  # fmt: skip
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
