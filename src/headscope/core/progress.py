"""Which phase a job is in, and how far: told by the code that works, shown by whoever listens.

    with phase("read", unit="documents") as advance:
        advance(1)

Commands listen, and so do notebooks and scripts whose stderr is a terminal; elsewhere nothing is
shown. A terminal and a notebook get one bar after another; where there is neither, a command prints
lines, each after twice the time of the one before. Every phase is logged as well, by the logger
`headscope` at the level INFO.
"""

import logging
import multiprocessing
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, TypeVar

Advance = Callable[[int], object]
Item = TypeVar("Item")
FIRST_LINE = 60.0  # seconds without a word, where there is no terminal
NOTICED = 1.0  # seconds: a bar that nobody asked for is only shown of what takes longer
USUAL = {"ncols": 80, "nrows": 24}  # of a terminal that claims to have none
UNCOUNTED = "{desc} [{elapsed}]"
LOGGER = logging.getLogger("headscope")
UNSAID: Any = object()


class Phases:
    """Shows the phases of a job on stderr, one at a time.

    clock  seconds
    delay  seconds before a bar is shown
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, delay: float = 0.0) -> None:
        self._bar: Any = None
        self._delay = delay
        self._lines = not (sys.stderr.isatty() or in_notebook())
        self._clock, self._start, self._next = clock, clock(), FIRST_LINE

    def begin(self, name: str, total: int | None = None, unit: str = "", done: int = 0) -> Advance:
        """Show a phase in place of the previous one; returns the function to call for finished
        items.

        total  items of the phase; None where nobody knows
        unit   what they are, in the plural; "" where nothing is counted
        done   how many were done before
        """
        self.close()
        if self._lines:
            return self._lines_of(name, total, unit, done)
        counted = {"unit": f" {unit}"} if unit else {"bar_format": UNCOUNTED}
        bar = self._bar = _bars()(
            desc=name,
            total=total,
            initial=done,
            leave=False,
            delay=self._delay,
            file=sys.stderr,
            **_width(),
            **counted,
        )
        return lambda count: bar.update(count) if bar is self._bar else None

    def _lines_of(self, name: str, total: int | None, unit: str, done: int) -> Advance:
        start, before = self._clock(), done

        def advance(count: int) -> None:
            nonlocal done
            done += count
            past = self._clock() - self._start
            if past < self._next:
                return
            self._next = 2 * past
            many = f": {done}{'' if total is None else f' of {total}'} {unit}" if unit else ""
            left = (total or 0) - done
            if left > 0 and done > before:
                seconds = left * (self._clock() - start) / (done - before)
                many += f", {timedelta(seconds=round(seconds))} left"
            with suppress(OSError):  # stderr may be full
                print(f"headscope: {name}{many}", file=sys.stderr, flush=True)

        advance(0)
        return advance

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
        self._bar = None

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Inside the context the bar is hidden while something is printed."""
        if self._bar is None:
            yield
            return
        self._bar.clear()
        yield
        self._bar.refresh()


_SHOWN: ContextVar[Phases | None] = ContextVar("phases_shown")  # unset: nobody has said


@contextmanager
def showing(phases: Phases | None) -> Iterator[None]:
    """Inside the context these phases are shown; None shows nothing."""
    token = _SHOWN.set(phases)
    try:
        yield
    finally:
        _SHOWN.reset(token)
        if phases is not None:
            phases.close()


def begin(name: str, total: int | None = None, unit: str = "", done: int = 0) -> Advance:
    """As `Phases.begin`, for a phase that lasts until the next; nothing where none are shown."""
    LOGGER.info("%s%s", name, f": {total} {unit}" if total else "")
    shown = _SHOWN.get(None)
    return unheard if shown is None else shown.begin(name, total, unit, done)


@contextmanager
def phase(name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
    """Begin a phase; yields the function to call for finished items.

    name, total, unit  as of `Phases.begin`
    """
    unasked = _SHOWN.get(UNSAID) is UNSAID and _watched()
    with showing(Phases(delay=NOTICED)) if unasked else nullcontext():
        yield begin(name, total, unit)


def one_by_one(
    items: Iterable[Item], name: str, unit: str, total: int | None = None
) -> Iterator[Item]:
    """The items one after another, as a phase; see `Phases.begin`."""
    with phase(name, total, unit) as advance:
        for item in items:
            yield item
            advance(1)


@contextmanager
def hidden() -> Iterator[None]:
    """Inside the context no bar is shown while something is printed."""
    shown = _SHOWN.get(None)
    if shown is None:
        yield
        return
    with shown.hidden():
        yield


def _watched() -> bool:
    """Whether somebody sees what this process prints, and it is not the helper of another."""
    own = threading.current_thread() is threading.main_thread()
    alone = own and multiprocessing.parent_process() is None
    return alone and (in_notebook() or sys.stderr.isatty())


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this process."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", {})


def unheard(count: int) -> None:
    """Does nothing: for jobs whose progress is not shown."""


def _width() -> dict[str, int | bool]:
    """The width of a bar: the terminal's, unless that claims to have no columns."""
    try:
        known = os.get_terminal_size(sys.stderr.fileno()).columns > 0
    except (OSError, ValueError):  # no terminal
        known = True
    return {"dynamic_ncols": True} if known else {**USUAL}


def _bars() -> Any:
    if not in_notebook():
        from tqdm import tqdm

        return tqdm
    with warnings.catch_warnings():  # without widgets there are bars of text
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm as either

        return either
