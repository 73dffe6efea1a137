"""Lets in who has the token, by the right name, from the page itself; everybody else is told how.

A page elsewhere can have its name point to this machine (DNS rebinding), so the name in Host must
be ours; and it can send a browser here, so Origin must be that of the page. The token comes once in
the address and then in a cookie that scripts cannot read; the address goes on without it.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headscope.page.shell import render_page, style_of, template

TOKEN = "token"
HEADER = "x-headscope-token"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SAFE = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
NOBODY = "default-src 'none'; frame-ancestors 'none'"  # of what is no page
PACKAGES = "headscope.serve", "headscope.report"
STRANGER = (
    "This link does not open this server",
    "Its token is missing, or belongs to a server that has ended: every start makes a new one.",
    "Go to the terminal where headscope serve runs, and open the address that it printed last; it "
    "ends in ?token=… To see again what a saved link showed, put what stands behind # in it at the "
    "end of that address.",
)


def refusal(status: int, found: str, wanted: str, do: str) -> JSONResponse:
    """What was found, what was wanted, what to do."""
    told = {"error": f"{found}; wanted {wanted}: {do}", "found": found, "wanted": wanted, "do": do}
    return JSONResponse(told, status)


def names_of(host: str) -> frozenset[str]:
    """By which names a browser may reach a server that listens on `host`, an address or a name."""
    names = {*LOOPBACK, host.lower(), f"[{host.lower()}]"}
    if host not in LOOPBACK:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return frozenset(names)


class Guard:
    """What stands before the application: Host, Origin, token; and the headers of every answer.

    token   that the address holds; None: a new one
    host    that the server listens on
    port    of the cookie's name, so that two servers of one machine do not share one
    """

    def __init__(self, app: ASGIApp, *, host: str, port: int, token: str | None = None) -> None:
        self.app, self.names = app, names_of(host)
        self.everywhere = host not in LOOPBACK
        self.token = token or secrets.token_urlsafe(24)
        self.cookie = f"headscope-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or hands it on."""
        if scope["type"] == "websocket":  # there is none here, of whatever origin
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE.items():
                    headers.setdefault(name, value)
                headers.setdefault("Content-Security-Policy", NOBODY)
            await send(message)

        answer = self.answer(scope)
        await (self.app if answer is None else answer)(scope, receive, safely)

    def answer(self, scope: Mapping[str, Any]) -> Response | None:
        """What to answer at once; None for a request that is let in."""
        headers = Headers(scope=dict(scope))
        named = headers.getlist("host")
        if len(named) != 1 or not self._ours(named[0]):
            return refusal(
                403, f"the name {', '.join(named)[:80]!r} of this server", "the one it was given",
                "open the address that headscope printed",
            )  # fmt: skip
        own = {f"{scheme}://{named[0]}" for scheme in ("http", "https")}
        if not set(headers.getlist("origin")) <= own:
            return refusal(
                403, "a request of another page", "one of the page of this server",
                "open the address that headscope printed",
            )  # fmt: skip
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in asked if name == TOKEN]
        if given and scope["method"] in ("GET", "HEAD") and self._right(given[-1]):
            return self._welcome(scope, [pair for pair in asked if pair[0] != TOKEN])
        if not given and (self._right(headers.get(HEADER)) or self._right(self._kept(headers))):
            return None
        return self._stranger(headers)

    def _ours(self, named: str) -> bool:
        """Whether a Host is one of our names, or of a server on all addresses a bare address.

        The port may be another: that of a tunnel.
        """
        name = named.lower()
        if ":" in name.rpartition("]")[2]:
            name, _, port = name.rpartition(":")
            if not port.isdecimal():
                return False
        if name in self.names:
            return True
        if not self.everywhere:
            return False
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True

    def _right(self, given: str | None) -> bool:
        return given is not None and secrets.compare_digest(given.encode(), self.token.encode())

    def _kept(self, headers: Headers) -> str | None:
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return None
        return None if kept is None else kept.value

    def _welcome(self, scope: Mapping[str, Any], rest: list[tuple[str, str]]) -> Response:
        """The same address without the token, which is kept in a cookie."""
        place = quote(scope["path"]) + (f"?{urlencode(rest)}" if rest else "")
        # `//elsewhere` would lead to another server
        answer = RedirectResponse("/" + place.lstrip("/"), 303)
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="lax")
        return answer

    def _stranger(self, headers: Headers) -> Response:
        """Who has no token, or one of another server, is told where the right one is."""
        if "text/html" not in headers.get("accept", ""):
            return refusal(
                403, "no token, or one of another server", "the one of this server",
                "open the address that headscope printed last",
            )  # fmt: skip
        return HTMLResponse(notice(*STRANGER), 403)


def notice(title: str, *lines: str, back: str = "") -> str:
    """A page of a few words.

    back  address of the live page; "" where no link leads there
    """
    return render_page(
        template("notice.html.j2", *PACKAGES), style=style_of("report.css", "card.css"),
        title=title, lines=lines, back=back,
    )  # fmt: skip
