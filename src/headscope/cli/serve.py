"""`headscope serve`: a live page of a model, or of a run and its model."""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from typing import Annotated

import click

from headscope.cli.options import ModelOptions, json_flag
from headscope.cli.terminal_output import complain, say, tell
from headscope.cli.typed_command import Options, argument, flag, group, option, typed_command
from headscope.errors import HeadscopeError

INSTALL = "pip install 'headscope[serve]'"
USUAL_PORT, USUAL_HOST = 8899, "127.0.0.1"


class _ServeOptions(Options):
    what: str = argument(default="demo", metavar="[MODEL | RUN]")
    text: str | None = option("The text that the page opens with.")
    text_b: str | None = option("The second text, or what a decoder reads.")
    longest: Annotated[int, click.IntRange(1, 512)] = option("Tokens of a text at most.", 256)
    port: Annotated[int, click.IntRange(0, 65535)] = option(
        "Port; the next one that is free, if it is in use; 0 for any.", USUAL_PORT
    )
    host: str = option("Address to listen on; by default only this machine can reach the page.",
                       USUAL_HOST)  # fmt: skip
    clients: Annotated[int, click.IntRange(1, 1000)] = option("Pages that may wait at once.", 32)
    no_browser: bool = flag("Only print the address of the page.")
    loading: ModelOptions = group()
    as_json: bool = json_flag("The address as JSON on stdout.")


@typed_command("serve", _ServeOptions)
def serve_command(given: _ServeOptions) -> None:
    """Serve a page to type in: every head of MODEL, live; switch heads off, and see what changes.

    Of a run folder RUN its report and pages are served too, and its model is the one to type into.
    Nothing is written; Ctrl-C ends it.

    \b
    headscope serve demo
    headscope serve gpt2 --text "When Mary and John went to the store, John gave a drink to"
    headscope serve run
    """
    if missing := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        raise HeadscopeError(
            f"headscope serve needs {' and '.join(missing)}, not installed here\n{INSTALL}"
        )
    from headscope.serve.access import LOOPBACK
    from headscope.serve.server import LiveServer, bound
    from headscope.serve.start import is_run, live_app

    if not is_run(given.what):
        from headscope.model.request import refuse_place

        refuse_place(given.what)
    own = bound(given.host, given.port)
    app = live_app(
        given.what, longest=given.longest, text=given.text, pair=given.text_b or "",
        clients=given.clients, **asdict(given.loading),
    )  # fmt: skip
    server = LiveServer(app, own, host=given.host)
    if given.port not in (0, server.port):
        complain(f"port {given.port} is in use: {server.port} is taken instead")
    if given.host not in LOOPBACK:
        complain(
            f"--host {given.host}: whoever reaches this machine and has the address can use the "
            "page, and it is not encrypted"
        )
    if app.absent:
        complain(app.absent)

    def ready() -> None:
        lines = [f"live page: {server.address}", "Ctrl-C ends it; nothing is written"]
        tell(lines, {"address": server.address} if given.as_json else None)
        if not given.no_browser:
            click.launch(server.address)

    server.run(ready)
    if not given.as_json:
        say("ended")
