"""The page of a zoo: sentences, the table of claims and figures; it works offline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

import headscope
from headscope.core.results import printable, shape
from headscope.core.whole_file import write_whole
from headscope.core.wording import fixed, number, percent
from headscope.draw.panel import Panel
from headscope.page.svg import Styles, inline_panel
from headscope.papers.claim_engine import (
    FAILS,
    HOLDS,
    TESTS,
    UNASKED,
    UNCLEAR,
    ClaimGroup,
    ClaimOutcome,
    PaperClaim,
)
from headscope.papers.page_frame import render_page
from headscope.papers.zoo.claims import CLAIMS, GROUPS, REFERENCES
from headscope.papers.zoo.figure import (
    BEST_HEADS,
    MULTIPLES,
    Multiple,
    caption,
    depth_shades,
    head_panels,
    panels,
)
from headscope.papers.zoo.outcome import Answers, ZooOutcome, held

PANEL_WIDTH = 2.9  # inches, as the report's three beside each other
# verdict → (sign, class of the cell)
SIGNS = {HOLDS: ("●", "holds"), FAILS: ("○", "fails"), UNCLEAR: ("◐", "unclear"),
         UNASKED: ("—", "unasked")}  # fmt: skip
GLYPHS = {"^": "▲", "s": "■", "v": "▼", "o": "●", "D": "◇"}


@dataclass(frozen=True, slots=True)
class ClaimCell:
    """What a model says to a claim; `sign` and `kind` stand for the verdict."""

    verdict: str
    sign: str
    kind: str
    text: str = ""
    interval: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One claim: where its number must lie, for how many models it holds, and what each says."""

    claim: PaperClaim
    bound: str
    held: str
    cells: list[ClaimCell]


@dataclass(frozen=True, slots=True)
class FigureSection:
    """One section of small panels (title, markup made here); shades: of the key's ramp."""

    figure: Multiple
    panels: list[tuple[str, str]]
    caption: str
    shades: list[int]


def write_page(zoo: ZooOutcome) -> Path:
    """Writes report.html: self-contained, no request leaves it; returns its path."""
    page = render(zoo).encode("utf-8", errors="backslashreplace")
    return write_whole(zoo.path / "report.html", lambda draft: Path(draft).write_bytes(page))


def render(zoo: ZooOutcome) -> str:
    """The page as text."""
    styles = Styles()
    sections = figure_sections(zoo, styles)  # before the page takes the styles
    return render_page(
        "zoo", styles,
        rules="\n".join(f".shade-{step}{{fill:var(--ramp-{step})}}" for step in depth_shades()),
        headlines=zoo.headlines,
        failed={label: printable(why) for label, why in zoo.failed.items()},
        models=[_model(zoo, label) for label in zoo.runs],
        groups=[(group.title, _rows(zoo, group)) for group in GROUPS],
        signs=SIGNS,
        glyphs=GLYPHS,
        pictures=sections,
        definitions=_definitions(),
        references=REFERENCES.values(),
        facts=_facts(zoo),
        command=printable(zoo.manifest.get("command", "")),
        version=headscope.__version__,
    )  # fmt: skip


def figure_sections(zoo: ZooOutcome, styles: Styles) -> list[FigureSection]:
    """The sections of small panels that have any; `styles` collects their classes."""
    drawn = [(multiple, panels(zoo, multiple, key=False)) for multiple in MULTIPLES]
    return [
        FigureSection(
            multiple, _inline(every, styles, multiple.name), caption(zoo, multiple.caption, every),
            depth_shades() if multiple is BEST_HEADS else [],
        )
        for multiple, every in [*drawn, (BEST_HEADS, head_panels(zoo))]
        if every
    ]  # fmt: skip


def bound_words(claim: PaperClaim) -> str:
    """`> 50 %`: where the number must lie; "" for a claim without a bound."""
    if claim.bound is None:
        return ""
    test, bound = claim.bound.test, claim.bound.value
    sign = TESTS[test]
    if claim.unit == "share":
        return f"{sign} {percent(bound, math.nan, math.nan) if bound else '0 %'}"
    if claim.unit == "points":
        return f"{sign} {100 * bound:g} points"
    unit = {"heads": " heads", "nats": " nats"}.get(claim.unit, "")
    space = "" if test == "near" else " "
    return f"{sign}{space}{bound:g}{unit}".replace("-", "−")


# --- the table ------------------------------------------------------------------------------


def _rows(zoo: ZooOutcome, group: ClaimGroup) -> list[ClaimRow]:
    return [_row(claim, zoo.answers[claim.key]) for claim in group.claims]


def _row(claim: PaperClaim, answers: Answers) -> ClaimRow:
    holding, asked = held(answers)
    cells = [cell(outcome) for outcome in answers.values()]
    return ClaimRow(claim, bound_words(claim), f"{holding} of {asked}" if asked else "—", cells)


def cell(outcome: ClaimOutcome) -> ClaimCell:
    """One outcome as text; a claim that cannot be asked gives the reason, never a 0."""
    sign, kind = SIGNS[outcome.verdict]
    measured = outcome.measured
    if measured is None:
        return ClaimCell(outcome.verdict, sign, kind, detail=outcome.reason)
    text = _number_text(outcome.claim.unit, measured.value, measured.low, measured.high)
    value, bracket, interval = text.partition(" [")
    return ClaimCell(
        outcome.verdict, sign, kind, value, bracket.strip() + interval, measured.detail
    )


def _number_text(unit: str, value: float, low: float, high: float) -> str:
    """A number with its interval in the unit of its claim."""
    if unit == "share":
        return percent(value, low, high)
    if unit == "points":
        ends = f" [{_signed(low)}, {_signed(high)}]" if math.isfinite(low) else ""
        return _signed(value) + ends
    if unit == "heads":
        between = math.isfinite(low) and low < high
        return fixed(value, 0) + (f" [{fixed(low, 0)}, {fixed(high, 0)}]" if between else "")
    return number(value, low, high)


def _signed(share: float) -> str:
    """A difference of shares in percentage points."""
    text = fixed(100 * share, 1)
    return text if text.startswith("−") or text == "0.0" else f"+{text}"


def _definitions() -> list[tuple[list[PaperClaim], str]]:
    """Claims of one definition together, and where the number must lie."""
    alike = groupby(CLAIMS, key=lambda claim: (claim.number, bound_words(claim), claim.place))
    return [(list(claims), bound) for (_, bound, _), claims in alike]


# --- models, figures, facts -----------------------------------------------------------------


def _model(zoo: ZooOutcome, label: str) -> dict[str, Any]:
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


def _facts(zoo: ZooOutcome) -> dict[str, str]:
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
