"""Which tagged and parsed sentences are the linguistic analyses tried on by hand?

The model is tiny and its words mean nothing to it: the ids are drawn, only marks are themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from analyses.running import Plant
from headscope.corpus.document import Example, Word
from headscope.model.batch import Batch
from headscope.run.contract_bench import CLS, COMMA, SEP, STOP, TOKENS

Row = tuple[str, str, int, str]  # form, Penn tag, head (1-based; 0 for the root), relation
MARKS = {".": STOP, ",": COMMA}

# "Nora did n't see her keys, nor (a normal noise) did they sing."
KEYS: list[Row] = [
    ("Nora", "NNP", 4, "nsubj"), ("did", "VBD", 4, "aux"), ("N’t", "RB", 4, "advmod"),
    ("see", "VB", 0, "root"), ("her", "PRP$", 6, "nmod:poss"), ("keys", "NNS", 4, "obj"),
    (",", ",", 13, "punct"), ("nor", "CC", 13, "cc"), ("normal", "JJ", 10, "amod"),
    ("noise", "NN", 13, "dep"), ("did", "VBD", 13, "aux"), ("they", "PRP", 13, "nsubj"),
    ("sing", "VB", 4, "conj"), (".", ".", 4, "punct"),
]  # fmt: skip
# "She is a doctor": her head is a noun.
DOCTOR: list[Row] = [
    ("She", "PRP", 4, "nsubj"),
    ("is", "VBZ", 4, "cop"),
    ("a", "DT", 4, "det"),
    ("doctor", "NN", 0, "root"),
]
# "Letters were read by Nora."
LETTERS: list[Row] = [
    ("Letters", "NNS", 3, "nsubj:pass"), ("were", "VBD", 3, "aux:pass"), ("read", "VBN", 0, "root"),
    ("by", "IN", 5, "case"), ("Nora", "NNP", 3, "obl:agent"), (".", ".", 3, "punct"),
]  # fmt: skip
# What stands where, told by hand: numbers of words, from 0.
KINDS = {
    "keys": {
        "noun": [0, 5, 9], "verb": [1, 3, 10, 12], "pronoun": [4, 11], "subject": [0, 11],
        "object": [5], "negation": [2, 7], "punctuation": [6, 13],
    },
    "doctor": {"noun": [3], "verb": [1], "pronoun": [0], "subject": [0]},
    "letters": {"noun": [0, 4], "verb": [1, 2], "subject": [0, 4], "punctuation": [5]},
}  # fmt: skip
LINKS = {
    "keys": {
        "subject_verb": [(0, 3), (11, 12)],
        "noun_pronoun": [(0, 4), (0, 11), (5, 4), (5, 11), (9, 4), (9, 11)],
    },
    "doctor": {"noun_pronoun": [(3, 0)]},
    "letters": {"subject_verb": [(0, 2)]},
}
PIECES = {"keys": {0: 3, 5: 2, 12: 2}, "letters": {0: 2, 2: 3}}  # words of more than one token


def sentence(
    name: str, rows: Sequence[Row], *, pieces: Mapping[int, int] | None = None, **more: Any
) -> Example:
    """[CLS] the words, of so many tokens [SEP]; it is a document of its own."""
    each = [(pieces or {}).get(at, 1) for at in range(len(rows))]
    word_index = np.concatenate([[-1], np.repeat(np.arange(len(rows)), each), [-1]])
    ids = np.random.default_rng(len(rows)).integers(6, TOKENS, len(word_index))
    ids[0], ids[-1] = CLS, SEP
    for token, word in enumerate(word_index):
        if word >= 0:
            ids[token] = MARKS.get(rows[word][0], ids[token])
    words = tuple(Word(f, xpos=t, head=h - 1, relation=r) for f, t, h, r in rows)
    given: dict[str, Any] = {
        "input_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "special": word_index < 0,
        "word_index": word_index,
        "words": words,
        "document": name,
    }
    return Example(id=name, **(given | more))


def sentences() -> list[Example]:
    """The three above."""
    rows = {"keys": KEYS, "doctor": DOCTOR, "letters": LETTERS}
    return [sentence(name, given, pieces=PIECES.get(name)) for name, given in rows.items()]


def window(example: Example, tokens: np.ndarray) -> Example:
    """Only these tokens of the example."""
    arrays = ("input_ids", "segment_ids", "special", "word_index")
    return replace(example, **{name: getattr(example, name)[tokens] for name in arrays})


def tokens_of(example: Example, words: Sequence[int]) -> list[int]:
    """The tokens of these words."""
    assert example.word_index is not None
    return [token for token, word in enumerate(example.word_index) if word in words]


def token_kinds(example: Example) -> dict[str, list[int]]:
    """The tokens of every kind that the example has, [CLS] and [SEP] among them."""
    found = {kind: tokens_of(example, words) for kind, words in KINDS[example.id].items()}
    return found | {"cls": [0], "sep": [len(example) - 1]}


def one_row(weights: Mapping[str, Mapping[int, float]]) -> Plant:
    """Heads that all do the same: every query of an example gives its keys these weights.

    weights  example → {token: weight}; the rest goes to [CLS]
    """

    def plant(batch: Batch, layer: int) -> torch.Tensor:
        examples, tokens = batch.input_ids.shape
        maps = torch.zeros((examples, 3, tokens, tokens), dtype=torch.float64)
        for row, example in enumerate(batch.examples):
            given = dict(weights.get(example.id, {}))
            given[0] = given.get(0, 0) + 1 - sum(given.values())
            for token, weight in given.items():
                maps[row, :, :, token] = weight
        return maps

    return plant


def weight_between(weights: Mapping[str, Mapping[tuple[int, int], float]]) -> Plant:
    """Heads that all do the same: these weights from query to key, the rest goes to [CLS].

    weights  example → {(query, key): weight}
    """

    def plant(batch: Batch, layer: int) -> torch.Tensor:
        examples, tokens = batch.input_ids.shape
        maps = torch.zeros((examples, 3, tokens, tokens), dtype=torch.float64)
        maps[..., 0] = 1
        for row, example in enumerate(batch.examples):
            for (query, key), weight in weights.get(example.id, {}).items():
                maps[row, :, query, key] += weight
                maps[row, :, query, 0] -= weight
        return maps

    return plant
