"""Choose the rules of every head: greedily, by non-negative least squares.

A head that follows rules r with weights w, and else its rest, attends by

    P[q] = Σ_r w_r R_r[q] + (1 − Σ_r w_r T_r(q)) · rest[q]

where T_r(q) is 1 where the rule applies to the query. So A − rest is Σ_r w_r (R_r − T_r rest), and
sums of products of attention, rules and rests are all that a choice needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from headscope.core.accumulators import Bools, Float64

MOST_RULES = 5
TRIES = 3  # ours: candidates that do not help the other half, before the choice ends
LEAST = 0.01  # ours: weight of a rule
RIDGE = 1e-9


@dataclass(frozen=True)
class Products:
    """What a choice needs of one head with one rest: sums over queries.

    rules      [rule, rule] ⟨R_r − T_r rest, R_j − T_j rest⟩
    attention  [rule] ⟨A − rest, R_r − T_r rest⟩
    all        ⟨A − rest, A − rest⟩

    Of groups of documents, each has an axis in front.
    """

    rules: Float64
    attention: Float64
    all: Float64

    def loss(self, chosen: Sequence[int], weights: Float64) -> Float64:
        """Σ (A − P)² of each group."""
        at = np.array(chosen, np.int64)
        cross = self.attention[..., at] @ weights
        inner = self.rules[..., at[:, None], at]  # [group, chosen, chosen]
        return np.asarray(self.all - 2 * cross + (inner @ weights) @ weights)


@dataclass(frozen=True)
class Choice:
    """The rules of one head.

    rules    numbers of the rules, the first chosen first
    weights  [rule] of each
    rest     number of its rest
    loss     Σ (A − P)² of the documents that chose
    """

    rules: tuple[int, ...]
    weights: Float64
    rest: int
    loss: float


def choose(chosen_on: Products, other: Products, *, rest: int, allowed: Bools) -> Choice:
    """The rules of one head with one rest.

    chosen_on  of the documents that choose
    other      of other documents, by group: what they do not gain by, by more than its standard
               error, is not taken
    allowed    [rule] which may be chosen
    """
    chosen, weights, failed = list[int](), np.zeros(0), 0
    left = other.loss(chosen, weights)
    scale = np.maximum(np.diagonal(chosen_on.rules), RIDGE)
    free = allowed & (scale > RIDGE)
    while failed < TRIES and len(chosen) < MOST_RULES:
        slope = chosen_on.attention - chosen_on.rules[:, chosen] @ weights
        gain = np.where(free, np.maximum(slope, 0) ** 2 / scale, 0.0)
        best = int(gain.argmax())
        if gain[best] <= 0:
            break
        free[best] = False
        tried, moved = _solve(chosen_on, [*chosen, best])
        if best in tried and _helps(left, still := other.loss(tried, moved)):
            chosen, weights, failed, left = tried, moved, 0, still
        else:
            failed += 1
    loss = float(chosen_on.loss(chosen, weights))
    return Choice(tuple(chosen), weights, rest, loss)


def _solve(products: Products, chosen: list[int]) -> tuple[list[int], Float64]:
    """The weights of these rules; rules of hardly any weight are dropped."""
    at = np.array(chosen)
    inner = products.rules[at[:, None], at]
    inner.flat[:: len(at) + 1] += RIDGE * inner.trace()
    lower = np.linalg.cholesky(inner)
    weights, _ = nnls(lower.T, np.linalg.solve(lower, products.attention[at]))
    kept = weights > LEAST
    return at[kept].tolist(), weights[kept]


def _helps(before: Float64, after: Float64) -> bool:
    gains = np.atleast_1d(before - after)  # [group]
    total, count = gains.sum(), len(gains)
    squares = ((gains - total / count) ** 2).sum()
    return bool(total > np.sqrt(squares / max(count - 1, 1)) * np.sqrt(count))
