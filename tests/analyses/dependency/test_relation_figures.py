"""Do the figures on relations show the best heads, and every head, as the results have them?"""

from __future__ import annotations

import re
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from draw.drawn import frames_of, marks, shades, steps_of, texts, whiskers
from headscope.analyses.dependency.figure import LONGEST_TITLE, relation_panel, sheets
from headscope.analyses.dependency.relation_heads import relation_heads
from headscope.claims.caption_words import clipped
from headscope.draw.figures import draw, pictures
from headscope.draw.panel import compose
from headscope.draw.saving import picture_bytes
from headscope.draw.style import LIGHT
from recorded import ALONE, HOSTILE_RELATIONS, LANGUAGE, changed, hostile, reading, recorded

EDGES = ("_ci_low", "_ci_high")
NUMBER = re.compile(r"\d+\.\d+")  # in points
SOME = 8  # sheets, of which each but the first is painted over another


def scored(tree):
    """The relations of which all four numbers of the best head are known."""
    numbers = [
        tree["dependency"][f"best_{name}"].to_series()
        for name in ("layer", "head", "direction", "offset")
    ]
    return pd.concat(numbers, axis=1).dropna().index.tolist()


def heat_map(tree, relation):
    """The heat map of one relation, composed by itself."""
    run = reading(tree, "dependency")
    (best,) = (one for one in relation_heads(run.data) if one.relation == relation)
    return compose([relation_panel(run, best)], columns=1)


@pytest.fixture(scope="module")
def tree():
    return recorded(groups=LANGUAGE)


# --- best heads -----------------------------------------------------------------------------


def shown_by_advantage(dependency):
    """Rows of the figure: no root, no punctuation, 25 words at least, furthest ahead first."""
    names = [str(name) for name in dependency["relation"].values[2:]]
    kept = [
        name
        for name in names
        if name not in ("root", "punct") and int(dependency["count"].sel(relation=name)) >= 25
    ]
    return sorted(kept, key=lambda name: -float(dependency["advantage"].sel(relation=name)))


def test_best_heads_are_marked_at_their_held_out_accuracy(tree):
    dependency = tree["dependency"].to_dataset()
    order = [*dependency["relation"].values[:2], *shown_by_advantage(dependency)]
    here = dependency.sel(relation=order)
    (axes,) = draw(tree, "best_heads").axes
    for shade, variable in (("blue", "held_out"), ("grey", "baseline")):
        np.testing.assert_allclose([x for x, _ in marks(axes, shade)], here[variable].values)
        ends = np.stack([here[variable + end].values for end in EDGES], -1)
        np.testing.assert_allclose(whiskers(axes, shade), ends)


def test_each_row_names_relation_head_direction_and_offset(tree):
    found = texts(draw(tree, "best_heads").axes[0])
    at = found.index("obj")
    assert found[at : at + 4] == ["obj", "L3·H1", "d→h", "−2"]
    at = found.index("aux:pass")
    assert found[at : at + 4] == ["aux:pass", "L1·H3", "h→d", "+1"]
    assert {"root", "punct", "vocative"}.isdisjoint(found)  # vocative: 2 words


def test_a_head_that_does_not_beat_its_offset_is_faint(tree):
    dependency = tree["dependency"].to_dataset()
    order = [*dependency["relation"].values[:2], *shown_by_advantage(dependency)]
    beats = dependency["advantage_ci_low"].sel(relation=order).values > 0
    (axes,) = draw(tree, "best_heads").axes
    lines = [line for line in axes.lines if to_hex(line.get_markeredgecolor()) == LIGHT["blue"]]
    lines.sort(key=lambda line: line.get_ydata()[0])
    assert [line.get_alpha() == 1 for line in lines] == beats.tolist()
    (rules,) = (one for one in axes.collections if to_hex(one.get_color()[0]) == LIGHT["rule"])
    ends = [segment[:, 0] for segment in rules.get_segments()]  # from each mark to its offset's
    assert len(ends) == len(lines)
    assert all(line.get_xdata()[0] in pair for line, pair in zip(lines, ends, strict=True))
    assert 0 < beats.sum() < len(beats)  # both kinds occur
    inks = {text.get_text(): to_hex(text.get_color()) for text in axes.texts}
    assert inks["obj"] == LIGHT["ink"]
    assert inks["compound"] == LIGHT["muted"]


def test_without_intervals_marks_are_hollow_and_none_is_faint():
    tree = changed(recorded(3, 4, ("dependency",), kind=ALONE), "dependency", count=100)
    (axes,) = draw(tree, "best_heads").axes
    best = tree["dependency"]["best_accuracy"].to_series()
    found = [line for line in axes.lines if to_hex(line.get_markeredgecolor()) == LIGHT["blue"]]
    assert {line.get_alpha() for line in found} == {1.0}
    assert {to_hex(line.get_markerfacecolor()) for line in found} == {LIGHT["page"]}
    shown = {round(float(line.get_xdata()[0]), 9) for line in found}
    assert shown <= {round(value, 9) for value in best}
    assert "chosen and scored on the same data" in pictures()["best_heads"].caption(tree)


# --- heat maps of relations -----------------------------------------------------------------


def test_the_heat_maps_show_the_better_direction_of_the_most_frequent_relations(tree):
    dependency = tree["dependency"].to_dataset()
    figure = draw(tree, "dependency_heads")
    names = [axes.get_title(loc="left").split()[-1] for axes in figure.axes]
    counts = dependency["count"].sel(relation=names).values
    assert counts.tolist() == sorted(counts, reverse=True)
    assert len(names) == 12
    assert {"all", "root", "punct"}.isdisjoint(names)
    for name, axes in zip(names, figure.axes, strict=True):
        here = dependency.sel(relation=name)
        better = here["accuracy"].max("direction").transpose("layer", "head").values
        np.testing.assert_array_equal(shades(axes, better.shape), steps_of(better, 1.0))
        assert frames_of(axes) == [(int(here["best_layer"]), int(here["best_head"]))]


def test_the_better_direction_is_the_one_with_a_number():
    made = recorded(groups=LANGUAGE)
    made["dependency"]["accuracy"].loc[{"direction": "head_to_dependent"}] = np.nan
    here = made["dependency"]["accuracy"].sel(relation="obj", direction="dependent_to_head")
    (axes,) = heat_map(made, "obj").axes
    np.testing.assert_array_equal(shades(axes, here.shape), steps_of(here.values, 1.0))


def test_every_relation_has_a_heat_map_under_a_name_that_any_system_takes():
    tree = hostile(recorded(3, 4, groups=LANGUAGE))
    found = [
        (path, figure.axes[0].get_title(loc="left"))
        for path, figure in sheets(reading(tree, "dependency"))
    ]
    relations = scored(tree)
    titles = [title for _, title in found]
    assert titles == [clipped(name, LONGEST_TITLE) for name in relations]
    assert set(HOSTILE_RELATIONS) <= set(relations)
    files = [path.removeprefix("dependency/") for path, _ in found]
    assert len({file.lower() for file in files}) == len(files)
    assert all(re.fullmatch(r"\d\d(-[a-z0-9]+)*\.svg", file) for file in files)
    assert files[0] == "01-all.svg"


def without_ids(figure):
    """An SVG, without names that are hashes of places."""
    svg = picture_bytes(figure, "svg").decode()
    return re.sub(r"(?<=#|\")[mp][0-9a-f]{10}\b", "", svg)


def test_a_sheet_painted_over_the_one_before_is_that_of_its_relation(tree):
    drawn = [without_ids(figure) for _, figure in islice(sheets(reading(tree, "dependency")), SOME)]
    relations = scored(tree)[:SOME]
    assert len(relations) == SOME
    for sheet, name in zip(drawn, relations, strict=True):
        alone = without_ids(heat_map(tree, name))
        assert NUMBER.split(sheet) == NUMBER.split(alone)
        points = (np.array(NUMBER.findall(page), np.float64) for page in (sheet, alone))
        # The letters of a title move its axes: a j is deeper than a p.
        np.testing.assert_allclose(*points, atol=0.01)
