"""How much attention do kinds of tokens receive, and pairs of words give each other?

Kovaleva et al. (2019), section 4.4. Every list has one entry per example; `weights` is attention
[layer, head, query, key] or its product with the norm of each key's transformed vector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Links = Sequence[tuple[Sequence[int], Sequence[int]]]  # tokens of one word, tokens of the other


def weighted_norms(attention: Array, f: Array) -> Array:
    """[layer, head, query, key] ‖α f(x)‖; f [layer, head, token, d]."""
    return np.linalg.norm(attention[..., None] * f[:, :, None], axis=-1)


def received(
    weights: Sequence[Array], kinds: Sequence[Mapping[str, Sequence[int]]], kind: str, *, zero: bool
) -> Array:
    """[layer, head] mean over examples of the largest column mean among the tokens of the kind.

    kinds  kind → tokens
    zero   whether an example without such tokens counts as 0 instead of not at all
    """
    found = []
    for maps, tokens in zip(weights, kinds, strict=True):
        if tokens.get(kind):
            columns = [maps[..., token].mean(axis=-1) for token in tokens[kind]]
            found.append(np.maximum.reduce(columns))
        elif zero:
            found.append(np.zeros(maps.shape[:2]))
    return np.mean(found, axis=0)


def from_cls(
    weights: Sequence[Array], kinds: Sequence[Mapping[str, Sequence[int]]], kind: str
) -> Array:
    """[head] mean over examples of the largest weight from [CLS] to the kind in the last layer."""
    found = [
        np.maximum.reduce([maps[-1, :, tokens["cls"][0], token] for token in tokens[kind]])
        for maps, tokens in zip(weights, kinds, strict=True)
        if tokens.get(kind)
    ]
    return np.mean(found, axis=0)


def between(weights: Sequence[Array], links: Sequence[Links], *, zipped: bool) -> Array:
    """[layer, head] mean over the examples with a link of the largest weight of a pair of tokens.

    zipped  pair the tokens of all first words with those of all second words in order of position
    """
    found = []
    for maps, given in zip(weights, links, strict=True):
        pairs = [(i, j) for one, other in given for i in one for j in other]
        if zipped:
            first = sorted({i for one, _ in given for i in one})
            second = sorted({j for _, other in given for j in other})
            pairs = list(zip(first, second, strict=False))
        if pairs:
            found.append(np.maximum.reduce([maps[:, :, i, j] for i, j in pairs]))
    return np.mean(found, axis=0)
