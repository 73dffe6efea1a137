"""Are the cells of the page's tables written as they should be read?"""

from __future__ import annotations

import pytest

from headscope.page.tabulate import Cell, measured, points, probability, share

NAN = float("nan")


@pytest.mark.parametrize(
    ("cell", "text", "small"),
    [
        (share(0.8684, 0.851, 0.8819), "86.8", "[85.1, 88.2]"),
        (share(0.5), "50.0", ""),
        (share(0.5, NAN, NAN), "50.0", ""),
        (share(NAN, 0.1, 0.2), "–", ""),
        (points(0.359, 0.33, 0.38), "+35.9", "[+33.0, +38.0]"),
        (points(-0.02, -0.032, 0.008), "−2.0", "[−3.2, +0.8]"),
        (points(-0.0001, -0.01, 0.0), "0.0", "[−1.0, 0.0]"),
        (measured(0.7315, 0.6186, 0.8444), "0.732", "[0.619, 0.844]"),
        (probability(0.0049), "0.005", ""),
        (probability(0.0004), "< 0.001", ""),
        (probability(NAN), "–", ""),
    ],
)
def test_numbers_are_written_with_their_interval(cell, text, small):
    assert (cell.text, cell.small) == (text, small)


def test_a_sign_is_told_in_words():
    assert points(0.1, 0.05, 0.2, mark="beats it") == Cell(
        "+10.0", "[+5.0, +20.0]", mark="beats it"
    )
