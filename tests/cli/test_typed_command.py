"""Are options declared by a class parsed into it, and may a file option take several files?"""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import click
import pytest
from click.testing import CliRunner

from headscope.cli import main
from headscope.cli.typed_command import group, typed_command
from headscope.core.options import Options, argument, flag, option, several


class Files(Options):
    """Options that stand in a group."""

    text: tuple[Path, ...] = several("Text.")
    coref: tuple[Path, ...] = several("Coreference.")


class Asked(Options):
    """Each kind of field that a command may have."""

    model: str = argument()
    output: str | None = option("Folder.", names="-o --output", heading="Where")
    files: Files = group("Files")
    settings: tuple[str, ...] = several("NAME=VALUE.", names="--set", heading="How")
    long: Literal["cut", "skip"] = option("What to do else.", default="cut")
    batch_tokens: Annotated[int, click.IntRange(2)] = option("Of a batch.", default=8)
    quiet: bool = flag("Nothing is said.")


@typed_command("show", Asked)
def show(given: Asked) -> None:
    """Show what is asked."""
    told = asdict(given)
    click.echo({k: v for k, v in {**told.pop("files"), **told}.items() if v})


ALWAYS = {"long": "cut", "batch_tokens": 8}


def test_fields_become_options_of_their_types_in_their_order_and_below_their_headings():
    shown = CliRunner().invoke(show, ["--help"]).output
    assert (
        shown.split("Show what is asked.")[1]
        == """

Where:
  -o, --output TEXT  Folder.

Files:
  --text PATH   Text.
  --coref PATH  Coreference.

How:
  --set TEXT                    NAME=VALUE.
  --long [cut|skip]             What to do else.  [default: cut]
  --batch-tokens INTEGER RANGE  Of a batch.  [default: 8; x>=2]
  --quiet                       Nothing is said.

Other options:
  --help  Show this message and exit.
"""
    )


def test_a_group_keeps_its_options_and_its_values_can_be_made_without_a_command_line():
    assert Files(text=(Path("a"),)) == Files(text=(Path("a"),), coref=())
    with pytest.raises(TypeError, match="model"):
        Asked(files=Files())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("demo --text a b --coref c", {"text": "a b", "coref": "c"}),
        ("demo --text a --text b c -o run", {"text": "a b c", "output": "run"}),
        ("demo --text a b --quiet", {"text": "a b", "quiet": True}),
        ("--text a demo", {"text": "a"}),
        ("-o run demo --text a b", {"text": "a b", "output": "run"}),
        ("--text=a demo --coref c d", {"text": "a", "coref": "c d"}),
    ],
)
def test_files_behind_an_option_are_all_its_own(line: str, expected: dict[str, object]) -> None:
    wanted = {
        k: tuple(map(Path, v.split())) if k in ("text", "coref") else v  # type: ignore[union-attr]
        for k, v in expected.items()
    }
    result = CliRunner().invoke(show, line.split())
    assert result.exit_code == 0, result.output
    found = eval(result.output, {"PosixPath": Path, "WindowsPath": Path})
    assert found == {"model": "demo", **ALWAYS, **wanted}


@pytest.mark.parametrize(
    "line", ["demo --set a b", "demo --quiet b", "demo b", "--text", "demo -- --text a b"]
)
def test_other_words_are_still_refused(line: str) -> None:
    assert CliRunner().invoke(show, line.split()).exit_code == 2


class Placed(Options):
    """A path with a default that other fields make."""

    model: str = argument()
    output: Path = option("Folder.", names="-o --output", usual="shown-{model}")


@typed_command("place", Placed)
def place(given: Placed) -> None:
    """Show where."""
    click.echo(f"into {given.output}")


def test_a_path_that_is_not_given_is_made_of_other_fields_and_printed():
    runner = CliRunner()
    for model in ("bert-rte", "./models/bert-rte", "owner/bert-rte/"):
        done = runner.invoke(place, [model])
        assert done.stdout == "into shown-bert-rte\n"
        assert done.stderr == "headscope: --output shown-bert-rte\n"
    done = runner.invoke(place, ["demo", "-o", "mine"])
    assert (done.stdout, done.stderr) == ("into mine\n", "")
    assert "[default: (shown-MODEL)]" in runner.invoke(place, ["--help"]).output


WRITES = (
    *("atlas", "finetune", "study", "evolve", "ablate", "importance", "prune", "compare"),
    *("reproduce", "probe", "zoo"),
    *("patterns.annotate", "patterns.train", "patterns.apply"),
)


def command_of(name: str) -> click.Command:
    command: click.Command = main.group
    for part in name.split("."):
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), part)
        assert found is not None
        command = found
    return command


@pytest.mark.parametrize("name", WRITES)
def test_every_command_that_writes_has_a_usual_place(name: str) -> None:
    (output,) = (p for p in command_of(name).params if p.name == "output")
    assert isinstance(output, click.Option)
    assert not output.required
    assert isinstance(output.show_default, str)


@pytest.mark.parametrize("name", main.COMMANDS)
def test_long_help_begins_with_at_most_ten_options_and_has_each_once(name: str) -> None:
    command = command_of(name)
    text = CliRunner().invoke(command, ["--help"], terminal_width=200).output
    options = [p for p in command.params if isinstance(p, click.Option)]
    for option_ in options:
        flag_ = max(option_.opts, key=len)
        assert len(re.findall(rf"^  (?:-\w, )?{flag_}\b(?!-)", text, re.MULTILINE)) == 1, flag_
    blocks = re.findall(r"^(\S.*):\n((?:  .*\n)+)", text, re.MULTILINE)
    if len(options) > 15:
        heading, rows = next(block for block in blocks if "--" in block[1])
        assert heading == "Most used"
        assert 5 <= len(re.findall(r"^  -", rows, re.MULTILINE)) <= 10
