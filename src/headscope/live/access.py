"""Lets in who has the token, by the right name, from the page itself; everybody else gets
instructions.

A page elsewhere can have its name point to this machine (DNS rebinding), so the name in Host must
be ours; and it can send a browser here, so Origin must be that of the page. The token is the first
part of every address, /TOKEN/…, as all links and requests of our pages are relative: a cookie would
go to whatever else listens on this machine, on any port.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headscope.live.refusals import refusal
from headscope.page.shell import render_page, style_of, template

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
SAFE = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
NOBODY = "default-src 'none'; frame-ancestors 'none'"  # of what is no page
OWN = "frame-ancestors 'none'"  # of a page that holds its policy
OPEN = "open the address that headscope printed"
PACKAGES = "headscope.live", "headscope.report"
STRANGER = (
    "This link does not open this server",
    "Its token is missing, or belongs to a server that has ended: every start makes a new one.",
    "Go to the terminal where headscope runs, and open the address that it printed last; to "
    "see again what a saved link showed, put what stands behind # in it at the end of the address.",
)


class Guard:
    """Middleware that checks Host, Origin and token, and sets the headers of every answer.

    token    that the address holds; None: a new one
    host     that the server listens on
    proxied  whether a proxy, such as a notebook's, stands between: it may put its own name into
             Host, and the token alone lets in
    """

    def __init__(
        self, app: ASGIApp, *, host: str, token: str | None = None, proxied: bool = False
    ) -> None:
        self.app, self.everywhere, self.proxied = app, host not in LOOPBACK, proxied
        names = (host, f"[{host}]", socket.gethostname(), socket.getfqdn())
        self.names = {*LOOPBACK, *(map(str.lower, names) if self.everywhere else ())}
        self.token = token or secrets.token_urlsafe(24)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request itself, or passes it on."""
        if scope["type"] != "http":  # the application has no web socket, and closes it
            await self.app(scope, receive, send)
            return

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE.items():
                    headers.setdefault(name, value)
                headers.setdefault("Content-Security-Policy", NOBODY)
            await send(message)

        place = {**scope, "root_path": f"/{self.token}"}  # below which the routes are
        await (self.refused(scope) or self.app)(place, receive, safely)

    def refused(self, scope: Scope) -> Response | None:
        """Why a request is not allowed; None where it is."""
        headers = Headers(scope=scope)
        if not self.proxied and (refused := self._stranger(headers)):
            return refused
        token, slash, _ = scope["path"].removeprefix("/").partition("/")
        sent = token.encode("utf-8", "surrogatepass")
        if secrets.compare_digest(sent, self.token.encode()) and slash:
            return None
        if "text/html" in headers.get("accept", ""):
            return HTMLResponse(notice(*STRANGER), 403, {"Content-Security-Policy": OWN})
        return refusal(
            403, f"found no token, or one of another server; wanted the one of this: {OPEN} last"
        )

    def _stranger(self, headers: Headers) -> Response | None:
        """Why a request by this name, or of a page from there, is not allowed."""
        named = headers.getlist("host")
        if len(named) != 1 or not self._ours(named[0]):
            host = f"the name {', '.join(named)[:80]!r} of this server"
            return refusal(403, f"found {host}; wanted the one it was given: {OPEN}")
        if not set(headers.getlist("origin")) <= {f"http://{named[0]}", f"https://{named[0]}"}:
            return refusal(403, f"found a request of another page; wanted the server's own: {OPEN}")
        return None

    def _ours(self, named: str) -> bool:
        """Whether a Host is one of our names; for a server on all addresses, any bare address.

        The port may be another: that of a tunnel.
        """
        name = named.lower()
        if ":" in name.rpartition("]")[2]:
            name, _, port = name.rpartition(":")
            if not port.isdecimal():
                return False
        if name in self.names or not self.everywhere:
            return name in self.names
        try:
            return bool(ipaddress.ip_address(name.strip("[]")))
        except ValueError:
            return False


def notice(title: str, *lines: str, back: str = "") -> str:
    """A page of a few words.

    back  address of the live page; "" where no link leads there
    """
    return render_page(
        template("notice.html.j2", *PACKAGES),
        style=style_of("report.css", "card.css"),
        title=title,
        lines=lines,
        back=back,
    )
