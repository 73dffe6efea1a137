"""Does a shell complete commands, options, and the values of some?"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from commands import PATIENCE
from headscope.cli.main import group
from headscope.experiments.circuits.made_prompts import MADE


@pytest.fixture
def completed(tmp_path, monkeypatch):
    """What is offered for the last word."""
    monkeypatch.chdir(tmp_path)
    shell = BashComplete(group, {}, "headscope", "_HEADSCOPE_COMPLETE")

    def run(*words):
        offered = shell.get_completions(list(words[:-1]), words[-1])
        return [one.value for one in offered if one.type == "plain"]

    return run


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["atl"], ["atlas"]),
        (["atlas", "--max"], ["--max-length"]),
        (["atlas", "de"], ["demo", "demo-decoder"]),
        (["compare", "demo", "demo-"], ["demo-decoder"]),
        (["atlas", "demo", "--device", "c"], ["cpu", "cuda"]),
        (["atlas", "demo", "--long", "s"], ["skip"]),
        (["atlas", "demo", "--analyses", "surface,entr"], ["surface,entropy"]),
        (["circuits", "demo", "--prompts", ""], list(MADE)),
        (["patterns", "ann"], ["annotate"]),
    ],
)
def test_names_and_values_are_completed(completed, words, offered):
    assert completed(*words) == offered


def test_a_faulty_file_of_settings_is_no_matter_while_a_word_is_completed(completed, tmp_path):
    (tmp_path / "headscope.toml").write_text("devise = ")
    assert completed("atlas", "demo-") == ["demo-decoder"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["atlas", "demo", "--device", "c"], ["cpu", "cuda"]),
        (["circuits", "demo-decoder", "--prompts", "io"], ["ioi"]),
        (["atl"], ["atlas"]),
    ],
)
def test_bash_offers_them(words, offered, tmp_path):
    script = f"""
        eval "$(_HEADSCOPE_COMPLETE=bash_source headscope)"
        compopt() {{ :; }}  # which bash has while Tab is pressed alone
        COMP_WORDS=(headscope {" ".join(words)}); COMP_CWORD={len(words)}
        _headscope_completion headscope; printf '%s\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert [line.strip() for line in done.stdout.splitlines()] == offered, done.stderr
