"""What do all tests share? The data beside the checkout, and the demo model."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora, models and oracles beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("needs the folder 'shared' (real corpora, models, oracles) beside the checkout")
    return SHARED


@pytest.fixture(scope="session")
def demo():
    """The demo model, loaded once."""
    import headscope

    return headscope.load("demo")
