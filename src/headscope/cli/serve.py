"""`headscope serve`: a live page of a model, or of a run and its model."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import click

from headscope.cli.options import json_flag
from headscope.cli.terminal_output import another_port, complain, in_browser, say, tell
from headscope.cli.typed_command import group, typed_command
from headscope.core.options import Options, argument, flag, option
from headscope.live import refuse_without_packages
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.live.server import LiveServer


class _ServeOptions(Options):
    what: str = argument(default="demo", metavar="[MODEL | RUN]")
    text: str | None = option("The text that the page opens with.")
    text_b: str | None = option("The second text, or what a decoder reads.")
    longest: Annotated[int, click.IntRange(1, 512)] = option("Tokens of a text at most.", 256)
    port: Annotated[int, click.IntRange(0, 65535)] = option(
        "Port; the next one that is free, if it is in use; 0 for any.", 8899
    )
    host: str = option(
        "Address to listen on; by default only this machine can reach the page.", "127.0.0.1"
    )
    clients: Annotated[int, click.IntRange(1, 1000)] = option("Pages that may wait at once.", 32)
    no_browser: bool = flag("Only print the address of the page.")
    loading: Loading = group()
    as_json: bool = json_flag("The address as JSON on stdout.")


@typed_command("serve", _ServeOptions)
def serve_command(options: _ServeOptions) -> None:
    """Serve a page to type in: every head of MODEL, live; switch heads off, and see what changes.

    Of a run folder RUN its report and pages are drawn again and served too, and its model is the
    one to type into. Nothing stays written; Ctrl-C ends it.

    \b
    headscope serve demo
    headscope serve demo-decoder --text "When Mary and John went to the store, John gave a drink to"
    headscope serve run
    """
    refuse_without_packages("headscope serve")
    from headscope.live.app import live_app
    from headscope.live.server import LiveServer, bound

    with closing(bound(options.host, options.port)) as own, ExitStack() as ending:
        app = live_app(
            options.what,
            longest=options.longest,
            text=options.text,
            pair=options.text_b or "",
            clients=options.clients,
            **asdict(options.loading),
        )
        server = LiveServer(app, own, host=options.host)
        another_port(options.port, server.port)
        _warn(options, server, app.absent)
        server.run(partial(_tell, options, server, ending))
    if not options.as_json:
        say("ended")


def _warn(options: _ServeOptions, server: LiveServer, absent: str) -> None:
    if server.guard.everywhere:
        complain(
            f"--host {options.host}: whoever reaches this machine and has the address can use the "
            "page, and nothing is encrypted"
        )
    if absent:
        complain(absent)


def _tell(options: _ServeOptions, server: LiveServer, ending: ExitStack) -> None:
    lines = [f"live page: {server.address}", "Ctrl-C ends it; nothing stays written"]
    tell(lines, {"address": server.address} if options.as_json else None)
    if not options.no_browser:
        ending.enter_context(in_browser(server.address))
