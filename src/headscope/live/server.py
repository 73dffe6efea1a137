"""Starts the server of a page: a port that is free, and a clean end."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from types import FrameType
from typing import Any
from urllib.parse import quote

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from headscope.errors import InputError
from headscope.live.access import LOOPBACK, Guard

PORTS_TRIED, MOST_CONNECTIONS = 20, 256
SECONDS_TO_ASK = 10.0  # from the first byte of a request, or the connection, to the last byte
SECONDS_TO_END = 2
TURNS_OF_ACCEPTING = 3  # of the event loop, from a new socket to a connection that uvicorn knows


def bound(host: str, port: int) -> socket.socket:
    """A socket on the port, or on the next free one.

    port    0 for any
    raises  InputError for a host that is not here, a port that may not be used, or where none is
            free
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for at in range(port, min(port + PORTS_TRIED, 65536)) if port else [0]:
        own = socket.socket(family, socket.SOCK_STREAM)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            own.bind((host, at))
            own.listen(MOST_CONNECTIONS)
        except OSError as error:
            own.close()
            if error.errno != errno.EADDRINUSE:
                raise InputError(
                    f"cannot listen on {host}, port {at} ({error.strerror or error}); wanted an "
                    "address of this machine and a port above 1023: give --host and --port"
                ) from error
        else:
            return own
    raise InputError(
        f"the ports {port} to {port + PORTS_TRIED - 1} are in use; wanted one that is free: give "
        "another --port, or 0 for any"
    )


class Application:
    """What a server serves. By default nothing works beside it."""

    def starlette(self) -> Starlette:
        """The routes, without access control."""
        raise NotImplementedError

    def start(self) -> None:
        """Called before the first request."""

    def end(self) -> None:
        """Called when the server stops listening: who waits is answered now."""

    def close(self) -> None:
        """Called when the server has ended."""


class _Connection(H11Protocol):
    """A connection whose requests have to be whole in time, and that makes room for others.

    uvicorn by itself waits for the first request for ever, and answers nobody where too many are
    connected. Here the connection that has waited longest for a whole request is closed instead:
    who asks at once is always answered, and so are those whose request is being worked on.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait; where there are too many, close one that waits."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._limit()
        if len(self.connections) > MOST_CONNECTIONS:
            every: list[Any] = list(self.connections)
            waiting = (one for one in every if not one.busy)
            oldest = min(waiting, key=lambda one: one._since)  # this one, if all others are busy
            self.connections.discard(oldest)
            oldest.transport.abort()

    @property
    def busy(self) -> bool:
        """Whether a whole request is here that is not answered yet."""
        cycle = self.cycle
        return cycle is not None and not (cycle.response_complete or cycle.more_body)

    def data_received(self, data: bytes) -> None:
        """Read on; the time stops with the end of the request."""
        if self._deadline is None:
            self._limit()
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._unlimit()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the time, too."""
        self._unlimit()
        super().connection_lost(exc)

    def _limit(self) -> None:
        self._deadline = self.loop.call_later(SECONDS_TO_ASK, self.transport.abort)

    def _unlimit(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None


class _Web(uvicorn.Server):
    """Ends with no connection left open.

    uvicorn by itself forgets who is accepted while it ends, waits for the model, and cancels who
    is slow. Here clients that wait for the model get an answer at once, and slow ones are dropped.
    """

    app: Application

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End by any signal as by Ctrl-C: uvicorn would kill the process once more, uncleaned."""
        self.force_exit, self.should_exit = self.should_exit, True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, let all go, and end."""
        loop = asyncio.get_running_loop()
        for own in (one for server in self.servers for one in server.sockets):
            with suppress(NotImplementedError):  # of a loop that does not poll
                loop.remove_reader(own.fileno())  # a closed server would lose who is accepted
        for _ in range(TURNS_OF_ACCEPTING):
            await asyncio.sleep(0)
        self.app.end()
        slow = loop.call_later(SECONDS_TO_END, self._let_go)
        await super().shutdown(sockets)
        slow.cancel()
        self._let_go()
        await asyncio.sleep(0)  # in which their sockets are closed

    def _let_go(self) -> None:
        for connection in self.server_state.connections:
            connection.transport.abort()


class LiveServer:
    """A page on a port of its own.

    app     what is served
    own     the socket, from `bound`
    host    that it listens on
    token   that lets in; None: a new one
    proxied whether browsers come through a proxy, by any name
    """

    def __init__(
        self,
        app: Application,
        own: socket.socket,
        *,
        host: str = LOOPBACK[0],
        token: str | None = None,
        proxied: bool = False,
    ) -> None:
        self.app, self.own, self.host = app, own, host
        self.port = int(own.getsockname()[1])
        self.guard = Guard(app.starlette(), host=host, token=token, proxied=proxied)
        self.web = _Web(
            uvicorn.Config(
                self.guard,
                log_config=None,
                access_log=False,
                ws="none",
                http=_Connection,
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=2 * SECONDS_TO_END,
                backlog=MOST_CONNECTIONS // 2,  # that are accepted in one turn
            )
        )
        self.web.app = app

    @property
    def address(self) -> str:
        """What to open; it holds the token."""
        name = {"0.0.0.0": LOOPBACK[0], "::": "::1"}.get(self.host, self.host)
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}{self.place}"

    @property
    def place(self) -> str:
        """The part of the address that lets in."""
        return f"/{quote(self.guard.token, safe='')}/"

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serves until Ctrl-C.

        ready  called before the first request is answered; the port takes connections already
        """
        self.app.start()
        with suppress(KeyboardInterrupt), closing(self.app):
            ready()
            self.web.run(sockets=[self.own])

    @contextmanager
    def in_thread(self) -> Iterator[LiveServer]:
        """Inside the context it serves from a thread of its own."""
        thread = threading.Thread(target=self.run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.web.should_exit = True
            thread.join()
