"""Serves the maps of a labelling session to annotators, in a browser or as sheets.

The server is for one annotator and this machine alone. Its address holds a secret; requests that
name another host (a page elsewhere that had its name point here) or another origin are refused, and
only JSON is taken. It gives out one page and the maps, no file; the page may ask nothing of any
other server. A request has to be whole in time, and where too many are not, the oldest is let go.
"""

import json
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.analyses.patterns import CLASSES
from headscope.analyses.patterns.classes import NAMES, PUNCTUATION, SPECIAL, Kinds
from headscope.core.whole_file import clear_drafts, held
from headscope.draw.saving import save_picture
from headscope.draw.style import color, house_style, ramp_map
from headscope.errors import HeadscopeError, InputError
from headscope.experiments.map_classifier.annotation_session import Map, Session
from headscope.page.shell import asset, content_policy, island, style_of, template

HOST = "127.0.0.1"
LARGEST_BODY = 1000  # bytes; a label takes fewer than 60
MOST_WAITING, SECONDS_TO_ASK = 64, 10.0  # connections without a whole request, and for how long
PATIENCE = 30  # seconds in which an answer is taken
INSTEAD = "go on in its page, end it, or give another --annotator"
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
    raises  InputError for a port that is taken; RunFolderError where another one serves the
            annotator
    """

    daemon_threads = True

    def __init__(self, session: Session, annotator: str, *, port: int = 0) -> None:
        self.session, self.annotator = session, annotator
        session.labels(annotator)  # raises for a name or a file that will not do
        self.secret, self.lock = secrets.token_urlsafe(24), threading.Lock()
        self.waiting = dict[Any, float]()  # connections without a whole request, and since when
        with ExitStack() as stack:
            stack.enter_context(held(session.label_file(annotator), instead=INSTEAD))
            try:
                super().__init__((HOST, port), _Handler)
            except (OSError, OverflowError) as error:
                message = f"cannot serve on port {port} ({error}); give another --port"
                raise InputError(message) from error
            self.held = stack.pop_all()

    def server_close(self) -> None:
        """Let go of the port and of the annotator's labels."""
        super().server_close()
        if hasattr(self, "held"):  # not where the port was refused
            self.held.close()

    @property
    def address(self) -> str:
        """What to open; it holds the secret."""
        return f"http://{HOST}:{self.server_port}/{self.secret}/"

    @property
    def hosts(self) -> tuple[str, str]:
        """By which names a browser may reach it."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer it in a thread of its own; the oldest of too many that wait is let go."""
        self.waiting[request] = time.monotonic()
        self._let_go(list(self.waiting)[:-MOST_WAITING])
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Let go of those whose request is not whole in time; called twice a second."""
        past = time.monotonic() - SECONDS_TO_ASK
        self._let_go([one for one, since in list(self.waiting.items()) if since < past])

    def _let_go(self, connections: Sequence[Any]) -> None:
        for one in connections:
            if self.waiting.pop(one, None) is not None:
                with suppress(OSError):  # it went away by itself
                    one.shutdown(socket.SHUT_RDWR)  # its thread ends

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, whatever came of it."""
        self.waiting.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no news."""

    def label(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """{"number", "label"} is kept before this returns."""
        number, label = request.get("number"), request.get("label")
        if type(number) is not int or label not in NAMES:
            raise InputError("found no label; wanted a number and one of the classes")
        self.session.label(self.annotator, number, label)
        return {"number": number, "label": label}

    def undo(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """{"number"} of the map whose label was taken back; None where there was none."""
        return {"number": self.session.undo(self.annotator)}


def shades(weights: Map) -> npt.NDArray[np.float32]:
    """[query, key] square root of the share of the largest weight."""
    wide = weights.astype(np.float32)
    roots: npt.NDArray[np.float32] = np.sqrt(wide.clip(0) / (float(wide.max()) or 1.0))
    return roots


def picture(weights: Map) -> npt.NDArray[np.uint8]:
    """[query, key] the same from 0 to 255."""
    return (shades(weights) * 255).round().astype(np.uint8)


def annotation_page(session: Session, annotator: str) -> tuple[bytes, str]:
    """The page and its policy; it holds no word of what the maps are of.

    raises  InputError if the labels so far cannot be read
    """
    kept = session.labels(annotator)
    package = __package__ or ""
    style, script = style_of("annotate.css", package=package), asset("annotate.js", package)
    policy = content_policy(style=style, script=script) + "; connect-src 'self'"
    data = {
        "sizes": session.sizes,
        "boundaries": [session.boundary(n) for n in range(len(session))],
        "kinds": [
            [] if (kinds := session.kinds(n)) is None else kinds.tolist()
            for n in range(len(session))
        ],
        "labels": [kept.get(n) for n in range(len(session))],
        "classes": [{"key": c.key, "name": c.name, "title": c.title} for c in CLASSES],
    }
    page = template("annotate.html.j2", package).render(
        annotator=annotator,
        count=len(session),
        classes=CLASSES,
        policy=policy,
        style=Markup(style),
        script=Markup(script),
        island=island(data),
    )
    return page.encode("utf-8"), policy


@dataclass(frozen=True)
class _Answer:
    kind: str
    body: bytes
    policy: str = "default-src 'none'"


@dataclass(eq=False)
class _Refused(Exception):
    """A request that gets no answer but a status and a word."""

    status: int
    why: str


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE
    server_version, sys_version = "headscope", ""

    @property
    def place(self) -> AnnotationServer:
        return cast("AnnotationServer", self.server)

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are nothing to tell of."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
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
        self.place.waiting.pop(self.connection, None)
        self.close_connection = True
        self.send_response(status)
        length = {"Content-Type": answer.kind, "Content-Length": str(len(answer.body))}
        policy = {"Content-Security-Policy": f"{answer.policy}; frame-ancestors 'none'"}
        for header in (HEADERS | policy | length).items():
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(answer.body)

    def _asked(self) -> str:
        """What is asked for, below the secret; raises _Refused for who may not ask."""
        hosts = self.place.hosts
        if self.headers.get_all("Host", []) not in ([hosts[0]], [hosts[1]]):
            raise _Refused(403, "this server has another name")
        if self.headers.get("Origin") not in (None, *(f"http://{host}" for host in hosts)):
            raise _Refused(403, "another page may not ask")
        secret, slash, page = self.path.partition("/")[2].partition("/")
        if not (slash and secrets.compare_digest(secret.encode(), self.place.secret.encode())):
            raise _Refused(404, "wrong address: open the one that headscope printed last")
        return page

    def _get(self) -> _Answer:
        page, place = self._asked(), self.place
        if page == "":
            return _Answer(
                "text/html; charset=utf-8", *annotation_page(place.session, place.annotator)
            )
        number = re.fullmatch("maps/([0-9]{1,9})", page)
        if number is None or int(number[1]) >= len(place.session):
            raise _Refused(404, "there is no such map")
        shown = picture(place.session.map(int(number[1]))).tobytes()
        return _Answer("application/octet-stream", shown)

    def _post(self) -> _Answer:
        page, place = self._asked(), self.place
        work = {"label": place.label, "undo": place.undo}.get(page)
        if work is None:
            raise _Refused(404, "there is nothing to write there")
        request = self._json()
        with place.lock:
            try:
                answer = work(request)
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
            value = json.loads(self.rfile.read(int(length)))
            self.place.waiting.pop(self.connection, None)  # before it is worked on
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise _Refused(400, "wanted a JSON object")
        return value


# --- sheets, to be labelled away from a screen ------------------------------------------------

ROWS, COLUMNS = 4, 5
MARKED = {SPECIAL: "vermillion", PUNCTUATION: "blue"}
MARKS_TOLD = "red: special tokens     blue: punctuation     black: the second sentence begins"
PER_SHEET = ROWS * COLUMNS


def write_sheets(session: Session) -> list[Path]:
    """All maps of a session as SESSION/sheets/NNNN.png, each named after its first map."""
    files: list[Path] = []
    folder = session.folder / "sheets"
    with held(folder):
        clear_drafts(folder)
        for first in range(0, len(session), PER_SHEET):
            numbers = range(len(session))[first : first + PER_SHEET]
            boundaries = [session.boundary(number) for number in numbers]
            kinds = [session.kinds(number) for number in numbers]
            maps = [session.map(number) for number in numbers]
            figure = sheet(maps, boundaries, first=first, kinds=kinds)
            files.append(save_picture(figure, folder / f"{first:04d}.png"))
    return files


def sheet(
    maps: Sequence[Map],
    boundaries: Sequence[int],
    *,
    first: int,
    kinds: Sequence[Kinds | None] | None = None,
) -> Figure:
    """At most PER_SHEET numbered maps, by the square root of each map's own largest weight.

    Nothing says which model, layer or head it is. Ticks mark where a second segment begins,
    coloured ones the rows and columns of special tokens and of punctuation.

    boundaries  the first token of the second segment; -1 for none
    first       the number of the first map
    kinds       [map] of each token, see `map_features`; None where it is not known
    """
    with house_style():
        figure = Figure(figsize=(10, 8.8), layout="constrained")
        grid = figure.subplots(ROWS, COLUMNS)
        for number, axes in enumerate(grid.flat):
            if number < len(maps):
                _show(axes, maps[number], boundaries[number], str(first + number))
                _mark(axes, kinds[number] if kinds else None)
            else:
                axes.axis("off")
        key = "     ".join(f"{c.key}  {c.title}" for c in CLASSES)
        if kinds:
            key += f"\n{MARKS_TOLD}"
        figure.supxlabel(key, fontsize=9, color=color("muted"))
    return figure


def _show(axes: Axes, kept: Map, boundary: int, name: str) -> None:
    axes.imshow(shades(kept), cmap=ramp_map(), vmin=0, vmax=1, interpolation="none")
    axes.set_title(name, fontsize=11, loc="left")
    for side in axes.spines.values():
        side.set(visible=True, linewidth=0.4, color=color("grey"))
    edge = [boundary - 0.5] if boundary > 0 else []
    axes.set_xticks(edge, [""] * len(edge))
    axes.set_yticks(edge, [""] * len(edge))
    axes.tick_params(length=5, width=1, color=color("ink"), top=True, right=True)


def _mark(axes: Axes, kinds: Kinds | None) -> None:
    """Coloured ticks outside the frame, above and to the left, at marked tokens."""
    for kind, name in MARKED.items():
        for place in np.flatnonzero(kinds == kind) if kinds is not None else ():
            edges, beyond = (place - 0.5, place + 0.5), -0.5 - 0.025 * axes.get_xlim()[1]
            for x, y in ((edges, (beyond, beyond)), ((beyond, beyond), edges)):
                axes.plot(
                    x,
                    y,
                    color=color(name),
                    lw=2.5,
                    clip_on=False,
                    solid_capstyle="butt",
                    scalex=False,
                    scaley=False,
                )
