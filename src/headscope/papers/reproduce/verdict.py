"""Is a published value reproduced, does only its direction hold, or neither?

With the paper's own model and data of its kind: `reproduced` where a published value lies within
our 95 % interval, widened by how far the reading of a figure may be wrong; else `direction holds`
or `differs`. With another model or other data only the direction counts.
"""

from __future__ import annotations

import math

from headscope.papers.reproduce.line import Answer, Judged, Line, NotRun, Published, Results

REPRODUCED, HOLDS, DIFFERS = "reproduced", "direction holds", "differs"
NO_DIRECTION, NOT_RUN, FAILED = "no direction stated", "not run", "failed"
STATUSES = (REPRODUCED, HOLDS, DIFFERS, NO_DIRECTION, NOT_RUN, FAILED)


def judge(line: Line, section: str, results: Results) -> Judged:
    """The line with our answer; what cannot be told says why, and never stops the others."""
    try:
        for part in line.parts:
            results.run(part)
        answer = line.measure(results)
    except NotRun as error:
        reason = str(error)
        status = FAILED if reason.startswith(failure("")) else NOT_RUN
        return Judged(line, section, None, status, reason.removeprefix(failure("")))
    except Exception as error:  # one line's fault is that line's
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        return Judged(line, section, None, FAILED, reason)
    if math.isnan(answer.value) and (answer.holds is None or not answer.shown):
        return Judged(
            line, section, None, NOT_RUN, answer.shown or "the number does not exist here"
        )
    agreeing = tuple(p for p in line.published if agrees(p, answer, line.unit))
    status = status_of(line, answer, own=results.own, agreeing=bool(agreeing))
    return Judged(line, section, answer, status, agrees=agreeing)


def failure(reason: str) -> str:
    """Why a part has no run, if not for want of data."""
    return f"{FAILED}: {reason}"


def status_of(line: Line, answer: Answer, *, own: bool, agreeing: bool) -> str:
    """One of STATUSES for a line that has an answer."""
    comparable = own and not answer.elsewhere
    if comparable and agreeing:
        return REPRODUCED
    if answer.holds is not None:
        return HOLDS if answer.holds else DIFFERS
    return DIFFERS if comparable and line.published else NO_DIRECTION


def agrees(published: Published, answer: Answer, unit: str) -> bool:
    """Whether the interval, or the value where there is none, meets what was printed.

    A bound ("> 50") is met by the value itself: an interval reaching over it would prove nothing.
    """
    if math.isnan(answer.value):
        return False
    scale = scale_of(unit)
    first, last = published.limits
    if math.isinf(first) or math.isinf(last):
        return first <= scale * answer.value <= last
    there = math.isfinite(answer.low) and math.isfinite(answer.high)
    low, high = (answer.low, answer.high) if there else (answer.value, answer.value)
    grain = 1e-9 * max(1.0, abs(first), abs(last))  # of binary fractions, at the boundary
    return scale * low <= last + grain and scale * high >= first - grain


def scale_of(unit: str) -> float:
    """What a share is multiplied by to be in the unit of its line."""
    return 100.0 if unit in ("%", "points") else 1.0


def difference(judged: Judged) -> list[float]:
    """Ours less each published value, in the unit of the line; NaN for ranges and bounds."""
    if judged.answer is None:
        return []
    ours = scale_of(judged.line.unit) * judged.answer.value
    return [ours - published.value for published in judged.line.published]
