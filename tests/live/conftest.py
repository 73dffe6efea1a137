"""How do tests serve a model: a small one, in this process, on a port of its own?"""

from __future__ import annotations

from contextlib import closing, contextmanager

import pytest

pytest.importorskip("starlette", reason="needs the extra serve (make test installs it)")
pytest.importorskip("uvicorn", reason="needs the extra serve (make test installs it)")

from experiments.circuits.made import saved, small
from experiments.map_classifier.made import make_drawn
from headscope.experiments.map_classifier.annotation_session import Session
from headscope.live.annotation import annotation_server
from headscope.live.app import LiveApp
from headscope.live.live_model import LiveModel
from headscope.live.live_page import LivePage
from headscope.live.open_model import OpenedModel, open_model
from headscope.live.server import LiveServer, bound
from headscope.live.waiting import WaitingLine

LOADING = {
    "device": "cpu",
    "device_map": None,
    "dtype": "float32",
    "revision": None,
    "trust_remote_code": False,
}
TOKEN = "a-token-of-the-tests"


@pytest.fixture(scope="session")
def decoder_place(tmp_path_factory):
    """The folder of a GPT-2 of two layers of four heads, with its language-model head."""
    return saved(tmp_path_factory.mktemp("decoder") / "model", small())


@pytest.fixture(scope="session")
def decoder(decoder_place):
    return LiveModel(open_model(str(decoder_place), **LOADING), longest=64)


@pytest.fixture(scope="session")
def encoder(tiny):
    return LiveModel(OpenedModel(tiny), longest=64)


@contextmanager
def serving(model, text, *, clients=16, **more):
    """A server in a thread; it is stopped at the end."""
    page = LivePage(model.about, text)
    app = LiveApp(WaitingLine(clients), model, page, **more)
    with (
        closing(bound("127.0.0.1", 0)) as own,
        LiveServer(app, own, token=TOKEN).in_thread() as server,
    ):
        yield server


@pytest.fixture
def session(tmp_path):
    """A session of six maps to label."""
    return Session.create(tmp_path / "session", make_drawn(6))


@contextmanager
def annotated(session, annotator="a", **options):
    """A server of a session in a thread; pages that need it leave first."""
    with annotation_server(session, annotator, **options) as server, server.in_thread():
        server.leaving = []
        yield server
        for leave in server.leaving:
            leave()


@pytest.fixture
def server(session):
    with annotated(session) as running:
        yield running


@pytest.fixture
def annotating():
    """`with annotating(session, annotator) as server:`"""
    return annotated
