"""Is a stranger's paper, that of docs/reproduce.md word for word, listed, and a broken one not?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import strangers
from headscope.errors import InputError
from headscope.papers import run_paper

PAGE = Path(__file__).parents[2] / "docs/reproduce.md"
ENTRIES = """
[headscope.papers]
mine2026 = mine:PAPER
no_paper = mine:TEXT
no_maker = mine:BROKEN
"""
BROKEN = """
from dataclasses import replace

BROKEN = replace(PAPER, name="broken", makers={})
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package of the page, with two objects that are no paper beside its own."""
    (code,) = re.findall(r"```python\n# mine.py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    strangers.install(tmp_path, monkeypatch, code + BROKEN, ENTRIES)
    run_paper.papers.cache_clear()
    yield tmp_path
    run_paper.papers.cache_clear()


def test_it_is_listed_and_what_is_no_paper_is_left_out(installed):
    with pytest.warns(UserWarning, match="left out") as warned:
        assert [*run_paper.papers()][-1] == "mine2026"
    reasons = " ".join(str(one.message) for one in warned)
    assert "wanted a Paper" in reasons
    assert "its runs have no maker: sentences" in reasons


def test_a_paper_that_nobody_announced_is_refused_with_a_list():
    with pytest.raises(InputError, match=r"no paper called 'mine2026'; there are clark2019, "):
        run_paper.find_paper("mine2026")
