"""Does `headscope serve` say where its page is, what it took instead, and end as it should?"""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from cli.conftest import refused
from commands import PATIENCE, environment

pytest.importorskip("starlette", reason="needs the extra serve (make test installs it)")
pytest.importorskip("uvicorn", reason="needs the extra serve (make test installs it)")

from headscope.live.server import LiveServer


@pytest.fixture
def ran(monkeypatch):
    """What would be served: the server is told of, and not run."""
    servers = []
    monkeypatch.setattr(LiveServer, "run", lambda self, ready: (servers.append(self), ready()))
    return servers


def test_the_address_holds_a_new_token_each_time(headscope, tiny_place, ran):
    said = [headscope("serve", tiny_place, "--port", 0, "--no-browser") for _ in range(2)]
    for one, server in zip(said, ran, strict=True):
        assert one.code == 0
        assert one.out.splitlines()[0] == f"live page: {server.address}"
        assert len(server.guard.token) >= 32
    assert ran[0].guard.token != ran[1].guard.token


def test_what_the_page_opens_with_and_who_may_reach_it(headscope, tiny_place, ran):
    done = headscope(
        "serve",
        tiny_place,
        "--port",
        0,
        "--no-browser",
        "--json",
        "--host",
        "0.0.0.0",
        "--text",
        "A cat.",
        "--text-b",
        "It slept.",
        "--longest",
        12,
    )
    (server,) = ran
    assert json.loads(done.out) == {"address": server.address}
    assert server.address == f"http://127.0.0.1:{server.port}/{server.guard.token}/"
    assert "nothing is encrypted" in done.err
    assert (server.app.page.text, server.app.page.pair) == ("A cat.", "It slept.")
    assert server.app.model.longest == 12


def test_a_port_in_use_is_told(headscope, tiny_place, ran):
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        done = headscope("serve", tiny_place, "--port", port, "--no-browser")
    assert f"port {port} is in use: {ran[0].port} is taken instead" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("./nowhere",), "cannot load './nowhere'"),
        (("demo", "--host", "192.0.2.1"), "cannot listen on 192.0.2.1"),
        (("demo", "--longest", 513), "513 is not in the range"),
        (("broken",), "is no manifest of a run"),
    ],
)
def test_bad_input_is_refused(headscope, tmp_path, ran, words, said):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/manifest.json").write_text("{")
    refused(headscope("serve", *words, "--no-browser"), said)
    assert ran == []


def test_without_the_packages_the_command_that_installs_them_is_told(headscope, monkeypatch):
    monkeypatch.setattr("headscope.live.find_spec", lambda name: None)
    done = headscope("serve", "demo")
    refused(done, "needs starlette and uvicorn", "pip install 'headscope[serve]'", code=1)


SERVED = """
from contextlib import closing
from headscope.live.app import LiveApp
from headscope.live.live_page import LivePage
from headscope.live.server import LiveServer, bound
from headscope.live.app import NO_MODEL
from headscope.live.waiting import WaitingLine

with closing(bound("127.0.0.1", 0)) as own:
    server = LiveServer(LiveApp(WaitingLine(2), None, LivePage(NO_MODEL)), own)
    server.run(lambda: print(server.address, flush=True))
print("ended")
"""


def test_ctrl_c_ends_it_cleanly():
    """In a process of its own, whose signals are its own."""
    words = [sys.executable, "-c", SERVED]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as running:
        address = running.stdout.readline().strip()
        status = http.client.HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE)
        status.request("GET", address.partition(urlsplit(address).netloc)[2])
        assert status.getresponse().status == 200
        status.close()
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=PATIENCE) == ("ended\n", "")
    assert running.returncode == 0
