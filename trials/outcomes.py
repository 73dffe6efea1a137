"""What came of each attempt: counts by outcome, and what failed, kept for a look."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BAD = ("wrong", "hang", "torn", "unclear error", "draft left", "draft left after", "orphan")


class Tally:
    """Counts of outcomes by scenario.

    keep  a folder for what failed; made when the first does
    """

    def __init__(self, keep: Path) -> None:
        self.keep = keep
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.failed: list[str] = []

    def add(self, scenario: str, outcome: str, what: str, *, files: Path | None = None) -> None:
        """Count an attempt; a bad one is kept with its words and its folder."""
        self.counts[scenario][outcome] += 1
        if outcome not in BAD:
            return
        self.failed.append(f"{scenario} | {outcome} | {what}")
        place = self.keep / f"{len(self.failed):04d}-{scenario}-{outcome.replace(' ', '_')}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "what.txt").write_text(what + "\n", "utf-8", "backslashreplace")
        if files is not None and files.exists() and len(self.failed) <= 200:
            shutil.copytree(files, place / "files", dirs_exist_ok=True, symlinks=True)

    @contextmanager
    def told(self) -> Iterator[Tally]:
        """Prints the counts at the end, also of what was interrupted; exit code 1 if any failed."""
        try:
            yield self
        except KeyboardInterrupt:
            print("interrupted")
        finally:
            print("\n".join([*self.failed[:20], *self.lines()]), flush=True)
        raise SystemExit(bool(self.failed))

    def lines(self) -> list[str]:
        """One for each scenario, then what failed."""
        rows = []
        for scenario, counts in [
            *self.counts.items(),
            ("all", sum(self.counts.values(), Counter())),
        ]:
            told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
            rows.append(f"{scenario}: n = {counts.total()}; {told}")
        if self.failed:
            rows.append(f"{len(self.failed)} failed; kept in {self.keep}")
        return rows
