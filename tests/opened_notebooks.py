"""Are the views of a notebook alive in JupyterLab and marimo? `make site` asks, `make test` not:

two servers and three interpreters take half a minute.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

jupytext = pytest.importorskip("jupytext")
LOOK = Path(__file__).resolve().parents[1] / "docs/notebooks/first-look.md"
WAIT = 120_000  # milliseconds, of a busy machine: torch is imported and a model loaded
QUIET = {"@jupyterlab/apputils-extension:announcements": True}
KEPT = ("CONFIG", "DATA", "RUNTIME")
VIEW = "iframe[title='attention of demo']"
# Whether anything is drawn on a canvas.
DRAWN = "one => one.getContext('2d').getImageData(0, 0, one.width, one.height).data.some(Boolean)"


@pytest.fixture(scope="module")
def short(tmp_path_factory) -> Path:
    """A folder with the first two cells of the first look, as a notebook of JupyterLab."""
    folder = tmp_path_factory.mktemp("notebook")
    look = jupytext.read(LOOK)
    look.cells = [cell for cell in look.cells if cell.cell_type == "code"][:2]
    jupytext.write(look, folder / "look.ipynb")
    return folder


@contextmanager
def started(folder: Path, *words: str, says: str, **variables: str) -> Iterator[re.Match[str]]:
    """A server of notebooks, until what it says of its address; it keeps its files in a folder."""
    kept = {name: str(folder / name) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    said: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **kept, **variables},
    ) as process:
        drain = threading.Thread(target=lambda: said.extend(process.stdout))
        try:
            address = None
            while address is None and (line := process.stdout.readline()):
                said.append(line)
                address = re.search(says, line)
            assert address, f"the server ended: {said}"
            drain.start()
            yield address
        finally:
            process.terminate()
            process.wait()
            if drain.ident:
                drain.join()


@contextmanager
def opened(browser, address: str, origin: str) -> Iterator:
    """A page on which no script may fail; what asks for another host gets nothing, and is told."""
    context, complaints = browser.new_context(viewport={"width": 1200, "height": 900}), []

    def elsewhere(url: str) -> bool:
        return url.startswith("http") and not url.startswith(origin)

    def refuse(route):
        complaints.append(route.request.url)
        route.abort()

    context.set_default_timeout(WAIT)
    context.route(elsewhere, refuse)
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    yield page
    context.close()
    assert complaints == []


def alive(page) -> None:
    """The maps are drawn, and a click on one opens its head."""
    frame = page.frame_locator(VIEW)
    head = frame.locator("#cells [role=gridcell]").nth(14)
    head.locator("canvas").wait_for()
    assert head.locator("canvas").evaluate(DRAWN)
    head.click()
    frame.locator("#readout", has_text="L2·H3").wait_for()
    assert frame.locator("#tab-head").get_attribute("aria-selected") == "true"
    assert frame.locator("#from [role=option]").first.text_content().startswith("[CLS]")


def test_a_view_is_alive_in_jupyterlab(browser, short, tmp_path):
    commands = pytest.importorskip("jupyterlab.commands")
    if not (Path(commands.get_app_dir()) / "static").is_dir():
        pytest.skip("the pages of JupyterLab are not installed in this environment")
    (tmp_path / "config/labconfig").mkdir(parents=True)
    settings = tmp_path / "config/labconfig/page_config.json"
    settings.write_text(json.dumps({"disabledExtensions": QUIET}))
    places = {f"JUPYTER_{kind}_DIR": str(tmp_path / kind.lower()) for kind in KEPT}
    words = ("jupyterlab", "--no-browser", "--ip=127.0.0.1", "--port=0", "--allow-root")
    says = r"(http://127\.0\.0\.1:\d+)/lab\?token=(\w+)"
    with started(short, *words, says=says, IPYTHONDIR=str(tmp_path / "i"), **places) as found:
        origin, token = found.groups()
        with opened(browser, f"{origin}/doc/tree/look.ipynb?token={token}", origin) as page:
            page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
            page.get_by_role("menuitem", name="Run", exact=True).click()
            page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
            alive(page)
            left = page.locator("[data-mime-type='application/vnd.jupyter.stderr']")
            assert left.count() == 0  # no warning, and no empty line of a bar


def test_a_view_is_alive_in_marimo(browser, short):
    converters = pytest.importorskip("marimo._convert.converters")
    made = converters.MarimoConvert.from_ipynb((short / "look.ipynb").read_text("utf-8")).to_py()
    (short / "look.py").write_text(made, "utf-8")
    words = ("marimo", "run", "look.py", "--headless", "--host=127.0.0.1")
    says = r"http://[\w.]+(:\d+)"
    with started(short, *words, "--token-password=word", says=says) as found:
        origin = f"http://127.0.0.1{found[1]}"
        with opened(browser, f"{origin}/?access_token=word", origin) as page:
            alive(page)
