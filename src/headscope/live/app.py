"""The application of the live page: its page, what it asks of the model, and a run's pages."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from headscope.errors import HeadscopeError, InputError, memory_told
from headscope.live.answers import Labels, answer, head_answer
from headscope.live.live_page import LivePage
from headscope.live.refusals import BYTES, GONE, HANDLERS, refusal
from headscope.live.requests import head_request, json_bytes, read_request, score_request
from headscope.live.run_pages import RunPages
from headscope.live.server import Application
from headscope.live.waiting import Ticket, WaitingLine
from headscope.run.manifest_file import is_run

if TYPE_CHECKING:
    from headscope.live.live_model import LiveModel
    from headscope.model.model import Model

MOST_BYTES = 96_000  # of a request: 20,000 characters of any script, and changes
PAGE_ID = re.compile("[A-Za-z0-9-]{1,64}")
SHORTER = "wanted a shorter text, or a model in --dtype bfloat16"
Asked = TypeVar("Asked")


@dataclass(frozen=True, eq=False)
class LiveApp(Application):
    """The application of the live page.

    line    of requests to the model
    model   None where it could not be loaded: `absent` says why
    labels  [layer][head] what heads do, of a run; None: what they do in a text
    pages   of a run; None where none is served
    """

    line: WaitingLine
    model: LiveModel | None
    page: LivePage
    labels: Labels | None = None
    pages: RunPages | None = None
    absent: str = ""

    def starlette(self) -> Starlette:
        """The routes, without access control."""
        routes = [
            Route("/", self.live),
            Route("/read", self.read, methods=["POST"]),
            Route("/head", self.head, methods=["POST"]),
            Route("/score", self.score, methods=["POST"]),
        ]
        if self.pages is not None:
            routes.append(Route("/run/{name:path}", self.of_run))
        return Starlette(routes=routes, exception_handlers=HANDLERS)

    def start(self) -> None:
        """Begin to work for the model."""
        self.line.start()

    def end(self) -> None:
        """Answer all who wait for the model."""
        self.line.end()

    def close(self) -> None:
        """Wait for the thread of the model, and remove the drawn pages."""
        self.line.close()
        if self.pages is not None:
            self.pages.close()

    async def live(self, _: Request) -> Response:
        """The page."""
        page, policy = self.page.html
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    async def read(self, request: Request) -> Response:
        """What the model does with a text; an older text of the same page is dropped."""
        client, query, model = *await _given(request, read_request), self._there

        def work(ticket: Ticket) -> bytes:
            with memory_told(SHORTER):
                return answer(model.read(query, ticket.check), self.labels)

        return await self._wait(request, self.line.put(client, "read", work, renews=True))

    async def head(self, request: Request) -> Response:
        """A head's exact weights and vectors."""
        client, query, model = *await _given(request, head_request), self._there

        def work(ticket: Ticket) -> bytes:
            with memory_told(SHORTER):
                reader = model.untrained if query.untrained else model
                return head_answer(reader.read(query.text, ticket.check).shown, query)

        return await self._wait(
            request, self.line.put(client, f"head {query.place} {query.untrained}", work)
        )

    async def score(self, request: Request) -> Response:
        """What wrote the query and the key of one score; an older one of the page is dropped."""
        client, query, model = *await _given(request, score_request), self._there

        def work(ticket: Ticket) -> bytes:
            with memory_told(SHORTER):
                return json.dumps(model.writers(query, ticket.check), allow_nan=False).encode()

        return await self._wait(request, self.line.put(client, "score", work, renews=True))

    @property
    def _there(self) -> LiveModel:
        if self.model is None:
            raise HeadscopeError(self.absent)
        return self.model

    async def _wait(self, request: Request, ticket: Ticket) -> Response:
        """Wait for the answer; the work of a client that has gone is dropped."""
        answered = asyncio.wrap_future(ticket.answer)
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait({answered, gone}, return_when=asyncio.FIRST_COMPLETED)
            if answered.done():
                return Response(answered.result(), media_type=BYTES)
            return Response(status_code=GONE)
        finally:
            gone.cancel()
            if not answered.done():
                self.line.leave(ticket)
                answered.add_done_callback(lambda one: one.cancelled() or one.exception())

    def of_run(self, request: Request) -> Response:
        """A page or a file of the run."""
        assert self.pages is not None
        page = self.pages.get(request.path_params["name"])
        if page is None:
            name = request.path_params["name"][:80]
            return refusal(
                404, f"found no {name!r} of this run; wanted one of its pages: go to /run/"
            )
        policy = {"Content-Security-Policy": page.policy}
        return Response(page.content, media_type=page.kind, headers=policy)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _given(request: Request, read: Callable[[bytes], Asked]) -> tuple[str, Asked]:
    """The client of a request, and its content."""
    page = request.headers.get("x-headscope-page", "")
    if not PAGE_ID.fullmatch(page):
        raise InputError(f"found the page {page[:40]!r}; wanted a name of letters and digits")
    return page, read(await json_bytes(request, MOST_BYTES))


# --- of a model, or of a run and its model ---------------------------------------------------

NO_MODEL: dict[str, Any] = {
    "name": "no model",
    "size": "",
    "answers": "vectors",
    "longest": 0,
    "decodes": False,
    "pairs": False,
    "changes": False,
    "mask": None,
}


def live_app(
    what: str | Model,
    *,
    longest: int,
    text: str | None = None,
    pair: str = "",
    clients: int = 32,
    framed: bool = False,
    **loading: Any,
) -> LiveApp:
    """The application for a model, or for a run's pages and its model.

    what     a model or its name, or a run folder
    longest  tokens of a text at most
    text     that the page opens with, and its second text
    clients  that may wait at once
    framed   as `LivePage` has it
    loading  as `open_model` has it
    raises   ModelError for a model that cannot be loaded; of a run, its pages are served without
    """
    line = WaitingLine(clients)
    if not isinstance(what, str) or not is_run(what):
        model = _model(what, longest, loading)
        return LiveApp(line, model, LivePage(model.about, text, pair, framed=framed))
    pages = RunPages(Path(what))
    named, absent, of_run = pages.model, "", None
    try:
        revision = loading["revision"] or named.get("revision") or None
        of_run = _model(str(named.get("name", "")), longest, loading | {"revision": revision})
        if of_run.model.sha256 != named.get("sha256"):
            absent = (
                f"The model {named['name']!r} has other weights by now than when the run was made: "
                "what is typed here is read with other weights than the report tells of."
            )
    except HeadscopeError as error:
        absent = f"The run's model cannot be loaded, its pages can be read: {error}"
    about = of_run.about if of_run else NO_MODEL
    page = LivePage(about, text, pair, run=True, absent=absent, framed=framed)
    return LiveApp(line, of_run, page, None if absent else pages.labels(), pages, absent)


def _model(what: str | Model, longest: int, loading: dict[str, Any]) -> LiveModel:
    from headscope.live.live_model import LiveModel
    from headscope.live.open_model import open_again, open_model

    opened = open_model(what, **loading) if isinstance(what, str) else open_again(what)
    return LiveModel(opened, longest=longest)
