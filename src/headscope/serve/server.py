"""Starts the server of the live page: a port that is free, the worker's thread, and a clean end.

One thread works for the model: torch lets others run during its products, what was read needs no
copy, and a pass can be ended between two layers. Several passes at once would take as long in all,
and each of them longer.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from urllib.parse import urlencode

import uvicorn

from headscope.errors import InputError
from headscope.serve.access import LOOPBACK, TOKEN, Guard
from headscope.serve.app import LiveApp
from headscope.serve.waiting import WaitingLine

PORTS_TRIED, MOST_CONNECTIONS = 20, 256
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


class _Web(uvicorn.Server):
    """Ends with no connection left open.

    uvicorn by itself forgets who is accepted while it ends, waits for the model, and cancels who
    is slow. Here clients that wait for the model get an answer at once, and slow ones are dropped.
    """

    line: WaitingLine

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, let all go, and end."""
        loop = asyncio.get_running_loop()
        for own in (one for server in self.servers for one in server.sockets):
            with suppress(NotImplementedError):  # of a loop that does not poll
                loop.remove_reader(own.fileno())  # a closed server would lose who is accepted
        for _ in range(TURNS_OF_ACCEPTING):
            await asyncio.sleep(0)
        self.line.end()
        slow = loop.call_later(SECONDS_TO_END, self._let_go)
        await super().shutdown(sockets)
        slow.cancel()
        self._let_go()
        await asyncio.sleep(0)  # in which their sockets are closed

    def _let_go(self) -> None:
        for connection in self.server_state.connections:
            connection.transport.abort()


class LiveServer:
    """A live page on a port of its own.

    app     what is served
    own     the socket, from `bound`
    host    that it listens on
    token   that lets in; None: a new one
    """

    def __init__(
        self, app: LiveApp, own: socket.socket, *, host: str = LOOPBACK[0], token: str | None = None
    ) -> None:
        self.app, self.own, self.host = app, own, host
        self.port = int(own.getsockname()[1])
        self.guard = Guard(app.starlette(), host=host, port=self.port, token=token)
        self.web = _Web(
            uvicorn.Config(
                self.guard,
                log_config=None,
                access_log=False,
                ws="none",
                http="h11",
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=2 * SECONDS_TO_END,
                limit_concurrency=MOST_CONNECTIONS,
            )
        )
        self.web.line = app.line

    @property
    def address(self) -> str:
        """What to open; it holds the token."""
        name = {"0.0.0.0": LOOPBACK[0], "::": "::1"}.get(self.host, self.host)
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/?{urlencode({TOKEN: self.guard.token})}"

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serves until Ctrl-C.

        ready  called before the first request is answered; the port takes connections already
        """
        self.app.line.start()
        with closing(self.app.line), suppress(KeyboardInterrupt):
            ready()
            self.web.run(sockets=[self.own])

    @contextmanager
    def in_thread(self) -> Iterator[LiveServer]:
        """Inside the context it serves from a thread of its own."""
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield self
        finally:
            self.web.should_exit = True
            thread.join()
