"""Do written numbers show as many digits as their interval calls for?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from headscope.claims.caption_words import with_interval
from headscope.core.wording import (
    by_unit,
    column_by_unit,
    distinct_digits,
    grid_size,
    heaviest_first,
    how_many,
    number,
    percent,
    plain,
    with_ends,
)
from headscope.page.tabulate import measured

NAN = float("nan")


def test_a_column_has_one_number_of_decimals():
    shares = [(0.061, 0.058, 0.064), (0.112, 0.108, 0.12), (5.7e-9, 5.7e-9, 8e-9), (NAN, NAN, NAN)]
    wanted = ["6.1 % [5.8, 6.4]", "11.2 % [10.8, 12.0]", "0.0 % [0.0, 0.0]", "–"]
    both = [(0.045, 0.042, 0.049), *shares]
    assert column_by_unit(both, "probability") == ["4.5 % [4.2, 4.9]", *wanted]
    nats = [(2.54, 2.52, 2.56), (0.0021, 0.0012, 0.0038), (1.5, NAN, NAN)]
    wanted = ["2.54 [2.52, 2.56] nats", "0.00 [0.00, 0.00] nats", "1.50 nats"]
    assert column_by_unit(nats, "nats") == wanted
    assert column_by_unit([], "nats") == []


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


def test_what_would_be_written_as_nothing_keeps_two_figures():
    assert number(0.00012, 0.00008, 0.00016) == "0.00012 [0.00008, 0.00016]"
    assert with_ends(0.00012, 0.00008, 0.00016, 3) == "0.00012 [0.00008, 0.00016]"
    assert measured(-0.00012, -0.0002, 0.0001).small == "[−0.00020, 0.00010]"
    assert percent(0.00002, 0.00001, 0.00003) == "0.0020 % [0.0010, 0.0030]"
    assert percent(5.7e-9, 5.7e-9, 8.4e-9) == "5.7e−7 % [5.7e−7, 8.4e−7]"
    assert number(-0.0000055, -0.0000066, 0.0000012) == "−5.5e−6 [−6.6e−6, 1.2e−6]"
    assert number(0.0, 0.0, 0.0000012) == "0 [0, 1.2e−6]"
    assert plain(0.0000031, "1") == "3.1e−6"
    assert plain(0.00012, "1") == "0.00012"
    # A larger end is enough, and nothing is nothing.
    assert with_ends(0.0001, -0.4, 0.4, 2) == "0.00 [−0.40, 0.40]"
    assert with_ends(1e-17, 0.0, 0.0, 3) == "0.000 [0.000, 0.000]"


def test_a_small_correlation_keeps_its_digits_with_and_without_an_interval():
    assert with_interval("ρ", -0.0012, np.nan, np.nan) == "ρ = −0.0012"
    assert with_interval("ρ", 0.0012, -0.0031, 0.0055) == "ρ = 0.0012 [−0.0031, 0.0055]"
    assert with_interval("ρ", -0.671, -0.712, -0.624) == "ρ = −0.67 [−0.71, −0.62]"
    assert with_interval("ρ", np.nan, np.nan, np.nan) == "ρ = –"


def test_the_heaviest_sentence_comes_first_and_equal_ones_keep_their_order():
    pairs = [("c", 0.1), ("a", 2.0), ("", 9.0), ("d", 0.1), ("e", math.nan), ("b", 1.0)]
    assert heaviest_first(pairs) == ["a", "b", "c", "d", "e"]


def test_one_number_of_digits_tells_every_value_from_its_interval():
    rows = [(0.00102, 0.00087, 0.00117), (0.00045, 0.0003, 0.0006), (0.2, NAN, NAN)]
    assert distinct_digits(3, rows) == 4  # with three, 0.001 [0.001, 0.001]
    assert distinct_digits(3, [(0.5, 0.4, 0.6)]) == 3
    assert distinct_digits(3, [(0.5, 0.5, 0.5)]) == 3
    assert distinct_digits(3, [(0.5, 0.5 - 1e-9, 0.5 + 1e-9)]) == 5  # what anybody reads


def test_one_thing_is_not_spoken_of_as_many():
    assert [how_many(n, "head") for n in (0, np.int64(1), 1234)] == [
        "0 heads",
        "1 head",
        "1,234 heads",
    ]
    assert grid_size(1, 12) == "1 layer × 12 heads"
