"""Are options declared by a class parsed into it, and may a file option take several files?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import click
import pytest
from click.testing import CliRunner

from headscope.cli.typed_command import (
    Options,
    argument,
    flag,
    group,
    option,
    several,
    typed_command,
)


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
