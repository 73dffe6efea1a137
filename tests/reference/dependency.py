"""How often does a head, or a fixed offset, point at the syntactic head?

Clark et al. (2019), section 4.2, and their released notebook; loops over one sentence at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def word_map(attention: Array, word_index: Sequence[int], pieces: str) -> Array:
    """One head's map between the words of a sentence, special tokens left out.

    attention   [query, key]
    word_index  [token] the word of each token, -1 for a special one
    """
    words = sorted({w for w in word_index if w >= 0})
    of = [[t for t, w in enumerate(word_index) if w == word] for word in words]
    special = [t for t, w in enumerate(word_index) if w < 0]
    out = np.zeros((len(words), len(words)))
    for i, queries in enumerate(of):
        rows = []
        for q in queries:
            sums = [sum(attention[q, k] for k in keys) for keys in of]
            rows.append(np.array(sums + [attention[q, k] for k in special]))
        if pieces == "first":
            out[i] = rows[0][: len(words)]
        elif pieces == "mean":
            out[i] = np.mean(rows, axis=0)[: len(words)]
        else:
            most = np.max(rows, axis=0)
            scale = np.mean([row.sum() for row in rows]) / most.sum()
            out[i] = most[: len(words)] * scale
    return out


def predictions(words: Array) -> tuple[list[int], list[int]]:
    """For each word the one it attends to most, and the one that attends to it most."""
    blank = words.copy()
    np.fill_diagonal(blank, 0)
    return blank.argmax(1).tolist(), blank.argmax(0).tolist()


def offset_predictions(count: int, offset: int) -> list[int]:
    """The head each word gets by an offset, stopped at both ends; -1 is the root."""
    return [min(max(0, word + 1 + offset), count) - 1 for word in range(count)]


def right(
    answers: Sequence[int],
    heads: Sequence[int],
    labels: Sequence[str],
    forms: Sequence[str],
    possessive: Sequence[str] = ("poss",),
) -> list[bool]:
    """Whether each word's answer is its head (-1: root), the clitic's answer for possessives."""
    out = []
    for word, (head, label) in enumerate(zip(heads, labels, strict=True)):
        judge = word
        if label in possessive and word + 1 < len(forms) and forms[word + 1] in ("'s", "s'"):
            judge = word + 1
        out.append(answers[judge] == head)
    return out
