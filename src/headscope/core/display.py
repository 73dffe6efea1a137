"""How a public object shows itself: in one line, and in a notebook as a small table; and names."""

import re
import unicodedata
from collections.abc import Mapping
from html import escape

LONGEST = 70  # characters of a fact in the line


class Displayed:
    """A short repr, and a table of the same facts in notebooks; a subclass gives the facts."""

    def facts(self) -> Mapping[str, object]:
        """Facts for a reader; the first names the object."""
        raise NotImplementedError

    def __repr__(self) -> str:
        first, *more = (shortened(value) for value in self.facts().values())
        return f"<headscope.{type(self).__name__} {first}{': ' if more else ''}{', '.join(more)}>"

    def _repr_html_(self) -> str:
        facts = {name: str(value).removeprefix(f"{name}=") for name, value in self.facts().items()}
        return facts_table(type(self).__name__, facts)


def facts_table(title: str, facts: Mapping[str, str]) -> str:
    """A title and a table of facts, as notebooks show them; all is escaped."""
    rows = "".join(
        f"<tr><th style='text-align:left;padding-right:1em'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in facts.items()
    )
    return f"<b>{escape(title)}</b><table>{rows}</table>"


def shortened(value: object) -> str:
    """A value on one line, of at most LONGEST characters."""
    text = " ".join(str(value)[: 4 * LONGEST].split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def printable(value: object) -> str:
    """A name that any file can hold: control characters and lone surrogates become �."""
    text = "" if value is None else str(value)
    return "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)


def title_name(model: str) -> str:
    """The last part of a local path; hub ids stay unchanged."""
    local = model.startswith(("/", "./", "../", "~")) or "\\" in model
    return re.split(r"[/\\]", model.rstrip("/\\"))[-1] or model if local else model
