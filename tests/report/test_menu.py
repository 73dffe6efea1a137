"""Are the entries of the report's menu grouped, and each there once?"""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from headscope.page.sections import Section
from headscope.report.build import first_findings, render
from headscope.report.menu import by_place, menu_groups
from recorded import BOTH, hostile, manifest_of, recorded


class Menu(HTMLParser):
    """The entries of a page's menu by the title of their group."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.groups: dict[str, list[str]] = {}
        self.title = False
        self.feed(page.partition('<nav class="contents"')[2].partition("</nav>")[0])

    def handle_starttag(self, tag, attrs):
        self.title = tag == "span"
        if tag == "a":
            self.groups[list(self.groups)[-1]].append(dict(attrs)["href"])

    def handle_data(self, data):
        if self.title:
            self.groups[data] = []
            self.title = False


@pytest.fixture(scope="module")
def page():
    tree = recorded(groups=BOTH)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.report.build.pictures", dict)
        return render(tree, manifest_of(tree))


def test_every_part_of_the_page_stands_once_in_a_group_of_the_menu(page):
    groups = Menu(page).groups
    entries = [entry for group in groups.values() for entry in group]
    ids = set(re.findall(r'<(?:section|header) id="([\w-]+)"', page)) - {"card"}
    language = page.partition('id="language"')[2].partition('<section id="map"')[0]
    inside = set(re.findall(r'<section id="([\w-]+)"', language))
    assert len(entries) == len(set(entries))
    assert {entry.removeprefix("#") for entry in entries} == ids - inside
    assert 5 <= len(groups) <= 9
    assert all(len(group) <= 9 for group in groups.values())
    assert groups["What heads do"][:2] == ["#answer", "#grid"]
    assert groups["This run"] == ["#terms", "#run"]
    assert "#surface" in groups["Where they look"]


def test_groups_of_one_title_are_one_and_empty_ones_are_left_out():
    groups = menu_groups(
        [("a", [("#1", "x")]), ("b", []), ("c", [("#2", "y")]), ("a", [("#3", "z")])]
    )
    assert [(one.title, one.entries) for one in groups] == [
        ("a", (("#1", "x"), ("#3", "z"))),
        ("c", (("#2", "y"),)),
    ]


def test_a_section_of_a_stranger_stands_in_the_group_of_its_place():
    sections = [Section("mine", "Mine", "", [], place=place) for place in (0.0, 29.5, 70.0, 1000.0)]
    assert [title for title, _ in by_place(sections)] == [
        "Where they look",
        "Where they look",
        "Which are alike",
        "More",
    ]


def test_the_first_findings_are_those_of_the_report(page):
    tree = recorded(groups=BOTH)
    texts = [one.text for one in first_findings(tree, manifest_of(tree))]
    assert len(texts) > 2
    for text in texts:
        head = re.search(r"L\d+·H\d+", text)
        assert head is None or f'href="#{head[0].replace("·", "")}"' in page


def test_hostile_names_stay_text_in_the_menu_and_the_first_page(no_pictures):
    evil = "<img src=x onerror=alert(1)>"
    tree = hostile(recorded(groups=BOTH, model=evil))
    assert evil not in render(tree, manifest_of(tree), beside=[(f"{evil}.html", evil)])
