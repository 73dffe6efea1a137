"""What do the tests of labelling share? A session."""

import pytest

from experiments.map_classifier.made import make_drawn
from headscope.experiments.map_classifier.annotation_session import Session


@pytest.fixture
def session(tmp_path):
    return Session.create(tmp_path / "session", make_drawn(6))
