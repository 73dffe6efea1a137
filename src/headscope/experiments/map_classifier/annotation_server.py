"""The server with which one annotator, and nobody else, labels the maps of a session in a browser.

A server on this machine alone. Its address holds a secret; requests that name another host (a page
elsewhere that had its name point here) or another origin are refused, and only JSON is taken. It
gives out one page and the maps, no file; the page may ask nothing of any other server.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, cast

import jinja2
import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from headscope.analyses.patterns.classes import CLASSES, NAMES
from headscope.errors import HeadscopeError, InputError
from headscope.experiments.map_classifier.annotation_session import Map, Session
from headscope.page.shell import content_policy, island, theme_css

HOST = "127.0.0.1"
LARGEST_BODY = 1000  # bytes; a label takes fewer than 60
PATIENCE = 30  # seconds that a connection may stay silent
PLAIN = "text/plain; charset=utf-8"
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class AnnotationServer(ThreadingHTTPServer):
    """Serves a session to one annotator until it is shut down.

    port    0 for any that is free
    raises  InputError for a port that is taken
    """

    daemon_threads = True

    def __init__(self, session: Session, annotator: str, *, port: int = 0) -> None:
        self.session, self.annotator = session, annotator
        session.labels(annotator)  # raises for a name or a file that will not do
        self.secret = secrets.token_urlsafe(24)
        self.lock = threading.Lock()
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"cannot serve on port {port} ({error}); give another --port"
            ) from error

    @property
    def address(self) -> str:
        """What to open; it holds the secret."""
        return f"http://{HOST}:{self.server_port}/{self.secret}/"

    @property
    def hosts(self) -> tuple[str, str]:
        """By which names a browser may reach it."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no news."""

    def label(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """{"number", "label"} is kept before this returns."""
        number, label = given.get("number"), given.get("label")
        if type(number) is not int or label not in NAMES:
            raise InputError("found no label; wanted a number and one of the classes")
        self.session.label(self.annotator, number, label)
        return {"number": number, "label": label}

    def undo(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """{"number"} of the map whose label was taken back; None where there was none."""
        return {"number": self.session.undo(self.annotator)}


def picture(weights: Map) -> npt.NDArray[np.uint8]:
    """[query, key] square root of the share of the largest weight, times 255."""
    wide = weights.astype(np.float32)
    shares = wide.clip(0) / (float(wide.max()) or 1.0)
    shades: npt.NDArray[np.uint8] = (np.sqrt(shares) * 255).round().astype(np.uint8)
    return shades


def annotation_page(session: Session, annotator: str) -> tuple[bytes, str]:
    """The page and its policy; it holds no word of what the maps are of.

    raises  InputError if the labels so far cannot be read
    """
    kept = session.labels(annotator)
    numbers = range(len(session))
    style, script = "\n".join([theme_css(), _asset("annotate.css")]), _asset("annotate.js")
    policy = content_policy(style=style, script=script) + "; connect-src 'self'"
    data = {
        "sizes": session.sizes,
        "boundaries": [session.boundary(n) for n in numbers],
        "labels": [kept.get(n) for n in numbers],
        "classes": [{"key": c.key, "name": c.name, "title": c.title} for c in CLASSES],
    }
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    page = environment.from_string(_asset("annotate.html.j2")).render(
        annotator=annotator, count=len(session), classes=CLASSES, policy=policy,
        style=Markup(style), script=Markup(script), island=Markup(island(data)),
    )  # fmt: skip
    return page.encode("utf-8"), policy


@dataclass(frozen=True)
class _Answer:
    """What a request gets."""

    kind: str
    body: bytes
    policy: str = "default-src 'none'"


class _Refused(Exception):
    """A request that gets no answer but a status and a word."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class _Handler(BaseHTTPRequestHandler):
    """One request: checked, answered, the connection closed."""

    timeout = PATIENCE
    server_version, sys_version = "headscope", ""

    @property
    def place(self) -> AnnotationServer:
        """The server, as what it is."""
        return cast("AnnotationServer", self.server)

    def do_GET(self) -> None:
        """The page, or a map."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """A label, or its undoing."""
        self._answer(self._post)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are nothing to tell of."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class cannot make sense of."""
        self._send(code, _Answer(PLAIN, b"not understood\n"))

    def _answer(self, work: Callable[[], _Answer]) -> None:
        status = 200
        try:
            answer = work()
        except _Refused as refused:
            status, answer = refused.status, _Answer(PLAIN, f"{refused.why}\n".encode())
        except (HeadscopeError, OSError) as error:  # damaged labels, a full disk
            status, answer = 500, _Answer(PLAIN, f"{error}\n".encode("utf-8", "backslashreplace"))
        self._send(status, answer)

    def _send(self, status: int, answer: _Answer) -> None:
        self.close_connection = True
        self.send_response(status)
        length = {"Content-Type": answer.kind, "Content-Length": str(len(answer.body))}
        policy = {"Content-Security-Policy": f"{answer.policy}; frame-ancestors 'none'"}
        for name, value in {**HEADERS, **policy, **length}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def _asked(self) -> str:
        """What is asked for, below the secret; raises _Refused for who may not ask."""
        hosts = self.place.hosts
        if self.headers.get_all("Host", []) not in ([hosts[0]], [hosts[1]]):
            raise _Refused(403, "this server has another name")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in hosts]:
            raise _Refused(403, "another page may not ask")
        _, _, below = self.path.partition("/")
        secret, slash, asked = below.partition("/")
        if not (slash and secrets.compare_digest(secret.encode(), self.place.secret.encode())):
            raise _Refused(404, "wrong address: open the one that headscope printed last")
        return asked

    def _get(self) -> _Answer:
        asked, place = self._asked(), self.place
        if asked == "":
            page, policy = annotation_page(place.session, place.annotator)
            return _Answer("text/html; charset=utf-8", page, policy)
        number = re.fullmatch("maps/([0-9]{1,9})", asked)
        if number is None or int(number[1]) >= len(place.session):
            raise _Refused(404, "there is no such map")
        shown = picture(place.session.map(int(number[1])))
        return _Answer("application/octet-stream", shown.tobytes())

    def _post(self) -> _Answer:
        asked, place = self._asked(), self.place
        work = {"label": place.label, "undo": place.undo}.get(asked)
        if work is None:
            raise _Refused(404, "there is nothing to write there")
        given = self._json()
        with place.lock:
            try:
                answer = work(given)
            except InputError as error:
                raise _Refused(400, str(error)) from error
        return _Answer("application/json", json.dumps(answer).encode())

    def _json(self) -> dict[str, Any]:
        if self.headers.get_content_type() != "application/json":
            raise _Refused(415, "wanted application/json")
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,9}", length) or "Transfer-Encoding" in self.headers:
            raise _Refused(411, "wanted a Content-Length")
        if int(length) > LARGEST_BODY:
            raise _Refused(413, f"wanted at most {LARGEST_BODY} bytes")
        try:
            given = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise _Refused(400, "wanted a JSON object")
        return given


def _asset(name: str) -> str:
    return (resources.files("headscope.experiments.map_classifier") / "assets" / name).read_text(
        encoding="utf-8"
    )
