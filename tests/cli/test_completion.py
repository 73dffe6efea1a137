"""Does a shell complete commands, options, and the values of some?"""

import pytest
from click.shell_completion import BashComplete

from headscope.cli.main import group
from headscope.experiments.circuits.prompts import MADE


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
