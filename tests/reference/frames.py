"""How much does each head look from frame elements to the word that evokes their frame?

Kovaleva et al. (2019), section 4.2; the chance level is headscope's own.

A sentence is given as weights [layer, head, query, key], the tokens that are not special [token]
bool, and links: each a list of pairs (token of the frame element, token of the target).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Link = list[tuple[int, int]]
Sentence = tuple[Array, Sequence[bool], list[Link]]


def product_links(elements: Sequence[Sequence[int]], target: Sequence[int]) -> list[Link]:
    """One link per element: each of its tokens with each of the target's."""
    return [[(i, j) for i in element for j in target] for element in elements]


def zip_link(
    ids: Sequence[int], elements: Sequence[Sequence[int]], target: Sequence[int]
) -> list[Link]:
    """The authors' code: all elements' tokens beside the target's, each where its id is first."""
    ids = list(ids)
    tokens = [token for element in elements for token in element]
    pairs = zip(tokens, target, strict=False)
    return [[(ids.index(ids[i]), ids.index(ids[j])) for i, j in pairs]]


def largest(weights: Array, links: Sequence[Link], *, reverse: bool = False) -> Array:
    """[layer, head] the largest weight of any pair."""
    pairs = [(j, i) if reverse else (i, j) for link in links for i, j in link]
    cells = [weights[:, :, query, key] for query, key in pairs]
    return np.max(cells, axis=0)


def score(sentences: Sequence[Sentence], *, reverse: bool = False) -> Array:
    """[layer, head] mean over sentences of the largest weight."""
    found = [largest(weights, links, reverse=reverse) for weights, _, links in sentences]
    return np.mean(found, axis=0)


def moves(link: Link, content: Sequence[bool]) -> list[Link]:
    """The link at every place where all its tokens are content."""
    found = []
    for by in range(-len(content), len(content) + 1):
        moved = [(i + by, j + by) for i, j in link]
        if all(0 <= token < len(content) and content[token] for pair in moved for token in pair):
            found.append(moved)
    return found


def chance(sentences: Sequence[Sentence], *, reverse: bool = False) -> Array:
    """[layer, head] the expected score when every link is moved to any of its places alike."""
    means = []
    for weights, content, links in sentences:
        places = product(*(moves(link, content) for link in links))
        means.append(np.mean([largest(weights, at, reverse=reverse) for at in places], axis=0))
    return np.mean(means, axis=0)


def permuted(
    sentences: Sequence[Sentence], *, times: int, seed: int, reverse: bool = False
) -> Iterator[Array]:
    """[layer, head] the score with all links at random places, so many times."""
    rng = np.random.default_rng(seed)
    every = [(w, [moves(link, content) for link in links]) for w, content, links in sentences]
    for _ in range(times):
        found = [
            largest(weights, [at[rng.integers(len(at))] for at in places], reverse=reverse)
            for weights, places in every
        ]
        yield np.mean(found, axis=0)


def p_values(observed: Array, draws: Sequence[Array], *, standardise: bool = False) -> Array:
    """[layer, head] how often the best head of a draw is at least as good; itself counted in.

    standardise  compare standard deviations above each head's own mean, of draws and observed
    """
    every = np.array([observed, *draws])  # [draw, layer, head]
    if standardise:
        every = (every - every.mean(axis=0)) / every.std(axis=0)
    best = every[1:].reshape(len(draws), -1).max(axis=1)
    return np.array(
        [[(1 + np.sum(best >= cell)) / (1 + len(draws)) for cell in row] for row in every[0]]
    )
