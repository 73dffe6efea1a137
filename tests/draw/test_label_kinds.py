"""Do figures and tables group heads by the labels that the page gives them?"""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from headscope.analyses.divergence.clusters import tables
from headscope.claims.head_labels import UNLABELLED, head_labels
from headscope.draw import style
from headscope.draw.figures import draw
from headscope.draw.label_kinds import label_kinds, letter_outline, letter_path, letters
from headscope.report.heads import cells
from recorded import reading, recorded


def test_the_map_marks_every_head_by_the_label_that_colours_it_on_the_page():
    tree = recorded()
    place = tree["divergence"]["mds"].values  # [unit, axis]
    on_page = [cell["title"] for row in cells(tree) for cell in row]
    axes = draw(tree, "divergence_map").axes[1]
    said = {line.get_label(): line.get_xydata() for line in axes.lines}
    for unit, title in enumerate(on_page):
        assert (said[title] == place[unit]).all(1).any(), (unit, title)
    assert sum(map(len, said.values())) == len(place)
    unlabelled = [unit for unit, one in enumerate(head_labels(tree).values()) if not one.labels]
    np.testing.assert_array_equal(said[UNLABELLED], place[unlabelled])


def test_the_legend_of_the_map_names_the_kinds_of_the_page_in_their_order():
    tree = recorded()
    legend = draw(tree, "divergence_map").axes[1].get_legend()
    wanted = [kind.title for kind in label_kinds(tree) if kind.units]
    assert [text.get_text() for text in legend.get_texts()] == wanted


def test_the_table_of_clusters_counts_each_head_once_by_its_label():
    tree = recorded()
    titles = {kind.title for kind in label_kinds(tree)}
    for row in tables(reading(tree, "divergence"))["clusters"].to_dict("records"):
        counts = [part.split(" ", 1) for part in row["labels"].split("; ")]
        assert sum(int(many) for many, _ in counts) == row["size"]
        assert {title for _, title in counts} <= titles


def test_no_two_kinds_look_alike_and_none_has_many_corners():
    kinds = letters()
    assert len(kinds) > 3
    assert len(set(kinds.values())) == len(kinds)
    marks = {(kind.hue, kind.marker) for kind in label_kinds(recorded()) if kind.claims}
    assert len(marks) == sum(bool(kind.claims) for kind in label_kinds(recorded()))
    assert not {marker for _, marker in marks} & set("phH8")


def test_a_letter_is_an_outline_that_fills_a_circle_of_radius_1():
    for letter in "AIS":
        box = letter_path(letter).get_extents()
        assert max(box.size) == pytest.approx(2)
        assert box.min + box.max == pytest.approx(0, abs=1e-9)
        d = letter_outline(letter)
        assert re.fullmatch(r"(?:[MLQC]-?\d\.\d\d(?: -?\d\.\d\d)+|Z)+", d)
    assert letter_outline("S") != letter_outline("A")


def test_spare_marks_of_words_do_not_repeat_before_all_pairs_are_used(monkeypatch):
    words = [f"word{at}" for at in range(24)]
    question = SimpleNamespace(part=lambda kind, _: dict.fromkeys(words) if kind == "terms" else ())
    monkeypatch.setattr(style, "questions", lambda: [question])
    monkeypatch.setattr(style, "rules_of", lambda one: {})
    assert len(set(map(style.mark_of, words))) == 24
