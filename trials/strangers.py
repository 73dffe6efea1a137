"""Run folders of strangers are served: nothing of them may act, ask, or be read from outside.

Each is a sound run to which one kind of hostility was done, drawn by a seed. A browser opens its
pages, and every address is asked for that the folder might have added. It hits where the run is
refused, its pages are others, or such an address was asked for.
"""

from __future__ import annotations

import http.client
import os
import random
import re
import resource
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from trials.file_operations import memory
from trials.outcomes import Tally
from trials.pages import launched, without_pictures
from trials.stranger_kinds import KINDS, SECRET, Stranger

LONGEST = 60.0  # seconds of one folder; a sound one takes two
VIEWS = 2  # of the texts of a run that are looked at
MEGABYTES = 400  # that one folder may take beyond all before it
SIGNS = "/%.\\:;,=&?#()[]{}'\"<>@!$*+~|^`"  # that an address is sent with, as they are
# What could act: scripts by their content, handlers, and addresses.
ACTIVE = """() => [...document.querySelectorAll("*")].flatMap(one => [
  ...[...one.attributes].filter(a => a.name.startsWith("on")).map(a => `${a.name}=${a.value}`),
  ...["src", "href", "action", "data", "srcdoc"].map(name => one.getAttribute(name))
    .filter(value => value && /^[a-z]*:|^[/][/]/i.test(value)),
  ...(one.localName === "script" && !/json/.test(one.type) ? [one.textContent] : []),
  ...(["base", "iframe", "object", "embed", "form"].includes(one.localName) ? [one.localName] : []),
])"""


@click.command("strangers")
@click.option("--folders", default=100, show_default=True, help="Hostile run folders.")
@click.option("--kind", multiple=True, type=click.Choice([*KINDS]), help="Of these kinds alone.")
@click.option("--seed", default=0, show_default=True, help="Seed of what is done to them.")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(folders: int, kind: tuple[str, ...], seed: int, keep: Path) -> None:
    """Serve hostile run folders to a browser."""
    with Tally(keep.absolute()).told() as tally, launched() as browser:
        attempt_all(browser, tally, folders, kinds=kind or tuple(KINDS), seed=seed)


@dataclass
class Served:
    """What a browser and a client got of a run folder.

    refused  why it is not served; "" where it is
    pages    text of each by its address
    active   what could act in them
    wrong    what must not be
    """

    refused: str = ""
    pages: dict[str, str] = field(default_factory=dict)
    active: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)


def attempt_all(
    browser: Any, tally: Tally, folders: int, *, kinds: tuple[str, ...], seed: int = 0
) -> None:
    """So many folders, of one kind after another."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")  # of sums over numbers out of all bounds
    draws = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="trial-", dir=memory()) as place, sink() as (at, asked):
        sound = made(Path(place))
        usual = served(browser, sound, ())
        if usual.refused or usual.wrong or len(usual.pages) < 2:
            raise RuntimeError(f"a sound run is not served: {usual}")
        for number in range(folders):
            kind = kinds[number % len(kinds)]
            stranger = Stranger(Path(place) / str(number), sound, at, draws)
            KINDS[kind](stranger)
            before, held = left_alone(stranger.place), most_memory()
            began = time.monotonic()
            got = served(browser, stranger.run, stranger.addresses)
            wrong = got.wrong + [f"could act: {one[:200]!r}" for one in got.active - usual.active]
            wrong += [f"asked elsewhere: {one}" for one in asked]
            asked.clear()
            if left_alone(stranger.place) != before:
                wrong.append("files were changed")
            if (took := time.monotonic() - began) > LONGEST:
                wrong.append(f"took {took:.0f} s")
            if (more := most_memory() - held) > MEGABYTES:
                wrong.append(f"took {more:.0f} MB")
            hit = bool(got.refused or stranger.addresses or got.pages != usual.pages)
            outcome = "wrong" if wrong else "refused" if got.refused else "the run alone"
            what = f"{stranger.what}: {wrong} {got.refused}"
            tally.add(kind, outcome, what, hit, files=stranger.place)
            click.echo(f"{number} {kind}: {outcome}, {took:.1f} s; {what}")
            shutil.rmtree(stranger.place)


def made(place: Path) -> Path:
    """A sound run: with trees, so that it has relations, and with inputs that have views."""
    import headscope as hs
    from made_models import small_bert

    model = small_bert(place / "model")
    hs.atlas(
        str(model),
        hs.demo_corpus(),
        output=place / "run",
        analyses=("surface", "entropy", "dependency", "examples"),
        limit=5,
        replicates=5,
        shard_tokens=400,
        control="none",
        execution=hs.Execution(linears="stock", threads=1, keep_shards=True),
    )
    return place / "run"


@contextmanager
def sink() -> Iterator[tuple[str, list[str]]]:
    """The address of a stranger's server, and what it is asked."""
    asked = list[str]()

    class Listening(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Listening) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", asked
        finally:
            server.shutdown()
            thread.join()


def served(browser: Any, run: Path, addresses: tuple[str, ...] | list[str]) -> Served:
    """A run folder served as the command does it, and looked at."""
    from headscope.errors import HeadscopeError
    from headscope.serve.app import live_app
    from headscope.serve.server import LiveServer, bound
    from serve.conftest import LOADING, TOKEN

    with without_pictures():
        try:
            app = live_app(str(run), longest=64, **LOADING)
        except HeadscopeError as error:
            return Served(refused=str(error))
        except Exception as error:
            return Served(refused=" ", wrong=[f"internal error: {error!r:.300}"])
        with (
            closing(bound("127.0.0.1", 0)) as own,
            LiveServer(app, own, token=TOKEN).in_thread() as server,
        ):
            got = Served()
            look(browser, got, f"http://127.0.0.1:{server.port}/{TOKEN}/")
            for address in addresses:
                ask(got, server.port, f"/{TOKEN}/run/{address}")
    return got


def look(browser: Any, got: Served, origin: str) -> None:
    """The live page, and all pages of the run that lead to each other."""
    page = browser.new_page()
    page.set_default_timeout(1000 * LONGEST)
    page.on("dialog", lambda dialog: (got.wrong.append("dialog"), dialog.dismiss()))
    page.on("pageerror", lambda error: got.wrong.append(f"script: {error}"[:200]))
    page.on("request", lambda sent: sent.url.startswith(origin) or got.wrong.append(sent.url))
    todo, seen = ["", "run/"], set[str]()
    while todo:
        seen.add(address := todo.pop())
        answer = page.goto(origin + address)
        page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")
        text = page.evaluate("() => document.documentElement.textContent")
        got.active |= set(page.evaluate(ACTIVE))
        judge(got, address, answer.status, text)
        if not address:
            continue
        got.pages[address] = text
        if "cannot be shown" in text:
            got.refused = " ".join(page.evaluate("() => document.body.innerText").split())[:300]
        links = page.evaluate("() => [...document.querySelectorAll('a')].map(a => a.href)")
        names = {one.removeprefix(origin).partition("#")[0] for one in links}
        names = {name for name in names if re.fullmatch(r"run/[\w./-]+\.html", name)}
        views = sorted(name for name in names if "/views/" in name)
        todo += sorted(names - {*views[VIEWS:]} - seen - {*todo})
    page.close()


def ask(got: Served, port: int, address: str) -> None:
    """One address, as it is: a browser would shorten it."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)) as line:
        line.putrequest("GET", quote(address, safe=SIGNS, errors="replace"))
        line.endheaders()
        answer = line.getresponse()
        judge(got, address, answer.status, answer.read().decode("utf-8", "replace"))


def judge(got: Served, address: str, status: int, text: str) -> None:
    """Note what no answer may hold."""
    if SECRET in text:
        got.wrong.append(f"{address} gives what lies outside")
    if status >= 500 or "Traceback" in text:
        got.wrong.append(f"{address} ends in {status}: {text[:200]}")
    if "PLANTED" in text:
        got.wrong.append(f"{address} gives a file of the folder")


def left_alone(place: Path) -> dict[str, tuple[int, ...]]:
    """What tells that a file was written to, made or deleted; nothing is followed."""
    files = (file for file in place.rglob("*") if not file.is_dir() or file.is_symlink())
    status = {str(file): file.lstat() for file in files}
    return {name: (s.st_ino, s.st_size, s.st_mtime_ns) for name, s in status.items()}


def most_memory() -> float:
    """Megabytes that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
