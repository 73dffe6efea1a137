"""A picture that is drawn once, into both of its files, is what matplotlib draws by itself."""

import io

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from PIL import Image

from headscope.draw import saving
from headscope.draw.saving import ShownFigure, picture_bytes
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
