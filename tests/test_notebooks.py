"""Do the notebooks of the docs hold together?

`make site` executes them, and opens one in JupyterLab and marimo (opened_notebooks.py).
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from symtable import symtable

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs/notebooks"
NOTEBOOKS = [path for path in sorted(FOLDER.glob("*.md")) if path.name != "README.md"]


def code(path: Path) -> list[str]:
    jupytext = pytest.importorskip("jupytext")  # its imports take two seconds
    return [cell.source for cell in jupytext.read(path).cells if cell.cell_type == "code"]


def test_there_are_five_and_a_page_that_lists_them():
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (FOLDER / "README.md").read_text("utf-8"))
    assert sorted(listed) == [path.name for path in NOTEBOOKS]
    assert len(NOTEBOOKS) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_asks_answers_and_says_what_it_does_not_show(path):
    text = path.read_text("utf-8")
    parts = re.findall(r"^## (.+)$", text, re.MULTILINE)
    question = text.partition("**Question.** ")[2].partition("\n\n")[0]
    assert question.endswith("?")
    assert parts[-2:] == ["What we may say, and what not", "Next"]
    links = re.findall(r"\]\(([^)\s:#]+)\)", text)
    assert links
    assert not [link for link in links if not (FOLDER / link).exists()]
    assert "hs.view(" in text
    assert ".figure(" in text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_two_cells_define_the_same_name_as_marimo_wants(path):
    defined = Counter(
        name.get_name()
        for cell in code(path)
        for name in symtable(cell, path.name, "exec").get_symbols()
        if name.is_assigned() or name.is_imported()
    )
    assert defined
    assert not [name for name, cells in defined.items() if cells > 1]
