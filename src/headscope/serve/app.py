"""The application of the live page: its page, what it asks of the model, and a run's pages."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from headscope.errors import HeadscopeError, InputError, memory_told
from headscope.serve.access import refusal
from headscope.serve.answers import Labels, answer, head_answer
from headscope.serve.live_page import LivePage
from headscope.serve.requests import head_request, read_request
from headscope.serve.run_pages import RunPages
from headscope.serve.waiting import CrowdedError, DroppedError, Ticket, WaitingLine

if TYPE_CHECKING:
    from headscope.serve.live_model import LiveModel

MOST_BYTES = 96_000  # of a request: 20,000 characters of any script, and changes
PAGE_ID = re.compile("[A-Za-z0-9-]{1,64}")
BYTES = "application/octet-stream"
SHORTER = "wanted a shorter text, or a model in --dtype bfloat16"
GONE = 499  # nginx's word for a client that closed; nobody reads it


@dataclass(frozen=True, eq=False)
class LiveApp:
    """What is served.

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
        """The routes, without anything that guards them."""
        routes = [
            Route("/", self.live), Route("/read", self.read, methods=["POST"]),
            Route("/head", self.head, methods=["POST"]),
        ]  # fmt: skip
        if self.pages is not None:
            routes += [
                Route("/run", lambda _: RedirectResponse("/run/")),
                Route("/run/{name:path}", self.of_run),
            ]
        handlers: Any = {
            HTTPException: _no_such, HeadscopeError: _told, Exception: _ours,
        }  # fmt: skip
        return Starlette(routes=routes, exception_handlers=handlers)

    async def live(self, _: Request) -> Response:
        """The page."""
        page, policy = self.page.html
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    async def read(self, request: Request) -> Response:
        """What the model does with a text; an older text of the same page is dropped."""
        client, body = _client(request), await _body(request)
        asked, model = read_request(body), self._model

        def work(ticket: Ticket) -> bytes:
            with memory_told(SHORTER):
                return answer(model.read(asked, ticket.check), self.labels)

        return await self._wait(request, self.line.put(client, "read", work, renews=True))

    async def head(self, request: Request) -> Response:
        """A head's exact weights and vectors."""
        client, asked = _client(request), head_request(await _body(request))
        model = self._model

        def work(ticket: Ticket) -> bytes:
            with memory_told(SHORTER):
                return head_answer(model.read(asked.text, ticket.check).shown, asked)

        kind = f"head {asked.stack} {asked.layer} {asked.head}"
        return await self._wait(request, self.line.put(client, kind, work))

    @property
    def _model(self) -> LiveModel:
        if self.model is None:
            raise HeadscopeError(self.absent)
        return self.model

    async def _wait(self, request: Request, ticket: Ticket) -> Response:
        """The answer; of a client that has gone nothing is worked on any more."""
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
        found = self.pages.get(request.path_params["name"])
        if found is None:
            return refusal(
                404, f"no {request.path_params['name'][:80]!r} of this run", "one of its pages",
                "go to /run/",
            )  # fmt: skip
        headers = {"Content-Security-Policy": found.policy} if found.policy else None
        return Response(found.content, media_type=found.kind, headers=headers)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _client(request: Request) -> str:
    """Which page asks."""
    given = request.headers.get("x-headscope-page", "")
    if not PAGE_ID.fullmatch(given):
        raise InputError(f"found the page {given[:40]!r}; wanted a name of letters and digits")
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise InputError("found another kind of content; wanted application/json")
    return given


async def _body(request: Request) -> bytes:
    body = b""
    with suppress(StopAsyncIteration):
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                raise HTTPException(413)
    return body


STATUS: dict[type[HeadscopeError], int] = {DroppedError: 409, CrowdedError: 503, InputError: 422}
UNKNOWN: dict[int, tuple[str, str, str]] = {
    404: ("no such page", "one of this server", "go to /"),
    405: ("another method", "that of the page", "open the page, and type"),
    413: ("a larger request", f"{MOST_BYTES:,} bytes at most", "shorten the text"),
}


async def _no_such(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = UNKNOWN.get(error.status_code, (str(error.detail), "another request", "open the page"))
    return refusal(error.status_code, *told)


async def _told(_: Request, error: Exception) -> Response:
    assert isinstance(error, HeadscopeError)
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 503)
    return JSONResponse(in_parts(str(error)), status)


async def _ours(_: Request, error: Exception) -> Response:
    told = f"failed with {type(error).__name__}: {str(error)[:200]}"
    print(f"headscope: {told!r}", file=sys.stderr)
    return refusal(500, told, "an answer", "try another text, and report this error of headscope")


def in_parts(message: str) -> dict[str, str]:
    """What was found, wanted and is to do, of a message that says so in this order."""
    found, _, rest = message.partition("; wanted ")
    wanted, _, do = rest.partition(": ")
    return {"error": message, "found": found, "wanted": wanted, "do": do}
