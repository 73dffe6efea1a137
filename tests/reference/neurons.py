"""Which neurons of a query and a key make the score, in plain loops?

A neuron d adds c_d = s * q_d * k_d to a score (Vig 2019, the neuron view). What singles out the key
j* that a query attends to most is c(j*) less the mean of c over the keys that the query sees.

q, k        [layer, head, token, d]    of one example
attention   [layer, head, query, key]
seen        [query, key] bool          which keys a query may attend to
kinds       {"sep": [query, key] bool, …}  which keys are of a kind, for each query
among       [query, key] bool              between which keys the kind own_segment is told: words
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
PARTS = ("word", "position", "segment", "bias")


def queries_and_keys(
    model: Any, input_ids: Sequence[int], segment_ids: Sequence[int]
) -> tuple[Array, Array]:
    """What the query and key maps of a BertModel in float64 give, [layer, head, token, d]."""
    given: list[tuple[str, Array]] = []
    handles = []
    for block in model.encoder.layer:
        for name in ("query", "key"):

            def keep(_m: Any, _a: Any, out: torch.Tensor, name: str = name) -> None:
                given.append((name, out[0].detach().numpy().copy()))

            handles.append(getattr(block.attention.self, name).register_forward_hook(keep))
    with torch.no_grad():
        model(torch.tensor([list(input_ids)]), token_type_ids=torch.tensor([list(segment_ids)]))
    for handle in handles:
        handle.remove()
    heads = model.config.num_attention_heads
    cut = {
        name: np.stack([_heads(array, heads) for n, array in given if n == name])
        for name in ("query", "key")
    }
    return cut["query"], cut["key"]


def _heads(array: Array, heads: int) -> Array:
    """[head, token, d] from [token, head * d]."""
    width = array.shape[1] // heads
    return np.stack([array[:, h * width : (h + 1) * width] for h in range(heads)])


def first_layer_parts(
    model: Any, input_ids: Sequence[int], segment_ids: Sequence[int]
) -> tuple[Array, Array]:
    """The first layer's q and k of a BertModel by PARTS, [part, head, token, d], float64."""
    tables = model.embeddings
    weight, shift = (getattr(tables.LayerNorm, n).detach().numpy() for n in ("weight", "bias"))
    heads = model.config.num_attention_heads
    width = len(weight)
    rows = np.zeros((len(PARTS), len(input_ids), width))
    for at, (token, segment) in enumerate(zip(input_ids, segment_ids, strict=True)):
        added = [
            tables.word_embeddings.weight[token].detach().numpy(),
            tables.position_embeddings.weight[at].detach().numpy(),
            tables.token_type_embeddings.weight[segment].detach().numpy(),
        ]
        whole = added[0] + added[1] + added[2]
        spread = np.sqrt(whole.var() + tables.LayerNorm.eps)
        for part in range(3):
            rows[part, at] = weight * (added[part] - added[part].mean()) / spread
        rows[3, at] = shift
    found = []
    for name in ("query", "key"):
        module = getattr(model.encoder.layer[0].attention.self, name)
        mapped = rows @ module.weight.detach().numpy().T
        mapped[3] += module.bias.detach().numpy()
        found.append(np.stack([_heads(mapped[part], heads) for part in range(len(PARTS))]))
    return found[0], found[1]


# --- one head of one example ----------------------------------------------------------------


def relative(q: Array, k: Array, attention: Array, scale: float, seen: Flags) -> dict[int, Array]:
    """Query → c(j*) - mean c over the keys seen, [d]; queries that see one key are left out."""
    found = {}
    for i in range(len(q)):
        keys = np.flatnonzero(seen[i])
        if len(keys) > 1:
            c = np.array([scale * q[i] * k[j] for j in keys])
            found[i] = scale * q[i] * k[int(attention[i].argmax())] - c.mean(axis=0)
    return found


def participation(c: Array) -> float:
    """(Σ|c|)² / Σc²: 1 for one neuron, d for d equal ones."""
    return float(np.abs(c).sum() ** 2 / (c**2).sum())


def top_share(c: Array, k: int) -> float:
    """Share of Σ|c| of the k largest."""
    size = np.sort(np.abs(c))[::-1]
    return float(size[:k].sum() / size.sum())


def overlap(rows: Sequence[Array], size: int = 8) -> float:
    """Mean Jaccard overlap of the `size` largest neurons over all pairs of queries."""
    sets = [set(np.argsort(-np.abs(c), kind="stable")[:size].tolist()) for c in rows]
    return float(np.mean([len(a & b) / len(a | b) for a, b in combinations(sets, 2)]))


def chance_overlap(neurons: int, size: int = 8) -> float:
    """Expected Jaccard overlap of two random sets, by counting them."""
    total = 0.0
    for common in range(size + 1):
        ways = comb(size, common) * comb(neurons - size, size - common)
        total += ways / comb(neurons, size) * common / (2 * size - common)
    return total


def separation(q: Array, k: Array, scale: float, seen: Flags, kind: Flags) -> dict[int, Array]:
    """Query → mean c over the keys of the kind - mean c over the others, [d]; both must exist."""
    found = {}
    for i in range(len(q)):
        mine, rest = np.flatnonzero(seen[i] & kind[i]), np.flatnonzero(seen[i] & ~kind[i])
        if len(mine) and len(rest):
            means = [np.mean([scale * q[i] * k[j] for j in keys], axis=0) for keys in (mine, rest)]
            found[i] = means[0] - means[1]
    return found


def sentences(special: Sequence[bool]) -> list[int]:
    """[token] which sentence it is in: special tokens stand between sentences, and are in none."""
    found, number = [], 0
    for at, added in enumerate(special):
        if not added and (at == 0 or special[at - 1]):
            number += 1
        found.append(-1 if added else number)
    return found


def words(special: Sequence[bool]) -> Flags:
    """[query, key] whether both are words."""
    word = ~np.array(special, bool)
    return word[:, None] & word[None]


def bag_of_words(attention: Array, special: Sequence[bool], seen: Flags) -> float:
    """Of one head: Σ min(α, 1/n) over the own sentence, less the other's, mean over the words of
    each sentence, then over sentences; NaN where no word sees words of both.
    """
    number, found = sentences(special), dict[int, list[float]]()
    for i in range(len(number)):
        keys = [j for j in range(len(number)) if number[i] > 0 and number[j] > 0 and seen[i, j]]
        own = [j for j in keys if number[j] == number[i]]
        other = [j for j in keys if number[j] != number[i]]
        if own and other:
            shared = [sum(min(attention[i, j], 1 / len(of)) for j in of) for of in (own, other)]
            found.setdefault(number[i], []).append(shared[0] - shared[1])
    return float(np.mean([np.mean(one) for one in found.values()])) if found else float("nan")


def kinds(
    is_sep: Flags, segments: Sequence[int], special: Sequence[bool] | None = None
) -> dict[str, Flags]:
    """Which keys are of each kind for each query, [query, key]."""
    n = len(is_sep)
    number = sentences(is_sep.tolist() if special is None else special)
    names = ("sep", "same_segment", "next", "own_segment")
    found = {name: np.zeros((n, n), bool) for name in names}
    for i in range(n):
        for j in range(n):
            found["sep"][i, j] = is_sep[j]
            found["same_segment"][i, j] = segments[i] == segments[j]
            found["next"][i, j] = j == i + 1
            found["own_segment"][i, j] = number[i] > 0 and number[i] == number[j]
    return found


# --- a whole corpus -------------------------------------------------------------------------


def measures(
    q: Array,
    k: Array,
    attention: Array,
    scale: float,
    seen: Flags,
    of_kind: Mapping[str, Flags],
    among: Flags,
) -> dict[str, Array]:
    """Everything of one example; NaN where it has nothing to say.

    returns  effective, position_overlap, relative_score [layer, head]; top_share [layer, head, 3];
             neuron_importance [layer, head, d]; separation [layer, head, kind, d],
             separation_score and separation_effective [layer, head, kind]
    """
    layers, heads, _, d = q.shape
    some = {name: np.full((layers, heads), np.nan) for name in ("effective", "relative_score")}
    for name in ("position_overlap", "own_segment_overlap"):
        some[name] = np.full((layers, heads), np.nan)
    some["top_share"] = np.full((layers, heads, 3), np.nan)
    some["neuron_importance"] = np.full((layers, heads, d), np.nan)
    some["separation"] = np.full((layers, heads, len(of_kind), d), np.nan)
    for name in ("separation_score", "separation_effective"):
        some[name] = np.full((layers, heads, len(of_kind)), np.nan)
    for at in np.ndindex(layers, heads):
        rows = list(relative(q[at], k[at], attention[at], scale, seen).values())
        if rows:
            some["effective"][at] = np.mean([participation(c) for c in rows])
            some["relative_score"][at] = np.mean([c.sum() for c in rows])
            some["top_share"][at] = [np.mean([top_share(c, n) for c in rows]) for n in (1, 4, 16)]
            some["neuron_importance"][at] = np.mean(
                [np.abs(c) / np.abs(c).sum() for c in rows], axis=0
            )
        if len(rows) > 1:
            some["position_overlap"][at] = overlap(rows)
        for number, (name, flags) in enumerate(of_kind.items()):
            told = seen & among if name == "own_segment" else seen
            apart = list(separation(q[at], k[at], scale, told, flags).values())
            if name == "own_segment" and len(apart) > 1:
                some["own_segment_overlap"][at] = overlap(apart)
            if apart:
                some["separation"][(*at, number)] = np.mean(apart, axis=0)
                some["separation_score"][(*at, number)] = np.mean([c.sum() for c in apart])
                some["separation_effective"][(*at, number)] = np.mean(
                    [participation(c) for c in apart]
                )
    return some


def over_examples(found: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """The mean of every number over the examples that have it."""
    means = {}
    for name in found[0]:
        stacked = np.stack([one[name] for one in found])
        there = ~np.isnan(stacked)
        count = there.sum(axis=0)
        total = np.where(there, stacked, 0).sum(axis=0)
        means[name] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means


def split_by_part(q: Array, k: Array, weights: Array, scale: float) -> Array:
    """[head, part, part] Σ_i s · q_i^part · Σ_j w_ij k_j^part of one example.

    q, k     [part, head, token, d]
    weights  [head, query, key] what each key counts for each query, the mean over queries included
    """
    parts, heads, n, _ = q.shape
    found = np.zeros((heads, parts, parts))
    for h in range(heads):
        for a in range(parts):
            for b in range(parts):
                for i in range(n):
                    for j in range(n):
                        if weights[h, i, j]:
                            product = scale * float(q[a, h, i] @ k[b, h, j])
                            found[h, a, b] += weights[h, i, j] * product
    return found
