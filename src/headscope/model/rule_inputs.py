"""Inputs as attention rules see them, made of a batch."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from headscope.claims.attention_rule import RuleInput
from headscope.corpus.document import Example
from headscope.model.vocabulary import MARKERS, WORD_END

if TYPE_CHECKING:
    from headscope.model.model import Model


def rule_input(example: Example, model: Model, *, frequent: Collection[int] = ()) -> RuleInput:
    """One input of a model for rules.

    frequent  ids of the most frequent tokens
    """
    ids, vocabulary = example.input_ids, model.vocabulary
    tokens = tuple(model.tokenizer.convert_ids_to_tokens(ids))  # with marks of a leading space
    opening = ids == (-1 if vocabulary.cls is None else vocabulary.cls)
    if vocabulary.cls == vocabulary.sep:
        opening[1:] = False
    closing = (ids == (-1 if vocabulary.sep is None else vocabulary.sep)) & ~opening
    marks = np.isin(ids, list(vocabulary.marks)) & ~example.special
    word = example.word_index
    return RuleInput(
        ids,
        tokens,
        example.special,
        opening,
        closing,
        np.isin(ids, vocabulary.punctuation),
        marks,
        example.segment_ids,
        np.full(len(ids), -1) if word is None else word,
        begins_word(tokens, marks | example.special),
        np.isin(ids, list(frequent)) & ~marks & ~example.special,
        () if word is None else example.words or (),
        () if word is None else example.mentions,
        () if word is None else example.frames,
        model.shape.stack == "decoder",
    )


def begins_word(tokens: tuple[str, ...], alone: np.ndarray) -> np.ndarray:
    """[token] whether it begins a word; special tokens and marks (`alone`) do so by themselves.

    Of a vocabulary that marks a leading space, or a word's end, by what the input shows of it.
    """
    spaced = any(token[:1] in MARKERS for token in tokens if token)
    ended = any(token.endswith(WORD_END) for token in tokens)
    begins = np.ones(len(tokens), bool)
    for at, token in enumerate(tokens):
        if at == 0 or alone[at] or alone[at - 1]:
            continue
        if spaced:
            begins[at] = token[:1] in MARKERS
        elif ended:
            begins[at] = tokens[at - 1].endswith(WORD_END)
        else:
            begins[at] = not token.startswith("##")
    return begins
