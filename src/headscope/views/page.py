"""How does one example, as captured, become a page that can be explored offline?"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from headscope.page.shell import content_policy, island, theme_css

# One module in one scope: what a file uses when it is read must stand before it.
SCRIPTS = (
    "core.js", "places.js", "values.js", "colours.js", "sentences.js", "choices.js", "heads.js",
    "thumbnails.js", "model.js", "lines.js", "head.js", "matrix.js", "neuron_data.js",
    "neuron_why.js", "neuron_paint.js", "neuron.js", "figure_paper.js",
    "figure_lines.js", "figure_maps.js", "figure_neurons.js", "figure.js", "page.js",
)  # fmt: skip
STYLES = ("view.css", "neuron.css", "figure.css")


def build_page(payload: Mapping[str, Any]) -> bytes:
    """One HTML file with the views of an example; no request leaves it.

    payload  JSON-ready, as `views.payload` makes it: title, model, left_out, sides, stacks
    returns  UTF-8; tokens stand in it as data only, whatever characters they hold
    raises   ValueError for numbers that JSON does not have
    """
    style, script = page_style(), page_script()
    page = _template().render(
        title=payload["title"],
        model=payload["model"]["name"],
        about=_about(payload),
        left_out=payload["left_out"],
        precision=payload.get("precision", ""),
        style=Markup(style),
        script=Markup(script),
        policy=content_policy(style=style, script=script),
        island=Markup(island(payload)),
    )
    # Half of a surrogate pair is no text, but its escape is what JSON writes for it.
    return page.encode("utf-8", errors="backslashreplace")


def page_style() -> str:
    """The style of every page, the same whatever it shows."""
    return "\n".join([theme_css(), *map(_asset, STYLES)])


def page_script() -> str:
    """Its script, likewise."""
    return "\n".join(map(_asset, SCRIPTS))


def _about(payload: Mapping[str, Any]) -> str:
    """The model and the size of what is shown, for each stack where there are several."""
    stacks, sides = payload["stacks"], payload["sides"]
    sizes = [
        f"{stack['layers']} layers × {stack['heads']} heads{', causal' if stack['causal'] else ''}"
        for stack in stacks
    ]
    tokens = [f"{len(side['tokens'])} {side['name']} tokens".replace("  ", " ") for side in sides]
    if len(stacks) > 1:
        sizes = [f"{stack['label']} {size}" for stack, size in zip(stacks, sizes, strict=True)]
    return "; ".join([f"{payload['model']['name']}, {sizes[0]}", *sizes[1:], " and ".join(tokens)])


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(_asset("view.html.j2"))


def _asset(name: str) -> str:
    return (resources.files("headscope.views") / "assets" / name).read_text(encoding="utf-8")
