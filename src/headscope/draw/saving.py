"""Write figures as SVG, PNG and PDF; the same numbers give the same bytes."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partialmethod
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase, GraphicsContextBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Affine2D, Bbox, Transform, TransformedPath

from headscope.core.whole_file import write_whole
from headscope.draw.head_marks import placed
from headscope.draw.style import house_style
from headscope.errors import InputError

RESOLUTION = 300  # of a PNG, in dots per inch
KINDS = (".svg", ".png", ".pdf")
PAD = 3.0  # points around a panel
CSS_DPI = 96  # pixels of a page
QUICK = 3  # of zlib: half the time of its default, and files a fifth larger
_METADATA = {"Date": None, "Creator": None}  # the same numbers give the same bytes


_PDF_METADATA = ("CreationDate", "Creator", "Producer")


@dataclass(frozen=True, slots=True)
class Vector:
    """A figure as SVG, and its panels.

    titles  of the panels, as they are written in it
    boxes   (left, top, width, height) of the panels in points, without their titles
    heads   which marks of each panel are heads (`head_marks.placed`)
    """

    svg: bytes
    titles: list[str]
    boxes: list[tuple[float, float, float, float]]
    heads: list[list[dict[str, Any]]] = field(default_factory=list)


class ShownFigure(Figure):
    """A figure that a notebook shows, also where pyplot is not set up for it; below it `caption`.

    caption  how to read it; "": none
    """

    caption = ""

    def savefig(self, fname: Any, **look: Any) -> None:
        """As headscope writes its own figures: .svg (text stays text), .png (300 dpi) or .pdf.

        look  options of matplotlib; with any, or another kind of file, matplotlib writes it
        """
        path = Path(fname) if isinstance(fname, str | Path) else None
        if look or path is None or path.suffix.lower() not in KINDS:
            super().savefig(fname, **look)
        else:
            save_picture(self, path)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width, height = self.get_size_inches() * CSS_DPI
        return picture_bytes(self, "png"), {"width": round(width), "height": round(height)}

    def _repr_html_(self) -> str | None:
        if not self.caption:
            return None  # the picture alone
        png, size = self._repr_png_()
        return (
            f'<figure style="margin:0;max-width:{size["width"]}px"><img alt="" style="width:100%" '
            f'src="data:image/png;base64,{b64encode(png).decode()}">'
            '<figcaption style="font:inherit;font-size:90%;color:inherit;text-align:left">'
            f"{escape(self.caption)}</figcaption></figure>"
        )


def save_picture(figure: Figure, path: Path) -> Path:
    """Writes a figure as .svg (text stays text), .png (300 dpi) or .pdf, whole or not at all.

    A .pdf has its fonts embedded, as TrueType.

    raises  InputError for any other suffix
    """
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise InputError(
            f"cannot save a picture as {path.name!r}; wanted a name in .svg, .png or .pdf"
        )
    return write_whole(path, picture_bytes(figure, kind.removeprefix(".")))


def picture_bytes(figure: Figure, kind: str) -> bytes:
    """A figure as the bytes of an `svg`, `png` or `pdf` file."""
    with _in_points(figure) as renderer:
        if kind == "pdf":
            # Half a second of imports, for this kind alone.
            from matplotlib.backends.backend_pdf import FigureCanvasPdf

            file = io.BytesIO()
            canvas: Any = FigureCanvasPdf(figure)
            canvas.print_pdf(file, metadata=dict.fromkeys(_PDF_METADATA))
            return file.getvalue()
        return _drawn(figure, renderer, dots=kind == "png")[kind == "png"]


def vector(figure: Figure, panels: int, *, dots: bool = False) -> tuple[Vector, bytes]:
    """A figure as SVG whose first axes are its panels; afterwards it has no titles any more.

    returns  it, and with `dots` the bytes of a `png` file
    """
    places = figure.axes[:panels]
    with _in_points(figure) as renderer:
        svg, png = _drawn(figure, renderer, dots=dots)
        titles = [place.get_title(loc="left") for place in places]
        heads = [placed(place) for place in places]
        return Vector(svg, titles, [_box(place) for place in places], heads), png


def _box(axes: Axes) -> tuple[float, float, float, float]:
    """Where axes lie with all that belongs to them but the title."""
    axes.set_title("", loc="left")
    for axis in (axes.xaxis, axes.yaxis):  # else the place of its label is sought once more
        axis.set_label_coords(*axis.label.get_position(), axis.label.get_transform())
    legend, whole = axes.get_legend(), axes.figure.bbox.height
    if legend is not None:
        legend.set_in_layout(True)
    box = axes.get_tightbbox()
    assert box is not None
    left, top, right, bottom = (box.x0, whole - box.y1, box.x1, whole - box.y0)
    return (left - PAD, top - PAD, right - left + 2 * PAD, bottom - top + 2 * PAD)


def _lay_out(figure: Figure) -> None:
    """Gives the axes their final places.

    As long as a figure has a layout engine, it is drawn twice whenever it is saved.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)


class _Canvas(FigureCanvasBase):
    """Lets layouts measure text by what draws it: matplotlib keeps what one renderer measured."""

    def __init__(self, figure: Figure) -> None:
        super().__init__(figure)
        self.renderer = _Renderer(figure)

    def get_renderer(self) -> _Renderer:
        """The one renderer of the figure."""
        return self.renderer


class _StillText(Text):
    """A text of which only words and place change: its size is measured once for its words.

    boxes  of the words of all texts with its look, as if they stood at 0, 0
    """

    boxes: dict[str, Bbox]

    def get_window_extent(self, renderer: Any = None, dpi: float | None = None) -> Bbox:
        """As of `Text`."""
        place = self.get_transform().transform(self.get_unitless_position())
        words = self.get_text()
        if words not in self.boxes:
            self.boxes[words] = super().get_window_extent(renderer, dpi).translated(*-place)
        return self.boxes[words].translated(*place)


@contextmanager
def _still(figure: Figure) -> Iterator[None]:
    """Inside, the labels of ticks are measured once: matplotlib asks eight times for each."""
    both = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    texts = (text for axis in both for text in axis.get_ticklabels())
    labels: list[Any] = [text for text in texts if type(text) is Text]
    looks: dict[Any, dict[str, Bbox]] = {}
    for label in labels:
        turned = label.get_rotation(), label.get_rotation_mode(), label.get_ha(), label.get_va()
        label.boxes = looks.setdefault((label.get_fontproperties(), *turned), {})
        label.__class__ = _StillText
    try:
        yield
    finally:
        for label in labels:
            label.__class__ = Text
            del label.boxes


class _Renderer(RendererSVG):
    """Draws in points, as SVG, and all that is drawn also in dots, if there are some."""

    dots: RendererAgg | None = None

    def __init__(self, figure: Figure) -> None:
        width, height = 72 * figure.get_size_inches()
        self.file = io.StringIO()
        super().__init__(width, height, self.file, image_dpi=RESOLUTION, metadata=_METADATA)  # type: ignore[no-untyped-call]
        self._by = RESOLUTION / 72  # dots per point
        self._larger = Affine2D().scale(self._by)

    def option_scale_image(self) -> bool:
        """Whether images are enlarged by who shows the file."""
        return self.dots is None

    def _twice(self, name: str, gc: GraphicsContextBase, *parts: Any, **more: Any) -> None:
        dots, self.dots = self.dots, None  # what one method draws by others is drawn once
        getattr(super(), name)(gc, *parts, **more)
        self.dots = dots
        if dots is not None:
            if name in ("draw_text", "draw_image"):  # x and y, then what has its own size
                parts = (self._by * parts[0], self._by * parts[1], *parts[2:])
            large = (part + self._larger if isinstance(part, Transform) else part for part in parts)
            getattr(dots, name)(self._in_dots(dots, gc), *large, **more)

    draw_path = partialmethod(_twice, "draw_path")
    draw_markers = partialmethod(_twice, "draw_markers")
    draw_path_collection = partialmethod(_twice, "draw_path_collection")
    draw_gouraud_triangles = partialmethod(_twice, "draw_gouraud_triangles")
    draw_quad_mesh = partialmethod(_twice, "draw_quad_mesh")
    draw_text = partialmethod(_twice, "draw_text")
    draw_image = partialmethod(_twice, "draw_image")

    def _in_dots(self, dots: RendererAgg, gc: GraphicsContextBase) -> GraphicsContextBase:
        """The same look, clipped to the same part of the picture."""
        look = dots.new_gc()
        look.copy_properties(gc)
        box, (path, place) = gc.get_clip_rectangle(), gc.get_clip_path()
        if box is not None:
            look.set_clip_rectangle(Bbox(self._by * box.get_points()))
        if path is not None and place is not None:
            look.set_clip_path(TransformedPath(path, place + self._larger))  # type: ignore[arg-type]
        return look


def _drawn(figure: Figure, renderer: _Renderer, *, dots: bool) -> tuple[bytes, bytes]:
    """The bytes of a figure's `svg` file and, with `dots`, of its `png` file; drawn once."""
    look = figure.get_facecolor()
    wide, high = (RESOLUTION * figure.get_size_inches()).round()
    pixels = RendererAgg(wide, high, RESOLUTION) if dots else None  # type: ignore[no-untyped-call]
    renderer.dots = pixels
    figure.set_facecolor("white")
    figure.draw(renderer)
    renderer.finalize()  # type: ignore[no-untyped-call]
    figure.set_facecolor(look)
    return renderer.file.getvalue().encode(), b"" if pixels is None else _png(pixels)


def _png(drawn: RendererAgg) -> bytes:
    """A PNG file with rows unfiltered: trying filters takes long and makes drawings larger."""
    pixels = np.asarray(drawn.buffer_rgba())  # type: ignore[no-untyped-call]  # [row, column, 4]
    size, per_metre = pixels.shape[1::-1], round(RESOLUTION / 0.0254)
    rows = np.zeros((size[1], 1 + 3 * size[0]), np.uint8)  # 0 before a row: no filter
    for channel in range(3):
        rows[:, 1 + channel :: 3] = pixels[..., channel]  # in half of the time of all at once
    parts = (
        b"IHDR" + struct.pack(">2I5B", *size, 8, 2, 0, 0, 0),  # 8 bits, RGB
        b"pHYs" + struct.pack(">2IB", per_metre, per_metre, 1),
        b"IDAT" + zlib.compress(rows.data, QUICK),
        b"IEND",
    )
    chunks = (struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@contextmanager
def _in_points(figure: Figure) -> Iterator[_Renderer]:
    """Inside, the figure is laid out, its pixels are points, and it has our style."""
    before = figure.dpi, figure.canvas
    with house_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a tokenizer's own signs: a box
        try:
            figure.set_dpi(72)
            canvas = _Canvas(figure)
            with _still(figure):
                _lay_out(figure)
                yield canvas.renderer
        finally:
            figure.set_dpi(before[0])
            figure.set_canvas(before[1])
