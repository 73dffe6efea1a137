"""Who is let in, and what are others told? Is everything that can be asked for limited?"""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from commands import PATIENCE
from conftest import run_of
from headscope.errors import HeadscopeError, InputError
from headscope.live import server as module
from headscope.live.access import NOBODY, Guard
from headscope.live.app import GONE, MOST_BYTES, NO_MODEL, LiveApp, live_app
from headscope.live.live_page import LivePage
from headscope.live.run_pages import RunPages
from headscope.live.server import LiveServer, bound
from headscope.live.waiting import WaitingLine
from headscope.run.manifest_file import is_run
from headscope.run.store import RunFolder
from live.conftest import LOADING, TOKEN, serving

BASE = "http://127.0.0.1:8899"
OWN = f"{BASE}/{TOKEN}"
ASKING = {"x-headscope-page": "a"}


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


@pytest.fixture
def line():
    made = WaitingLine(2)
    made.start()
    yield made
    made.close()


def client_of(app, host="127.0.0.1", **more):
    guard = Guard(app.starlette(), host=host, token=TOKEN)
    return TestClient(
        guard, base_url=OWN, follow_redirects=False, raise_server_exceptions=False, **more
    )


@pytest.fixture
def client(decoder, line):
    return client_of(LiveApp(line, decoder, LivePage(decoder.about, "cat dog")))


# --- the token -----------------------------------------------------------------------------------


def test_the_token_stands_in_every_address_and_nothing_is_kept_for_other_ports(client):
    """A cookie once held it, which went to every server of this machine, whatever its port."""
    page = client.get("/")
    assert page.status_code == 200
    assert "set-cookie" not in page.headers
    assert TOKEN not in page.text
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cache-control"] == "no-store"
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert policy.endswith("connect-src 'self'; frame-ancestors 'none'")


@pytest.mark.parametrize(
    "path",
    ["/", "/wrong/", f"/{TOKEN}", f"/{TOKEN}x/", f"//{TOKEN}/", "/read", f"/?token={TOKEN}", "/é/"],
)
def test_who_has_no_token_is_told_where_it_is(client, path):
    page = client.get(BASE + path, headers={"accept": "text/html"})
    assert page.status_code == 403
    assert "open the address that it printed last" in page.text
    assert page.headers["content-security-policy"] == "frame-ancestors 'none'"
    assert "default-src &#39;none&#39;; style-src &#39;sha256-" in page.text
    told = client.get(BASE + path).json()
    assert set(told) == {"error", "found", "wanted", "do"}
    assert client.get(BASE + path).headers["content-security-policy"] == NOBODY
    assert told["do"] == "open the address that headscope printed last"


def test_a_cookie_or_a_header_does_for_nobody(client):
    for headers in ({"cookie": f"headscope-8899={TOKEN}"}, {"x-headscope-token": TOKEN}):
        assert client.get(BASE + "/", headers=headers).status_code == 403


def test_a_token_is_compared_in_constant_time(client, monkeypatch):
    compared = []
    monkeypatch.setattr(
        "headscope.live.access.secrets.compare_digest", lambda *two: compared.append(two) or False
    )
    assert client.get("/").status_code == 403
    assert compared == [(TOKEN.encode(), TOKEN.encode())]


# --- the name and the origin ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "right"),
    [
        ("127.0.0.1:8899", True),
        ("localhost:8899", True),
        ("LOCALHOST:1234", True),
        ("[::1]:8899", True),
        ("127.0.0.1", True),
        ("evil.example:8899", False),
        ("127.0.0.1.evil.example:8899", False),
        ("localhost.", False),
        ("", False),
        ("192.0.2.7:8899", False),
        ("localhost:80:80", False),
    ],
)
def test_another_name_of_this_machine_is_refused(client, host, right):
    answer = client.get("/", headers={"host": host})
    assert (answer.status_code == 200) == right
    assert right or "of this server" in answer.json()["found"]


def test_a_server_for_others_takes_addresses_and_its_own_names_alone(decoder, line):
    client = client_of(LiveApp(line, decoder, LivePage(decoder.about, "cat")), host="0.0.0.0")
    named = {"192.0.2.7:8899": 200, "[2001:db8::1]": 200, "evil.example:8899": 403}
    for host, status in named.items():
        assert client.get("/", headers={"host": host}).status_code == status


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8899"]
)
def test_another_page_may_not_ask(client, origin):
    given = ASKING | {"origin": origin}
    assert client.post("/read", json={"text": "cat"}, headers=given).status_code == 403
    given["origin"] = BASE
    assert client.post("/read", json={"text": "cat"}, headers=given).status_code == 200


def test_there_is_no_web_socket(client):
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/"):
        pass


# --- what is asked, and what is told ----------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"text": ""}, 422, "found an empty text"),
        ({"text": "cat " * 70}, 422, "64 at most"),
        ({"text": "cat", "changes": {"off": [[0, 9, 9]]}}, 422, "is not there, from 0: off 0 9 9"),
        ({"text": 7}, 422, "a text that is not a string"),
        ({"text": "a" * MOST_BYTES}, 413, "bytes at most"),
    ],
)
def test_errors_say_what_was_found_wanted_and_is_to_do(client, body, status, said):
    answer = client.post("/read", json=body, headers=ASKING)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert said in answer.json()["error"]
    assert answer.json()["found"]
    assert client.post("/read", json={"text": "cat"}, headers=ASKING).status_code == 200


@pytest.mark.parametrize(
    ("changes", "absent"),
    [
        ({"off": [[7, 0, 0]]}, [["off", 7, 0, 0]]),
        ({"even": [[0, 0, 1], [0, 0, 4]]}, [["even", 0, 0, 4]]),
        ({"off": [[0, 2, 0]]}, [["off", 0, 2, 0]]),
        ({"zero": [[0, 999]]}, [["zero", 0, 999]]),
        ({"zero": [[1, 0], [0, 0]]}, [["zero", 1, 0]]),
        ({"zero": [[0, 0]], "layer": 2}, [["layer", 2]]),
    ],
)
def test_changes_that_mean_nothing_are_refused_by_their_names(client, changes, absent):
    """They were ignored, with 200: the answer was that of the model as it is."""
    body = {"text": "cat dog", "changes": changes}
    answer = client.post("/read", json=body, headers=ASKING)
    assert answer.status_code == 422
    assert answer.json()["absent"] == absent
    assert answer.json()["wanted"] == "those of 2 × 4 heads and 2 tokens"


def test_a_page_that_goes_while_it_sends_is_no_error(decoder, line):
    sent, headers = [], {**ASKING, "content-type": "application/json"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/read",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    app = LiveApp(line, decoder, LivePage(decoder.about, "cat dog"))
    with ThreadPoolExecutor(1) as thread:  # that of the tests may have a browser's loop
        thread.submit(lambda: asyncio.run(app.starlette()(scope, receive, send))).result()
    assert sent[0]["status"] == GONE


def test_only_json_of_a_page_is_taken(client):
    for headers in ({}, {"x-headscope-page": "a b"}, ASKING | {"content-type": "text/plain"}):
        assert client.post("/read", content=b'{"text": "cat"}', headers=headers).status_code == 422
    assert client.get("/read").status_code == 405
    assert client.get("/nothing").json()["wanted"] == "one of this server"


class Model:
    """A model whose passes wait until they are let go."""

    about = NO_MODEL

    def __init__(self, error=None):
        self.begun, self.go, self.error, self.read_texts = (
            threading.Semaphore(0),
            threading.Event(),
            error,
            [],
        )

    def read(self, asked, check):
        self.read_texts.append(asked.text)
        self.begun.release()
        if self.error is not None:
            raise self.error
        assert self.go.wait(20)
        check()
        raise InputError(f"found {asked.text}; wanted this: and that")


def posting(client, text, page, answers):
    def post():
        headers = {"x-headscope-page": page}
        answers[text] = client.post("/read", json={"text": text}, headers=headers)

    thread = threading.Thread(target=post)
    thread.start()
    return thread


def test_an_older_text_of_a_page_is_dropped_and_other_pages_are_served(line):
    model, answers = Model(), {}
    with client_of(LiveApp(line, model, LivePage(NO_MODEL))) as client:
        threads = [posting(client, "first", "a", answers)]
        assert model.begun.acquire(timeout=PATIENCE)
        put, told = line.put, threading.Semaphore(0)
        line.put = lambda *args, **more: (put(*args, **more), told.release())[0]
        for text, page in (("second", "a"), ("third", "a"), ("of b", "b")):
            threads.append(posting(client, text, page, answers))
            assert told.acquire(timeout=PATIENCE)
        model.go.set()
        for thread in threads:
            thread.join()
    assert {text: one.status_code for text, one in answers.items()} == {
        "first": 409,
        "second": 409,
        "third": 422,
        "of b": 422,
    }
    assert model.read_texts == ["first", "third", "of b"]
    assert answers["of b"].json() == {
        "error": "found of b; wanted this: and that",
        "found": "found of b",
        "wanted": "this",
        "do": "and that",
    }


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (MemoryError("no room"), 503, "out of memory \\(no room\\); wanted a shorter text"),
        (HeadscopeError("found this; wanted that"), 503, "found this"),
        (ZeroDivisionError("by 0"), 500, "ZeroDivisionError: by 0"),
    ],
)
def test_whatever_fails_the_server_stays(line, capsys, error, status, said):
    client = client_of(LiveApp(line, Model(error), LivePage(NO_MODEL)))
    for _ in range(2):
        answer = client.post("/read", json={"text": "cat"}, headers=ASKING)
        assert answer.status_code == status
        assert re.search(said, answer.json()["error"])
    assert client.get("/").status_code == 200


# --- the end -------------------------------------------------------------------------------------

SLOW = f"POST /{TOKEN}/read HTTP/1.1\r\nHost: localhost\r\n".encode()
PART = b"X-Headscope-Page: a\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"


HALF = f"GET /{TOKEN}/ HTTP/1.1\r\nHost: loc".encode()


def test_who_asks_at_once_is_answered_whatever_many_others_leave_half_said():
    """300 of them without a token once kept everybody out."""
    with serving(Model(), "x") as server, ExitStack() as stack:
        for _ in range(module.MOST_CONNECTIONS + 44):
            one = connected(server.port)
            stack.enter_context(closing(one)).sendall(HALF.replace(TOKEN.encode(), b"x"))
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("GET", f"/{TOKEN}/")
        assert connection.getresponse().status == 200
        connection.close()
        assert len(server.web.server_state.connections) <= module.MOST_CONNECTIONS


@pytest.mark.parametrize(
    "sent", [b"", HALF, SLOW + PART, SLOW.replace(TOKEN.encode(), b"x") + PART]
)
def test_a_request_that_is_not_whole_in_time_is_let_go(sent, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_TO_ASK", 0.2)
    model = Model()
    with serving(model, "x") as server:
        with closing(connected(server.port)) as slow:
            slow.sendall(sent)
            with suppress(ConnectionResetError):
                while slow.recv(4096):
                    pass
        # One that is whole has all the time that the model takes.
        with closing(connected(server.port)) as whole:
            whole.sendall(SLOW + PART.replace(b"99", b"15") + b'"text": "cat"}')
            assert model.begun.acquire(timeout=PATIENCE)
            with closing(connected(server.port)) as slow:
                assert slow.recv(4096) == b""  # as long as it takes to be let go
            model.go.set()
            assert b" 422 " in whole.recv(4096)


def test_the_next_request_of_a_connection_has_to_be_whole_in_time_too(monkeypatch):
    monkeypatch.setattr(module, "SECONDS_TO_ASK", 0.2)
    with serving(Model(), "x") as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        with closing(connection):
            connection.request("GET", f"/{TOKEN}/")
            assert connection.getresponse().read()
            connection.sock.sendall(HALF)
            with suppress(ConnectionResetError):
                assert connection.sock.recv(4096) == b""


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_at_the_end_nothing_is_left_open(turns, monkeypatch, caplog):
    """A client that came while uvicorn ended was forgotten: its socket was never closed."""
    monkeypatch.setattr(module, "SECONDS_TO_END", 0.05)
    model = Model()
    with serving(model, "x") as server:
        port, end, late, drop = server.port, server.web.shutdown, [], server.app.line.end
        slow = socket.create_connection(("127.0.0.1", port))
        slow.sendall(SLOW + PART)
        waiting = socket.create_connection(("127.0.0.1", port))
        waiting.sendall(SLOW + PART.replace(b"99", b"15") + b'"text": "cat"}')
        assert model.begun.acquire(timeout=PATIENCE)

        async def shutdown(sockets=None):
            late.append(connected(port))
            for _ in range(turns):
                await asyncio.sleep(0)
            await end(sockets)

        server.app.line.end = lambda: (drop(), model.go.set())
        server.web.shutdown = shutdown
    assert b" 409 " in waiting.recv(4096)
    for one in (slow, waiting, *late):
        with closing(one), suppress(ConnectionResetError):
            assert one.recv(4096) == b""
    gc.collect()  # what is left open is complained of here; that time was up is none of it
    assert [line for line in caplog.messages if "timeout graceful shutdown" not in line] == []


# --- ports ---------------------------------------------------------------------------------------


def test_a_port_in_use_gives_the_next_one(decoder, line):
    with closing(bound("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with closing(bound("127.0.0.1", port)) as other:
            assert port < other.getsockname()[1] < port + module.PORTS_TRIED
            app = LiveApp(line, decoder, LivePage(decoder.about))
            server = LiveServer(app, other, token="x y")
            assert server.address == f"http://127.0.0.1:{server.port}/x%20y/"


def test_a_port_or_host_that_cannot_be_is_told(monkeypatch):
    with pytest.raises(InputError, match=r"cannot listen on 192.0.2.1, port 8899"):
        bound("192.0.2.1", 8899)
    monkeypatch.setattr(module, "PORTS_TRIED", 1)
    with closing(bound("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"the ports {port} to {port} are in use"):
            bound("127.0.0.1", port)


# --- runs ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(tiny, tmp_path_factory):
    """A finished run with inputs to look at, and its report."""
    run = run_of(tiny, tmp_path_factory.mktemp("run") / "run", analyses=("surface", "examples"))
    (run.path / "report.html").write_text("<h1>of a stranger</h1>")
    return run.path


def test_a_run_is_browsed_and_its_model_typed_into(shown):
    assert is_run(str(shown))
    before = sorted(file for file in shown.rglob("*"))
    app = live_app(str(shown), longest=64, **LOADING)
    assert app.absent == ""
    app.line.start()
    with closing(app.line):
        client = client_of(app)
        for name, kind in {
            "": "text/html",
            "report.html": "text/html",
            "heads.html": "text/html",
            "views/01.html": "text/html",
            "sources.bib": "text/plain",
        }.items():
            page = client.get(f"/run/{name}")
            assert (page.status_code, page.headers["content-type"].partition(";")[0]) == (200, kind)
        assert "of a stranger" not in client.get("/run/report.html").text
        index = client.get("/run/").text
        for link in set(re.findall(r'href="([^"#:]+)"', index)):
            assert client.get(f"/run/{link}").status_code == 200, link
        for name in ("../manifest.json", "manifest.json", "%2e%2e/x", "atlas.nc", "views/99.html"):
            assert client.get(f"/run/{name}").status_code == 404
        answer = client.post("/read", json={"text": "The cat."}, headers=ASKING).content
    labels = json.loads(answer[4 : 4 + int.from_bytes(answer[:4], "little")])
    assert labels["data"]["stacks"][0]["labels"] == app.labels
    assert 'href="run/report.html"' in app.page.html[0]
    assert sorted(file for file in shown.rglob("*")) == before


def test_a_run_that_is_not_finished_says_so_until_it_is(short, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    manifest = json.loads((short.path / "manifest.json").read_text())
    (folder / "atlas.nc").write_bytes((short.path / "atlas.nc").read_bytes())
    content = (short.path / "manifest.json").read_bytes()
    (folder / "manifest.json").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="is no manifest"):
        RunPages(folder)
    del manifest["results_sha256"], manifest["checksum"]
    RunFolder(folder).write_manifest(manifest)
    pages = RunPages(folder)
    assert pages.labels() is None
    assert b"is not finished; run its command again" in pages.get("report.html").content
    (folder / "manifest.json").write_bytes(content)
    assert b"<h1>What every head of" in pages.get("").content
    drawn = pages.get("report.html").content
    assert b"is not finished" not in drawn
    assert not (folder / "report.html").exists()
    place = pages._place
    assert (place / "site/report.html").read_bytes() == drawn
    assert place.stat().st_mode & 0o777 == 0o700
    figure = pages.get(next(name for name in pages._drawn() if name.endswith(".svg")))
    assert {"default-src 'none'", "sandbox"} <= {*figure.policy.split("; ")}
    pages.close()
    assert not place.exists()


def test_a_run_of_other_weights_is_served_and_its_labels_are_not_those_of_the_model(
    short, tiny_place, monkeypatch
):
    other = {"name": str(tiny_place), "sha256": "another"}
    monkeypatch.setattr("headscope.live.run_pages.RunPages.model", other)
    app = live_app(str(short.path), longest=64, **LOADING)
    assert app.model is not None
    assert app.labels is None
    assert "has other weights by now than when the run was made" in app.page.html[0]


def test_the_pages_of_a_run_are_served_without_its_model(short, tmp_path, monkeypatch):
    monkeypatch.setattr("headscope.live.run_pages.RunPages.model", {"name": "./is-gone"})
    app = live_app(str(short.path), longest=64, **LOADING)
    client = client_of(app)
    assert "cannot be loaded, its pages can be read: cannot load &#39;./is-gone&#39;" in (
        client.get("/").text
    )
    answer = client.post("/read", json={"text": "cat"}, headers=ASKING)
    assert answer.status_code == 503
    assert client.get("/run/").status_code == 200
