"""Does the interval of a head that was chosen on other documents know of the choice?"""

from __future__ import annotations

import numpy as np

from headscope.analyses.language.held_out import best
from headscope.core.accumulators import Sums
from headscope.core.intervals import estimate_share

RNG = np.random.default_rng(7)


def draws(right, half):
    """Sums of correct answers and of questions, [document + 1, half, unit or none, 1]."""
    documents, units = right.shape
    correct, asked = (
        Sums.zeros(2, units, 1, replicates=documents),
        Sums.zeros(2, 1, replicates=documents),
    )
    for at, (row, side) in enumerate(zip(right, half, strict=True)):
        correct.by_group[at, side, :, 0] = row
        asked.by_group[at, side, 0] = 10
    return correct.sums, asked.sums


def test_without_a_document_the_head_is_chosen_anew() -> None:
    right, half = RNG.binomial(10, 0.5, (8, 5)), np.arange(8) % 2
    found = best(*draws(right, half)).held_out[1:, 0]
    for left, value in enumerate(found):
        kept = np.arange(8) != left
        of_half = [right[kept & (half == side)].sum(0) for side in (0, 1)]
        crossed = of_half[0][of_half[1].argmax()] + of_half[1][of_half[0].argmax()]
        assert value == crossed / 70


def test_accuracies_of_chosen_heads_are_held() -> None:
    """Heads that are nearly as good: the choice moves, and the plain interval held 85 to 88 %."""
    skill, held, plainly = np.r_[0.6, 0.57, 0.5, np.full(20, 0.4)], [], []
    for _ in range(400):
        ease = RNG.normal(0, 0.15, (14, len(skill)))  # of each document for each head
        right = RNG.binomial(10, np.clip(skill + ease, 0, 1))
        correct, asked = draws(right, RNG.integers(2, size=14))
        shares, fixed = best(correct, asked).held_out, best(correct[:1], asked[:1])
        assert shares[0] == fixed.held_out[0]
        found = estimate_share(shares, asked.sum(1), twice=True)
        held.append(found.low[0] <= 0.6 <= found.high[0])
        plainly.append(shares[0, 0] < 0.6)
    assert np.mean(plainly) > 0.6  # it errs to one side, as other heads are chosen too
    assert np.mean(held) >= 0.93
