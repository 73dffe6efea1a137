"""Turn a matplotlib panel into markup for a page with light and dark colours and no inline style.

Colours become the page's custom properties, `style` attributes become classes (a strict content
security policy forbids the attribute), ids become unique to the figure, fonts become the page's.
"""

import json
import re
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from headscope.draw.panel import Panel, compose
from headscope.draw.saving import Vector, vector
from headscope.draw.style import LIGHT, ramp

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
PIXELS = 1.9  # for a point, at the most: 7.5 pt are 14 pixels there, 11 in a narrow column
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"#([\w.-]+)")
# A cell of a heat map as matplotlib writes it: four corners of a box.
_BOX = re.compile(r"M (\S+) (\S+)\s+L (\S+) \2\s+L \3 (\S+)\s+L \1 \4\s+z\s*")
_PLAIN: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False}
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
    """SVG markup of one panel, laid out by itself at `width` inches; see `inline_panels`."""
    figure = compose([panel], columns=1, width=width)
    return inline_panels(vector(figure, 1)[0], styles, prefix=prefix)[0]


def inline_panels(drawn: Vector, styles: Styles, *, prefix: str) -> list[str]:
    """SVG markup of each panel of a figure, without its title, which the page prints as text.

    Where marks are heads, `data-heads` says which (`head_marks.placed`), for the page's script.

    styles  collects the classes that the markup uses
    prefix  unique to the figure; starts its ids
    """
    panels = _panels(drawn)
    for at, panel in enumerate(panels):
        _clean(panel, styles, _ids(panel, f"{prefix}{at}-"), custom_properties())
        if at < len(drawn.heads) and drawn.heads[at]:
            panel.set("data-heads", json.dumps(drawn.heads[at], separators=(",", ":"), **_PLAIN))
    return [_serialise(panel) for panel in panels]


def _panels(drawn: Vector) -> list[ElementTree.Element]:
    """Every panel as a picture of its own, with what it refers to; all of one width, so that their
    texts have one size on the page.
    """
    root = ElementTree.fromstring(drawn.svg)
    named = {node.get("id"): node for node in root.iter() if node.get("id")}
    groups = [node for node in named["figure_1"] if str(node.get("id")).startswith("axes_")]
    width = max(wide for _, _, wide, _ in drawn.boxes)
    panels = []
    drawn_here = zip(groups[: len(drawn.titles)], drawn.titles, drawn.boxes, strict=True)
    for group, title, (left, top, _, height) in drawn_here:
        _drop_text(group, title)
        inside = {node.get("id") for node in group.iter()}
        others = sorted(name for name in _referred(group) - inside if name in named)
        panel = ElementTree.Element(
            f"{{{SVG}}}svg",
            {
                "viewBox": f"{left:.2f} {top:.2f} {width:.2f} {height:.2f}",
                "width": f"{PIXELS * width:.0f}",
                "aria-hidden": "true",  # title, caption and tables say it in words
                "focusable": "false",
            },
        )
        definitions = ElementTree.SubElement(panel, f"{{{SVG}}}defs")
        definitions.extend(deepcopy(named[name]) for name in others)
        panel.append(group)
        panels.append(panel)
    return panels


def _drop_text(group: ElementTree.Element, text: str) -> None:
    """Takes away the first piece of text of a panel that reads `text`."""
    for child in group:
        if text and "".join(child.itertext()).strip() == text.strip():
            group.remove(child)
            return


def _referred(node: ElementTree.Element) -> set[str]:
    values = [value for part in node.iter() for value in part.attrib.values()]
    return {name for value in values for name in _REFERENCE.findall(value)}


def _ids(root: ElementTree.Element, prefix: str) -> dict[str, str]:
    """The ids that something refers to, and their new names."""
    there = sorted(_referred(root) & {str(node.get("id")) for node in root.iter()})
    return {name: f"{prefix}{at}" for at, name in enumerate(there)}


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
        renamed = _REFERENCE.sub(lambda match: "#" + ids.get(match[1], match[1]), value)
        if short == "style" or (short == "fill" and value.startswith("#")):  # a fill: of hatching
            rule = renamed if short == "style" else f"fill: {value}"
            node.set("class", styles.name(_themed(rule, properties)))
        elif short == "id":
            if value in ids:
                node.set("id", ids[value])
        else:
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
