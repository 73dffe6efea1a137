"""Do file options take several files each, as a shell's `*` gives them?"""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from headscope.cli.long_command import long_command


@click.command(cls=long_command({}))
@click.argument("model")
@click.option("--text", type=click.Path(path_type=Path), multiple=True)
@click.option("--coref", type=click.Path(path_type=Path), multiple=True)
@click.option("-o", "--output")
@click.option("--set", "options", multiple=True)
@click.option("--quiet", is_flag=True)
def show(**given: object) -> None:
    click.echo({k: v for k, v in given.items() if v})


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
    assert found == {"model": "demo", **wanted}


@pytest.mark.parametrize(
    "line", ["demo --set a b", "demo --quiet b", "demo b", "--text", "demo -- --text a b"]
)
def test_other_words_are_still_refused(line: str) -> None:
    assert CliRunner().invoke(show, line.split()).exit_code == 2
