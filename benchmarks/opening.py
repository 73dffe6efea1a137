"""How soon does a page stand in Chromium, and how soon does it answer the mouse?

Times are the browser's own: paints and marks since navigation, and for the mouse from the event's
time stamp until the frame that answers it has been drawn. Nothing is fetched: a page that needs the
network stays blank, and that is what is told of it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "chromium-headless-shell")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
HOVERS = 30  # tokens
PATIENCE = 120_000  # ms, for pages of hundreds of megabytes
SCREEN = {"width": 1280, "height": 800}

# Whether a page of either kind has drawn anything, or only written words.
DRAWN = "[...document.querySelectorAll('canvas, svg')].some((one) => one.getClientRects().length)"
# [name of a paint or mark, ms since navigation]
TIMES = """[...performance.getEntriesByType("paint"), ...performance.getEntriesByType("mark")]
  .map((entry) => [entry.name, entry.startTime])"""
# Until a paint or mark is there. Playwright's own waiting calls eval, which our pages do not allow.
THERE = """([type, name, patience]) => new Promise((tell, refuse) => {
  setTimeout(() => refuse(new Error(`no ${name} after ${patience} ms`)), patience);
  const look = (list) => list.getEntriesByName(name).length && tell();
  new PerformanceObserver(look).observe({ type, buffered: true });
})"""
# What runs after the callbacks of a frame runs once the frame is drawn.
ANSWERED = """() => { window.answered = new Promise((tell) => addEventListener("pointermove",
  (event) => requestAnimationFrame(() => {
    const after = new MessageChannel();
    after.port1.onmessage = () => tell(performance.now() - event.timeStamp);
    after.port2.postMessage(null);
  }), { capture: true, once: true })); }"""


@dataclass
class Opening:
    """What was seen of one page, in ms, a number per opening or per token.

    painted, first, drawn   first contentful paint, and the page's own marks
    hover, hover_all        until a token pointed at is answered, one head shown or all of a layer
    asked                   addresses that it wanted from the network
    blank                   nothing was drawn; `trouble` says why it could not even be opened
    """

    painted: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    drawn: list[float] = field(default_factory=list)
    hover: list[float] = field(default_factory=list)
    hover_all: list[float] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    blank: bool = True
    trouble: str = ""

    def note(self, times: dict[str, float]) -> None:
        """Keep the paints and marks of one opening, as far as there are any."""
        for name, kept in (
            ("first-contentful-paint", self.painted),
            ("first", self.first),
            ("drawn", self.drawn),
        ):
            if name in times:
                kept.append(times[name])


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium; None where there is none, or no playwright."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        yield None
        return
    if CHROMIUM is None:
        yield None
        return
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def opening(browser: Any, file: Path, *, ours: bool, rounds: int) -> Opening:
    """Open a page so many times, offline; point at tokens in the last of ours."""
    from playwright.sync_api import Error

    seen = Opening()
    for number in range(rounds):
        context = browser.new_context(viewport=SCREEN, offline=True)
        try:
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            _watch(page, seen)
            page.goto(file.as_uri())
            seen.note(_times(page, ours=ours))
            seen.blank = not page.evaluate(DRAWN)
            if ours and number == rounds - 1:
                _point(page, seen)
        except Error as error:
            seen.trouble = str(error).splitlines()[0]
            break
        finally:
            context.close()
    return seen


def _watch(page: Any, seen: Opening) -> None:
    def note(request: Any) -> None:
        if request.url.startswith("http"):
            seen.asked.add(request.url)

    page.on("request", note)


def _times(page: Any, *, ours: bool) -> dict[str, float]:
    if ours:
        page.evaluate(THERE, ["mark", "drawn", PATIENCE])
        page.evaluate(THERE, ["paint", "first-contentful-paint", PATIENCE])
    return dict(page.evaluate(TIMES))


def _point(page: Any, seen: Opening) -> None:
    """Of the head view: the first head of a layer, then all of them."""
    page.click("#tab-head")
    seen.hover = _hovers(page)
    page.click("[data-heads=all]")
    seen.hover_all = _hovers(page)


def _hovers(page: Any) -> list[float]:
    """Ms until each of 30 tokens, evenly spread over the text, is answered."""
    tokens = page.locator("#from [role=option]")
    count, found = tokens.count(), []
    for number in range(HOVERS + 1):
        token = tokens.nth(round(number * (count - 1) / HOVERS))
        token.scroll_into_view_if_needed()
        box = token.bounding_box()
        page.mouse.move(1, 1)
        page.evaluate(ANSWERED)
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        found.append(page.evaluate("answered"))
    return found[1:]  # the first warms up


def middle(values: list[float]) -> float | None:
    """The median; None of nothing."""
    return median(values) if values else None
