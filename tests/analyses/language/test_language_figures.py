"""Do the figures on language show what the results say, whatever names and gaps these have?"""

from __future__ import annotations

import math
import re
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from draw.drawn import frames_of, marks, shades, steps_of, texts, whiskers
from headscope.claims.caption_words import clipped
from headscope.draw.figures import draw, pictures, save_figures
from headscope.draw.saving import picture_bytes
from headscope.draw.style import COLORS, DOUBLE, ramp
from headscope.page.svg import Styles, inline_panel
from recorded import ALONE, DECODER, LANGUAGE, by_norm, changed, hostile, recorded

FIGURES = (
    "best_heads",
    "dependency_heads",
    "example_sentences",
    "coreference",
    "frames",
    "features_by_layer",
    "cls_attention",
    "pairs",
)
SMALL = {"layers": 3, "heads": 4}
VARIANTS = {
    "one document": SMALL | {"kind": ALONE},
    "decoder": SMALL | {"kind": DECODER},
    "24x16": {"layers": 24, "heads": 16},
    "one head": {"layers": 1, "heads": 1},
    "norms, hostile": SMALL,
    "norms": SMALL,
    "12x12": {"layers": 12, "heads": 12},
}
EDGES = ("_ci_low", "_ci_high")


@pytest.fixture(scope="module")
def tree():
    return recorded(groups=LANGUAGE)


@cache
def tree_of(kind):
    made = recorded(**VARIANTS[kind], groups=LANGUAGE)
    if "kind" in VARIANTS[kind]:  # of few words: enough to be drawn
        changed(made, "dependency", count=100, advantage=0.2)
    if kind == "decoder":
        changed(made, "dependency", advantage_ci_low=0.1)
    made = by_norm(made) if "norms" in kind else made
    return hostile(made) if "hostile" in kind else made


# --- all of them ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Glyph .* missing")  # this machine's fonts may lack East Asia's
@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("kind", [*VARIANTS][:-2])
def test_every_figure_is_drawn(kind, name):
    tree = tree_of(kind)
    if kind == "decoder" and name == "cls_attention":
        assert not pictures()[name].available(tree)
    else:
        svg = picture_bytes(draw(tree, name), "svg")
        assert svg.rstrip().endswith(b"</svg>")
        if kind == "one document":  # drawn again, it is the same: here all are there, and small
            assert picture_bytes(draw(tree, name), "svg") == svg
            assert not re.search(rb">[^<]*\bnan\b", svg.lower())


@pytest.mark.parametrize("name", FIGURES)
def test_every_caption_is_one_sentence_with_n_and_source(name, tree):
    caption = pictures()[name].caption(tree)
    sentence, source = caption.split(" After ")
    assert re.search(r"n = [1-9]", sentence)
    assert re.match(r"(Clark|Kovaleva) et al\. \(2019\), (§|Table|Figure).*\.$", source)
    assert not re.search(r"[.!?]\s+[A-Z]", sentence.replace("et al. ", ""))
    assert "nan" not in caption


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_of_a_figure_is_cut_off(name):
    figure = draw(tree_of("12x12"), name)
    figure.draw_without_rendering()
    drawn = figure.get_tightbbox()
    wide, high = figure.get_size_inches()
    assert drawn.x0 > -0.02
    assert drawn.y0 > -0.02
    assert drawn.x1 < wide + 0.02
    assert drawn.y1 < high + 0.02


@pytest.mark.parametrize("group", LANGUAGE)
def test_a_run_with_one_analysis_has_the_figures_of_that_analysis(group):
    tree = recorded(groups=(group,))
    there = {name for name in FIGURES if pictures()[name].available(tree)}
    assert there == {name for name in FIGURES if pictures()[name].needs == (group,)}


@pytest.mark.parametrize("name", ["example_sentences", "frames", "features_by_layer", "pairs"])
def test_a_figure_of_norms_never_calls_them_attention(name):
    tree = tree_of("norms")
    labels = [axes.get_ylabel() + axes.get_xlabel() for axes in draw(tree, name).axes]
    words = " ".join([*labels, pictures()[name].caption(tree)]).replace(
        "regard to the attention", ""
    )
    assert "weighted norm" in words
    assert "attention" not in words
    assert "%" not in re.sub(r"95 %|10 %", "", words)


@pytest.mark.parametrize("name", ["best_heads", "dependency_heads", "coreference"])
def test_an_accuracy_by_norms_says_so(name, tree):
    normed = tree_of("norms")
    assert "by the weighted norm" in pictures()[name].caption(normed)
    assert "norm" not in pictures()[name].caption(tree)


@pytest.mark.parametrize("name", FIGURES)
def test_a_dark_page_can_change_every_colour(name, tree):
    known = {shade for pair in COLORS.values() for shade in pair} | set(ramp())
    styles = Styles()
    for at, panel in enumerate(pictures()[name].panels(tree)):
        inline_panel(panel, styles, prefix=f"p{at}-", width=3.5)
    assert set(re.findall(r"#[0-9a-f]{6}", styles.css())) <= {"#000000"} - known


def test_absent_numbers_leave_gaps_and_never_stop_a_figure():
    tree = recorded(**SMALL, groups=LANGUAGE)
    for dataset in tree.children.values():
        for name in dataset.data_vars:
            if dataset[name].dtype.kind == "f" and dataset[name].ndim:
                dataset[name].values[0] = np.nan
    for name in FIGURES:
        assert picture_bytes(draw(tree, name), "svg").rstrip().endswith(b"</svg>")


def test_nothing_but_gaps_is_no_figure():
    tree = recorded(**SMALL, groups=LANGUAGE)
    for dataset in tree.children.values():
        for name in dataset.data_vars:
            if dataset[name].dtype.kind == "f":
                dataset[name].values[...] = np.nan
    assert not [name for name in FIGURES if pictures()[name].available(tree)]


def test_hostile_names_stay_text_and_stay_in_the_folder(tmp_path):
    tree = hostile(recorded(**SMALL, groups=("dependency", "examples")))
    written = save_figures(tree, tmp_path / "figures")
    assert {path.parent for path in written} == {
        tmp_path / "figures",
        tmp_path / "figures" / "dependency",
    }
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(written)
    found = set()
    for path in written:
        if path.suffix == ".svg":
            found |= set(ElementTree.parse(path).getroot().itertext())
    assert {"<b>&\"'", "../../etc/passwd", "依存", '<b>&"', "$x^2$", "{{7*7}}"} <= found
    assert not any("\x07" in text for text in found)


@pytest.mark.parametrize("sign", ["\x00", "\ud800", "\ufffe", "\uffff", "\x1b"])
def test_signs_that_xml_cannot_hold_are_replaced(sign):
    assert clipped(f"a{sign}b", 9) == "a\ufffdb"


def test_long_names_are_clipped():
    assert clipped("abcdef", 6) == "abcdef"
    assert clipped("abcdefg", 6) == "abcde…"


def test_panels_stand_at_whole_millionths_of_the_figure(tree):
    figure = draw(tree, "features_by_layer")
    figure.draw_without_rendering()
    for axes in figure.axes:
        corners = axes.get_position(original=True).get_points()
        np.testing.assert_allclose(corners, corners.round(6), rtol=0, atol=1e-12)


# --- coreference, frames --------------------------------------------------------------------


def test_coreference_shows_the_best_head_beside_each_system(tree):
    coreference = tree["coreference"].to_dataset()
    axes, grid = draw(tree, "coreference").axes
    rows = {
        "blue": "held_out",
        "grey": "nearest",
        "orange": "head_match",
        "vermillion": "rule_based",
    }
    for shade, name in rows.items():
        found = coreference if shade == "blue" else coreference.sel(system=name)
        variable = name if shade == "blue" else "baseline"
        np.testing.assert_allclose([x for x, _ in marks(axes, shade)], found[variable].values)
        ends = np.stack([found[variable + end].values for end in EDGES], -1)
        np.testing.assert_allclose(whiskers(axes, shade), ends)
    places = zip(coreference["best_layer"].values, coreference["best_head"].values, strict=True)
    best = [f"L{layer + 1:.0f}·H{head + 1:.0f}" for layer, head in places]
    assert [text for text in texts(axes) if text.startswith("L")] == best
    values = coreference["accuracy"].sel(mention_type="all").values
    np.testing.assert_array_equal(shades(grid, values.shape), steps_of(values, values.max()))


def test_frames_shows_quantiles_mean_and_chance_of_the_top_heads(tree):
    frames = tree["frames"].to_dataset()
    axes, forward, backward = draw(tree, "frames").axes
    order = np.argsort(-frames["score"].values, axis=None)[:8]
    places = [divmod(int(at), 12) for at in order]
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    for (layer, head), box in zip(places, boxes, strict=True):
        quartiles = frames["score_quantile"][layer, head].sel(quantile=[0.25, 0.75]).values
        assert (box.get_x(), box.get_x() + box.get_width()) == pytest.approx(quartiles)
    for shade, variable in (("blue", "score"), ("grey", "chance")):
        expected = [float(frames[variable][place]) for place in places]
        np.testing.assert_allclose([x for x, _ in marks(axes, shade)], expected)
    names = [text for text in texts(axes) if text.startswith("L")]
    assert names == [f"L{layer + 1}·H{head + 1}" for layer, head in places]
    top = max(float(frames[name].max()) for name in ("score", "score_reversed"))
    for grid, name in ((forward, "score"), (backward, "score_reversed")):
        values = frames[name].values
        np.testing.assert_array_equal(shades(grid, values.shape), steps_of(values, top))


def test_small_p_values_keep_three_decimals():
    tree = changed(recorded(groups=("frames",)), "frames", p_value=0.00099)
    found = texts(draw(tree, "frames").axes[0])
    assert "0.001" in found


# --- features, pairs ------------------------------------------------------------------------


def test_features_show_the_mean_and_the_strongest_head_of_each_layer(tree):
    features = tree["features"].to_dataset()
    figure = draw(tree, "features_by_layer")
    assert len(figure.axes) == 9
    for axes, kind in zip(figure.axes, features["feature"].values, strict=True):
        values = features["attention"].sel(feature=kind).values
        strongest, mean = (line.get_ydata() for line in axes.lines[:2])
        np.testing.assert_allclose(strongest, values.max(1))
        np.testing.assert_allclose(mean, values.mean(1))
        layer, head = np.unravel_index(values.argmax(), values.shape)
        assert texts(axes) == [f"L{layer + 1}·H{head + 1}"]


def test_features_of_words_share_a_scale(tree):
    tops = [axes.get_ylim()[1] for axes in draw(tree, "features_by_layer").axes]
    assert len(set(tops[:6])) == 1
    assert len(set(tops[6:])) == 1
    assert tops[0] < tops[6]


def test_cls_attention_uses_the_papers_scale_while_it_can():
    tree = recorded(groups=LANGUAGE)
    cls = tree["cls_attention"].to_dataset()
    cls["attention"] = (2 * cls["attention"]).assign_attrs(cls["attention"].attrs)
    values = cls["attention"].transpose("feature", "head").values
    assert values.max() > 0.5
    for scale, top in ((1.0, values.max()), (0.4, 0.5)):
        tree["cls_attention"].dataset = cls.assign(attention=cls["attention"] * scale)
        tree["cls_attention"]["attention"].attrs["units"] = "probability"
        (axes,) = draw(tree, "cls_attention").axes
        np.testing.assert_array_equal(shades(axes, values.shape), steps_of(values * scale, top))
        assert f"to {100 * top:.0f} %;" in pictures()["cls_attention"].caption(tree)


def test_pairs_share_a_scale_and_frame_the_largest(tree):
    pairs = tree["pairs"].to_dataset()
    top = float(pairs["attention"].max())
    for axes, kind in zip(draw(tree, "pairs").axes, pairs["pair"].values, strict=True):
        values = pairs["attention"].sel(pair=kind).values
        np.testing.assert_array_equal(shades(axes, values.shape), steps_of(values, top))
        assert frames_of(axes) == [divmod(int(values.argmax()), values.shape[1])]


def test_wide_figures_are_a_page_wide_however_they_are_asked_for(tree):
    assert draw(tree, "example_sentences", columns=1).get_figwidth() == DOUBLE


def test_panels_stand_in_rows_as_high_as_they_ask_for(tree):
    figure = draw(tree, "example_sentences")
    figure.draw_without_rendering()
    wished = [panel.height for panel in pictures()["example_sentences"].panels(tree)]
    drawn = [axes.get_position().height for axes in figure.axes]
    assert math.isclose(max(drawn) / min(drawn), max(wished) / min(wished), rel_tol=0.35)
