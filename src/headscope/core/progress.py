"""Which phase a job is in, and how far: told by the code that works, shown by whoever listens.

    with phase("read", unit="documents") as advance:
        advance(1)

Commands listen, and so do notebooks and scripts whose stderr is a terminal; elsewhere nothing is
shown. A terminal and a notebook get one bar after another; where there is neither, a command prints
a line each minute, also while no item is finished. Every phase is logged as well, by the logger
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
EVERY = 60.0  # seconds between two lines, where there is no terminal
NOTICED = 1.0  # seconds: a bar that nobody asked for is only shown of what takes longer
USUAL = {"ncols": 80, "nrows": 24}  # of a terminal that claims to have none
UNCOUNTED = "{desc} [{elapsed}]"
LOGGER = logging.getLogger("headscope")
UNSAID: Any = object()


class LogLines:
    """Writes lines on the current phase to stderr, one each `EVERY` seconds.

    A thread of its own writes them, since what computes may be silent for longer.

    clock  seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._start, self._last = clock, clock(), clock()
        self._phase: tuple[str, int | None, str, int] | None = None  # name, total, unit, before
        self._done = 0
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, name: str, total: int | None, unit: str, done: int) -> Advance:
        """As `Phases.begin`."""
        with self._lock:
            phase = self._phase = (name, total, unit, done)
            self._done, self._start = done, self._clock()
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="progress", daemon=True)
            self._thread.start()

        def advance(count: int) -> None:
            with self._lock:
                if phase is self._phase:
                    self._done += count
            self.write_if_due()

        advance(0)
        return advance

    def write_if_due(self) -> None:
        """Write a line, if the last one is long ago."""
        with self._lock:
            if self._clock() - self._last < EVERY:
                return
            self._last = self._clock()
            if self._phase is not None:
                with suppress(OSError, ValueError):  # stderr may be full, or closed
                    print(f"headscope: {self._line()}", file=sys.stderr, flush=True)

    def _line(self) -> str:
        assert self._phase is not None
        name, total, unit, before = self._phase
        past = self._clock() - self._start
        if not unit:
            return f"{name}, for {timedelta(seconds=round(past))}" if past >= 1 else name
        text = f"{name}: {self._done}{'' if total is None else f' of {total}'} {unit}"
        left = (total or 0) - self._done
        if left > 0 and self._done > before:
            seconds = left * past / (self._done - before)
            text += f", {timedelta(seconds=round(seconds))} left"
        return text

    def _write(self) -> None:
        while not self._over.wait(max(0.01, EVERY - (self._clock() - self._last))):
            self.write_if_due()

    def close(self) -> None:
        """Write no more."""
        self._over.set()
        with self._lock:
            self._phase = None


class Phases:
    """Shows the phases of a job on stderr, one at a time.

    clock  seconds
    delay  seconds before a bar is shown
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, delay: float = 0.0) -> None:
        self._bar: Any = None
        self._delay = delay
        self._lines = None if sys.stderr.isatty() or in_notebook() else LogLines(clock)

    def begin(self, name: str, total: int | None = None, unit: str = "", done: int = 0) -> Advance:
        """Show a phase in place of the previous one; returns the function to call for finished
        items.

        total  items of the phase; None where nobody knows
        unit   what they are, in the plural; "" where nothing is counted
        done   how many were done before
        """
        if self._lines is not None:
            return self._lines.begin(name, total, unit, done)
        self._clear()
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

    def close(self) -> None:
        """Remove the bar, or write no more lines."""
        if self._lines is not None:
            self._lines.close()
        self._clear()

    def _clear(self) -> None:
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
