"""What do the tests of labelling share? A session, and a server of one."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

from experiments.map_classifier.made import make_drawn
from headscope.experiments.map_classifier.annotation_server import AnnotationServer
from headscope.experiments.map_classifier.annotation_session import Session


@pytest.fixture
def session(tmp_path):
    return Session.create(tmp_path / "session", make_drawn(6))


@contextmanager
def serving(session, annotator="a", **options):
    """A server in this process, until the block ends; pages that need it leave first."""
    with AnnotationServer(session, annotator, **options) as server:
        server.leaving = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            for leave in server.leaving:
                leave()
            server.shutdown()
            thread.join()


@pytest.fixture
def server(session):
    with serving(session) as running:
        yield running


@pytest.fixture
def serve():
    """`with serve(session, annotator) as server:`"""
    return serving
