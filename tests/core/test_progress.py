"""Is it told which phase a job is in, how far it is, and how long it will take?"""

from __future__ import annotations

import io
import os
import sys
import threading

import pytest

from headscope.core.progress import EVERY, Phases, begin, hidden, one_by_one, phase, showing


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def stderr(monkeypatch):
    """Puts a terminal in the place of stderr; within a test, as pytest sets it before each."""

    def put():
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return put


class Clock:
    """Seconds, as a test says."""

    now = 0.0

    def __call__(self):
        return self.now


def test_a_terminal_shows_one_phase_after_the_other(stderr):
    terminal = stderr()
    with showing(Phases()):
        with phase("load"):
            pass
        with phase("compute", 120, "inputs") as advance:
            advance(30)
            with hidden():
                sys.stderr.write("<a line>")
        for _ in one_by_one("abc", "intervals", "analyses", 3):
            pass
    shown = terminal.getvalue()
    places = [shown.index(words) for words in ("load [", "compute:", "<a line>", "intervals:")]
    assert places == sorted(places)
    assert "/120 [" in shown
    assert " inputs/s" in shown or "? inputs" in shown
    assert "load [" not in shown[places[1] :]
    assert shown.endswith("\r")  # nothing is left behind


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no such terminals here")
def test_a_terminal_that_claims_no_columns_has_a_bar(monkeypatch):
    """It had none: a new pseudo-terminal has a size of 0 × 0."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal, os.fdopen(ours, "rb", buffering=0) as shown:
        assert os.get_terminal_size(theirs).columns == 0
        monkeypatch.setattr(sys, "stderr", terminal)
        phases = Phases()
        phases.begin("compute", 10, "inputs")
        phases.close()
        terminal.flush()
        os.set_blocking(ours, False)
        assert b"compute:" in shown.read(10_000)


def test_a_log_gets_a_line_each_minute(capsys):
    clock = Clock()
    with showing(Phases(clock)):
        with phase("load"):
            clock.now = EVERY / 2
        with phase("compute", 1000, "inputs") as advance:
            for _ in range(1000):
                clock.now += 1
                advance(1)
        begin("report")
    lines = capsys.readouterr().err.splitlines()
    # The first after a minute, of which half in this phase: 970 are left, at one a second.
    assert lines[0] == "headscope: compute: 30 of 1000 inputs, 0:16:10 left"
    assert lines[1] == "headscope: compute: 90 of 1000 inputs, 0:15:10 left"
    assert len(lines) == 17  # after 60, 120, ..., 1020 s
    assert all(line.startswith("headscope: compute: ") for line in lines)


def test_a_log_gets_lines_while_nothing_is_finished(monkeypatch):
    """A run of circuits of five minutes said one line: parts that took minutes counted nothing."""

    class Log(io.StringIO):
        lines, third = 0, threading.Event()

        def write(self, text):
            self.lines += text.count("\n")
            if self.lines >= 3:
                self.third.set()
            return super().write(text)

    monkeypatch.setattr(sys, "stderr", Log())
    monkeypatch.setattr("headscope.core.progress.EVERY", 0.01)
    with showing(Phases()), phase("compute", 1000, "sequences") as advance:
        advance(3)
        assert sys.stderr.third.wait(60)
        (thread,) = (one for one in threading.enumerate() if one.name == "progress")
    last = sys.stderr.getvalue().splitlines()[-1]
    assert last.startswith("headscope: compute: 3 of 1000 sequences, ")
    thread.join(60)
    assert not thread.is_alive()


def test_a_long_wait_without_items_is_told_with_its_length(capsys):
    clock = Clock()
    phases = Phases(clock)
    with showing(phases):
        with phase("warm up"):
            clock.now = 60.0
            phases.begin("load")
            clock.now = 125.0
            phases._lines.write_if_due()
        begin("compute", 8, "examples", 2)
    said = "headscope: load\nheadscope: load, for 0:01:05\n"
    assert capsys.readouterr().err == said


def test_where_nobody_listens_nothing_is_shown(capsys):
    with phase("compute", 3, "inputs") as advance:
        advance(3)
    begin("report")(1)
    with showing(None), phase("load"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_bar_that_is_over_takes_no_more(stderr):
    terminal = stderr()
    with showing(Phases()):
        late = begin("compute", 4, "inputs")
        begin("report")
        before = terminal.getvalue()
        late(4)
        assert terminal.getvalue() == before


def test_a_notebook_shows_phases_without_being_asked(monkeypatch, capsys):
    class Shell:
        def __init__(self):
            self.config = {"IPKernelApp": {}}

    class IPython:
        @staticmethod
        def get_ipython():
            return Shell()

    bars = []

    class Bar:
        def __init__(self, **given):
            self.done = given["initial"]
            bars.append((given["desc"], given["total"], self))

        def update(self, count):
            self.done += count

        def close(self):
            self.done = (self.done, "closed")

    monkeypatch.setitem(sys.modules, "IPython", IPython)
    monkeypatch.setattr("headscope.core.progress._bars", lambda: Bar)
    with phase("read", unit="documents") as advance:
        advance(14)
    ((name, total, bar),) = bars
    assert (name, total, bar.done) == ("read", None, (14, "closed"))


def test_a_script_shows_phases_in_a_terminal_and_what_is_inside_them(stderr, monkeypatch):
    monkeypatch.setattr("headscope.core.progress.NOTICED", 0.0)
    terminal = stderr()
    with phase("read", 3, "documents"):
        begin("intervals")
        assert "intervals [" in terminal.getvalue()
    assert "read:   0%" in terminal.getvalue()
    shown = terminal.getvalue()
    with showing(None), phase("quiet", 3, "documents"):  # as a command with --quiet
        pass
    begin("alone")
    assert terminal.getvalue() == shown


def test_a_helper_of_a_script_shows_nothing_in_its_terminal(stderr, monkeypatch):
    monkeypatch.setattr("headscope.core.progress.NOTICED", 0.0)
    terminal = stderr()

    def work():
        with phase("read", 3, "documents"):
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    monkeypatch.setattr("multiprocessing.parent_process", object)
    work()
    assert terminal.getvalue() == ""


def test_phases_are_logged(caplog, capsys):
    with caplog.at_level("INFO", "headscope"), phase("read", 3, "documents"):
        begin("intervals")
    assert [one.getMessage() for one in caplog.records] == ["read: 3 documents", "intervals"]
    assert capsys.readouterr().err == ""


def test_a_quick_phase_leaves_nothing_in_a_notebook(stderr, monkeypatch):
    monkeypatch.setattr("headscope.core.progress.in_notebook", lambda: True)
    shown = stderr()
    with phase("load"):
        pass
    assert list(one_by_one(range(3), "read", "documents", 3)) == [0, 1, 2]
    assert shown.getvalue() == ""
    monkeypatch.setattr("headscope.core.progress.NOTICED", 0.0)
    with phase("read", 3, "documents"):
        assert "read:   0%" in shown.getvalue()
