"""The shell of every page: templates and assets, content policy, theme, and how it is written."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Collection, Mapping
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup

from headscope.core.whole_file import write_whole
from headscope.draw.style import COLORS, ramp

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


def content_policy(*, style: str, script: str, framed: Collection[tuple[str, str]] = ()) -> str:
    """A content security policy under which only this style and this script take effect.

    The hashes cover the exact text between the tags; nothing is fetched, embedded or submitted.

    framed  (style, script) of pages that the script writes into frames: these inherit the policy
    """
    styles, scripts = (
        " ".join(f"'{_digest(text)}'" for text in texts)
        for texts in zip((style, script), *framed, strict=True)
    )
    return (
        f"default-src 'none'; style-src {styles}; script-src {scripts}; "
        "base-uri 'none'; form-action 'none'"
    )


def island(data: Mapping[str, object]) -> str:
    """JSON that can stand inside a script element: no character in it can end that element.

    raises  ValueError for NaN and infinities, which JSON does not have
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def write_page(path: Path, page: str) -> Path:
    """Writes a page, whole or not at all; returns its path.

    raises  OSError if it cannot be written
    """
    # Half of a surrogate pair is no text; JSON writes it as an escape.
    content = page.encode("utf-8", errors="backslashreplace")
    return write_whole(path, lambda draft: Path(draft).write_bytes(content))


def _digest(text: str) -> str:
    raw = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(raw).decode("ascii")


def theme_css() -> str:
    """Rules for `:root`: light by default and in print, dark where the system asks for it."""
    light, dark = (_declarations(side) for side in (0, 1))
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    )


def _declarations(side: int) -> str:
    named = [f"--{name}:{pair[side]}" for name, pair in COLORS.items()]
    steps = [f"--ramp-{step}:{shade}" for step, shade in enumerate(ramp(dark=side == 1))]
    return ";".join(named + steps)
