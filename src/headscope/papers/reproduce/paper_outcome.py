"""The outcome of a paper: its claims with our numbers, as a table (CSV), JSON and words."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headscope.core.wording import fixed
from headscope.papers.claim_engine import (
    FAILED,
    NOT_RUN,
    STATUSES,
    ClaimOutcome,
    Paper,
    differences,
    scale_of,
)
from headscope.papers.quantities import Measured
from headscope.run.finished_run import Run

COLUMNS = (
    "key", "section", "place", "claim", "unit", "ours", "ci_low", "ci_high", "n", "published",
    "published_value", "mark", "difference", "direction", "direction_holds", "status", "reason",
    "shown", "other_data",
)  # fmt: skip


@dataclass(frozen=True)
class PaperOutcome:
    """A paper whose claims were held against runs of one model.

    model    name, revision, sha256, architecture, layers, heads; empty where none could be loaded
    own      whether the model is the paper's own
    absent   why other runs are missing, by name
    data     key, name and elsewhere of the data that were read
    seconds  of each run; little where it was opened and not computed
    """

    paper: Paper
    folder: Path
    model: Mapping[str, Any]
    own: bool
    claims: Sequence[ClaimOutcome]
    runs: Mapping[str, Run]
    absent: Mapping[str, str]
    data: Sequence[Mapping[str, str]]
    limit: int | None
    seconds: Mapping[str, float] = field(default_factory=dict)
    command: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """How many claims have each verdict, all of STATUSES in order."""
        counts = Counter(outcome.verdict for outcome in self.claims)
        return {status: counts[status] for status in STATUSES}

    @property
    def failed(self) -> bool:
        """Whether a claim or a run failed, rather than lacking what it needs."""
        return self.counts[FAILED] > 0

    def of_group(self, group: str) -> list[ClaimOutcome]:
        """The outcomes of the claims of a group, by its id."""
        return [outcome for outcome in self.claims if outcome.group == group]


# --- for machines ---------------------------------------------------------------------------


def summary(paper: PaperOutcome) -> dict[str, Any]:
    """The model, how many claims have each verdict, and every claim."""
    return {
        "paper": paper.paper.name, "model": dict(paper.model), "own_model": paper.own,
        "limit": paper.limit, "data": list(paper.data), "counts": paper.counts,
        "report": str(paper.folder / "report.html"),
        "lines": [claim_record(outcome) for outcome in paper.claims],
    }  # fmt: skip


def claim_record(outcome: ClaimOutcome) -> dict[str, Any]:
    """A claim as plain values, in its unit; what does not exist is None."""
    claim, measured = outcome.claim, outcome.measured or Measured()
    scale = scale_of(claim.unit)
    apart = differences(outcome) or [math.nan] * len(claim.published)
    return {
        "key": claim.key, "section": outcome.group, "place": claim.place, "claim": claim.text,
        "unit": claim.unit, "ours": _finite(scale * measured.value),
        "ci_low": _finite(scale * measured.low), "ci_high": _finite(scale * measured.high),
        "n": measured.n,
        "published": [
            {"text": p.text, "value": _finite(p.value), "mark": p.mark, "tolerance": p.tolerance,
             "where": p.where, "agrees": p in outcome.agrees, "difference": _finite(difference)}
            for p, difference in zip(claim.published, apart, strict=True)
        ],
        "direction": claim.direction, "direction_holds": measured.holds,
        "status": status_text(outcome), "reason": outcome.reason, "shown": measured.detail,
        "other_data": measured.elsewhere,
    }  # fmt: skip


def claims_csv(outcomes: Sequence[ClaimOutcome], *, own: bool) -> str:
    """A row for each claim; two published values make two rows.

    own  whether `published` is of the same model: else the column says so
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        "published_other_model" if name == "published" and not own else name for name in COLUMNS
    )
    for outcome in outcomes:
        record = claim_record(outcome)
        for published in record["published"] or [{}]:
            row = record | {
                "published": published.get("text", ""), "mark": published.get("mark", ""),
                "published_value": published.get("value"),
                "difference": published.get("difference"),
            }  # fmt: skip
            writer.writerow("" if row[name] is None else row[name] for name in COLUMNS)
    return file.getvalue()


def as_json(value: Any) -> str:
    """JSON that strict readers take."""
    return json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


# --- for readers ----------------------------------------------------------------------------


def status_text(outcome: ClaimOutcome) -> str:
    """`not run: needs …`, or the verdict alone."""
    return f"{outcome.verdict}: {outcome.reason}" if outcome.reason else outcome.verdict


def short_status(outcome: ClaimOutcome) -> str:
    """The verdict in a line of a terminal; of a need, only what."""
    if outcome.verdict != NOT_RUN:
        return status_text(outcome)
    return f"{outcome.verdict}: {outcome.reason.partition(':')[0].partition(';')[0]}"


def ours_text(outcome: ClaimOutcome) -> tuple[str, str]:
    """Our value and its interval in the unit of the claim, with the published one's digits."""
    measured = outcome.measured
    if measured is None or math.isnan(measured.value):
        return "", ""
    scale, digits = scale_of(outcome.claim.unit), digits_of(outcome)
    value = _fixed(scale * measured.value, digits)
    if not measured.has_interval:
        return value, ""
    ends = (_fixed(scale * end, digits) for end in (measured.low, measured.high))
    return value, f"[{', '.join(ends)}]"


def difference_texts(outcome: ClaimOutcome) -> list[str]:
    """Ours less each published value, with its sign; "" for ranges and bounds."""
    digits = digits_of(outcome)
    return [
        ("+" if round(x, digits) > 0 else "") + _fixed(x, digits) if math.isfinite(x) else ""
        for x in differences(outcome)
    ]


def digits_of(outcome: ClaimOutcome) -> int:
    """Decimals: of the published value, one more if that has none; three figures without one."""
    texts = [published.text for published in outcome.claim.published]
    printed = [len(text.replace("–", ".").rpartition(".")[2]) for text in texts if "." in text]
    if printed:
        return max(printed)
    unit, measured = outcome.claim.unit, outcome.measured
    size = abs(scale_of(unit) * measured.value) if measured else 0.0
    whole = measured is not None and float(measured.value).is_integer() and math.isnan(measured.low)
    if whole and unit == "":
        return 0
    return 1 if texts or size >= 10 else 2 if size >= 0.1 else 3


def _fixed(value: float, digits: int) -> str:
    """As the papers print numbers: counts with commas."""
    return f"{round(value):,}".replace("-", "−") if digits == 0 else fixed(value, digits)
