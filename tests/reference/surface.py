"""How much attention does each head pay to which positions and to which special tokens?

Clark et al. (2019), sections 3.1-3.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


def surface_example(
    attention: Array, cls: Flags, sep: Flags, punctuation: Flags
) -> dict[str, Array]:
    """Mean attention of one example to each target, as target -> [layer, head].

    attention               [layer, head, query, key]
    cls, sep, punctuation   [token]

    All rows count, special ones included, and the denominator is n throughout (edge tokens that
    lack a neighbour too). The last two differ: sep_from_sep is divided by the number of [SEP] rows
    (the authors' code: a fixed 2), sep_from_other by the number of the others (theirs: n - 2);
    NaN where there is no such row. `first` is position 0 (ours, for models without [CLS]).
    """
    n = attention.shape[-1]
    first = np.arange(n) == 0
    everyone = np.ones(n, dtype=bool)
    return {
        "self": np.trace(attention, axis1=2, axis2=3) / n,
        "previous": np.trace(attention, offset=-1, axis1=2, axis2=3) / n,  # A[i, i-1]
        "next": np.trace(attention, offset=1, axis1=2, axis2=3) / n,  # A[i, i+1]
        "first": _mean_mass(attention, everyone, first),
        "cls": _mean_mass(attention, everyone, cls),
        "sep": _mean_mass(attention, everyone, sep),
        "punctuation": _mean_mass(attention, everyone, punctuation),
        "sep_from_sep": _mean_mass(attention, sep, sep),
        "sep_from_other": _mean_mass(attention, ~sep, sep),
    }


def surface_means(
    attentions: Sequence[Array],
    cls: Sequence[Flags],
    sep: Sequence[Flags],
    punctuation: Sequence[Flags],
) -> dict[str, Array]:
    """Unweighted mean over examples of `surface_example`, as target -> [layer, head].

    Each list has one entry per example. An example without rows for a target is left out of that
    target's mean; NaN where no example has any.
    """
    examples = [
        surface_example(*one) for one in zip(attentions, cls, sep, punctuation, strict=True)
    ]
    means = {}
    for target in examples[0]:
        there = [example[target] for example in examples if not np.isnan(example[target]).any()]
        empty = np.full(examples[0][target].shape, np.nan)
        means[target] = np.mean(there, axis=0) if there else empty
    return means


def _mean_mass(attention: Array, rows: Flags, columns: Flags) -> Array:
    """Mean over flagged queries of the attention summed over flagged keys, [layer, head]."""
    if not rows.any():
        return np.full(attention.shape[:2], np.nan)
    mass = attention[:, :, :, columns].sum(axis=3)  # [layer, head, query]
    return mass[:, :, rows].mean(axis=2)  # [layer, head]


def word_example(
    attention: Array, ids: Sequence[int], special: Flags, *, causal: bool = False
) -> dict[str, Array]:
    """Attention of words to words of one example, as kind -> [layer, head]; loops throughout.

    attention  [layer, head, query, key]
    ids        [token] token ids
    special    [token] what the tokenizer added: no words, and they divide the input into segments

    own_segment, other_segment, same_token: the mean, over the words that see a word of the kind, of
    the attention to all such words; own and other where there are two segments or more. `even`: the
    mean entropy of the weights within the own segment, over the log of the number of its words
    seen, where there are two or more. `uniform`, per kind: what uniform attention would give. NaN
    where there is no such word.
    """
    n = len(ids)
    segment, number = [], 0
    for i in range(n):
        number += int(not special[i] and (i == 0 or bool(special[i - 1])))
        segment.append(0 if special[i] else number)
    shares: dict[str, list[Array]] = {kind: [] for kind in KINDS}
    uniform: dict[str, list[float]] = {kind: [] for kind in KINDS}
    even: list[Array] = []
    for i in (i for i in range(n) if segment[i]):
        seen = [j for j in range(n) if not causal or j <= i]
        words = [j for j in seen if segment[j]]
        of_kind = {
            "own_segment": [j for j in words if segment[j] == segment[i] and number > 1],
            "other_segment": [j for j in words if segment[j] != segment[i]],
            "same_token": [j for j in words if ids[j] == ids[i] and j != i],
        }
        for kind, keys in of_kind.items():
            if keys:
                shares[kind].append(attention[:, :, i, keys].sum(axis=2))
                uniform[kind].append(len(keys) / len(seen))
        own = attention[:, :, i, of_kind["own_segment"]]
        if own.shape[2] > 1:
            p = own / own.sum(axis=2, keepdims=True)
            nats = -np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(axis=2)
            even.append(nats / np.log(own.shape[2]))
    nothing = np.full(attention.shape[:2], np.nan)
    means = {kind: np.mean(rows, axis=0) if rows else nothing for kind, rows in shares.items()}
    means["even"] = np.mean(even, axis=0) if even else nothing
    plain = {f"uniform_{k}": np.array(np.mean(r) if r else np.nan) for k, r in uniform.items()}
    return means | plain


KINDS = ("own_segment", "other_segment", "same_token")
