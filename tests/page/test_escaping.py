"""Is all that a page says text, but for the markup that is made here?"""

from __future__ import annotations

import re
from pathlib import Path

import headscope

SOURCE = Path(headscope.__file__).parent
# What of a template is not escaped: a tag of a table, and drawings made from numbers.
UNESCAPED = [
    ("report.html.j2", "panel.markup | drawing"),
    ("reproduce.html.j2", "markup | drawing"),
    ("reproduce.html.j2", "panel.markup | drawing"),
    ("sheet.html.j2", '\'th scope="row" class="name"\' | safe if loop.first else "td"'),
    ("zoo.html.j2", "markup | drawing"),
]


def test_templates_escape_all_but_drawings_and_a_tag():
    found = []
    for template in sorted(SOURCE.rglob("*.j2")):
        text = template.read_text("utf-8")
        assert "autoescape" not in text, template
        written = re.findall(r"\{\{-?\s*(.*?)\s*-?\}\}", text, re.DOTALL)
        marked = re.compile(r"\|\s*(safe|drawing|linked\b.*\|)|Markup")
        found += [(template.name, one) for one in written if marked.search(one)]
    assert sorted(found) == UNESCAPED


def test_no_script_of_a_page_writes_markup():
    markup = re.compile(r"(inner|outer)HTML\b|insertAdjacentHTML|document\.write")
    scripts = sorted(SOURCE.rglob("*.js"))
    assert len(scripts) > 20
    assert [str(one) for one in scripts if markup.search(one.read_text("utf-8"))] == []
