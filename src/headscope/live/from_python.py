"""Serves the live page from Python: a notebook shows it below the cell, and goes on."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from headscope.core.display import Displayed
from headscope.errors import InputError
from headscope.live import refuse_without_packages
from headscope.model.model import load
from headscope.run.store import Run
from headscope.tasks.task_request import Loading
from headscope.views.view_text import notebook_frame

HUB = "JUPYTERHUB_SERVICE_PREFIX"  # where a hub has the user's server; Binder sets it too
COLAB = "google.colab.output"
HEIGHT = 900  # of the frame, in pixels


class ServedPage(Displayed):
    """A live page that is served until `close`, or the end of the program; a notebook shows it.

    address  what a browser opens; whoever has it can use the page
    """

    def __init__(self, app: Any, port: int, proxy: str | None) -> None:
        from headscope.live.access import LOOPBACK
        from headscope.live.server import LiveServer, bound

        with ExitStack() as stack:
            own = stack.enter_context(closing(bound(LOOPBACK[0], port)))
            root = proxy_root(proxy, own.getsockname()[1])
            server = LiveServer(app, own, proxied=bool(root))
            stack.enter_context(server.in_thread())
            self._ending = stack.pop_all()
        self._name = str(app.page.about["name"])
        self.address = f"{root}{server.place}" if root else server.address
        atexit.register(self.close)

    def facts(self) -> Mapping[str, object]:
        """The model and the address."""
        return {"model": self._name, "address": self.address}

    def close(self) -> None:
        """End the server; a second time does nothing."""
        atexit.unregister(self.close)
        self._ending.close()

    def __enter__(self) -> ServedPage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        frame = notebook_frame(f"{self._name}, live", {"src": self.address}, height=HEIGHT)
        link = f'<a href="{escape(self.address, quote=True)}" target="_blank" rel="noopener">'
        return f"{frame}{link}open the page in a tab</a>"


def serve(
    model: Any = "demo",
    text: str | None = None,
    text_b: str = "",
    *,
    longest: int = 256,
    port: int = 8899,
    proxy: str | None = None,
) -> ServedPage:
    """A page to type in, of a model or a run: every head live; switch some off, see what changes.

    model    what `load` takes, or a finished run or its folder, whose pages are served too
    text     that the page opens with; text_b: the second segment, or what a decoder reads
    longest  tokens of a text at most, up to 512
    port     the next one that is free, if it is in use; 0 for any
    proxy    where a browser reaches a port of this machine, say "/proxy/{port}/"; None: where
             JupyterHub or Colab has it, else 127.0.0.1
    raises   HeadscopeError without starlette and uvicorn; InputError for a run that has no folder;
             what `load` raises
    """
    refuse_without_packages("headscope serve")
    if proxy is not None and "{port}" not in proxy:
        raise InputError(f"proxy is {proxy!r}; wanted an address with {{port}} in it")
    from headscope.live.app import live_app

    what = model
    if isinstance(model, Run):
        if model.path is None:
            raise InputError("found a run in memory; wanted one in a folder: output=FOLDER")
        what = str(model.path)
    elif isinstance(model, Path):
        what = str(model)
    elif not isinstance(model, str):
        what = load(model)
    app = live_app(what, longest=longest, text=text, pair=text_b, framed=True, **asdict(Loading()))
    return ServedPage(app, port, proxy)


def proxy_root(proxy: str | None, port: int) -> str:
    """Where a browser reaches a port of this machine; "" where it runs on the same one."""
    if proxy is None and "google.colab" in sys.modules:
        proxy = str(import_module(COLAB).eval_js(f"google.colab.kernel.proxyPort({port})"))
    elif proxy is None and (prefix := os.environ.get(HUB)):
        proxy = f"{prefix.rstrip('/')}/proxy/{{port}}"
    return (proxy or "").replace("{port}", str(port)).rstrip("/")
