"""How do tests call the command line inside this process, where everything is imported already?"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest

from headscope.cli.main import main

TREE = "\n".join(
    [
        "# sent_id = s1",
        "1\tCats\tcat\tNOUN\tNNS\t_\t2\tnsubj\t_\t_",
        "2\tsleep\tsleep\tVERB\tVBP\t_\t0\troot\t_\t_",
        "",
        "",
    ]
)


@dataclass
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def headscope(capsys, monkeypatch, tmp_path):
    """Runs `headscope ARGS` from an empty folder, through its entry point."""
    monkeypatch.chdir(tmp_path)
    # No line of progress is in what is compared, however slow the machine is.
    monkeypatch.setattr("headscope.core.progress.EVERY", 1e6)

    def run(*args: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["headscope", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return Done(0 if code is None else int(code), *capsys.readouterr())

    return run


@pytest.fixture
def atlas(headscope, tiny_place):
    """`headscope atlas MODEL ARGS`, small and without a report; by default of a tiny model."""
    small = ("--analyses", "entropy", "--replicates", 2, "--no-report", "--linears", "stock")
    return lambda *args, model=tiny_place: headscope("atlas", model, *small, "-o", "run", *args)


def refused(done: Done, *says: str, code: int = 2) -> None:
    """One to three lines on stderr that say so, nothing on stdout, no traceback."""
    assert done.code == code, (done.out, done.err)
    assert done.out == ""
    assert done.err.startswith("headscope: ")
    assert 1 <= done.err.count("\n") <= 3, done.err
    assert "Traceback" not in done.err
    for text in says:
        assert text in done.err
