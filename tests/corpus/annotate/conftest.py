"""What do the tests of annotation share? A clean slate."""

import pytest

from corpus.chain import LOADED, SEEN


@pytest.fixture(autouse=True)
def _fresh(tmp_path, monkeypatch):
    """No text was parsed yet, and the user's cache is an empty folder."""
    SEEN.clear()
    LOADED.clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache-home"))
