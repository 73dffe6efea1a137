"""Draw the rooms of `src/headscope` and the imports between them: `python docs/rooms.py`."""

from __future__ import annotations

import ast
import io
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc
from PIL import Image

from headscope.draw.style import LIGHT, house_style

ROOT = Path(__file__).parents[1]
SOURCE, PICTURE = ROOT / "src/headscope", ROOT / "docs/images/rooms.png"
DPI, COLORS = 150, 40  # of the picture
FEW, MANY = 0.6, 4.5  # widths of an arc, in points
WINGS = ("cli", "live", "papers", "experiments")  # no room below knows of them
HOLDS = {
    "cli": "commands: options and messages",
    "live": "the live page and its model",
    "papers": "published claims, beside our runs",
    "experiments": "ablation, circuits, probes, …",
    "report": "the page of a run",
    "views": "the page of one text",
    "heads": "everything said of one head",
    "analyses": "one question per folder",
    "page": "kit of pages",
    "draw": "kit of figures",
    "run": "plan, shards, run folder",
    "tasks": "labelled tasks and metrics",
    "wired": "networks of known heads",
    "model": "models, read layer by layer",
    "corpus": "readers, documents, inputs",
    "claims": "questions, claims, labels, verdicts",
    "core": "sums, intervals, results, files",
}


def rooms() -> list[str]:
    """The rooms in the order of the import contract, the last one first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers: list[str] = contracts["contracts"][0]["layers"]
    return [room for room in layers if (SOURCE / room).is_dir()]


def imports() -> Counter[tuple[str, str]]:
    """(importing room, imported room) → number of modules with such an import."""
    pairs: Counter[tuple[str, str]] = Counter()
    for path in SOURCE.glob("*/**/*.py"):
        room, there = path.relative_to(SOURCE).parts[0], set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headscope."):
                there.add(str(node.module).split(".")[1])
        pairs.update((room, other) for other in there - {room})
    return pairs


def draw(axes: Axes) -> None:
    """A row per room; an arc from each room to every room below that it imports."""
    order, pairs = rooms(), imports()
    height = {room: len(order) - 1 - place for place, room in enumerate(order)}
    most = max(pairs.values())
    for (room, other), count in sorted(pairs.items(), key=lambda pair: pair[1]):
        if other in height:
            above, below = height[room], height[other]
            color = LIGHT["vermillion" if room in WINGS else "blue"]
            width = FEW + (MANY - FEW) * np.sqrt(count / most)
            size = above - below
            arc = Arc((0, (above + below) / 2), size * 0.9, size, theta1=-90, theta2=90)
            arc.set(color=color, linewidth=width, alpha=0.45, capstyle="butt")
            axes.add_patch(arc)
    for room, y in height.items():
        color = LIGHT["vermillion" if room in WINGS else "blue"]
        axes.plot(0, y, "o", color=color, markersize=6, zorder=3)
        axes.text(-0.4, y - 0.03, room, ha="right", va="center", weight="bold", color=LIGHT["ink"])
        axes.text(-2.9, y - 0.03, HOLDS[room], ha="right", va="center", color=LIGHT["muted"])
    axes.set(xlim=(-8.6, 0.45 * len(order) + 0.1), ylim=(-0.7, len(order) - 0.3), aspect="equal")
    axes.axis("off")


def main() -> None:
    """Write the picture as a PNG of 8 bits."""
    with house_style():
        figure = Figure(figsize=(6.9, 7.2))
        draw(figure.add_axes((0, 0, 1, 1)))
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=DPI, facecolor=LIGHT["page"])
    image = Image.open(file).convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE, kmeans=2)
    image.save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
