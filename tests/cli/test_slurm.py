"""Does the script for Slurm say what it was given, whatever is in it?"""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from headscope.cli.main import group
from headscope.errors import HeadscopeError, InputError

HOSTILE = ["a b", "$(touch x)", "`id`", "it's", '"', "\\", "*", "~", "é😀", "!$HOME;#", "{a,b}", ""]


def script_of(*words, **more):
    result = CliRunner().invoke(group, ["slurm", *words], **more)
    assert result.exit_code == 0, result.exception
    return result.output


@pytest.fixture
def telling(tmp_path, monkeypatch):
    """In Python's place a program that writes its folder and its arguments to a file."""
    program = tmp_path / "pro gram"
    program.write_text('#!/bin/sh\npwd > "$TOLD"\nprintf "%s\\0" "$@" >> "$TOLD"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(program))

    def told(script, task):
        environment = {**os.environ, "TOLD": str(tmp_path / "told"), "SLURM_ARRAY_TASK_ID": task}
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        subprocess.run(["bash"], input=script, text=True, check=True, env=environment, cwd="/")
        folder, _, arguments = (tmp_path / "told").read_text("utf-8").partition("\n")
        return folder, arguments.split("\0")[:-1]

    return told


def test_each_task_is_given_the_arguments_as_they_are_and_its_share(tmp_path, telling, monkeypatch):
    place = tmp_path / "$(x) it's"
    place.mkdir()
    monkeypatch.chdir(place)
    words = ["demo", *(w for text in HOSTILE for w in ("--text", text)), "-o", "-r u n", "--demo"]
    folder, given = telling(script_of("atlas", *words, "--tasks", "64"), "7")
    assert folder == str(place)
    assert given == ["-m", "headscope", "atlas", *words, "--shard", "7/64"]
    assert sorted(p.name for p in place.iterdir()) == []


def test_a_share_stands_before_two_dashes(telling):
    words = ["--tasks", "2", "--", "atlas", "--demo", "--", "--model"]
    _, given = telling(script_of(*words), "2")
    assert given[-5:] == ["--demo", "--shard", "2/2", "--", "--model"]


@pytest.mark.parametrize(
    "words",
    [
        ["zoo", "a", "b", "--text", "t.txt"],
        ["ablate", "a", "--task", "rte"],
        ["importance", "a", "--text", "t.txt"],
        ["explain", "a", "--text", "t.txt"],
        ["trial", "a", "--text", "t.txt"],
        ["probe", "a", "--train", "t", "--test", "t"],
    ],
)
def test_every_command_that_processes_share_is_taken(words):
    last = script_of(*words, "--tasks", "3").splitlines()[-1]
    said = f"headscope {' '.join(words)}"
    assert last.endswith(f'{said} --shard "$SLURM_ARRAY_TASK_ID/3"')


def test_what_slurm_is_asked_stands_in_the_script():
    asked = ["--time", "4:00:00", "--mem", "16G", "--gpus", "a100:2", "--partition", "long,short"]
    lines = script_of("atlas", "demo", "--demo", "--tasks", "9", *asked, "--cpus", "3").splitlines()
    assert lines[0] == "#!/bin/bash"
    wanted = {
        "--array=1-9",
        "--requeue",
        "--time=4:00:00",
        "--mem=16G",
        "--gpus=a100:2",
        "--partition=long,short",
        "--cpus-per-task=3",
    }
    assert {line.removeprefix("#SBATCH ") for line in lines} >= wanted
    first = next(n for n, line in enumerate(lines) if not line.startswith("#"))
    assert not [line for line in lines[first:] if line.startswith("#SBATCH")]  # not read there


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["view", "demo"],
            "found 'view'; wanted headscope slurm atlas|zoo|ablate",
        ),
        ([], "found no command"),
        (
            ["atlas", "demo", "--demo", "--workers", "2"],
            "--shard cannot be combined with --workers",
        ),
        (["atlas", "demo", "--demo", "--overwrite"], "or --overwrite"),
        (["atlas", "demo", "--demo", "--shard", "1/2"], "found --shard; leave it out"),
        (["atlas", "demo", "--text", "a\nb"], "wanted printable arguments"),
        (["atlas", "demo", "--demo", "--time", "1\n#SBATCH --x"], "wanted letters, digits and"),
        (["atlas", "demo", "--demo", "--tasks", "100001"], "found shard 1/100001"),
    ],
)
def test_what_a_task_would_refuse_is_refused_at_once(words, message):
    result = CliRunner().invoke(group, ["slurm", *words])
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_an_option_that_atlas_does_not_have_is_named():
    result = CliRunner().invoke(group, ["slurm", "atlas", "demo", "--demo", "--bogus", "1"])
    assert result.exit_code == 2
    assert "No such option" in result.output


@pytest.mark.parametrize(
    ("sbatch", "said"), [("cat > script; echo batch job 5", None), ("echo no >&2; exit 1", "no")]
)
def test_the_script_is_handed_to_sbatch(tmp_path, monkeypatch, sbatch, said):
    program = tmp_path / "sbatch"
    program.write_text(f"#!/bin/sh\n{sbatch}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    words = ["slurm", "atlas", "demo", "--demo"]
    result = CliRunner().invoke(group, [*words, "--submit"])
    if said is None:
        assert result.output == "batch job 5\n"
        script = CliRunner().invoke(group, words).output
        assert Path("script").read_text("utf-8").strip() == script.strip()
    else:
        assert isinstance(result.exception, HeadscopeError)
        assert "sbatch refused the script: no" in str(result.exception)


def test_without_sbatch_there_is_still_the_script(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = CliRunner().invoke(group, ["slurm", "atlas", "demo", "--demo", "--submit"])
    assert isinstance(result.exception, InputError)
    assert "there is no sbatch on this machine" in str(result.exception)
