"""Is a command of another package listed and run as ours are?"""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import strangers
from headscope.cli.main import announced_commands, group

CODE = """
import click

@click.command("largest")
@click.argument("run")
def largest(run):
    \"\"\"Name the largest head of RUN.\"\"\"
    click.echo(f"L1H1 of {run}")

NONE = "no command"
"""
ENTRIES = """
[headscope.commands]
largest = mine:largest
none = mine:NONE
gone = mine:gone
atlas = mine:largest
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    strangers.install(tmp_path, monkeypatch, CODE, ENTRIES)
    announced_commands.cache_clear()
    yield
    announced_commands.cache_clear()


def test_it_is_listed_behind_ours_and_run(installed):
    said = CliRunner().invoke(group, ["--help"]).output
    assert said.index("doctor ") < said.index("largest     Name the largest head of RUN.")
    assert CliRunner().invoke(group, ["largest", "run"]).output == "L1H1 of run\n"


def test_one_that_is_none_is_said_so_and_a_name_of_ours_stays_ours(installed):
    said = CliRunner().invoke(group, ["--help"]).output
    assert said.count("cannot be used: ") == 2
    assert "mine:NONE is no command" in str(CliRunner().invoke(group, ["none"]).exception)
    assert announced_commands()["atlas"].value == "headscope.cli.atlas:atlas_command"
