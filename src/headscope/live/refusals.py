"""What a client gets for an error: a status, and what was found, what was wanted and what to do."""

from __future__ import annotations

import sys
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from headscope.errors import HeadscopeError, InputError
from headscope.live.requests import AbsentError, LargeError
from headscope.live.waiting import CrowdedError, DroppedError

BYTES = "application/octet-stream"
GONE = 499  # nginx's word for a client that closed; nobody reads it
STATUS: dict[type[HeadscopeError], int] = {
    DroppedError: 409,
    CrowdedError: 503,
    LargeError: 413,
    InputError: 422,
}
UNKNOWN = {
    404: "found no such page; wanted one of this server: go to /",
    405: "found another method; wanted that of the page: open it",
}


def refusal(status: int, message: str, **more: Any) -> JSONResponse:
    """A response that splits a message into what was found, what was wanted and what to do."""
    problem, _, rest = message.partition("; wanted ")
    wanted, _, do = rest.partition(": ")
    answer = {"error": message, "found": problem, "wanted": wanted, "do": do}
    return JSONResponse(answer | more, status)


async def _refused(_: Request, error: Exception) -> Response:
    """Report any error to the client; the server keeps running."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=GONE)
    if isinstance(error, HTTPException):
        return refusal(error.status_code, UNKNOWN.get(error.status_code, str(error.detail)))
    if isinstance(error, (HeadscopeError, OSError)):
        status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 503)
        absent = {"absent": error.absent} if isinstance(error, AbsentError) else {}
        return refusal(status, str(error), **absent)
    message = f"failed with {type(error).__name__}: {str(error)[:200]}"
    print(f"headscope: {message!r}", file=sys.stderr)
    return refusal(500, f"{message}; wanted an answer: report this error of headscope")


# Of a Starlette application.
HANDLERS: dict[Any, Any] = dict.fromkeys(
    (HTTPException, HeadscopeError, OSError, ClientDisconnect, Exception), _refused
)
