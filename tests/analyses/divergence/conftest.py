"""The tests of clusters draw heads anew as often as a run does."""

import pytest


@pytest.fixture(autouse=True)
def _all_draws(all_draws):
    """In all of them."""
