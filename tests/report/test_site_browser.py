"""Is an exported run a site: every link relative and followed, from the disk and from a host?"""

from __future__ import annotations

import re
import shutil
import threading
from functools import partial
from html import unescape
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from click.testing import CliRunner

import headscope as hs
from headscope.claims.bibliography import SOURCES
from headscope.cli.main import group
from headscope.core.whole_file import held
from headscope.draw.figures import pictures
from headscope.errors import InputError, RunFolderError
from headscope.report.site import export_site
from headscope.run.store import Run
from recorded import hostile, manifest_of, recorded

EVIL = ["[CLS]", "<img src=x onerror=alert(1)>", '"><a href=//evil.example>', "[SEP]"]
LEADS = {"href", "src", "action", "data", "poster", "srcset"}
PAPERS = {source.link for source in SOURCES.values()}


@pytest.fixture(scope="module")
def few_pictures():
    """Two figures instead of all, which take most of the time."""
    some = {name: one for name, one in pictures().items() if name in ("head_grid", "mixing")}
    with pytest.MonkeyPatch.context() as patch:
        for place in ("report.build", "draw.figures", "report.site"):
            patch.setattr(f"headscope.{place}.pictures", lambda: some)
        yield


@pytest.fixture(scope="module")
def site(few_pictures, tmp_path_factory) -> Path:
    tree = hostile(recorded(groups=("surface", "mixing", "examples")), tokens=EVIL)
    folder = tmp_path_factory.mktemp("made") / "a site"
    assert export_site(Run(tree, manifest_of(tree)), folder) == folder / "index.html"
    return folder


class Links(HTMLParser):
    """Where a page leads, by every attribute that can."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        self.found |= {value for name, value in attrs if name in LEADS and value}


def linked(page: Path) -> set[Path]:
    """The files that a page leads to; no other address may stand there but those of papers."""
    files = set()
    for address in Links(page).found - PAPERS:
        parts = urlsplit(address)
        assert not any((parts.scheme, parts.netloc, parts.path.startswith("/"))), address
        if parts.path:
            files.add((page.parent / unquote(parts.path)).resolve())
    return files


def test_every_link_is_relative_and_leads_to_a_file(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 3
    for page in pages:
        assert all(file.is_file() and site.resolve() in file.parents for file in linked(page))
        assert "url(http" not in page.read_text("utf-8")
        assert "default-src 'none'" in unescape(page.read_text("utf-8"))


def test_the_first_page_leads_to_everything(site):
    there = {file.resolve() for file in site.rglob("*") if file.is_file()}
    assert there - linked(site / "index.html") == {
        site.resolve() / "index.html",
        site.resolve() / ".written",
    }


def test_the_first_page_shows_findings_and_all_heads_which_lead_to_their_cards(site):
    page = (site / "index.html").read_text("utf-8")
    cells = re.findall(r'<a id="cell-(\w+)"[^>]* href="heads.html#(\w+)"', page)
    assert len(cells) == 72
    assert all(cell == card for cell, card in cells)
    assert page.count("<li>", page.index('class="findings"'), page.index('id="grid"')) > 1
    assert 'href="#L' not in page


@pytest.fixture
def hosted(site):
    """The address of the site on a host of its own."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site.parent)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/a%20site/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("kind", ["disk", "host"])
def test_every_page_opens_by_its_link(kind, site, hosted, watched):
    base = hosted if kind == "host" else f"{site.as_uri()}/"
    page = watched(f"{base}index.html", within=[base], width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    links = page.locator("a[href*='.html']").evaluate_all("all => all.map((a) => a.href)")
    assert {link.partition("#")[0] for link in links} == {
        base + file.relative_to(site).as_posix() for file in site.rglob("*.html")
    } - {f"{base}index.html"}
    for address in {link.partition("#")[0]: link for link in links}.values():
        link = page.locator(f"a[href='{address.removeprefix(base)}']").first
        link.click()
        page.wait_for_url(lambda url, wanted=address: url.startswith(wanted))
        assert page.locator("h1, h2, nav").first.text_content()
        page.go_back(wait_until="load")
    for address in page.locator("a[href*='/']:not([href*='.html'])").evaluate_all(
        "all => all.map((a) => a.href)"
    ):
        if kind == "host":
            assert page.request.get(address).ok


def test_a_card_is_opened_by_its_address(site, watched):
    page = watched(f"{site.as_uri()}/heads.html#L2H5", within=[site.as_uri()])
    assert "L2·H5" in page.locator("#card-title").text_content()


def test_two_exports_do_not_share_a_folder(short, tmp_path):
    place = tmp_path / "site"
    with held(place), pytest.raises(RunFolderError, match=r"is writing to .*site"):
        export_site(hs.open_run(short.path), place)
    assert not place.exists()


def test_what_is_no_export_is_left_alone(site, short, few_pictures, tmp_path):
    run = hs.open_run(short.path)
    (tmp_path / "mine.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(
            InputError, match=r"holds 'mine.txt', which is not part of an export; choose"
        ):
            export_site(run, tmp_path, overwrite=overwrite)
        with pytest.raises(InputError, match=r"'atlas.nc', which is not part of an export"):
            export_site(run, short.path, overwrite=overwrite)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(InputError, match="is a file or a mounted disk"):
        export_site(run, tmp_path / "mine.txt")


def test_an_export_is_replaced_only_if_that_is_asked(short, few_pictures, tmp_path):
    words = ["export", str(short.path), "-o", str(tmp_path / "out")]

    def told(*more):
        return CliRunner().invoke(group, [*words, *more], standalone_mode=False)

    assert told().output == f"site: {tmp_path / 'out/index.html'}\n"
    first = {file: file.read_bytes() for file in (tmp_path / "out").rglob("*") if file.is_file()}
    assert told().exit_code == 0  # nothing is left to do
    (tmp_path / "out/heads.html").write_text("an older one")
    assert "wanted a new folder, or --overwrite" in str(told().exception)
    assert told("--overwrite").exit_code == 0
    assert {file: file.read_bytes() for file in first} == first
    assert "the run keeps no inputs" in (tmp_path / "out/index.html").read_text("utf-8")


def test_a_run_that_is_half_done_is_refused(short, tmp_path):
    half = shutil.copytree(short.path, tmp_path / "half")
    (half / "atlas.nc").unlink()
    with pytest.raises(RunFolderError, match="is not finished; run its command again"):
        export_site(half, tmp_path / "out")
    assert not (tmp_path / "out").exists()
