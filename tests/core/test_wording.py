"""Do written numbers show as many digits as their interval calls for?"""

from __future__ import annotations

import numpy as np
import pytest

from headscope.core.wording import by_unit, number, percent

NAN = float("nan")


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.87, 0.85, 0.89, "87 % [85, 89]"),
        (0.8712, 0.8698, 0.8731, "87.1 % [87.0, 87.3]"),
        (0.042, 0.039, 0.045, "4.2 % [3.9, 4.5]"),
        (0.87, NAN, NAN, "87 %"),
        (1.0, 1.0, 1.0, "100 % [100, 100]"),
        (NAN, NAN, NAN, "–"),
    ],
)
def test_shares(value, low, high, text):
    assert percent(value, low, high) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (3.941, 3.87, 4.01, "3.94 [3.87, 4.01]"),
        (-0.6681, -0.7012, -0.6219, "−0.67 [−0.70, −0.62]"),
        (-0.001, -0.002, 0.002, "−0.001 [−0.002, 0.002]"),
        (123.4, 120.0, 126.0, "123 [120, 126]"),
    ],
)
def test_numbers(value, low, high, text):
    assert number(value, low, high) == text


def test_no_zero_is_negative():
    assert number(-0.0, np.nan, np.nan) == "0.00"


def test_a_unit_follows_its_number_and_pure_numbers_have_none():
    assert by_unit(3.94, 3.87, 4.01, "nats") == "3.94 [3.87, 4.01] nats"
    assert by_unit(0.3, 0.29, 0.31, "1") == "0.30 [0.29, 0.31]"
    assert by_unit(0.3, 0.29, 0.31, "probability") == "30 % [29, 31]"
