"""Tiny inputs on which every command that writes can be run, and these commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # its made models

OUT = "out"  # below the desk: what a command writes, and where its operations fail
QUICK = ("--replicates", "2", "--linears", "stock")
TEXT = ("--text", "a.txt", "--documents", "blank-line")
ATLAS = (
    "atlas",
    "model",
    *TEXT,
    *QUICK,
    "--analyses",
    "surface,entropy",
    "--shard-tokens",
    "8",
    "--control",
    "none",
    "-o",
    "out/run",
)
# More shards than are merged at once.
MANY = ("atlas", "model", "--text", "c.txt", *ATLAS[4:], "--limit", "12")
TASK = ("--task", "mood", "--data", "data")
PROBE = ("--train", "train.conllu", "--test", "test.conllu", "--structural-epochs", "1")
SESSION = (
    "patterns",
    "annotate",
    "model",
    "--text",
    "b.txt",
    "--maps",
    "4",
    "--sheets",
    "-o",
    "out/session",
)
LABELS = "vertical", "diagonal", "block"


@dataclass(frozen=True)
class Scenario:
    """A command whose operations fail.

    run     what fails, below the desk
    before  commands that make what it starts from
    """

    name: str
    run: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()

    def work(self, desk: Path) -> Callable[[], None]:
        """To be done in a child."""
        return _of(self.run, desk)


def _of(command: tuple[str, ...], desk: Path) -> Callable[[], None]:
    from trials.forked import headscope

    if command[0] == "label":
        return lambda: label(desk)
    return lambda: headscope(command, desk)


SCENARIOS = {
    each.name: each
    for each in (
        Scenario("atlas", (*ATLAS, "--no-report")),
        Scenario("together", (*MANY, "--no-report")),
        Scenario("shard", (*MANY, "--no-report", "--shard", "1/2")),
        Scenario("report", ("report", "out/run"), ((*ATLAS, "--no-report"),)),
        Scenario("export", ("export", "out/run", "-o", "out/site"), ((*ATLAS, "--no-report"),)),
        Scenario(
            "overwrite",
            (*ATLAS, "--no-report", "--seed", "1", "--overwrite"),
            ((*ATLAS, "--no-report"),),
        ),
        Scenario("probe", ("probe", "model", *PROBE, *QUICK, "--no-report", "-o", "out/run")),
        Scenario("ablate", ("ablate", "model", *TASK, *QUICK, "--no-report", "-o", "out/run")),
        Scenario(
            "importance",
            (
                "importance",
                "model",
                *TASK,
                *QUICK,
                "--steps",
                "2",
                "--ablate",
                "zero",
                "--no-report",
                "-o",
                "out/run",
            ),
        ),
        Scenario(
            "finetune",
            ("finetune", "model", *TASK, "--epochs", "1", "--batch", "8", "-o", "out/ckpt"),
        ),
        Scenario(
            "prune",
            (
                "prune",
                "model",
                *TASK,
                *QUICK,
                "--step",
                "2",
                "--draws",
                "1",
                "--choose",
                "12",
                "--remove",
                "2",
                "--run",
                "out/run",
                "-o",
                "out/ckpt",
            ),
        ),
        Scenario("annotate", SESSION),
        Scenario("labels", ("label",), (SESSION,)),
    )
}


def lay(desk: Path) -> Path:
    """Put the inputs on the desk."""
    from experiments.probes.made import treebank
    from tasks.made import MOOD, checkpoint, rows, write_tsv

    desk.mkdir(parents=True, exist_ok=True)
    checkpoint(desk / "model", head=MOOD)
    (desk / "a.txt").write_text("\n\n".join(["the cat a b ."] * 6), "utf-8")
    (desk / "b.txt").write_text("\n\n".join(["the cat a b . " * 3] * 6), "utf-8")
    (desk / "c.txt").write_text(
        "\n\n".join(f"the cat {'a b ' * (n % 40)}." for n in range(200)), "utf-8"
    )
    write_tsv(desk / "data/train.tsv", rows(16, seed=1))
    write_tsv(desk / "data/dev.tsv", rows(12, seed=2))
    treebank(desk / "train.conllu", 20)
    treebank(desk / "test.conllu", 10, seed=1)
    (desk / OUT).mkdir()
    return desk


def prepare(scenario: Scenario, desk: Path) -> None:
    """Make what the scenario starts from, in this process's child."""
    from trials.forked import forked

    for command in scenario.before:
        done = forked(_of(command, desk), desk / "streams")
        if done.code:
            raise RuntimeError(f"{command}: {done.err}")


def label(desk: Path) -> None:
    """Label the maps of the session that are not labelled yet, as the annotation page does."""
    from headscope.cli.terminal_output import complain
    from headscope.errors import HeadscopeError
    from headscope.experiments.map_classifier.annotation_session import Session

    os.chdir(desk)
    try:
        session = Session("out/session")
        done = session.labels("a")
        for number, name in enumerate(LABELS):
            if number not in done:
                session.label("a", number, name)
                print("kept", number, flush=True)
    except (HeadscopeError, OSError) as error:  # as the server does
        complain(str(error))
        sys.exit(1)
