"""The shell of every page: templates and assets, content policy, theme, and how it is written."""

from __future__ import annotations

import base64
import bz2
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from headscope.core.whole_file import write_whole
from headscope.core.wording import capital
from headscope.draw.style import COLORS, ramp
from headscope.errors import InputError

_CUT = re.compile(r"(?<!\bal\.)(?<=[.;:,])\s+(?=\S)")
PICTURES = (".svg", ".png", ".pdf")  # which `save_picture` writes
MOST_WORDS = 58  # of a caption, which its number makes 60
_HEAD = re.compile(r"\bL\d+·H\d+\b")
_INTERVAL = re.compile(r"\[[−\d., ]+\]")


def asset(name: str, package: str = "headscope.report") -> str:
    """The text of a file in the folder `assets` of a package."""
    packed = _packed().get(f"{package}/{name}")
    if packed is not None:
        return packed
    return (resources.files(package) / "assets" / name).read_text(encoding="utf-8")


@cache
def _packed() -> dict[str, str]:
    """Assets by PACKAGE/NAME where headscope came as a wheel (`hatch_build.py`); else none."""
    file = resources.files("headscope.page") / "assets.json.bz2"
    packed = bz2.decompress(file.read_bytes()) if file.is_file() else b"{}"
    texts: dict[str, str] = json.loads(packed)
    return texts


def template(name: str, *packages: str) -> jinja2.Template:
    """A template of the first of these packages that has it; the report's where none is named."""
    return _environment(packages or ("headscope.report",)).get_template(name)


@cache
def _environment(places: tuple[str, ...]) -> jinja2.Environment:
    """Keeps the templates that it has read."""

    def load(wanted: str) -> str | None:
        for package in places:
            with suppress(FileNotFoundError):
                return asset(wanted, package)
        return None

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(load),
    )
    # Panels are markup made here from numbers; the XML writer escapes the names drawn in them.
    environment.filters["drawing"] = Markup
    environment.filters |= {"unbroken": unbroken, "linked": linked, "split": split_caption}
    return environment


def render_page(
    page: jinja2.Template,
    *,
    style: str,
    script: str = "",
    framed: Collection[tuple[str, str]] = (),
    **content: Any,
) -> str:
    """A page in which only this style and this script take effect; see `content_policy`."""
    policy = content_policy(style=style, script=script, framed=framed)
    return page.render(style=Markup(style), script=Markup(script), policy=policy, **content)


def plain_page(name: str, package: str, drawings: str, *, rules: str = "", **content: Any) -> str:
    """A page without scripts, in the style of a run's report; all is escaped, but for drawings.

    name      of the template NAME.html.j2 and its sheet NAME.css, in the assets of the package
    drawings  rules of style of the drawings
    rules     more rules
    """
    more = asset(f"{name}.css", package), *filter(None, [rules]), drawings
    page = template(f"{name}.html.j2", package, "headscope.report")
    return render_page(page, style="\n".join([style_of("report.css"), *more]), **content)


def unbroken(text: str) -> str:
    """The text with no line break inside an interval or before a unit."""
    spaced = _INTERVAL.sub(lambda match: match[0].replace(" ", "\u00a0"), text)
    return spaced.replace(" %", "\u00a0%")


def split_caption(text: str, most: int = MOST_WORDS) -> tuple[str, str]:
    """The shown part of a caption, of limited length, and the rest, behind “how to read”.

    It is cut after a sentence, else after a part of one, outside brackets; where none of the cuts
    fits, after the first.
    """
    if len(text.split()) <= most:
        return text, ""
    cuts = [
        cut.start()
        for cut in _CUT.finditer(text)
        if text.count("(", 0, cut.start()) == text.count(")", 0, cut.start())
        and text.count("[", 0, cut.start()) == text.count("]", 0, cut.start())
    ]
    fits = [at for at in cuts if len(text[:at].split()) <= most]
    whole = [at for at in fits if text[at - 1] in ".;"]
    at = max(whole or fits or cuts[:1] or [len(text)])
    rest = text[at:].strip()
    word = rest[:2].isascii() and rest[:2].isalpha()  # not a sign, as p and ρ are
    return text[:at].rstrip(".;:,") + ".", capital(rest) if word else rest


def linked(text: str, ids: Collection[str], page: str = "") -> Markup:
    """The text, escaped and `unbroken`, with links on the heads that have these ids.

    page  the address of the page that has them, if it is another
    """

    def link(match: re.Match[str]) -> str:
        goal = match[0].replace("·", "")
        return (
            f'<a class="head" href="{escape(page)}#{goal}">{match[0]}</a>'
            if goal in ids
            else match[0]
        )

    return Markup(_HEAD.sub(link, str(escape(unbroken(text)))))


def content_policy(*, style: str, script: str, framed: Collection[tuple[str, str]] = ()) -> str:
    """A content security policy under which only this style and this script take effect.

    The hashes cover the exact text between the tags; nothing is fetched, embedded or submitted.

    framed  (style, script) of pages that the script writes into frames: these inherit the policy
    """

    def digests(texts: Iterable[str]) -> str:
        raw = (hashlib.sha256(text.encode("utf-8")).digest() for text in texts)
        return " ".join(f"'sha256-{base64.b64encode(each).decode('ascii')}'" for each in raw)

    styles, scripts = map(digests, zip((style, script), *framed, strict=True))
    return (
        f"default-src 'none'; style-src {styles}; script-src {scripts}; "
        "base-uri 'none'; form-action 'none'"
    )


def island(data: Mapping[str, object]) -> Markup:
    """JSON that can stand inside a script element: no character in it can end that element.

    raises  ValueError for NaN and infinities, which JSON does not have
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def write_page(path: Path, page: str | bytes) -> Path:
    """Writes a page, whole or not at all; returns its path.

    raises  InputError for the name of a picture
    """
    if path.suffix.lower() in PICTURES:
        raise InputError(f"cannot save a page as {path.name!r}; wanted a name in .html")
    # Half of a surrogate pair is no text; JSON writes it as an escape.
    text = page if isinstance(page, bytes) else page.encode("utf-8", errors="backslashreplace")
    return write_whole(path, text)


def style_of(*names: str, package: str = "headscope.report") -> str:
    """The theme, and these sheets among the assets of a package."""
    return "\n".join([theme_css(), *(asset(name, package) for name in names)])


def script_of(names: Iterable[str], package: str = "headscope.report") -> str:
    """One script of these files among the assets of a package, in their order, after address.js."""
    address = asset("address.js", "headscope.page")
    return "\n".join([address, *(asset(name, package) for name in names)])


def theme_css() -> str:
    """Rules for `:root`: light by default and in print, dark where the system asks for it.

    A page around this one may ask for one of the two instead: `data-scheme`, by address.js.
    """
    light, dark = (_declarations(side) for side in (0, 1))
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        "@media screen and (prefers-color-scheme:dark)"
        f"{{:root:where(:not([data-scheme=light])){{{dark}}}}}\n"
        f"@media screen{{:root:where([data-scheme=dark]){{color-scheme:dark;{dark}}}}}\n"
        ":root:where([data-scheme=light]){color-scheme:light}"
    )


def _declarations(side: int) -> str:
    named = [f"--{name}:{pair[side]}" for name, pair in COLORS.items()]
    steps = [f"--ramp-{step}:{shade}" for step, shade in enumerate(ramp(dark=side == 1))]
    return ";".join(named + steps)
