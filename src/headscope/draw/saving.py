"""Write figures as SVG and PNG; the same numbers give the same bytes."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import matplotlib as mpl
import numpy as np
from matplotlib import cbook
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from headscope.core.whole_file import write_whole
from headscope.draw.style import house_style
from headscope.errors import InputError

RESOLUTION = 300  # of a PNG, in dots per inch
PAD = 3.0  # points around a panel
# No date and no version: the same numbers give the same bytes.
_METADATA = {"Date": None, "Creator": None}


@dataclass(frozen=True, slots=True)
class Vector:
    """A figure as SVG, and its panels.

    titles  of the panels, as they are written in it
    boxes   (left, top, width, height) of the panels in points, without their titles
    """

    svg: bytes
    titles: list[str]
    boxes: list[tuple[float, float, float, float]]


def save_picture(figure: Figure, path: Path) -> Path:
    """Writes a figure as .svg (text stays text) or .png (300 dpi), whole or not at all.

    raises  InputError for any other suffix
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("svg", "png"):
        raise InputError(f"cannot save a picture as {path.name!r}; wanted a name in .svg or .png")
    return write_whole(path, partial(write_picture, figure, kind))


def vector(figure: Figure, panels: int) -> Vector:
    """A figure as SVG whose first axes are its panels; afterwards it has no titles any more."""
    svg, axes = picture_bytes(figure, "svg"), figure.axes[:panels]
    titles = [place.get_title(loc="left") for place in axes]
    with _drawing():
        return Vector(svg, titles, [_box(place, figure.dpi / 72) for place in axes])


def _box(axes: Axes, pixels: float) -> tuple[float, float, float, float]:
    """Where axes lie with all that belongs to them but the title."""
    axes.set_title("", loc="left")
    legend, whole = axes.get_legend(), axes.figure.bbox.height
    if legend is not None:
        legend.set_in_layout(True)
    box = axes.get_tightbbox()
    assert box is not None
    left, top, right, bottom = (box.x0, whole - box.y1, box.x1, whole - box.y0)
    return (
        left / pixels - PAD, top / pixels - PAD,
        (right - left) / pixels + 2 * PAD, (bottom - top) / pixels + 2 * PAD,
    )  # fmt: skip


def lay_out(figure: Figure) -> None:
    """Gives the axes their final places.

    As long as a figure has a layout engine, it is drawn twice whenever it is saved.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)
        for axes in figure.axes:  # a title that nothing has pushed up stays where it is
            if axes.title.get_position()[1] == axes._left_title.get_position()[1] == 1:  # type: ignore[attr-defined]
                axes._autotitlepos = False  # type: ignore[attr-defined]


def picture_bytes(figure: Figure, kind: str) -> bytes:
    """A figure as the bytes of an `svg` or `png` file."""
    file = io.BytesIO()
    write_picture(figure, kind, file)
    return file.getvalue()


def write_picture(figure: Figure, kind: str, path: str | BinaryIO) -> None:
    """Writes a figure to `path`, whatever its suffix, as `svg` or `png`."""
    with _drawing(), mpl.rc_context({"savefig.facecolor": "white"}):
        lay_out(figure)
        if kind == "svg":
            figure.savefig(path, format=kind, dpi=RESOLUTION, metadata=_METADATA)
            return
        with cbook.open_file_cm(path, "wb") as file:
            file.write(_png(figure))


def _png(figure: Figure) -> bytes:
    """A PNG file with rows unfiltered: trying filters takes long and makes drawings larger."""
    canvas = FigureCanvasAgg(figure)
    canvas.print_figure(io.BytesIO(), format="rgba", dpi=RESOLUTION)
    pixels = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]  # [row, column, 4]
    rows = np.pad(pixels.reshape(len(pixels), -1), [(0, 0), (1, 0)])  # 0 before a row: no filter
    size, per_metre = pixels.shape[1::-1], round(RESOLUTION / 0.0254)
    parts = (
        b"IHDR" + struct.pack(">2I5B", *size, 8, 6, 0, 0, 0),  # 8 bits, RGBA
        b"pHYs" + struct.pack(">2IB", per_metre, per_metre, 1),
        b"IDAT" + zlib.compress(rows.tobytes()),
        b"IEND",
    )
    chunks = (struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@contextmanager
def _drawing() -> Iterator[None]:
    with house_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a tokenizer's own signs: a box
        yield
