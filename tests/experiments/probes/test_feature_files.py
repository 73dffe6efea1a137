"""Do features come back from disk as they were, and go on after a kill?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headscope.errors import HeadscopeError
from headscope.experiments.probes import feature_files
from headscope.experiments.probes.feature_files import FeatureFile, size_of

SHAPES = [(2, 3), (4, 1), (1, 1), (3, 2)]
BATCHES = [[2, 1], [3], [0]]
ARRAYS = [np.random.default_rng(at).random(shape).astype("f2") for at, shape in enumerate(SHAPES)]


def store(folder: Path, key: str = "a") -> FeatureFile:
    return FeatureFile(folder / "f.bin", SHAPES, BATCHES, key)


def give(numbers):
    return [ARRAYS[number] for number in numbers]


def test_every_array_comes_back_whole_and_in_parts(tmp_path: Path) -> None:
    made = store(tmp_path)
    made.fill(give)
    for number, array in enumerate(ARRAYS):
        assert np.array_equal(made.read(number), array)
        assert np.array_equal(made.read(number, part=0), array[0])
    assert (tmp_path / "f.bin").stat().st_size == size_of(SHAPES) == 2 * 17


def test_what_was_written_before_a_kill_is_not_computed_again(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(feature_files, "NOTE_SECONDS", 0)

    def killed(numbers):
        if numbers == [3]:
            raise KeyboardInterrupt
        return give(numbers)

    with pytest.raises(KeyboardInterrupt):
        store(tmp_path).fill(killed)
    asked, told = [], []
    made = store(tmp_path)
    made.fill(lambda numbers: asked.append(list(numbers)) or give(numbers), progress=told.append)
    assert asked == [[3], [0]]
    assert sum(told) == len(SHAPES)
    assert np.array_equal(made.read(1), ARRAYS[1])


def test_the_file_of_another_run_is_written_anew(tmp_path: Path) -> None:
    store(tmp_path).fill(give)
    asked = []
    store(tmp_path, key="b").fill(lambda numbers: asked.append(list(numbers)) or give(numbers))
    assert asked == BATCHES


def test_a_file_that_was_cut_is_told(tmp_path: Path) -> None:
    made = store(tmp_path)
    made.fill(give)
    (tmp_path / "f.bin").write_bytes(b"")
    with pytest.raises(HeadscopeError, match="has been cut"):
        made.read(0)
