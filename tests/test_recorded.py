"""Do the recorded runs look like those that are made now?"""

from __future__ import annotations

import pytest

from recorded import ENCODER, FILE, LANGUAGE, recorded, schema


def test_recorded_groups_have_the_names_dimensions_and_attributes_of_a_run_of_now(whole):
    there = recorded(groups=tuple(whole), kind=ENCODER)
    newer = {"frames", "explained"}  # of whole runs, or not recorded yet
    assert {*there.children} | newer == {*whole} | newer
    for name, group in there.children.items():
        assert schema(group.to_dataset()) == schema(whole[name]), f"{name}: run tests/record.py"


def test_the_file_is_small():
    assert FILE.stat().st_size < 450_000


@pytest.mark.parametrize("size", [(1, 1), (3, 4), (12, 16)])
def test_a_run_of_another_size_has_the_recorded_heads_over_and_over(size):
    whole, tree = recorded(groups=LANGUAGE), recorded(*size, LANGUAGE)
    for layer in range(size[0]):
        for head in range(size[1]):
            ours = tree["frames"]["score"][layer, head]
            assert ours == whole["frames"]["score"][layer % 6, head % 12]
