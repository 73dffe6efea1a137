"""How do judged lines become files that a machine reads, and words that a reader does?"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import Any

from headscope.core.wording import fixed
from headscope.papers.reproduce.line import Judged, Published
from headscope.papers.reproduce.verdict import NOT_RUN, difference, scale_of

NUMBERS = ("ours", "ci_low", "ci_high")
COLUMNS = (
    "key", "section", "place", "claim", "unit", "ours", "ci_low", "ci_high", "n", "published",
    "published_value", "mark", "difference", "direction", "direction_holds", "status", "reason",
    "shown", "other_data",
)  # fmt: skip


def line_record(judged: Judged) -> dict[str, Any]:
    """A line as plain values, in its unit; what does not exist is None."""
    line, answer = judged.line, judged.answer
    scale = scale_of(line.unit)
    ours = (answer.value, answer.low, answer.high) if answer else (math.nan,) * 3
    apart = difference(judged)
    return {
        "key": line.key, "section": judged.section, "place": line.place, "claim": line.claim,
        "unit": line.unit,
        **dict(zip(NUMBERS, (_finite(scale * x) for x in ours), strict=True)),
        "n": answer.n if answer else "",
        "published": [
            {"text": p.text, "value": _finite(p.value), "mark": p.mark, "tolerance": p.tolerance,
             "where": p.where, "agrees": p in judged.agrees,
             "difference": _finite(apart[at]) if apart else None}
            for at, p in enumerate(line.published)
        ],
        "direction": line.direction,
        "direction_holds": answer.holds if answer else None,
        "status": status_text(judged), "reason": judged.reason,
        "shown": answer.shown if answer else "",
        "other_data": answer.elsewhere if answer else "",
    }  # fmt: skip


def lines_csv(lines: Sequence[Judged], *, own: bool) -> str:
    """A row for each line; two published values make two rows.

    own  whether `published` is of the same model: else the column says so
    """
    names = [("published_other_model" if c == "published" and not own else c) for c in COLUMNS]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    for judged in lines:
        record = line_record(judged)
        for published in record["published"] or [{}]:
            row = record | {
                "published": published.get("text", ""), "mark": published.get("mark", ""),
                "published_value": published.get("value"),
                "difference": published.get("difference"),
            }  # fmt: skip
            writer.writerow([_cell(row[column]) for column in COLUMNS])
    return file.getvalue()


def as_json(found: Any) -> str:
    """JSON that strict readers take."""
    return json.dumps(found, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def status_text(judged: Judged) -> str:
    """`not run: needs …`, or the status alone."""
    return f"{judged.status}: {judged.reason}" if judged.reason else judged.status


def short_status(judged: Judged) -> str:
    """The status in a line of a terminal: of a need, only what."""
    if judged.status != NOT_RUN:
        return status_text(judged)
    return f"{judged.status}: {judged.reason.partition(':')[0].partition(';')[0]}"


def ours_text(judged: Judged) -> tuple[str, str]:
    """Our value and its interval in the unit of the line, with the digits of the published one."""
    answer = judged.answer
    if answer is None or math.isnan(answer.value):
        return "", ""
    scale, digits = scale_of(judged.line.unit), digits_of(judged)
    value = _fixed(scale * answer.value, digits)
    if not (math.isfinite(answer.low) and math.isfinite(answer.high)):
        return value, ""
    ends = (_fixed(scale * end, digits) for end in (answer.low, answer.high))
    return value, f"[{', '.join(ends)}]"


def difference_text(judged: Judged) -> list[str]:
    """Ours less each published value, with its sign; "" for ranges and bounds."""
    digits = digits_of(judged)
    return [
        ("+" if round(x, digits) > 0 else "") + _fixed(x, digits) if math.isfinite(x) else ""
        for x in difference(judged)
    ]


def digits_of(judged: Judged) -> int:
    """Decimals: of the published value, one more if that has none; three figures without one."""
    published: Sequence[Published] = judged.line.published
    printed = [len(p.text.replace("–", ".").rpartition(".")[2]) for p in published if "." in p.text]
    if printed:
        return max(printed)
    answer = judged.answer
    size = abs(scale_of(judged.line.unit) * answer.value) if answer else 0.0
    whole = answer is not None and float(answer.value).is_integer() and math.isnan(answer.low)
    if whole and judged.line.unit == "":
        return 0
    return 1 if published or size >= 10 else 2 if size >= 0.1 else 3


def _fixed(value: float, digits: int) -> str:
    """As the papers print numbers: counts with commas."""
    return f"{round(value):,}".replace("-", "−") if digits == 0 else fixed(value, digits)


def _cell(value: Any) -> Any:
    return "" if value is None else value


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
