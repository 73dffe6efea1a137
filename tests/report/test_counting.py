"""Does `zero_based` switch every name of a head: pages, tables, figures, views?"""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from counting import counts_from_0, names_in
from headscope.core.head_names import counting_from
from headscope.draw.figures import pictures
from headscope.draw.panel import compose
from headscope.heads.head_card import head_card
from headscope.heads.tables import write_tables
from headscope.report.build import render
from headscope.report.card_page import build_card, render_card
from recorded import ALL, manifest_of, recorded, with_maps, with_pair

SIZE = (3, 4)
SHOWN = sorted(name for name, one in pictures().items() if set(one.needs) <= {*ALL})
PAPERS = re.compile(r"\b(\d+)-(\d+)\b")  # as Clark et al. name heads


@pytest.fixture(scope="module")
def tree():
    """A small run of every analysis."""
    return with_pair(with_maps(recorded(*SIZE, groups=ALL)))


@pytest.mark.usefixtures("no_pictures")
def test_every_name_of_a_report_counts_from_0(tree):
    page = counts_from_0(lambda: render(tree, manifest_of(tree)))
    last = f"L{SIZE[0] - 1}·H{SIZE[1] - 1} is the\nlast head of the last layer"
    assert f"numbered from 0, as TransformerLens does: {last}" in page
    assert "both counted from 0, as TransformerLens does" in page


def test_a_card_says_how_it_counts_and_its_script_counts_so(tree):
    for start, words in ((1, "from 1, as papers do"), (0, "from 0, as TransformerLens does")):
        with counting_from(start):
            page = render_card(tree, head_card(tree, 1, 2))
        assert f"heads are numbered {words}" in page
        told = json.loads(page.split('id="data">')[1].split("</script>")[0])
        assert told["countsFrom"] == start


def test_a_browser_shows_names_from_0(watched, tree, tmp_path):
    """A card is written by its script alone."""
    with counting_from(0):
        file = build_card(tree, head_card(tree, 1, 2), tmp_path / "card.html")
    page = watched(file.as_uri())
    assert page.locator("#card-title").text_content() == "L1·H2"
    named = names_in(" ".join(page.locator("#card a").all_text_contents()))
    assert (1, 1) in named  # the head before
    assert all(layer < SIZE[0] and head < SIZE[1] for layer, head in named)


@pytest.mark.parametrize("name", SHOWN)
def test_names_and_ticks_of_a_figure_count_from_0(tree, name):
    picture = pictures()[name]

    def texts():
        figure = compose(picture.panels(tree), columns=picture.columns)
        ticks = [
            [label.get_text() for label in axis.get_ticklabels()]
            for axes in figure.axes
            for axis in (axes.xaxis, axes.yaxis)
            if axis.get_label_text() in ("layer", "head")
        ]
        found = [text.get_text() for text in figure.findobj(Text)]
        return " | ".join([*found, picture.caption(tree)]), ticks

    (one, ticks), (zero, fewer) = texts(), _from_0(texts)
    assert names_in(zero) == [(layer - 1, head - 1) for layer, head in names_in(one)]
    numbers = [[int(tick) for tick in row if tick.isdigit()] for row in ticks]
    assert [[int(tick) for tick in row if tick.isdigit()] for row in fewer] == [
        [tick - 1 for tick in row] for row in numbers
    ]
    assert "from 1" not in zero


def _from_0(make):
    with counting_from(0):
        return make()


def test_names_in_tables_count_from_0_and_their_numbers_stay(tree, tmp_path):
    write_tables(tree, tmp_path / "one")
    with counting_from(0):
        write_tables(tree, tmp_path / "zero")
    files = sorted(file.name for file in (tmp_path / "one").glob("*.csv"))
    named = 0
    for file in files:
        one, zero = (pd.read_csv(tmp_path / kind / file) for kind in ("one", "zero"))
        for column in one.columns:
            texts = [frame[column].astype(str).str.cat(sep=" | ") for frame in (one, zero)]
            if file.startswith("clark"):
                before, after = (
                    [(int(layer), int(head)) for layer, head in PAPERS.findall(text)]
                    for text in texts
                )
            else:
                before, after = map(names_in, texts)
            named += len(before)
            assert after == [(layer - 1, head - 1) for layer, head in before], (file, column)
            if column in ("layer", "head") and one[column].dtype.kind in "if":
                np.testing.assert_array_equal(one[column], zero[column])
    assert named > 30
