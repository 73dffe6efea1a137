"""How does a battery become one offline page that follows the paper's order?"""

from __future__ import annotations

import shlex
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headscope.core.results import printable, title_name
from headscope.core.terms import SOURCES
from headscope.draw.figures import pictures
from headscope.draw.panel import PanelStore
from headscope.page.sections import InlineFigure, inline_figure
from headscope.page.svg import Styles
from headscope.papers.page_frame import render_page
from headscope.papers.reproduce.line import MARKS, Judged, Published, Section
from headscope.papers.reproduce.saving import difference_text, ours_text
from headscope.papers.reproduce.verdict import (
    DIFFERS,
    FAILED,
    HOLDS,
    NO_DIRECTION,
    NOT_RUN,
    REPRODUCED,
)

if TYPE_CHECKING:
    from headscope.papers.reproduce.battery import Outcome
    from headscope.run.finished_run import Run

OFTEN = 3  # a direction that so many lines share is told once, above them
SIGNS = {
    REPRODUCED: "●", HOLDS: "▲", DIFFERS: "✕", NO_DIRECTION: "·", NOT_RUN: "–", FAILED: "!",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A line as it stands on the page; `published` holds (value, where, difference)."""

    id: str
    place: str
    claim: str
    direction: str
    ours: str
    interval: str
    unit: str
    n: str
    shown: str
    published: list[tuple[str, str, str]]
    status: str
    sign: str
    kind: str
    note: str
    elsewhere: str
    aside: bool


@dataclass(frozen=True)
class Drawn:
    """A figure, what it is in the paper or of which task, and the page of its run.

    link, command  the page, or what makes it; both "" where the run is in memory
    """

    figure: InlineFigure
    counterpart: str
    link: str
    command: str


@dataclass(frozen=True)
class _Shared:
    """What is told once, above a table: direction, n, which other data than the paper's."""

    direction: str
    n: str
    elsewhere: str


@dataclass(frozen=True)
class Shown:
    """A section: what most of its lines `share`, `notes` on what was not run."""

    id: str
    title: str
    text: str
    rows: list[Row]
    shared: _Shared
    notes: list[tuple[str, str, bool]]
    figures: list[Drawn]
    counts: str
    absent: bool


def render(outcome: Outcome) -> str:
    """The page as text; everything in it is escaped, but for drawings made here."""
    styles = Styles()
    sections = [_section(outcome, section, styles) for section in outcome.paper.sections]
    return render_page(
        "reproduce", styles,
        paper=outcome.paper,
        source=SOURCES[outcome.paper.source],
        model=title_name(printable(outcome.model["name"])),
        facts=_facts(outcome),
        own=outcome.own,
        counts=[(SIGNS[s], s, n, _kind(s)) for s, n in outcome.counts.items() if n],
        total=len(outcome.lines),
        sections=sections,
        runs=_runs(outcome),
        marks=MARKS,
        command=printable(outcome.command),
    )  # fmt: skip


def _section(outcome: Outcome, section: Section, styles: Styles) -> Shown:
    judged = [line for line in outcome.lines if line.section == section.id]
    common = _common(line.line.direction for line in judged)
    answers = [line.answer for line in judged if line.answer]
    n, elsewhere = _common(a.n for a in answers), _common(a.elsewhere for a in answers)
    shared = _Shared(common, n, elsewhere)
    reasons = list(dict.fromkeys(line.reason for line in judged if line.reason))
    letters = dict(zip(reasons, _letters(), strict=False))
    failed = {line.reason for line in judged if line.status == FAILED}
    counts = Counter(line.status for line in judged)
    told = ", ".join(f"{counts[s]} {s}" for s in SIGNS if counts[s])
    return Shown(
        section.id, section.title, section.text,
        [_row(line, letters, shared) for line in judged], shared,
        [(letters.get(reason, "*"), printable(reason), reason in failed) for reason in reasons],
        _figures(outcome, section, styles), told,
        absent=bool(judged) and all(line.status == NOT_RUN for line in judged),
    )  # fmt: skip


def _common(words: Iterable[str]) -> str:
    """What most of the lines that have such words share, and at least OFTEN; "" for nothing."""
    often = Counter(word for word in words if word)
    least = max(OFTEN, often.total() / 2)
    return next((word for word, count in often.most_common(1) if count >= least), "")


def _row(judged: Judged, letters: Mapping[str, str], shared: _Shared) -> Row:
    line, answer = judged.line, judged.answer
    ours, interval = ours_text(judged)
    apart = difference_text(judged) or [""] * len(line.published)
    return Row(
        line.key, line.place, line.claim,
        "" if line.direction == shared.direction else line.direction,
        ours, interval, line.unit, answer.n if answer and answer.n != shared.n else "",
        printable(answer.shown) if answer else "",
        [(p.text, _where(p, line.place), d) for p, d in zip(line.published, apart, strict=True)],
        judged.status, SIGNS[judged.status], _kind(judged.status),
        letters.get(judged.reason, "*") if judged.reason else "",
        answer.elsewhere if answer and answer.elsewhere != shared.elsewhere else "",
        bool(answer and answer.elsewhere),
    )  # fmt: skip


def _where(published: Published, place: str) -> str:
    """Where a value stands, and how it is known if it is not printed there."""
    where = published.where or place
    if published.mark == "text" or (published.mark == "code" and published.where):
        return where
    slack = f" ± {published.tolerance:g}" if published.tolerance else ""
    return f"{where}, {published.mark}{slack}"


def _figures(outcome: Outcome, section: Section, styles: Styles) -> list[Drawn]:
    found = []
    for at, shown in enumerate(section.pictures):
        run = outcome.runs.get(shown.part)
        if run is None:
            continue
        place = f"{section.id}-{at}-"
        drawn = inline_figure(pictures()[shown.picture], PanelStore(run.tree), styles, prefix=place)
        if drawn is not None:
            of_paper = shown.counterpart.startswith(("Figure", "Table"))
            told = f"the paper’s {shown.counterpart}" if of_paper else shown.counterpart
            found.append(Drawn(drawn, told, *_page_of(run)))
    return found


def _page_of(run: Run | None) -> tuple[str, str]:
    """Where a run's own page is, as seen from ours; else the command that makes it."""
    if run is None or run.path is None:
        return "", ""
    if run.has_report:
        return f"runs/{run.path.name}/report.html", ""
    return "", printable(shlex.join(["headscope", "report", str(run.path)]))


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    model = outcome.model
    data = [
        f"{d['key']}: {printable(d['name'])}" + (f" ({d['elsewhere']})" if d["elsewhere"] else "")
        for d in outcome.data
    ]
    rows = [
        ("Model", printable(model["name"])),
        ("Revision", printable(model["revision"])),
        ("Weights, sha256", printable(model["sha256"])),
        ("Architecture", "{architecture}, {layers} layers × {heads} heads".format_map(model)),
        ("The paper’s own", outcome.paper.model + (f"; {outcome.paper.doubt}" if outcome.paper.doubt
                                                   else "")),
        ("Data", "; ".join(data) or "none"),
        ("Limit", _limit(outcome.limit)),
    ]  # fmt: skip
    return [(name, value) for name, value in rows if value]


def _limit(limit: int | None) -> str:
    if limit is None:
        return "none: all documents and examples"
    return f"at most {limit:,} documents or examples of each part (--limit)"


def _runs(outcome: Outcome) -> list[dict[str, Any]]:
    """Every part: where its run is, or why there is none."""
    rows = []
    for part in outcome.paper.parts:
        run = outcome.runs.get(part)
        reason = outcome.absent.get(part, "")
        link, making = _page_of(run)
        rows.append({
            "part": part,
            "link": link,
            "command": making,
            "read": "" if run is None else _read(run.tree.attrs),
            "reason": printable(reason),
        })  # fmt: skip
    return rows


def _read(attrs: Mapping[Any, Any]) -> str:
    if "documents" not in attrs:
        return "counted for this page; no folder of its own"
    many = str(attrs.get("counted", "documents"))
    tokens = int(attrs.get("tokens", 0))
    return f"{int(attrs.get('documents', 0)):,} {many}" + (f", {tokens:,} tokens" if tokens else "")


def _kind(status: str) -> str:
    """A class name."""
    return status.replace(" ", "-")


def _letters() -> Sequence[str]:
    return string.ascii_lowercase
