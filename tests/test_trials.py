"""Do the trials hold in their short forms, and would they find what they look for?"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from trials import environments, kills, pages, shim, stranger_kinds
from trials.forked import Ended
from trials.hostile_results import IN_A_TABLE
from trials.outcomes import Tally
from trials.power_loss import Disk
from trials.stranger import Stranger
from trials.stranger_commands import commanded

from commands import PATIENCE
from forked import forked
from headscope.claims.bibliography import SOURCES
from views.hostile import HOSTILE, LOUD

ROOT = Path(__file__).resolve().parents[1]
WITHOUT_PICTURES = """
from headscope.cli.main import main
from trials.pages import without_pictures
with without_pictures():
    main()
"""


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs the descriptors of Linux")
def test_a_few_faults_of_every_kind_end_in_the_same_bits(tmp_path):
    command = [sys.executable, "-m", "trials", "short", "--keep", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = dict(re.findall(r"^([a-z, ]+): n = (\d+)", done.stdout, re.MULTILINE))
    assert {
        "atlas",
        "atlas, powerless",
        "driver",
        "two drivers",
        "together",
        "dask",
        "worker",
        "fault",
        "damage",
        "all",
        *["full disk"] * kills.may_mount(),
    } <= counts.keys()
    assert int(counts["all"]) > 20


def test_hostile_strings_stay_text_in_head_card_view_and_annotation_page(browser, tmp_path):
    tally = Tally(tmp_path)
    kinds = ("head card", "view", "annotation page")
    pages.attempt_all(browser, pages.payloads(40), tally, size=200, kinds=kinds)
    assert not tally.failed + tally.idle()
    assert tally.tries == {"head card": 15, "view": 141, "annotation page": 141}
    assert tally.hits == tally.tries
    assert {outcome for counts in tally.counts.values() for outcome in counts} == {"only text"}


def test_hostile_strings_stay_text_in_the_cells_of_tables(browser, tmp_path):
    tally = Tally(tmp_path)
    pages.attempt_all(
        browser, pages.payloads(0)[:IN_A_TABLE], tally, size=IN_A_TABLE, kinds=("code cells",)
    )
    assert not tally.failed + tally.idle()
    assert tally.hits == tally.tries == {"code cells": 40}


def undrawn(arguments, place):
    """How a command without pictures ends."""
    with forked(*arguments, cwd=place, code=WITHOUT_PICTURES) as process:
        out, err = process.communicate()
        return Ended(process.returncode, out, err)


@pytest.mark.parametrize(
    ("kinds", "commands", "refused"),
    [
        (["manifest texts", "result texts"], ["head", "report"], False),
        (["linked folders"], ["report"], True),
    ],
)
def test_a_strangers_run_folder_is_data(kinds, commands, refused, browser, short, tmp_path):
    one = Stranger(tmp_path, short.path, "http://127.0.0.1:9/", Random(0))
    for kind in kinds:
        stranger_kinds.KINDS[kind](one)
    shown = ""
    for name in commands:
        come = commanded(browser, name, tmp_path, undrawn)
        shown += "".join(come.pages.values())
        assert bool(come.refused) == refused, come.refused
        assert come.wrong == []
        acting = come.active - {source.link for source in SOURCES.values()}
        assert len(acting) == len(come.pages) == (not refused)  # a script of ours in each page
    assert refused or any(text in shown for text in HOSTILE if LOUD in text)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize(
    ("name", "command", "outcome"),
    [
        ("folder deleted", "head", "told"),
        ("stdout closed", "analyses", "told"),
        ("stdout full", "help", "told"),
        ("stderr closed", "analyses", "done"),
        ("all closed", "help", "unheard"),
        ("usual", "long path", "told"),
        ("usual", "bytes output", "told"),
    ],
)
def test_an_odd_environment_ends_in_words(name, command, outcome, tmp_path):
    where = environments.ENVIRONMENTS[name]
    ended = environments.attempt(where, command, tmp_path)
    assert environments.outcome(where, ended) == outcome, ended


# --- would they find it? ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempts", "fails"),
    [
        ([], ["all"]),
        ([("kills", 1, 1)], []),
        ([("kills", 0, 1)], ["kills"]),
        ([("kills", 1, 1)] * 4 + [("kills", 0, 1)], []),
        ([("kills", 1, 1)] * 3 + [("kills", 0, 1)], ["kills"]),
        ([("kills", 9, 9), ("disks", 0, 0)], ["disks"]),
        ([("mostly", 1, 2)], []),
        ([("mostly", 1, 3)], ["mostly"]),
    ],
)
def test_a_trial_whose_faults_miss_fails(tmp_path, capsys, attempts, fails):
    tally = Tally(tmp_path)
    tally.share["mostly"] = 0.5
    for scenario, hits, tries in attempts:
        tally.add(scenario, "resumed equal", "", hits, tries)
    with pytest.raises(SystemExit) as ended, tally.told():
        pass
    assert tally.idle() == fails
    assert ended.value.code == bool(fails)
    shown = capsys.readouterr().out
    hits, tries = (sum(each[n] for each in attempts) for n in (1, 2))
    assert f"{hits} of {tries} hit" in shown
    assert shown.count("too few hit") == len(fails)


def replayed(*log: tuple[str, ...]) -> Disk:
    disk = Disk("/out")
    for name, path, *more in log:
        written = more[0].encode() if name == "write" else b""
        to = more[0] if name in ("rename", "link") else ""
        disk.apply({"name": name, "path": path, "to": to, "place": 0, "bytes": written})
    return disk


WRITTEN = (("create", "/out/draft"), ("write", "/out/draft", "new"))
RENAMED = ("rename", "/out/draft", "/out/file")
LINKED, REMOVED = ("link", *RENAMED[1:]), ("unlink", "/out/draft")


@pytest.mark.parametrize(
    ("log", "ordered", "zeros", "strict"),
    [
        ((*WRITTEN, RENAMED), {"file": b""}, {"file": bytes(3)}, {}),
        ((*WRITTEN, ("fsync", "/out/draft"), RENAMED), {"file": b"new"}, {"file": b"new"}, {}),
        (
            (*WRITTEN, ("fsync", "/out/draft"), RENAMED, ("fsync", "/out")),
            {"file": b"new"},
            {"file": b"new"},
            {"file": b"new"},
        ),
        (
            (*WRITTEN, ("fsync", "/out/draft"), LINKED, ("fsync", "/out"), REMOVED),
            {"file": b"new"},
            {"file": b"new"},
            {"draft": b"new", "file": b"new"},
        ),
    ],
    ids=["not synced", "synced", "and its folder", "linked"],
)
def test_a_power_loss_leaves_what_was_synced(log, ordered, zeros, strict):
    disk = replayed(*log)
    assert disk.after("ordered") == ordered
    assert disk.after("zeros") == zeros
    assert disk.after("strict") == strict


CARELESS = """
import os, sys
from pathlib import Path
from trials import shim
out = Path(sys.argv[1])
faults = shim.faults()
assert isinstance(faults, getattr(shim, sys.argv[4])), type(faults)
faults.arm(out, sys.argv[2], int(sys.argv[3]))
try:
    with open(out / "file", "wb") as file:
        file.write(b"abcd")
    os.link(out / "file", out / "other")
except OSError as error:
    print(os.strerror(error.errno))
else:
    print("done")
"""


@pytest.mark.parametrize("layer", ["Native", "InPython"])
@pytest.mark.parametrize(
    ("kind", "at", "ended", "left"),
    [
        ("broken", 0, "Input/output error", None),
        ("broken", 1, "Input/output error", b""),
        ("short", 1, "No space left on device", b"ab"),
        ("kill", 1, "", b""),
        ("full", 2, "No space left on device", b"abcd"),
        ("full", 3, "No space left on device", b"abcd"),
        ("broken", 3, "Input/output error", b"abcd"),
        ("full", 4, "done", b"abcd"),
    ],
)
def test_the_chosen_operation_fails_and_no_other(tmp_path, layer, kind, at, ended, left):
    if layer == "Native" and shim.library() is None:
        pytest.skip("needs a compiler of C, and Linux")
    environment = shim.environment()
    if layer == "InPython":
        environment.pop("LD_PRELOAD", None)
    command = [sys.executable, "-S", "-c", CARELESS, str(tmp_path), kind, str(at), layer]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout.strip() == ended, done.stderr
    file = tmp_path / "file"
    assert (file.read_bytes() if file.exists() else None) == left
