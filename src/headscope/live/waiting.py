"""Decides what the one worker computes next: each client's newest requests, clients in turn.

A client's newer request drops an older one of the same kind that still waits, and tells one that
runs to stop. So typing on never queues old texts, and nobody waits for more than one request of
each other client. Nothing here knows what a request is about.

One thread works for the model: torch lets others run during its products, what was read needs no
copy, and a pass can be ended between two layers. Several passes at once would take as long in all,
and each of them longer.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from headscope.errors import HeadscopeError

MOST_WAITING = 48  # requests of a client at once: the heads that one look asks for


class DroppedError(HeadscopeError):
    """A request that nobody waits for any more: a newer one came, or the client went away."""


class CrowdedError(HeadscopeError):
    """More clients, or more requests of one, than are served."""


class Ticket:
    """A request that waits, runs, or is done.

    work    is given the ticket, and calls its `check` between layers
    answer  what `work` gave, or what it raised
    """

    def __init__(self, client: str, kind: str, work: Callable[[Ticket], Any]) -> None:
        self.client, self.kind, self.work = client, kind, work
        self.answer: Future[Any] = Future()
        self.dropped = False  # nobody waits for the answer any more

    def check(self) -> None:
        """Raises DroppedError if nobody waits any more."""
        if self.dropped:
            raise DroppedError("a newer request replaced this one")

    def run(self) -> None:
        """Work, and keep the answer or the error; not where its client was let go."""
        if not self.answer.set_running_or_notify_cancel():
            return
        try:
            self.check()
            answer = self.work(self)
        except BaseException as error:  # whatever it is, its client gets it
            self.answer.set_exception(error)
        else:
            self.answer.set_result(answer)


class WaitingLine:
    """The requests of all clients, and the thread that works on them one by one.

    clients  that may wait at once
    """

    def __init__(self, clients: int) -> None:
        self.clients = clients
        self._waiting: OrderedDict[str, dict[str, Ticket]] = OrderedDict()  # the next client first
        self._running: Ticket | None = None
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    def put(
        self, client: str, kind: str, work: Callable[[Ticket], Any], *, renews: bool = False
    ) -> Ticket:
        """Queue a request; its older one of the same kind is dropped.

        renews  all older requests of the client are dropped, of whatever kind: the text is another
        raises  CrowdedError where too many wait
        """
        ticket = Ticket(client, kind, work)
        with self._changed:
            if self._closed:
                raise DroppedError("the server is shutting down; start it again")
            own = self._waiting.get(client)
            if own is None and len(self._waiting) >= self.clients:
                raise CrowdedError(
                    f"found {len(self._waiting)} waiting clients; wanted {self.clients} at most: "
                    "try again in a moment, or start another server"
                )
            own = self._waiting.setdefault(client, {})
            for one in [one for one in own.values() if renews or one.kind == kind]:
                self._discard(one)
            self._waiting.setdefault(client, own)
            if len(own) >= MOST_WAITING:
                raise CrowdedError(
                    f"found {len(own)} waiting requests of one page; wanted {MOST_WAITING} at "
                    "most: try again in a moment"
                )
            running = self._running
            if running and running.client == client and (renews or running.kind == kind):
                running.dropped = True
            own[kind] = ticket
            self._changed.notify()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Drop the request of a client that has gone; a running one is stopped."""
        with self._changed:
            if self._waiting.get(ticket.client, {}).get(ticket.kind) is ticket:
                self._discard(ticket)
            ticket.dropped = True

    def _discard(self, ticket: Ticket) -> None:
        own = self._waiting[ticket.client]
        del own[ticket.kind]
        if not own:
            del self._waiting[ticket.client]
        ticket.dropped = True
        ticket.run()  # does not work any more, and says why

    def take(self) -> Ticket | None:
        """The next request, whose client then comes last; None where nothing waits."""
        with self._changed:
            if not self._waiting:
                return None
            client, own = next(iter(self._waiting.items()))
            ticket = own.pop(next(iter(own)))
            if own:
                self._waiting.move_to_end(client)
            else:
                del self._waiting[client]
            self._running = ticket
            return ticket

    def start(self) -> None:
        """Begin to work, in a thread of its own."""
        self._thread = threading.Thread(target=self._work, name="headscope model", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Drop all that waits and runs; the thread ends after the layer that it is in."""
        with self._changed:
            self._closed = True
            for own in list(self._waiting.values()):
                for ticket in list(own.values()):
                    self._discard(ticket)
            if self._running is not None:
                self._running.dropped = True
            self._changed.notify()

    def close(self) -> None:
        """Likewise, and wait for the thread."""
        self.end()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._running = None
                self._changed.wait_for(lambda: self._closed or self._waiting)
                if self._closed:
                    return
            if (ticket := self.take()) is not None:
                ticket.run()
