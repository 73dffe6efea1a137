"""What does each probe score, pair by pair in float64, and what do trees give?

Clark et al. (2019), §5, and Hewitt and Manning (2019), written as loops; imports nothing of
headscope.
"""

from __future__ import annotations

import numpy as np


def attention_scores(maps, weight, root, *, constant_root=False):
    """[dependent, candidate]; maps [word + 2, word + 2, unit], weight [2, unit], root [2]."""
    n = len(maps) - 2
    scores = np.zeros((n, n + 1))
    for i in range(1, n + 1):
        for k in range(maps.shape[2]):
            to_root = root[0] * maps[i, 0, k] + root[-1] * maps[i, n + 1, k]
            from_root = root[0] * maps[0, i, k] + root[-1] * maps[n + 1, i, k]
            scores[i - 1, 0] += weight[0, k] * to_root + weight[1, k] * from_root
            for j in range(1, n + 1):
                scores[i - 1, j] += weight[0, k] * maps[i, j, k] + weight[1, k] * maps[j, i, k]
    if constant_root:
        scores[:, 0] = root[0]
    return scores


def pair(vectors, i, j, *, shift=False):
    """[2·dim] vectors of dependent i and candidate j, counted from 1; ROOT is 0 and has none."""
    n, dim = vectors.shape
    if shift:
        j = j + 1
        if j > n:
            return np.zeros(2 * dim)
    elif j == 0:
        return np.zeros(2 * dim)
    return np.concatenate([vectors[i - 1], vectors[j - 1]])


def attention_words_scores(maps, vectors, dense, bias, root, *, shift=False):
    """[dependent, candidate]; dense [2·dim, 2·unit], bias [2·unit]."""
    n, units = len(maps) - 2, maps.shape[2]
    scores = np.zeros((n, n + 1))
    for i in range(1, n + 1):
        for j in range(n + 1):
            weight = pair(vectors, i, j, shift=shift) @ dense + bias
            for k in range(units):
                if j == 0:
                    to = root[0] * maps[i, 0, k] + root[1] * maps[i, n + 1, k]
                    back = root[0] * maps[0, i, k] + root[1] * maps[n + 1, i, k]
                else:
                    to, back = maps[i, j, k], maps[j, i, k]
                scores[i - 1, j] += weight[k] * to + weight[units + k] * back
    return scores


def distance_features(n, i, j):
    """[8] of dependent i and candidate j, counted from 1; ROOT is 0."""
    if j == 0:
        return np.array([0, 0, 0, 0, 0, 0, 0, 1.0])
    ahead, behind = max(j - i, 0) / n, max(i - j, 0) / n
    return np.array([ahead, behind, *(float(j - i == near) for near in (0, 1, -1, 2, -2)), 0])


def distances_words_scores(vectors, dense, bias, out, *, shift=False):
    """[dependent, candidate]; dense [8 + 2·dim, hidden]."""
    n = len(vectors)
    scores = np.zeros((n, n + 1))
    for i in range(1, n + 1):
        for j in range(n + 1):
            inputs = [distance_features(n, i, j), pair(vectors, i, j, shift=shift)]
            scores[i - 1, j] = np.tanh(np.concatenate(inputs) @ dense + bias) @ out
    return scores


def squared_distances(states, matrix):
    """[word, word] ‖B(h_i − h_j)‖²; matrix [neuron, rank]."""
    return np.array([[np.sum(((a - b) @ matrix) ** 2) for b in states] for a in states])


def tree_distances(heads):
    """[word, word] arcs between words, by walking from each; heads 0-based, -1 a root."""
    n = len(heads)
    near = {word: set() for word in range(-1, n)}
    for word, head in enumerate(heads):
        near[word].add(head)
        near[head].add(word)
    table = np.zeros((n, n), int)
    for start in range(n):
        seen, border, steps = {start}, {start}, 0
        while border:
            for word in border - {-1}:
                table[start, word] = steps
            border = {other for word in border for other in near[word]} - seen
            seen |= border
            steps += 1
    return table
