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
