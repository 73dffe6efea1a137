"""Is a head said to find what it finds beyond its rivals, and can that fail elsewhere?"""

import numpy as np
import pytest
import xarray as xr

from headscope.analyses.language.specific import specific_heads
from headscope.claims.length_bands import place_of, where_it_holds
from headscope.claims.plan import LabelRule
from headscope.claims.question import Question
from headscope.claims.reading import Reading

NAMES = ("verbs", "nouns")
RULE = LabelRule("x", number="x", least=0.0, source="ours", words=True)


def numbers(share: float, above: float, reference: float = 0.3) -> xr.Dataset:
    """One head, two kinds; each number is known by 2 points."""
    values = {"share": share, "above_reference": above}
    arrays = dict(values)
    for name, value in values.items():
        arrays |= {f"{name}_ci_low": value - 0.02, f"{name}_ci_high": value + 0.02}
    dims = ("layer", "head", "kind")
    return xr.Dataset(
        {
            name: (dims, np.full((1, 1, 2), value))
            for name, value in (arrays | {"reference": reference}).items()
        }
    )


def claims(dataset: xr.Dataset, among: list | None = None) -> list:
    run = Reading(xr.DataTree(), Question(name="x"), among)
    return [
        one.claim("said", n=9, analysis="x")
        for one in specific_heads(run, dataset, "share", "x", NAMES, tests=2)
    ]


def test_who_beats_its_rivals_is_claimed_to_in_the_words_of_each_kind() -> None:
    assert [one.name for one in claims(numbers(0.8, 0.5))] == ["verbs", "nouns"]
    assert not claims(numbers(0.35, 0.05))


@pytest.mark.parametrize(
    ("share", "above", "where"),
    [
        (0.8, 0.5, ""),  # as elsewhere
        (0.1, -0.2, "up to 16 tokens"),  # surely below its rivals: there it fails
        (0.32, 0.02, "up to 16 tokens"),  # not surely above them, and another number
        (0.8, 0.0, ""),  # nobody can tell
    ],
)
def test_a_claim_can_fail_in_a_band_of_lengths(share: float, above: float, where: str) -> None:
    (label, _) = short = claims(numbers(0.8, 0.5))
    long = claims(numbers(share, above), [label])
    assert [one.name for one in long] == ["verbs"]
    of_bands = {"up to 16": short, "17 to 32": long}
    by_place = {band: {place_of(one): one for one in few} for band, few in of_bands.items()}
    assert where_it_holds(label, RULE, by_place) == where


def test_what_is_not_surely_above_its_rivals_may_be_as_low_as_they() -> None:
    (label, _) = claims(numbers(0.8, 0.5))
    (one,) = claims(numbers(0.8, 0.0), [label])
    assert one.low == 0.3
