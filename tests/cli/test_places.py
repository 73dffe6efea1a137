"""Do commands that write to one place refuse each other, build again what was deleted there, and
read what cannot be written?
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

import headscope as hs
from cli.conftest import refused
from experiments.circuits.made import saved, small
from experiments.map_classifier.made import make_drawn
from experiments.probes.made import treebank
from headscope.analyses.patterns.classes import NAMES
from headscope.cli.main import COMMANDS, LazyGroup
from headscope.core.whole_file import held, write_whole
from headscope.experiments.map_classifier.annotation_session import Session
from headscope.run.store import RunFolder
from tasks.made import MOOD, checkpoint, rows, write_tsv

TASK = ("--task", "mood", "--data", "mood")
TEXT = ("--text", "text.txt")
TREES = ("--train", "a.conllu", "--test", "b.conllu")
SMALL = ("--replicates", 2, "--linears", "stock")
WRITING = {
    "atlas": ("model", *TEXT, "--analyses", "entropy", *SMALL),
    "compare": ("model", "other", *TEXT, "--analyses", "entropy", *SMALL),
    "ablate": ("model", *TASK, *SMALL),
    "importance": ("model", *TASK, *SMALL),
    "explain": ("model", "--demo", "--limit", 3, "--score", "vectors", "--inputs", 6, *SMALL),
    "trial": ("finished", *TEXT, "--rules", "mine.json", *SMALL),
    "prune": ("model", *TASK, *SMALL),
    "finetune": ("other", *TASK),
    "study": ("other", "--tasks", *TASK[1:], "--seeds", 1, "--epochs", 1, *SMALL),
    "probe": (
        "model",
        "--train",
        "a.conllu",
        "--test",
        "b.conllu",
        "--probes",
        "attention",
        *SMALL,
    ),
    "zoo": ("model", *TEXT, "--analyses", "entropy", *SMALL),
    "evolve": ("1=model", "2=other", *TEXT, "--analyses", "entropy", *SMALL),
    "reproduce": ("kobayashi2020", "--model", "model"),
    "circuits": (
        "decoder",
        "--sequences",
        12,
        "--length",
        8,
        "--haystack",
        0,
        "--no-successors",
        "--no-composition",
        "--control",
        "none",
        "--replicates",
        2,
    ),
    "patterns train": ("--labels", "session", "--without-bundled"),
    "patterns apply": ("model", *TEXT),
    "patterns annotate": ("model", *TEXT, "--no-browser"),
}
RUNS = ("atlas", "compare", "ablate", "study", "importance", "probe", "zoo", "circuits")
PAGES = {"view", "head"}  # one file, written whole: who ends last is there
SITES = {"export"}  # of a finished run: see report/test_site.py


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """All that the commands read."""
    folder = tmp_path_factory.mktemp("made")
    checkpoint(folder / "model", head=MOOD)
    checkpoint(folder / "other", seed=1)
    saved(folder / "decoder", small())
    write_tsv(folder / "mood/train.tsv", rows(12))
    write_tsv(folder / "mood/dev.tsv", rows(12, seed=1))
    for seed, name in enumerate("ab"):
        treebank(folder / f"{name}.conllu", 12, seed=seed)
    (folder / "text.txt").write_text("The cat a b . The cats.\n\nA cat. a b , b the cat a b.\n")
    texts, output = hs.corpus_of(folder / "text.txt"), folder / "finished"
    hs.atlas(folder / "other", texts, analyses=["entropy"], control="none", output=output)
    mine = {"heads": {"0.0": {"rules": [{"rule": "the previous token"}]}}}
    (folder / "mine.json").write_text(json.dumps(mine), "utf-8")
    session = Session.create(folder / "session", make_drawn(10))
    for number in range(10):
        session.label("a", number, NAMES[number % 5])
    return folder


@pytest.fixture
def desk(made, tmp_path) -> Path:
    for file in made.iterdir():
        (tmp_path / file.name).symlink_to(file)
    return tmp_path


@pytest.mark.parametrize("command", WRITING)
def test_a_place_that_is_written_to_is_refused(command, headscope, desk):
    before = sorted(os.listdir(desk))
    with held(desk / "taken"):
        done = headscope(*command.split(), *WRITING[command], "-o", "taken")
    refused_by = f"another headscope (process {os.getpid()} on "
    assert refused_by in done.err, done.err
    assert "is writing to taken\nwait until it has finished, or choose another folder" in done.err
    assert done.code == 2
    assert sorted(os.listdir(desk)) == before


def test_no_command_that_writes_a_folder_is_left_out():
    """Each has -o, and is among those above, or writes but one page."""
    group, found = LazyGroup("headscope"), set()
    for name in COMMANDS:
        command = group.get_command(None, name)
        for path, one in {name: command, **getattr(command, "commands", {})}.items():
            if any("-o" in parameter.opts for parameter in one.params):
                found.add(path if one is command else f"{name} {path}")
    assert found == set(WRITING) | PAGES | SITES


def test_a_report_waits_for_the_run_and_is_not_put_beside_other_results(headscope, desk):
    given = (*WRITING["atlas"], "--no-report", "-o", "run")
    assert headscope("atlas", *given).code == 0
    with held(desk / "run"):
        refused(headscope("report", "run"), "is writing to run\n")
    run = hs.open_run("run")
    assert headscope("atlas", *given, "--seed", 1, "--overwrite").code == 0
    with pytest.raises(hs.HeadscopeError, match="has new results since this run was opened"):
        run.report()
    assert not (desk / "run/report.html").exists()


def test_the_curves_of_prune_need_a_folder_of_their_own(headscope, desk):
    done = headscope("prune", *WRITING["prune"], "-o", "here", "--run", "here")
    refused(done, "found -o here and --run here; wanted two folders")


# --- what was deleted -------------------------------------------------------------------------


def files(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What is there, with what changes if it is written, or if in a folder anything is made."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        stat = path.stat()
        found[path.relative_to(folder).as_posix()] = stat.st_ino, stat.st_size, stat.st_mtime_ns
    return found


def small_report(_run, folder: Path) -> Path:
    """In place of the report, which takes seconds."""
    with RunFolder(folder).listing():
        for name in ("tables/a.csv", "figures/a.svg", "figures/b/c.svg", "report.html"):
            write_whole(folder / name, b"as always")
    return folder / "report.html"


@pytest.mark.parametrize("command", RUNS)
def test_the_same_command_builds_again_what_was_deleted(command, headscope, desk, monkeypatch):
    """Once it said that all was there, as the page was."""
    monkeypatch.setattr(hs, "write_report", small_report, raising=False)
    given = (command, *WRITING[command], "-o", "run")
    assert headscope(*given).code == 0
    for run in [file.parent for file in (desk / "run").rglob("atlas.nc")]:
        before = files(run)
        shutil.rmtree(run / "tables")
        (run / "figures/b/c.svg").rename(run / "figures/b/.part-0123")  # as of a killed report
        assert headscope(*given).code == 0
        after = files(run)
        assert after.keys() == before.keys()
        computed = [name for name in before if name == "atlas.nc" or name.startswith("shards/")]
        assert [after[name] for name in computed] == [before[name] for name in computed]


def test_what_is_all_there_is_not_built_again(headscope, desk, monkeypatch):
    monkeypatch.setattr(hs, "write_report", small_report, raising=False)
    given = ("atlas", *WRITING["atlas"], "-o", "run")
    assert headscope(*given).code == 0
    before = files(desk / "run")
    assert headscope(*given).code == 0
    assert files(desk / "run").items() - before.items() == set()


# --- what cannot be written -------------------------------------------------------------------


@contextmanager
def read_only(folder: Path):
    """Nothing can be written into the folder, where we may say so (root); and nothing is."""
    before = files(folder)
    mounted = subprocess.run(
        ["mount", "--bind", "-o", "ro", str(folder), str(folder)], capture_output=True, check=False
    )
    try:
        yield not mounted.returncode
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", "-l", str(folder)], check=True)
    assert files(folder) == before


@pytest.fixture
def finished(made, tmp_path) -> Path:
    """A finished run, what it read, and a session, in a folder of their own."""
    folder = shutil.copytree(made, tmp_path / "finished")
    run = hs.atlas(
        hs.load(str(folder / "model")),
        hs.corpus.TextCorpus(folder / "text.txt"),
        output=folder / "run",
        analyses=["entropy"],
        replicates=2,
        execution=hs.Execution(linears="stock"),
    )
    small_report(run, folder / "run")
    Session(folder / "session").label("b", 1, NAMES[0])
    return folder


READING = (
    ("head", "finished/run", "L1H1"),
    ("head", "finished/run", "L1H1", "-o", "card.html"),
    ("view", "finished/model", "the cat", "--atlas", "finished/run", "-o", "cat.html"),
    ("doctor", "finished/model", "--text", "finished/text.txt"),
    ("patterns", "agreement", "finished/session"),
    ("compare", "finished/other", "finished/model", "--text", "finished/text.txt", "--analyses",
     "entropy", *SMALL, "--no-report", "-o", "compared"),
)  # fmt: skip


def test_who_only_reads_writes_nothing_and_needs_not_to(headscope, finished):
    with read_only(finished) as really:
        for command in READING:
            done = headscope(*command)
            assert done.code == 0, (command, done.err)
        run = hs.open_run(finished / "run")
        assert run.has_report
        assert run._repr_html_()
        if really:
            with pytest.raises(OSError, match="Read-only"):
                (finished / "new").touch()
            refused(headscope("report", "finished/run"), "cannot write finished/run: Read-only")
