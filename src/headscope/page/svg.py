"""Turn a matplotlib panel into markup for a page with light and dark colours and no inline style.

Colours become the page's custom properties, `style` attributes become classes (a strict content
security policy forbids the attribute), ids become unique to the figure, fonts become the page's.
"""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass, field
from xml.etree import ElementTree

from headscope.draw.panel import Panel, compose, lay_out
from headscope.draw.style import LIGHT, house_style, ramp

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"#([\w.-]+)")
# A cell of a heat map as matplotlib writes it: four corners of a box.
_BOX = re.compile(r"M (\S+) (\S+)\s+L (\S+) \2\s+L \3 (\S+)\s+L \1 \4\s+z\s*")
_DROPPED = {"metadata", "title", "style"}


@dataclass
class Styles:
    """The style declarations of all figures, each once, as classes."""

    classes: dict[str, str] = field(default_factory=dict)

    def name(self, declarations: str) -> str:
        """The class that stands for these declarations."""
        return self.classes.setdefault(declarations, f"m{len(self.classes)}")

    def css(self) -> str:
        """One rule per class."""
        return "\n".join(f".{name}{{{rule}}}" for rule, name in self.classes.items())


def custom_properties() -> dict[str, str]:
    """Light-page colour → the custom property that stands for it; see `theme`."""
    steps = {shade: f"--ramp-{step}" for step, shade in enumerate(ramp())}
    return steps | {shade: f"--{name}" for name, shade in LIGHT.items()}


def inline_panel(panel: Panel, styles: Styles, *, prefix: str, width: float) -> str:
    """SVG markup of one panel.

    styles  collects the classes that the markup uses
    prefix  unique to the panel; starts its ids
    width   in inches at which the panel is laid out; the page scales it
    """
    buffer = io.StringIO()
    with house_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's fonts may have it
        figure = compose([panel], columns=1, width=width)
        figure.axes[0].set_title("")  # the page prints it, as text
        legend = figure.axes[0].get_legend()
        if legend is not None:
            legend.set_in_layout(True)  # the title had kept its place
        lay_out(figure)
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(buffer.getvalue())
    ids = _ids(root, prefix)
    _clean(root, styles, ids, custom_properties())
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("aria-hidden", "true")  # title, caption and tables say it in words
    root.set("focusable", "false")
    return _serialise(root)


def _ids(root: ElementTree.Element, prefix: str) -> dict[str, str]:
    """The ids that something refers to, and their new names."""
    values = [value for node in root.iter() for value in node.attrib.values()]
    wanted = sorted({name for value in values for name in _REFERENCE.findall(value)})
    there = {node.get("id") for node in root.iter()}
    return {name: f"{prefix}{at}" for at, name in enumerate(w for w in wanted if w in there)}


def _clean(
    node: ElementTree.Element, styles: Styles, ids: dict[str, str], properties: dict[str, str]
) -> None:
    """Rewrites one element and all below it in place."""
    for child in list(node):
        if not isinstance(child.tag, str) or child.tag.rpartition("}")[2] in _DROPPED:
            node.remove(child)
        else:
            _clean(child, styles, ids, properties)
    old = dict(node.attrib)
    node.attrib.clear()
    for name, value in old.items():
        short = name.removeprefix(f"{{{XLINK}}}")
        if short == "transform" and value.startswith("rotate(-0 "):
            continue
        if short == "style":
            node.set("class", styles.name(_themed(value, properties)))
        elif short == "id":
            if value in ids:
                node.set("id", ids[value])
        else:
            renamed = _REFERENCE.sub(lambda match: "#" + ids.get(match[1], match[1]), value)
            # A box in less than half the characters: heat maps have thousands.
            node.set(short, _BOX.sub(r"M\1 \2H\3V\4H\1z", _NUMBER.sub(_short, renamed)))


def _themed(style: str, properties: dict[str, str]) -> str:
    """Declarations with the page's colours and typeface in the place of matplotlib's."""
    parts = []
    for declaration in filter(None, (part.strip() for part in style.split(";"))):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key == "font-family":
            value = "var(--plot-font)"
        elif value.lower() in properties:
            value = f"var({properties[value.lower()]})"
        parts.append(f"{key}:{value}")
    return ";".join(parts)


def _short(match: re.Match[str]) -> str:
    """Hundredths of a point are finer than any screen."""
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")


def _serialise(root: ElementTree.Element) -> str:
    ElementTree.register_namespace("", SVG)
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r">\s+<", "><", text)
