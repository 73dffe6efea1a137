"""Pages from templates: whatever is put into one is escaped, unless it is markup of ours."""

from __future__ import annotations

import re
from importlib import resources

import jinja2
from markupsafe import Markup

_INTERVAL = re.compile(r"\[[−\d., ]+\]")


def asset(name: str, package: str = "headscope.report") -> str:
    """The text of a file in the folder `assets` of a package."""
    return (resources.files(package) / "assets" / name).read_text(encoding="utf-8")


def template(name: str, *packages: str) -> jinja2.Template:
    """A template of the first of these packages that has it; the report's where none is named."""
    places = packages or ("headscope.report",)

    def load(wanted: str) -> str | None:
        for package in places:
            if (resources.files(package) / "assets" / wanted).is_file():
                return asset(wanted, package)
        return None

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(load),
    )  # fmt: skip
    # Panels are markup made here from numbers; the XML writer escapes the names drawn in them.
    environment.filters["drawing"] = Markup
    environment.filters["unbroken"] = unbroken
    return environment.get_template(name)


def unbroken(text: str) -> str:
    """The text with no line break inside an interval or before a unit."""
    spaced = _INTERVAL.sub(lambda match: match[0].replace(" ", "\u00a0"), text)
    return spaced.replace(" %", "\u00a0%")
