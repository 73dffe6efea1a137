"""What is so: the numbers of one model on one corpus, computed when a sentence asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from . import attention_numbers, language_numbers
from .corpus import Sentence, inputs_of_documents, inputs_of_sentences
from .language_numbers import Finder
from .network import Array, Network
from .totals import Quantity, Totals


class World:
    """A model and the sentences that it reads.

    labels  (head, name, sentence) of every label that the run gives, for counts of labels
    """

    def __init__(
        self,
        folder: str | Path,
        sentences: Sequence[Sentence],
        labels: Sequence[tuple[str, str, str]] = (),
    ) -> None:
        self.network = Network(folder)
        self.layers, self.heads = self.network.layers, self.network.heads
        self.labels = labels
        self.inputs = inputs_of_sentences(sentences, self.network.tokenizer)
        self.documents = inputs_of_documents(sentences, self.network.tokenizer)

    @cached_property
    def totals(self) -> Totals:
        totals = Totals()
        attention_numbers.add_all(totals, self.inputs, self.network)
        return totals

    @cached_property
    def kinds(self) -> Totals:
        totals = Totals()
        language_numbers.add_kinds(totals, self.inputs, self.network)
        return totals

    @cached_property
    def relations(self) -> dict[str, Finder]:
        return language_numbers.relations(self.inputs, self.network)

    @cached_property
    def antecedents(self) -> dict[str, Finder]:
        return language_numbers.antecedents(self.documents, self.network)

    def of(self, name: str, at: tuple[int, int]) -> Quantity:
        """A number of a head."""
        return self.totals[name][at]

    def of_mean_head(self, name: str) -> float:
        return float(np.nanmean(self.totals[name].value))

    def ordinary(self, name: str) -> float:
        """What is ordinary for a position: the mean head, or uniform attention if that is more."""
        return max(self.of_mean_head(name), float(np.exp(-self.totals["uniform entropy"].value)))


def rank_of(values: Array, at: tuple[int, ...]) -> int:
    """1 for the largest."""
    return int((values > values[at]).sum()) + 1


def places(text: str) -> tuple[int, int]:
    """`L3·H10` -> 2, 9"""
    layer, head = text.removeprefix("L").split("·H")
    return int(layer) - 1, int(head) - 1


Matched = Mapping[str, Any]
