"""Do commands that write to one place refuse each other, and say who is there?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cli.conftest import refused
from experiments.map_classifier.made import make_drawn
from experiments.probes.made import treebank
from headscope.analyses.patterns.classes import NAMES
from headscope.cli.main import COMMANDS, LazyGroup
from headscope.core.whole_file import held
from headscope.experiments.map_classifier.annotation_session import Session
from tasks.made import MOOD, checkpoint, rows, write_tsv

TASK = ("--task", "mood", "--data", "mood")
TEXT = ("--text", "text.txt")
SMALL = ("--replicates", 2, "--linears", "stock")
WRITING = {
    "atlas": ("model", *TEXT, "--analyses", "entropy", *SMALL),
    "compare": ("model", "other", *TEXT, "--analyses", "entropy", *SMALL),
    "ablate": ("model", *TASK, *SMALL),
    "importance": ("model", *TASK, *SMALL),
    "prune": ("model", *TASK, *SMALL),
    "finetune": ("other", *TASK),
    "probe": ("model", "--train", "a.conllu", "--test", "b.conllu", *SMALL),
    "zoo": ("model", *TEXT, "--analyses", "entropy", *SMALL),
    "reproduce": ("kobayashi2020", "--model", "model"),
    "patterns train": ("--labels", "session", "--without-bundled"),
    "patterns apply": ("model", *TEXT),
    "patterns annotate": ("model", *TEXT, "--no-browser"),
}
PAGES = {"view", "head"}  # one file, written whole: who ends last is there


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """All that the commands read."""
    folder = tmp_path_factory.mktemp("made")
    checkpoint(folder / "model", head=MOOD)
    checkpoint(folder / "other", seed=1)
    write_tsv(folder / "mood/train.tsv", rows(12))
    write_tsv(folder / "mood/dev.tsv", rows(12, seed=1))
    for seed, name in enumerate("ab"):
        treebank(folder / f"{name}.conllu", 12, seed=seed)
    (folder / "text.txt").write_text("The cat a b . The cats.\n\nA cat. a b , b the cat a b.\n")
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
    assert found == set(WRITING) | PAGES


def test_a_report_waits_for_the_run_and_is_not_put_beside_other_results(headscope, desk):
    given = (*WRITING["atlas"], "--no-report", "-o", "run")
    assert headscope("atlas", *given).code == 0
    with held(desk / "run"):
        refused(headscope("report", "run"), "is writing to run\n")
    import headscope as hs

    run = hs.open_run("run")
    assert headscope("atlas", *given, "--seed", 1, "--overwrite").code == 0
    with pytest.raises(hs.HeadscopeError, match="holds other results than this run's by now"):
        run.report()
    assert not (desk / "run/report.html").exists()


def test_the_curves_of_prune_need_a_folder_of_their_own(headscope, desk):
    done = headscope("prune", *WRITING["prune"], "-o", "here", "--run", "here")
    refused(done, "found -o here and --run here; wanted two folders")
