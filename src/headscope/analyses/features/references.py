"""What would a head give a kind of words, or a pair, if it knew nothing of them?

Of a kind: what the words beside get, so that the place in the sentence explains nothing; and what
the kind would get if the head knew all other kinds alone. A head that looks at nouns gives objects
their share of that, whatever it knows of objects.

Of a pair: what the words beside the first one give to the second, and what the pair gets when both
are moved by one token, so that their distance explains nothing.
"""

from collections.abc import Sequence

import numpy as np

from headscope.analyses.features.word_types import TYPES
from headscope.analyses.language.specific import words_beside
from headscope.analyses.language.weighted_pairs import WeightedPairs
from headscope.core.accumulators import Bools, Float64, Ints
from headscope.corpus.document import Example

_GROUPS = ((0, 1, 2), (3, 4), (5,))  # tags, roles, negation: a word has at most one of each
MASSES = ("mass", "beside", "other_kinds")
GIVEN = ("mass", "beside", "moved")


def mass_weights(features: Bools, example: Example) -> Float64:
    """[one of MASSES, type, token] how much each token's column counts for the kind, or a rival.

    features  [type, token] of TYPES, of one example

    The first token of an input is none of its words: models without special tokens rest on it.
    """
    word = ~example.special if example.word_index is None else example.word_index >= 0
    tokens = np.flatnonzero(word & (np.arange(len(example)) > 0))
    weights = np.zeros((len(MASSES), len(TYPES), features.shape[1]))
    of_kind = features[:, tokens]  # [type, word token]
    weights[0][:, tokens] = of_kind
    codes = [sum((at + 1) * of_kind[kind] for at, kind in enumerate(group)) for group in _GROUPS]
    for own, group in enumerate(_GROUPS):
        others = [code for at, code in enumerate(codes) if at != own]
        stratum = others[0] * len(TYPES) + others[1]
        for kind in group:
            members = np.bincount(stratum, of_kind[kind]) / np.maximum(np.bincount(stratum), 1)
            weights[2, kind, tokens] = members[stratum]
            place = tokens[of_kind[kind]]
            usable = np.tile(~of_kind[kind], (len(place), 1))
            beside = words_beside(place, tokens, usable, np.zeros_like(usable))
            np.add.at(weights[1, kind], beside, 0.5)
    return weights


def pair_sums(
    pairs: Sequence[tuple[int, Ints]], words: Sequence[Bools], *, kinds: int
) -> tuple[WeightedPairs, Ints]:
    """Sums [example, kind, one of GIVEN] over pairs of tokens: what words give to their others.

    pairs    of each example and kind: example · kinds + kind, [query or key, pair]
    words    [token] of each example: what is part of a word
    returns  with [example, kind] how many queries have such a pair
    """
    queries = np.zeros((len(words), kinds), np.int64)
    parts = [np.zeros((5, 0))]
    for cell, pair in pairs:
        row, kind = divmod(cell, kinds)
        table, queries[row, kind] = _entries(pair, words[row])
        table[0] += len(GIVEN) * cell
        parts.append(np.insert(table, 2, row, axis=0))
    every = np.concatenate(parts, 1)
    whole = every[[0, 2, 3, 4]].astype(np.int64)
    size = queries.size * len(GIVEN)
    return WeightedPairs.of(whole[1:], whole[0], every[1], size=size), queries


def _entries(pair: Ints, word: Bools) -> tuple[Float64, int]:
    """[way weight query key, entry] of the pairs of one kind in one example; how many queries."""
    askers, own = np.unique(pair[0], return_inverse=True)
    tokens = np.flatnonzero(word)
    goal = np.zeros((len(askers), len(word)), bool)
    goal[own, pair[1]] = True
    goal = goal[:, tokens]
    beside = words_beside(askers, tokens, ~goal & ~np.isin(tokens, askers), goal)[own]
    moved = pair[:, None] + np.array([[-1], [1]])  # [query or key, side, pair]
    inside = ((moved >= 0) & (moved < len(word))).all(0)
    inside &= word[np.clip(moved, 0, len(word) - 1)].all(0)
    known = pair[0] * len(word) + pair[1]
    inside &= ~np.isin(moved[0] * len(word) + moved[1], known)
    moved = np.where(inside | ~inside.any(0), np.where(inside, moved, pair[:, None]), 0)
    counts = np.maximum(inside.sum(0), 1)
    part = np.where(inside, 1 / counts, np.where(inside.any(0), 0, 0.5))  # [side, pair]
    one, key = np.ones(pair.shape[1]), pair[1]
    rows = [(0, one, *pair)]
    rows += [(1, one / 2, beside[:, side], key) for side in (0, 1)]
    rows += [(2, part[side], *moved[:, side]) for side in (0, 1)]
    table = np.concatenate([np.stack(np.broadcast_arrays(*row)) for row in rows], 1)
    return table[:, table[1] > 0], len(askers)
