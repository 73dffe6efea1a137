"""A picture that is drawn once, into both of its files, is what matplotlib draws by itself."""

import io
from collections import Counter
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.text import Text
from matplotlib.textpath import TextToPath
from PIL import Image

from headscope.draw import saving
from headscope.draw.panel import Panel, compose
from headscope.draw.saving import ShownFigure, picture_bytes, vector
from headscope.draw.style import house_style


def with_every_kind_of_artist() -> Figure:
    draws = np.random.default_rng(0)
    figure = Figure(figsize=(3, 2))
    (lines, image), (mesh, smooth) = figure.subplots(2, 2)
    lines.plot([0, 1, 2], [3, 1, 2], "o--", lw=3, ms=20)
    lines.scatter(draws.random(20), draws.random(20), s=30 * draws.random(20))
    lines.bar([1, 2], [1, 2], alpha=0.5)
    lines.set_xlim(0.2, 1.5)  # lines, marks and bars are clipped
    image.imshow(draws.random((5, 5)), interpolation="none", clip_path=Circle((2, 2), 2))
    image.images[0].set_clip_path(Circle((2, 2), 2, transform=image.transData))
    mesh.pcolormesh(draws.random((4, 4)))
    smooth.tripcolor([0, 1, 1, 0], [0, 0, 1, 1], [0, 1, 2, 1], shading="gouraud")
    for axes in figure.axes:
        axes.set(xticks=[], yticks=[])
    return figure


def pixels(png: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"), np.float64)  # [row, column, colour]


def test_dots_are_those_of_matplotlib() -> None:
    with house_style():
        figure, file = with_every_kind_of_artist(), io.BytesIO()
        figure.savefig(file, format="png", dpi=saving.RESOLUTION, facecolor="white")
        ours, theirs = pixels(picture_bytes(figure, "png")), pixels(file.getvalue())
    assert ours.shape == theirs.shape
    for part in np.split(np.abs(ours - theirs), 2):
        for quarter in np.split(part, 2, axis=1):
            assert quarter.mean() < 0.5  # of 255; an artist that is not drawn gives more than 1


def test_both_files_are_drawn_from_the_figure_as_it_was() -> None:
    figure = with_every_kind_of_artist()
    before = figure.dpi, figure.canvas, figure.get_facecolor()
    assert picture_bytes(figure, "svg") == picture_bytes(figure, "svg")
    assert (figure.dpi, figure.canvas, figure.get_facecolor()) == before


def test_a_figure_writes_itself_as_the_report_does_unless_it_is_told_how(tmp_path) -> None:
    figure = ShownFigure(figsize=(2, 1))
    figure.subplots().set_title("attention")
    figure.savefig(tmp_path / "own.svg")
    assert (tmp_path / "own.svg").read_bytes() == picture_bytes(figure, "svg")
    assert b">attention</text>" in (tmp_path / "own.svg").read_bytes()
    figure.savefig(tmp_path / "small.png", dpi=50)
    with Image.open(tmp_path / "small.png") as image:
        assert image.size == (100, 50)


def with_labels(axes: Axes, *, top: float, size: float) -> None:
    axes.plot([0, top], [0, top])
    axes.tick_params(labelsize=size)
    axes.set(xlabel="share of attention", ylabel="layer")


def four_panels() -> ShownFigure:
    looks = ((1, 6), (1, 6), (20_000, 6), (1, 14))  # two are alike, of the others each by itself
    return compose([Panel("", partial(with_labels, top=top, size=size)) for top, size in looks])


def test_axes_lie_where_matplotlib_lays_them_out() -> None:
    ours, theirs = four_panels(), four_panels()
    picture_bytes(ours, "svg")
    with house_style():
        theirs.set_dpi(72)
        FigureCanvasSVG(theirs)
        theirs.get_layout_engine().execute(theirs)
    for one, other in zip(ours.axes, theirs.axes, strict=True):
        np.testing.assert_allclose(one.get_position().bounds, other.get_position().bounds)


def test_each_text_is_measured_once(monkeypatch) -> None:
    """Labels of ticks were laid out eight times each, and by every renderer."""
    laid, sizes = Counter(), Counter()
    extent, width = Text.get_window_extent, TextToPath.get_text_width_height_descent

    def laid_out(text: Text, *more: object) -> object:
        laid[text.get_text(), text.get_fontsize()] += 1
        return extent(text, *more)

    def measured(self: TextToPath, words: str, look: object, ismath: object) -> object:
        sizes[words, look] += 1
        return width(self, words, look, ismath)

    figure = four_panels()
    monkeypatch.setattr(Text, "get_window_extent", laid_out)
    monkeypatch.setattr(TextToPath, "get_text_width_height_descent", measured)
    vector(figure, 4, dots=True)
    assert set(sizes.values()) == {1}
    ticks = {(label.get_text(), 14) for label in figure.axes[3].get_xticklabels()}
    assert len(ticks) > 2
    assert all(laid[tick] <= 2 for tick in ticks)  # of the x and of the y axis


def test_a_figure_that_was_saved_may_be_changed() -> None:
    figure = four_panels()
    picture_bytes(figure, "svg")
    label = figure.axes[0].get_xticklabels()[0]
    before = label.get_window_extent().height
    label.set_fontsize(40)
    assert label.get_window_extent().height > 2 * before


def test_the_box_of_a_panel_is_what_matplotlib_says_it_takes() -> None:
    ours, theirs = vector(four_panels(), 4)[0].boxes, four_panels()
    picture_bytes(theirs, "svg")
    theirs.set_dpi(72)
    FigureCanvasSVG(theirs)
    for (_, _, width, height), axes in zip(ours, theirs.axes, strict=True):
        axes.set_title("", loc="left")
        size = np.array(axes.get_tightbbox().size) + 2 * saving.PAD
        np.testing.assert_allclose((width, height), size, rtol=1e-6)
