"""Are all figures drawn, for models of any size and runs with gaps, and always the same?"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from headscope.analyses.norms.figure import medians
from headscope.draw.figures import draw, pictures, save_figures
from headscope.draw.marks import LineEnd, bin_edges, end_labels
from headscope.draw.saving import picture_bytes
from headscope.draw.style import COLORS, DOUBLE, SINGLE, marks, ramp
from headscope.errors import InputError
from headscope.run.store import Run
from recorded import ALONE, DECODER, GENERAL, recorded

TREES = {
    "6x12": (6, 12, {}),
    "24x16": (24, 16, {}),
    "decoder": (3, 4, {"kind": DECODER}),
    "one document": (3, 4, {"kind": ALONE}),
    "one head": (1, 1, {}),
}
OWN = [  # those on language: test_language_figures
    name for name, picture in pictures().items() if set(picture.needs) <= set(GENERAL)
]


@cache
def tree_of(kind):
    layers, heads, options = TREES[kind]
    return recorded(layers, heads, **options)


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("kind", [kind for kind in TREES if kind != "6x12"])
def test_every_figure_is_drawn(kind, name):
    tree = tree_of(kind)
    if pictures()[name].available(tree):
        svg = picture_bytes(draw(tree, name), "svg")
        assert svg.rstrip().endswith(b"</svg>")
        if kind == "one document":  # drawn again, it is the same: here all are there, and small
            assert not re.search(rb">[^<]*\bnan\b", svg.lower())
            assert picture_bytes(draw(tree, name), "svg") == svg
    else:
        assert kind in ("decoder", "one head")


@pytest.mark.parametrize("name", OWN)
def test_every_caption_says_how_many_documents(name):
    assert "n = 14 documents, 3,385 tokens" in pictures()[name].caption(tree_of("6x12"))


@pytest.mark.parametrize("group", GENERAL)
def test_a_run_with_one_analysis_has_the_figures_of_that_analysis(group):
    tree = recorded(3, 4, groups=(group,))
    there = {name for name, picture in pictures().items() if picture.available(tree)}
    assert {name for name in there if pictures()[name].needs} == {
        name for name, picture in pictures().items() if picture.needs == (group,)
    }
    for name in there:
        draw(tree, name)


def test_a_figure_that_cannot_be_drawn_says_what_is_missing():
    with pytest.raises(ValueError, match=r"found the groups entropy; wanted surface"):
        draw(recorded(3, 4, groups=("entropy",)), "surface_by_layer")


def test_an_unknown_figure_is_answered_with_the_known_ones():
    with pytest.raises(KeyError, match="surface_by_layer"):
        draw(tree_of("6x12"), "surface")


def test_figures_have_the_widths_of_journal_columns():
    assert draw(tree_of("6x12"), "surface_by_layer").get_figwidth() == DOUBLE
    assert draw(tree_of("6x12"), "surface_by_layer", columns=1).get_figwidth() == SINGLE


def test_the_same_tree_gives_the_same_bytes(tmp_path):
    tree = recorded(2, 3, groups=("surface", "mixing"))
    first = save_figures(tree, tmp_path / "a")
    second = save_figures(tree, tmp_path / "b")
    assert [path.name for path in first] == [
        f"{name}.{kind}"
        for name in ("head_grid", "surface_by_layer", "mixing")
        for kind in ("svg", "png")
    ]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    svg = (tmp_path / "a" / "surface_by_layer.svg").read_text()
    assert "<text" in svg  # text stays text
    assert not re.search(r"<dc:date>|\d{4}-\d\d-\d\dT", svg)


def test_drawing_leaves_the_callers_settings_alone(tmp_path):
    before = dict(mpl.rcParams)
    save_figures(recorded(2, 3, groups=("mixing",)), tmp_path)
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("token", ["$x^2$", "<s>", "▁\u0332", "\U0001f600", "[\\SEP]"])
def test_a_tokenizers_own_signs_are_drawn_as_text(token, tmp_path):
    tree = recorded(2, 3, groups=("surface",), sep_token=token)
    (svg,) = (path for path in save_figures(tree, tmp_path) if path.name == "surface_by_layer.svg")
    assert "<text" in svg.read_text()


def test_missing_categories_are_left_out_of_the_legend():
    tree = recorded(3, 4)
    norms = tree["norms"].to_dataset().copy(deep=True)
    for name in norms.data_vars:
        if "category" in norms[name].dims:
            absent = np.nan if norms[name].dtype.kind == "f" else 0
            norms[name].loc[{"category": "punctuation"}] = absent
    tree["norms"].dataset = norms
    axes = draw(tree, "weight_against_norm").axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "[CLS]",
        "[SEP]",
        "other",
    ]


@pytest.mark.parametrize("ends", [(0.99, 0.98), (1.0, 1.0, 1.0), (0.0, 0.01), (0.2, 0.21, 0.99)])
def test_names_at_line_ends_stay_beside_the_axes_and_apart(ends):
    axes = Figure().subplots()
    axes.set_ylim(0, 1)
    end_labels(axes, [LineEnd(value, "a line", "blue", "o") for value in ends], top=1.0)
    heights = sorted(text.xyann[1] for text in axes.texts)
    assert heights[0] >= 0
    assert heights[-1] <= 1
    assert all(upper - lower > 0.06 for lower, upper in pairwise(heights))
    beside = {float(line.get_ydata()[0]) for line in axes.lines}
    assert beside == set(heights)  # each has the mark of its line


def test_bins_are_bordered_at_their_lower_edges():
    np.testing.assert_allclose(bin_edges(np.array([0.0, 1.0, 2.0, 4.0])), [0.5, 1, 2, 4, 8])


def test_the_median_line_runs_through_the_middle_of_the_counts():
    counts = np.array([[2.0, 2.0], [0.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(medians(counts, np.array([0.0, 1.0, 3.0])), [1.0, 2.0, np.nan])


def contrast(one, other):
    """WCAG 2 contrast ratio."""

    def luminance(shade):
        rgb = np.array([int(shade[at : at + 2], 16) for at in (1, 3, 5)]) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("side", [0, 1])
def test_text_and_marks_stand_out_from_the_page(side):
    page = COLORS["page"][side]
    for name in ("ink", "muted", "blue"):  # blue: links
        assert contrast(COLORS[name][side], page) >= 4.5, name
    for hue, _ in marks().values():
        assert contrast(COLORS[hue][side], page) >= 3, hue


@pytest.mark.parametrize("dark", [False, True])
def test_the_ramp_leaves_the_page_in_even_steps(dark):
    shades = ramp(dark=dark)
    assert shades[0] == COLORS["page"][dark]
    rise = [contrast(shade, shades[0]) for shade in shades]
    assert all(after > before for before, after in pairwise(rise))


def test_marks_that_share_a_colour_never_stand_for_two_things_in_one_figure():
    together = [("previous", "next"), ("cls", "sep", "punctuation", "other")]
    together += [("previous", "next", "broad", "cls", "sep", "punctuation", "other")]
    together += [("best_head", "offset"), ("best_head", "nearest", "head_match", "rule_based")]
    together += [("all", "chance"), ("mean", "strongest")]
    for words in together:
        assert len({marks()[word] for word in words}) == len(words)
        assert len({marks()[word][1] for word in words}) == len(words)  # the second cue


def test_a_run_shows_a_figure_with_its_caption_and_names_all_that_there_are():
    run = Run(tree_of("6x12"), {})
    figure = run.figure("surface_by_layer", columns=1)
    caption = pictures()["surface_by_layer"].caption(run.tree)
    assert figure.get_figwidth() == SINGLE
    assert escape(caption) in figure._repr_html_()
    assert draw(run.tree, "surface_by_layer")._repr_html_() is None  # for a paper
    with pytest.raises(InputError, match="surface_by_layer"):
        run.figure("surface")
    with pytest.raises(InputError, match="wanted coreference"):
        run.figure("coreference")
