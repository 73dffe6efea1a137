"""Run folders of strangers, through six commands: nothing may act, ask, or be read from outside.

Each is a sound run to which one kind of hostility was done, drawn by a seed. `serve` shows it to a
browser, and every address is asked for that the folder might have added; what the other commands
say and write is looked at, and their pages are opened. It hits where the run is refused, its pages
or what is said of it are others, or such an address was asked for.
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
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from trials import shim
from trials.file_operations import memory
from trials.outcomes import Tally
from trials.pages import launched, without_pictures
from trials.stranger import SECRET, Stranger
from trials.stranger_commands import (
    ACTIVE,
    COMMANDS,
    LONGEST,
    Come,
    Running,
    apart,
    commanded,
    states,
    with_pictures,
)
from trials.stranger_kinds import KINDS

ALL = ("serve", *COMMANDS)
WITH_PICTURES = 7  # each so many-th folder: no divisor of the number of kinds
SEEN = (
    0.15  # of the folders change what a command says or writes, or are refused; least of `status`
)
VIEWS = 2  # of the texts of a run that are looked at
MEGABYTES = 400  # that one folder may take beyond all before it
SIGNS = "/%.\\:;,=&?#()[]{}'\"<>@!$*+~|^`"  # that an address is sent with, as they are


@click.command("strangers")
@click.option("--folders", default=100, show_default=True, help="Hostile run folders.")
@click.option("--kind", multiple=True, type=click.Choice([*KINDS]), help="Of these kinds alone.")
@click.option("--only", multiple=True, type=click.Choice(ALL), help="Through these alone.")
@click.option("--seed", default=0, show_default=True, help="Seed of what is done to them.")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(
    folders: int, kind: tuple[str, ...], only: tuple[str, ...], seed: int, keep: Path
) -> None:
    """Hostile run folders through the commands that read one, and a browser."""
    shim.begin_again("trials")  # with one thread: its commands are forked
    with Tally(keep.absolute()).told() as tally, launched() as browser:
        attempt_all(
            browser, tally, folders, kinds=kind or (*KINDS,), commands=only or ALL, seed=seed
        )


def attempt_all(
    browser: Any,
    tally: Tally,
    folders: int,
    *,
    kinds: Sequence[str],
    commands: Sequence[str] = ALL,
    seed: int = 0,
    sound: Path | None = None,
    run: Running = apart,
) -> None:
    """So many folders, of one kind after another, each through the commands.

    sound  the run that they are made of; a small one is made where there is none
    run    runs a command in a place
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")  # of sums over numbers out of all bounds
    tally.share |= dict.fromkeys(ALL, SEEN)
    draws = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="trial-", dir=memory()) as place, sink() as (at, asked):
        sound = sound or made(Path(place))
        base = Stranger(Path(place) / "sound", sound, at, draws)
        usual = {run: usual_of(browser, base, commands, asked, run)}
        for number in range(folders):
            kind = kinds[number % len(kinds)]
            stranger = Stranger(Path(place) / str(number), sound, at, draws)
            KINDS[kind](stranger)
            way = run if (number + 1) % WITH_PICTURES else with_pictures
            if way not in usual:
                usual[way] = usual_of(browser, base, commands, asked, way)
            began = time.monotonic()
            come = come_of(browser, stranger, commands, asked, way)
            took, wrong, hits = time.monotonic() - began, list[str](), 0
            for name, one in come.items():
                one.wrong += [
                    f"could act: {each[:200]!r}" for each in one.active - usual[way][name].active
                ]
                hit = one.differs(usual[way][name]) or (
                    name == "serve" and bool(stranger.addresses)
                )
                outcome = "wrong" if one.wrong else "refused" if one.refused else "the run alone"
                tally.add(name, outcome, f"{kind}, {stranger.what}: {one.wrong} {one.refused}", hit)
                wrong += [f"{name}: {each}" for each in one.wrong]
                hits += hit
            outcome = "wrong" if wrong else "harmless"
            tally.add(kind, outcome, f"{stranger.what}: {wrong}", hits > 0, files=stranger.place)
            click.echo(f"{number} {kind}: {outcome}, {took:.1f} s; {stranger.what}; {wrong}")
            shutil.rmtree(stranger.place)


def usual_of(browser: Any, one: Stranger, *how: Any) -> dict[str, Come]:
    """What comes of each command on a sound run."""
    usual = come_of(browser, one, *how)
    if bad := {name: come for name, come in usual.items() if come.refused or come.wrong}:
        raise RuntimeError(f"a sound run is refused, or worse: {bad}")
    return usual


def come_of(
    browser: Any, stranger: Stranger, commands: Sequence[str], asked: list[str], run: Running
) -> dict[str, Come]:
    """What comes of each command."""
    found = dict[str, Come]()
    for name in commands:
        before, held, began = states(stranger.place), most_memory(), time.monotonic()
        if name == "serve":
            come = served(browser, stranger.run, stranger.addresses)
            if states(stranger.place) != before:
                come.wrong.append("files were changed")
        else:
            come = commanded(browser, name, stranger.place, run)
        come.wrong += [f"asked elsewhere: {one}" for one in asked]
        asked.clear()
        if (took := time.monotonic() - began) > LONGEST:
            come.wrong.append(f"took {took:.0f} s")
        if (more := most_memory() - held) > MEGABYTES:
            come.wrong.append(f"took {more:.0f} MB")
        found[name] = come
    return found


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

    class Noting(HTTPServer):
        def verify_request(self, *of: Any) -> bool:
            asked.append(f"a connection from {of[1]}")  # it may speak anything
            return True

    with Noting(("127.0.0.1", 0), Listening) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", asked
        finally:
            server.shutdown()
            thread.join()


def served(browser: Any, run: Path, addresses: tuple[str, ...] | list[str]) -> Come:
    """A run folder served as the command does it, and looked at."""
    from headscope.errors import HeadscopeError
    from headscope.live.app import live_app
    from headscope.live.server import LiveServer, bound
    from live.conftest import LOADING, TOKEN

    with without_pictures():
        try:
            app = live_app(str(run), longest=64, **LOADING)
        except HeadscopeError as error:
            return Come(refused=str(error))
        except Exception as error:
            return Come(refused=" ", wrong=[f"internal error: {error!r:.300}"])
        with (
            closing(bound("127.0.0.1", 0)) as own,
            LiveServer(app, own, token=TOKEN).in_thread() as server,
        ):
            got = Come()
            look(browser, got, f"http://127.0.0.1:{server.port}/{TOKEN}/")
            for address in addresses:
                ask(got, server.port, f"/{TOKEN}/run/{address}")
    return got


def look(browser: Any, got: Come, origin: str) -> None:
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


def ask(got: Come, port: int, address: str) -> None:
    """One address, as it is: a browser would shorten it."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)) as line:
        line.putrequest("GET", quote(address, safe=SIGNS, errors="replace"))
        line.endheaders()
        answer = line.getresponse()
        judge(got, address, answer.status, answer.read().decode("utf-8", "replace"))


def judge(got: Come, address: str, status: int, text: str) -> None:
    """Note what no answer may hold."""
    if SECRET in text:
        got.wrong.append(f"{address} gives what lies outside")
    if status >= 500 or "Traceback" in text:
        got.wrong.append(f"{address} ends in {status}: {text[:200]}")
    if "PLANTED" in text:
        got.wrong.append(f"{address} gives a file of the folder")


def most_memory() -> float:
    """Megabytes that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
