"""Do features come back from disk as they were, and go on after a kill?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headscope.errors import HeadscopeError
from headscope.experiments.probes.feature_files import FeatureFile, size_of

SHAPES = [(2, 3), (4, 1), (1, 1), (3, 2)]
BATCHES = [[2, 1], [3], [0]]
ARRAYS = [np.random.default_rng(at).random(shape).astype("f2") for at, shape in enumerate(SHAPES)]


def store(folder: Path) -> FeatureFile:
    return FeatureFile(folder / "f.bin", SHAPES, BATCHES)


def give(numbers):
    return [ARRAYS[number] for number in numbers]


def test_every_array_comes_back_whole_and_in_parts(tmp_path: Path) -> None:
    made = store(tmp_path)
    made.put(give)
    for number, array in enumerate(ARRAYS):
        assert np.array_equal(made.read(number), array)
        assert np.array_equal(made.read(number, part=0), array[0])
    assert (tmp_path / "f.bin").stat().st_size == size_of(SHAPES) == 2 * 17


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    def killed(numbers):
        if numbers == [3]:
            raise KeyboardInterrupt
        return give(numbers)

    with pytest.raises(KeyboardInterrupt):
        store(tmp_path).put(killed)
    assert not list(tmp_path.iterdir())


def test_arrays_of_another_shape_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"found \(1, 1\); wanted \(1, 2\)"):
        FeatureFile(tmp_path / "f.bin", [(1, 2)], [[0]]).put(lambda numbers: [np.ones((1, 1))])


def test_a_file_that_was_cut_is_told(tmp_path: Path) -> None:
    made = store(tmp_path)
    made.put(give)
    (tmp_path / "f.bin").write_bytes(b"")
    with pytest.raises(HeadscopeError, match="has been cut"):
        made.read(0)
