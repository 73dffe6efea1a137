"""How do the claims, the table and the pictures of a zoo become one page that works offline?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup

import headscope
from headscope.core.results import printable, shape
from headscope.core.whole_file import write_whole
from headscope.core.wording import fixed, number, percent
from headscope.draw.panel import Panel
from headscope.page.policy import content_policy
from headscope.page.svg import Styles, inline_panel
from headscope.page.templates import asset, template
from headscope.page.theme import theme_css
from headscope.papers.zoo.claims import CLAIMS, GROUPS, REFERENCES, TESTS, Claim
from headscope.papers.zoo.figure import (
    HEADS,
    HEADS_CAPTION,
    HEADS_TEXT,
    HEADS_TITLE,
    MULTIPLES,
    Series,
    caption,
    depth_shades,
    head_panels,
    panels,
)
from headscope.papers.zoo.headlines import headlines
from headscope.papers.zoo.verdict import FAILS, HOLDS, UNASKED, UNCLEAR, Answer

if TYPE_CHECKING:
    from headscope.papers.zoo.found import Zoo

PANEL_WIDTH = 2.9  # inches, as the report's three beside each other
# verdict → (sign, class of the cell)
SIGNS = {HOLDS: ("●", "holds"), FAILS: ("○", "fails"), UNCLEAR: ("◐", "unclear"),
         UNASKED: ("—", "unasked")}  # fmt: skip
GLYPHS = {"^": "▲", "s": "■", "v": "▼", "o": "●"}


@dataclass(frozen=True, slots=True)
class Cell:
    """What a model says to a claim; `sign` and `kind` stand for the verdict."""

    verdict: str
    sign: str
    kind: str
    text: str = ""
    interval: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One claim: `bound` as it must lie, `held` by how many."""

    claim: Claim
    bound: str
    held: str
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of the key above pictures."""

    text: str
    hue: str
    glyph: str
    dashed: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """One section of pictures; panels are (title, markup), the markup ours throughout."""

    id: str
    title: str
    text: str
    key: list[Key]
    panels: list[tuple[str, str]]
    caption: str
    shades: list[int]


def write_page(zoo: Zoo) -> Path:
    """Writes report.html: self-contained, no request leaves it; returns its path."""
    page = render(zoo).encode("utf-8", errors="backslashreplace")
    return write_whole(zoo.path / "report.html", lambda draft: Path(draft).write_bytes(page))


def render(zoo: Zoo) -> str:
    """The page as text."""
    styles = Styles()
    drawn = pictures(zoo, styles)
    shades = "\n".join(f".shade-{step}{{fill:var(--ramp-{step})}}" for step in depth_shades())
    sheets = [theme_css(), asset("report.css"), asset("zoo.css"), shades, styles.css()]
    style = "\n".join(sheets)
    return template("zoo.html.j2").render(
        style=Markup(style),
        policy=content_policy(style=style, script=""),
        headlines=headlines(zoo),
        failed={label: printable(why) for label, why in zoo.failed.items()},
        models=[_model(zoo, label) for label in zoo.runs],
        groups=_groups(zoo),
        signs=SIGNS,
        pictures=drawn,
        definitions=_definitions(),
        references=REFERENCES.values(),
        facts=_facts(zoo),
        command=printable(zoo.manifest.get("command", "")),
        version=headscope.__version__,
    )


def pictures(zoo: Zoo, styles: Styles) -> list[Picture]:
    """The sections of small multiples that have any panel; `styles` collects their classes."""
    found = []
    for multiple in MULTIPLES:
        every = panels(zoo, multiple, key=False)
        if every:
            found.append(Picture(
                multiple.name, multiple.title, multiple.text, [_key(s) for s in multiple.series],
                _inline(every, styles, multiple.name), caption(zoo, multiple.caption, every), [],
            ))  # fmt: skip
    heads = head_panels(zoo)
    if heads:
        found.append(Picture(
            HEADS, HEADS_TITLE, HEADS_TEXT, [Key("best fixed offset", "grey", "◇", dashed=False)],
            _inline(heads, styles, HEADS), caption(zoo, HEADS_CAPTION, heads), depth_shades(),
        ))  # fmt: skip
    return found


def bound_words(claim: Claim) -> str:
    """`> 50 %`: where the number must lie."""
    sign = TESTS[claim.test]
    if claim.unit == "share":
        return f"{sign} {percent(claim.bound, math.nan, math.nan) if claim.bound else '0 %'}"
    if claim.unit == "points":
        return f"{sign} 0 points" if not claim.bound else f"{sign} {100 * claim.bound:g} points"
    unit = {"heads": " heads", "nats": " nats"}.get(claim.unit, "")
    space = "" if claim.test == "near" else " "
    return f"{sign}{space}{claim.bound:g}{unit}".replace("-", "−")


# --- the table ------------------------------------------------------------------------------


def _groups(zoo: Zoo) -> list[tuple[str, list[Row]]]:
    """(title, rows) of every group of claims."""
    found = []
    for key, title in GROUPS.items():
        rows = [_row(claim, zoo.answers[claim.name]) for claim in CLAIMS if claim.group == key]
        found.append((title, rows))
    return found


def _row(claim: Claim, answers: dict[str, Answer]) -> Row:
    asked = [answer for answer in answers.values() if answer.verdict != UNASKED]
    held = sum(answer.verdict == HOLDS for answer in asked)
    cells = [cell(claim, answer) for answer in answers.values()]
    return Row(claim, bound_words(claim), f"{held} of {len(asked)}" if asked else "—", cells)


def cell(claim: Claim, answer: Answer) -> Cell:
    """One answer as text; a claim that cannot be asked gives the reason, never a 0."""
    sign, kind = SIGNS[answer.verdict]
    found = answer.number
    if found is None:
        return Cell(answer.verdict, sign, kind, detail=answer.why)
    parts = (found.value, found.low, found.high)
    if claim.unit == "share":
        text = percent(*parts)
    elif claim.unit == "points":
        text = _points(*parts)
    elif claim.unit == "heads":
        text = fixed(found.value, 0)
        if math.isfinite(found.low) and found.low < found.high:
            text += f" [{fixed(found.low, 0)}, {fixed(found.high, 0)}]"
    else:
        text = number(*parts)
    value, bracket, interval = text.partition(" [")
    return Cell(answer.verdict, sign, kind, value, bracket.strip() + interval, found.detail)


def _points(value: float, low: float, high: float) -> str:
    """A difference of shares with its sign, in percentage points."""

    def signed(share: float) -> str:
        text = fixed(100 * share, 1)
        return text if text.startswith("−") or text == "0.0" else f"+{text}"

    ends = f" [{signed(low)}, {signed(high)}]" if math.isfinite(low) else ""
    return signed(value) + ends


def _definitions() -> list[tuple[list[Claim], str]]:
    """Claims of one definition together, and where the number must lie."""
    alike = groupby(CLAIMS, key=lambda claim: (claim.number, bound_words(claim), claim.source))
    return [(list(claims), bound) for (_, bound, _), claims in alike]


# --- models, pictures, facts ----------------------------------------------------------------


def _model(zoo: Zoo, label: str) -> dict[str, Any]:
    """What the heads of columns and the list of models say."""
    run = zoo.runs[label]
    model, counts = run.manifest["model"], run.manifest["counts"]
    layers, heads = shape(run.tree)
    special = [printable(name) for name in model["special_tokens"].values()]
    place = run.path.relative_to(zoo.path).as_posix() if run.path and run.has_report else ""
    return {
        "label": label, "layers": layers, "heads": heads, "architecture": model["architecture"],
        "stack": model["stack"], "special": ", ".join(special), "tokens": counts["tokens"],
        "documents": counts["documents"], "revision": model["revision"], "sha256": model["sha256"],
        "href": f"{quote(place)}/report.html" if place else "",
        "skipped": counts["skipped"], "windowed": counts["windowed"],
    }  # fmt: skip


def _inline(every: list[Panel], styles: Styles, name: str) -> list[tuple[str, str]]:
    return [
        (panel.title, inline_panel(panel, styles, prefix=f"{name}{at}-", width=PANEL_WIDTH))
        for at, panel in enumerate(every)
    ]


def _key(series: Series) -> Key:
    return Key(series.text, series.hue, GLYPHS[series.mark], series.dashed)


def _facts(zoo: Zoo) -> dict[str, str]:
    """What was read, and how sure the numbers are."""
    tree = next(iter(zoo.runs.values())).tree
    documents = sorted({int(run.tree.attrs["documents"]) for run in zoo.runs.values()})
    read = " to ".join(f"{n:,}" for n in (documents[0], documents[-1])[: len(documents)])
    return {
        "Corpus": printable(tree.attrs["corpus"]),
        "Read": f"{read} document{'s' if documents[-1] != 1 else ''}",
        "Intervals": f"95 %, bootstrap over documents, {tree.attrs['replicates']} replicates",
        "Spec fingerprint": str(zoo.manifest.get("fingerprint", ""))[:16],
    }  # fmt: skip
