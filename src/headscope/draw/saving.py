"""Write figures as SVG and PNG; the same numbers give the same bytes."""

from __future__ import annotations

import io
import warnings
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import matplotlib as mpl
from matplotlib.figure import Figure

from headscope.core.whole_file import write_whole
from headscope.draw.panel import lay_out
from headscope.draw.style import house_style
from headscope.errors import InputError

# No date and no version: the same numbers give the same bytes.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def save_picture(figure: Figure, path: Path) -> Path:
    """Writes a figure as .svg (text stays text) or .png (300 dpi), whole or not at all.

    raises  InputError for any other suffix
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise InputError(f"cannot save a picture as {path.name!r}; wanted a name in .svg or .png")
    return write_whole(path, partial(write_picture, figure, kind))


def picture_bytes(figure: Figure, kind: str) -> bytes:
    """A figure as the bytes of an `svg` or `png` file."""
    file = io.BytesIO()
    write_picture(figure, kind, file)
    return file.getvalue()


def write_picture(figure: Figure, kind: str, path: str | BinaryIO) -> None:
    """Writes a figure to `path`, whatever its suffix, as `svg` or `png`."""
    with house_style(), mpl.rc_context({"savefig.facecolor": "white"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a tokenizer's own signs: a box
        lay_out(figure)
        figure.savefig(path, format=kind, metadata=_METADATA[kind])
