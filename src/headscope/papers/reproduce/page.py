"""The page of a paper: its claims in its order, published beside ours; it works offline."""

from __future__ import annotations

import shlex
import string
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headscope.core.results import printable, title_name
from headscope.core.terms import SOURCES
from headscope.draw.figures import pictures
from headscope.draw.panel import PanelStore
from headscope.page.sections import InlineFigure, inline_figure
from headscope.page.svg import Styles
from headscope.papers.claim_engine import (
    DIFFERS,
    DIRECTION,
    FAILED,
    MARKS,
    NO_DIRECTION,
    NOT_RUN,
    REPRODUCED,
    ClaimGroup,
    ClaimOutcome,
    PaperClaim,
    Published,
)
from headscope.papers.page_frame import render_page
from headscope.papers.quantities import Measured
from headscope.papers.reproduce.paper_outcome import PaperOutcome, difference_texts, ours_text
from headscope.run.finished_run import Run

OFTEN = 3  # a direction that so many claims share is stated once, above them
SIGNS = {
    REPRODUCED: "●", DIRECTION: "▲", DIFFERS: "✕", NO_DIRECTION: "·", NOT_RUN: "–", FAILED: "!",
}  # fmt: skip


@dataclass(frozen=True)
class LedgerRow:
    """A claim as it stands on the page; what its section shares is left out of the words.

    published  (value, where it stands, ours less it) of each
    note       the letter of the note that says why there is no number
    aside      whether the published values are of other data
    """

    claim: PaperClaim
    verdict: str
    sign: str
    kind: str
    ours: str
    interval: str
    published: list[tuple[str, str, str]]
    direction: str
    words: list[str]
    note: str
    aside: bool


@dataclass(frozen=True)
class RunFigure:
    """A figure, what it is in the paper or of which task, and the page of its run.

    link, command  the page, or what makes it; both "" where the run is in memory
    """

    figure: InlineFigure
    counterpart: str
    link: str
    command: str


@dataclass(frozen=True)
class SharedWords:
    """What is stated once above a table: direction, n, the data where not the paper's."""

    direction: str
    n: str
    elsewhere: str


@dataclass(frozen=True)
class GroupSection:
    """A section: what most of its claims share, and notes on what was not run."""

    group: ClaimGroup
    rows: list[LedgerRow]
    shared: SharedWords
    notes: list[tuple[str, str, bool]]
    figures: list[RunFigure]
    absent: bool


def render(outcome: PaperOutcome) -> str:
    """The page as text."""
    styles = Styles()
    sections = [_section(outcome, group, styles) for group in outcome.paper.groups]
    return render_page(
        "reproduce", styles,
        paper=outcome.paper,
        source=SOURCES[outcome.paper.source],
        model=title_name(printable(outcome.model["name"])),
        facts=_facts(outcome),
        own=outcome.own,
        counts=[(SIGNS[s], s, n, _kind(s)) for s, n in outcome.counts.items() if n],
        total=len(outcome.claims),
        sections=sections,
        runs=[_run(outcome, name) for name in outcome.paper.runs],
        marks=MARKS,
        command=printable(outcome.command),
    )  # fmt: skip


# --- sections -------------------------------------------------------------------------------


def _section(outcome: PaperOutcome, group: ClaimGroup, styles: Styles) -> GroupSection:
    outcomes = outcome.of_group(group.id)
    numbers = [one.measured for one in outcomes if one.measured]
    shared = SharedWords(
        _common(one.claim.direction for one in outcomes),
        _common(number.n for number in numbers),
        _common(number.elsewhere for number in numbers),
    )
    reasons = list(dict.fromkeys(one.reason for one in outcomes if one.reason))
    letters = dict(zip(reasons, string.ascii_lowercase, strict=False))
    failed = {one.reason for one in outcomes if one.verdict == FAILED}
    return GroupSection(
        group, [_row(one, letters, shared) for one in outcomes], shared,
        [(letters.get(reason, "*"), printable(reason), reason in failed) for reason in reasons],
        _figures(outcome, group, styles),
        absent=bool(outcomes) and all(one.verdict == NOT_RUN for one in outcomes),
    )  # fmt: skip


def _common(words: Iterable[str]) -> str:
    """What most of the claims that have such words share, and at least OFTEN; "" for nothing."""
    often = Counter(word for word in words if word)
    least = max(OFTEN, often.total() / 2)
    return next((word for word, count in often.most_common(1) if count >= least), "")


def _row(outcome: ClaimOutcome, letters: Mapping[str, str], shared: SharedWords) -> LedgerRow:
    claim, measured, verdict = outcome.claim, outcome.measured or Measured(), outcome.verdict
    ours, interval = ours_text(outcome)
    apart = difference_texts(outcome) or [""] * len(claim.published)
    n = "" if measured.n == shared.n else measured.n
    elsewhere = "" if measured.elsewhere == shared.elsewhere else measured.elsewhere
    return LedgerRow(
        claim, verdict, SIGNS[verdict], _kind(verdict), ours, interval,
        [(p.text, _where(p, claim.place), d) for p, d in zip(claim.published, apart, strict=True)],
        direction="" if claim.direction == shared.direction else claim.direction,
        words=[part for part in (printable(measured.detail), n, elsewhere) if part],
        note=letters.get(outcome.reason, "*") if outcome.reason else "",
        aside=bool(measured.elsewhere),
    )  # fmt: skip


def _where(published: Published, place: str) -> str:
    """Where a value stands, and how it is known if it is not printed there."""
    where = published.where or place
    if published.mark == "text" or (published.mark == "code" and published.where):
        return where
    slack = f" ± {published.tolerance:g}" if published.tolerance else ""
    return f"{where}, {published.mark}{slack}"


def _figures(outcome: PaperOutcome, group: ClaimGroup, styles: Styles) -> list[RunFigure]:
    figures = []
    for at, shown in enumerate(group.figures):
        run = outcome.runs.get(shown.run)
        if run is None:
            continue
        panels = PanelStore(run.tree)
        picture = pictures()[shown.figure]
        drawn = inline_figure(picture, panels, styles, prefix=f"{group.id}-{at}-")
        if drawn is not None:
            of_paper = shown.counterpart.startswith(("Figure", "Table"))
            words = f"the paper’s {shown.counterpart}" if of_paper else shown.counterpart
            figures.append(RunFigure(drawn, words, *_page_of(run)))
    return figures


# --- facts ----------------------------------------------------------------------------------


def _page_of(run: Run | None) -> tuple[str, str]:
    """Where a run's own page is, as seen from ours; else the command that makes it."""
    if run is None or run.path is None:
        return "", ""
    if run.has_report:
        return f"runs/{run.path.name}/report.html", ""
    return "", printable(shlex.join(["headscope", "report", str(run.path)]))


def _facts(outcome: PaperOutcome) -> list[tuple[str, str]]:
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
        ("The paper’s own", "; ".join(filter(None, (outcome.paper.model, outcome.paper.doubt)))),
        ("Data", "; ".join(data) or "none"),
        ("Limit", _limit(outcome.limit)),
    ]  # fmt: skip
    return [(name, value) for name, value in rows if value]


def _limit(limit: int | None) -> str:
    if limit is None:
        return "none: all documents and examples"
    return f"at most {limit:,} documents or examples of each part (--limit)"


def _run(outcome: PaperOutcome, name: str) -> dict[str, Any]:
    """A run that was asked for: where it is, or why there is none."""
    run = outcome.runs.get(name)
    link, command = _page_of(run)
    return {
        "part": name, "link": link, "command": command,
        "read": "" if run is None else _read(run.tree.attrs),
        "reason": printable(outcome.absent.get(name, "")),
    }  # fmt: skip


def _read(attrs: Mapping[Any, Any]) -> str:
    if "documents" not in attrs:
        return "counted for this page; no folder of its own"
    many = str(attrs.get("counted", "documents"))
    tokens = int(attrs.get("tokens", 0))
    return f"{int(attrs.get('documents', 0)):,} {many}" + (f", {tokens:,} tokens" if tokens else "")


def _kind(status: str) -> str:
    """A class name."""
    return status.replace(" ", "-")
