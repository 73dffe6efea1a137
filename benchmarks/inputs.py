"""What is the speed measured on? A random BERT and two mixes of lengths."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertModel

from headscope.corpus import Example, batches
from headscope.corpus.packing import padded_length
from headscope.model.batch import Batch
from headscope.model.request import BATCH_TOKENS
from headscope.model.vocabulary import Vocabulary

CLS, SEP, COMMA, STOP = 101, 102, 1010, 1012
VOCABULARY = Vocabulary(cls=CLS, sep=SEP, punctuation=(STOP, COMMA))
SPECIAL = {"cls": "[CLS]", "sep": "[SEP]"}
FIRST_WORD, TOKENS = 1999, 30522
FULL = 128  # tokens


def bert(**shape: Any) -> BertModel:
    """A random BERT, of the base model's shape unless told otherwise, that attends unevenly.

    Fresh weights give almost uniform attention, on which some operations are faster and no mistake
    shows; three times the queries and keys give entropies as those of trained models.
    """
    torch.manual_seed(0)
    network = BertModel(BertConfig(**shape), add_pooling_layer=False).eval()
    for layer in network.encoder.layer:
        for part in (layer.attention.self.query, layer.attention.self.key):
            part.weight.data *= 3
    return network


def twin(network: BertModel, implementation: str) -> BertModel:
    """The same weights in memory, under another attention implementation."""
    shared = {id(p): p for p in network.parameters()}
    other = copy.deepcopy(network, shared)
    other.set_attn_implementation(implementation)
    return other


@dataclass(frozen=True)
class Inputs:
    """One mix of lengths.

    examples  what the analyses are shown
    rows      which examples share a batch
    """

    name: str
    examples: list[Example]
    rows: list[list[int]]

    @classmethod
    def sorted(cls, name: str, lengths: np.ndarray[Any, Any], *, budget: int) -> Inputs:
        """Random examples of these lengths, batched by length under a token budget."""
        random = np.random.default_rng(0)
        examples = [_example(n, int(length), random) for n, length in enumerate(lengths)]
        # Longest first, as a run does.
        return cls(name, examples, list(batches(examples, budget=budget))[::-1])

    @property
    def shown(self) -> int:
        """Real tokens in the batches."""
        return sum(len(self.examples[i]) for rows in self.rows for i in rows)

    @property
    def padded(self) -> int:
        """Tokens with padding."""
        longest = [max(len(self.examples[i]) for i in rows) for rows in self.rows]
        return sum(len(rows) * padded_length(n) for rows, n in zip(self.rows, longest, strict=True))

    def first(self, count: int) -> Inputs:
        """The first examples alone, in batches of one."""
        return Inputs(self.name, self.examples[:count], [[n] for n in range(count)])

    def batch(self, rows: list[int], *, replicates: int = 0) -> Batch:
        """The examples of one batch as the product pads them."""
        return Batch.of([self.examples[i] for i in rows], VOCABULARY, replicates=replicates)


def fixed(count: int, *, length: int = FULL, budget: int = BATCH_TOKENS) -> Inputs:
    """Segments of one length, as Clark et al. cut them."""
    return Inputs.sorted(f"{length} tokens", np.full(count, length), budget=budget)


def treebank(count: int, *, budget: int = BATCH_TOKENS) -> Inputs:
    """Sentences with lengths as in a treebank: gamma, 26 tokens on average, 8 to 60."""
    drawn = np.random.default_rng(0).gamma(4.0, 6.5, count)
    lengths = np.clip(np.round(drawn), 8, 60).astype(int)
    return Inputs.sorted("treebank-like lengths", lengths, budget=budget)


def _example(number: int, length: int, random: np.random.Generator) -> Example:
    """[CLS] … , … . … [SEP] … [SEP], a document of its own."""
    ids = random.integers(FIRST_WORD, TOKENS, length)
    ids[[0, length // 4, length // 3, length // 2, -1]] = CLS, COMMA, STOP, SEP, SEP
    special = np.isin(ids, (CLS, SEP))
    return Example(str(number), str(number), ids, np.zeros_like(ids), special)
