"""May one loaded model be looked at by several threads at once?"""

from __future__ import annotations

import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import headscope as hs
from made_models import small_bert

TEXTS = [
    f"The {animal} sat on the mat, and it was {state}."
    for animal in ("cat", "old dog")
    for state in ("tired", "hungry and cold", "gone", "red")
]
CALLS = 1000


@pytest.fixture
def switching_often():
    """Threads give way to each other a hundred times as often."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 100)
    yield
    sys.setswitchinterval(usual)


def digest(model: hs.Model, text: str) -> str:
    """Of all numbers that the views of a text hold."""
    (stack,) = hs.view(model, text).shown.stacks
    arrays = stack.attention, stack.value_norm, stack.vectors.queries, stack.vectors.keys
    return hashlib.sha256(b"".join(map(np.ascontiguousarray, arrays))).hexdigest()


def test_eight_threads_get_from_one_model_what_one_gets(tmp_path, switching_often):
    model = hs.load(small_bert(tmp_path / "model"))
    alone = [digest(model, text) for text in TEXTS]
    assert len(set(alone)) == len(TEXTS)
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda at: digest(model, TEXTS[at % len(TEXTS)]), range(CALLS)))
    assert made == [alone[at % len(TEXTS)] for at in range(CALLS)]
