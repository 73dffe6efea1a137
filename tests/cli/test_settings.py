"""Do defaults come from headscope.toml and HEADSCOPE_… variables, in their order, and visibly?"""

import json
from pathlib import Path

import click
import pytest

from headscope.cli.defaults import FILE
from headscope.cli.typed_command import typed_command
from headscope.core.options import Options, argument, flag, option, several

from .conftest import refused


class Shown(Options):
    """An option of each kind."""

    model: str = argument()
    device: str = option("Where.", "cpu")
    limit: int | None = option("How many.", least=1)
    text: tuple[str, ...] = several("Texts.")
    no_report: bool = flag("Results only.")
    successors: bool = flag("Which succeed.", True, off="Leave them out.")
    quiet: bool = flag("Say nothing.")


@typed_command("show", Shown)
def show(options: Shown) -> None:
    """Show the options."""
    click.echo(json.dumps(vars(options)))


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """The options of a command, with a file of settings and variables."""
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)

    def run(*words, file="", group=False, **variables):
        Path(FILE).write_text(file)
        environment = {f"HEADSCOPE_{name.upper()}": value for name, value in variables.items()}
        command = click.Group("all", commands={"show": show}) if group else show
        words = ["show", *words] if group else words
        done = CliRunner().invoke(command, [*words, "demo"], env=environment)
        if done.exception is not None:
            raise done.exception
        return {**json.loads(done.stdout), "said": done.stderr}

    return run


def test_an_option_comes_before_a_variable_and_that_before_the_file(shown):
    file = 'device = "mps"\nlimit = 3\n[show]\nlimit = 4\n'
    assert shown()["device"] == "cpu"
    assert shown()["said"] == ""
    of_file = shown(file=file, group=True)
    assert (of_file["device"], of_file["limit"]) == ("mps", 4)
    said = "headscope: set by headscope.toml: --device mps; headscope.toml [show]: --limit 4\n"
    assert of_file["said"] == said
    both = shown(file=file, group=True, limit="5")
    assert (both["limit"], "HEADSCOPE_LIMIT: --limit 5" in both["said"]) == (5, True)
    typed = shown("--limit", "6", "--device", "xpu", file=file, group=True, limit="5")
    assert (typed["limit"], typed["device"], typed["said"]) == (6, "xpu", "")


def test_switches_and_lists_are_set_too(shown):
    file = 'no_report = true\nno-successors = true\ntext = ["a", "b"]\nquiet = true\n'
    seen = shown(file=file)
    assert (seen["no_report"], seen["successors"], seen["text"]) == (True, False, ["a", "b"])
    assert (seen["quiet"], seen["said"]) == (True, "")
    assert shown(file=file, no_report="0", quiet="no")["no_report"] is False
    assert shown(file="no-successors = false")["successors"] is True


@pytest.mark.parametrize(
    ("file", "variables", "says"),
    [
        ("devise = 1", {}, "headscope.toml sets 'devise', which is no option of any command; did "),
        ("", {"devise": "cpu"}, "HEADSCOPE_DEVISE sets 'devise', which is no option"),
        ("[show]\ndevise = 1", {}, r"headscope.toml \[show\] sets 'devise', which is no option of"),
        ("limit = 0", {}, r"headscope.toml sets limit = 0: 0 is not in the range x>=1\ncorrect or"),
        ("limit = [1, 2]", {}, r"sets limit = \[1, 2\]: wanted one value"),
        ("limit = true", {}, "sets limit = true: wanted a text or a number"),
        ("", {"limit": "many"}, "HEADSCOPE_LIMIT sets limit = 'many': 'many' is not a valid int"),
        ("", {"quiet": "perhaps"}, "sets quiet = 'perhaps': wanted true or false"),
        ("device = ", {}, r"headscope.toml in this folder is no TOML \("),
        ('scheduler = "tcp://a:1"', {}, "sets scheduler, which is never a default"),
        ("trust-remote-code = true", {}, "sets trust-remote-code, which is never a default; rem"),
        ("", {"overwrite": "1"}, "HEADSCOPE_OVERWRITE sets overwrite, which is never a default"),
    ],
)
def test_what_is_set_wrongly_is_refused_with_its_place(shown, file, variables, says):
    from headscope.errors import InputError

    with pytest.raises(InputError, match=says):
        shown(file=file, group=True, **variables)


def test_settings_of_a_run_are_in_its_spec_and_in_its_command(headscope, atlas, tmp_path):
    """What changes numbers is told as an option is: else a run could not be made again."""
    (tmp_path / FILE).write_text("[atlas]\nlimit = 1\nseed = 7\n")
    done = atlas("--demo", "--seed", 8)
    assert done.code == 0, done.err
    assert "headscope: set by headscope.toml [atlas]: --limit 1\n" in done.err
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["spec"]["settings"]["limit"] == 1
    assert manifest["seed"] == 8
    assert manifest["command"].endswith(" --seed 8 --limit 1")


def test_headscope_settings_shows_each_value_with_its_place(headscope, monkeypatch, tmp_path):
    (tmp_path / FILE).write_text('device = "cpu"\nzero_based = true\n[atlas]\nlimit = 3\n')
    monkeypatch.setenv("HEADSCOPE_THREADS", "2")
    rows = {row["name"]: row for row in json.loads(headscope("settings", "--json").out)}
    places = {name: (row["value"], row["source"]) for name, row in rows.items()}
    assert places["device"] == ("cpu", FILE)
    assert places["zero-based"] == (True, FILE)
    assert places["threads"] == ("2", "HEADSCOPE_THREADS")
    assert places["atlas: limit"] == (3, f"{FILE} [atlas]")
    assert places["dtype"] == ("float32", "default")
    lines = headscope("settings", "atlas").out.splitlines()
    assert any(line.split() == ["limit", "3", FILE, "[atlas]"] for line in lines)
    assert any(line.split() == ["seed", "0", "default"] for line in lines)
    (tmp_path / FILE).write_text("[atlsa]\nlimit = 3\n")
    refused(headscope("settings"), "no command called 'atlsa'; did you mean 'atlas'?")
    assert headscope("atlas", "--help").code == 0


def test_names_count_from_0_where_the_file_says_so(headscope, tmp_path):
    (tmp_path / FILE).write_text("zero-based = true\n")
    refused(headscope("view", "demo", "A cat.", "--open", "L"), "from 0, as TransformerLens")
