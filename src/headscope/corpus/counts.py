"""What became of the corpus: how much was read, cut into windows, or skipped and why?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NAMED = 20  # ids kept for each reason; beyond that only the total grows


@dataclass
class Reason:
    """How many passages were skipped for one reason, and the ids of the first of them."""

    total: int = 0
    first: list[str] = field(default_factory=list)


@dataclass
class EncodeCounts:
    """Totals of what an encoder has read.

    documents   documents read, those that gave nothing included
    examples    model inputs made
    tokens      tokens in them, special ones included
    skipped     passages left out, each under one of `reasons`
    windowed    passages longer than an input, read in consecutive windows
    """

    documents: int = 0
    examples: int = 0
    tokens: int = 0
    skipped: int = 0
    windowed: int = 0
    reasons: dict[str, Reason] = field(default_factory=dict)

    def skip(self, passage: str, *, reason: str) -> None:
        """Counts one passage as left out."""
        self.skipped += 1
        entry = self.reasons.setdefault(reason, Reason())
        entry.total += 1
        if len(entry.first) < NAMED:
            entry.first.append(passage)

    def add(self, other: EncodeCounts) -> None:
        """Adds what was counted elsewhere, as if it had been read after this."""
        self.documents += other.documents
        self.examples += other.examples
        self.tokens += other.tokens
        self.skipped += other.skipped
        self.windowed += other.windowed
        for reason, more in other.reasons.items():
            entry = self.reasons.setdefault(reason, Reason())
            entry.total += more.total
            entry.first = (entry.first + more.first)[:NAMED]

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, texts and lists, for a manifest."""
        reasons = {
            reason: {"total": entry.total, "first": list(entry.first)}
            for reason, entry in self.reasons.items()
        }
        totals = {
            name: getattr(self, name)
            for name in ("documents", "examples", "tokens", "skipped", "windowed")
        }
        return {**totals, "reasons": reasons}
