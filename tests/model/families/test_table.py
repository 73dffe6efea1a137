"""Is every family of the docs' table read or refused as it says there, and none read wrongly?"""

from __future__ import annotations

from pathlib import Path

import pytest
import transformers
from benchmarks.families import READ, REFUSED, WRONG, Reading, read, table
from benchmarks.family_models import FAMILIES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "families.md"
LEAST = 104  # of 119
_FOUND: list[Reading] = []


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_read_exactly_or_refused_with_a_reason(name: str) -> None:
    found = read(name)
    _FOUND.append(found)
    assert found.verdict != WRONG, found
    assert found.verdict in (READ, REFUSED)
    assert len(found.maps.split()) >= 2
    if found.verdict == READ:
        assert found.off is not None
        assert found.off <= 1e-6


def test_the_table_of_the_docs_is_what_was_found() -> None:
    if len(_FOUND) != len(FAMILIES):
        pytest.skip("needs the readings of all families, made by the tests above in this process")
    assert sum(one.verdict == READ for one in _FOUND) >= LEAST
    text = PAGE.read_text("utf-8")
    if f"transformers {transformers.__version__}:" not in text:
        pytest.skip("the docs' table is of another version of transformers")
    assert table(_FOUND) in text
