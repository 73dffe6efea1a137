"""Can what is written for a paper be printed: widths of a column, embedded fonts, true tables?"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from headscope.cli.main import group
from headscope.core.head_names import HeadNames
from headscope.draw.figures import draw, pictures
from headscope.draw.saving import _in_points
from headscope.draw.style import DOUBLE, SINGLE
from headscope.heads.tables import in_print, tidy
from headscope.report.paper import MOST_ROWS, PAGE, write_for_paper
from headscope.run.store import Run
from recorded import recorded

DRAWN = ("mixing", "best_heads", "dependency_heads")


@pytest.fixture(scope="module")
def run() -> Run:
    tree = recorded(groups=("dependency", "mixing", "surface"))
    return Run(tree, {})


@pytest.fixture(scope="module")
def paper(run, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("paper")
    with pytest.MonkeyPatch.context() as patch:
        some = {name: picture for name, picture in pictures().items() if name in DRAWN}
        patch.setattr("headscope.report.paper.pictures", lambda: some)
        assert set(write_for_paper(run, folder)) == set(folder.rglob("*.*"))
    return folder


def rows(file: Path) -> list[list[str]]:
    """The cells of a table in booktabs, the head first."""
    text = file.read_text("utf-8")
    _, head, body = re.split(r"\\toprule\n|\\midrule\n|\\bottomrule\n", text)[:3]
    return [line.removesuffix(r" \\").split(" & ") for line in (head + body).splitlines()]


def test_every_figure_has_a_width_of_columns_and_fits_on_a_page(paper):
    for file in (paper / "figures").iterdir():
        box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", file.read_bytes())
        width, height = (float(number) / 72 for number in box.groups())
        assert width == pytest.approx(SINGLE if file.stem.endswith("-single") else DOUBLE)
        assert height <= PAGE
    there = {file.stem for file in (paper / "figures").iterdir()}
    assert there == {
        "mixing-single",
        "mixing-double",
        "best_heads-single",
        "dependency_heads-double",
    }


def test_fonts_are_embedded_as_truetype(paper):
    for file in (paper / "figures").iterdir():
        content = file.read_bytes()
        described = content.count(b"/Type /FontDescriptor")
        assert described == content.count(b"/FontFile2 ") > 0
        assert b"/Type3" not in content
        assert b"/CIDFontType2" in content or b"/Subtype /TrueType" in content


def test_a_table_has_the_numbers_of_the_results_with_their_intervals(run, paper):
    (head, *body), data = rows(paper / "tables/best_heads.tex"), run["dependency"]
    assert {len(row) for row in body} == {len(head)}
    at = {name: place for place, name in enumerate(head)}
    for row in body:
        relation = row[at["relation"]].replace(r"\_", "_")
        relation = relation.replace(" ", "_")  # "all but root and punctuation"
        here = data.sel(relation=relation)
        value, low, high = (
            float(here[f"best_accuracy{end}"]) for end in ("", "_ci_low", "_ci_high")
        )
        if np.isfinite(low):
            assert row[at["accuracy"]] == f"{value:.3f} [{low:.3f}, {high:.3f}]"
        if np.isfinite(float(here["best_head"])):
            layer, place = (int(here[name]) for name in ("best_layer", "best_head"))
            assert row[0] == f"L{layer + 1}·H{place + 1}"


def test_layers_count_from_1_as_the_names_of_heads_do(run):
    table = pd.DataFrame({"cluster": [0], "first_layer": [1], "medoid": ["L2·H3"], "size": [4]})
    assert in_print(table).to_dict("records") == [
        {"cluster": "0", "first layer": "2", "medoid": "L2·H3", "size": "4"}
    ]
    layers = in_print(tidy(run.tree)["mixing"])["layer"]
    assert set(layers) == {"–", *(f"L{layer}" for layer in range(1, 7))}


def test_words_of_the_data_are_printed_by_their_names_and_those_of_a_user_as_they_are():
    words = ["dependent_to_head", "all_but_root_and_punctuation", "my_own_label"]
    shown = in_print(pd.DataFrame({"relation": words, "value": [0.5, 0.25, 0.1]}))
    assert list(shown["relation"]) == [
        "from dependent to head",
        "all but root and punctuation",
        "my_own_label",
    ]


def test_what_has_no_interval_or_no_value_says_so():
    table = pd.DataFrame(
        {
            "x": [0.5, np.nan, 0.25],
            "x_ci_low": [0.25, np.nan, np.nan],
            "x_ci_high": [0.75, np.nan, np.nan],
            "sure": [True, None, False],
            "empty": [np.nan] * 3,
        }
    )
    shown = in_print(table)
    assert list(shown["x"]) == ["0.500 [0.250, 0.750]", "–", "0.250"]
    assert list(shown["sure"]) == ["yes", "–", "no"]
    assert "empty" not in shown


def test_a_table_that_no_page_holds_stays_with_the_tables_for_programs(run, paper):
    sizes = {name: len(table) for name, table in tidy(run.tree).items()}
    there = {file.stem for file in (paper / "tables").iterdir()}
    assert {name for name, size in sizes.items() if size <= MOST_ROWS} == there & sizes.keys()
    assert "surface" not in there


def test_the_key_of_the_map_of_heads_lies_within_a_single_column():
    figure = draw(recorded(groups=("divergence", "surface")), "divergence_map", columns=1)
    with _in_points(figure):
        keys = [axes.get_legend() for axes in figure.axes]
        boxes = [key.get_window_extent(figure.canvas.get_renderer()) for key in keys if key]
        assert boxes
        assert min(box.x0 for box in boxes) >= 0


def test_the_command_writes_it_beside_the_report(short, tmp_path, monkeypatch):
    monkeypatch.setattr("headscope.report.paper.pictures", dict)
    monkeypatch.setattr("headscope.run.store.Run.report", lambda run: run.path / "report.html")
    words = ["report", str(short.path), "--paper", str(tmp_path / "paper")]
    told = CliRunner().invoke(group, words, standalone_mode=False)
    assert told.exit_code == 0
    assert f"for a paper: 4 files in {tmp_path / 'paper'}" in told.output
    assert HeadNames(()).unit(0, 4) in (tmp_path / "paper/tables/heads.tex").read_text("utf-8")
