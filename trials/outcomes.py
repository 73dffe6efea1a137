"""What came of each attempt: counts by outcome, how many faults hit, and what failed.

A trial whose faults miss proves nothing: one in which too few hit fails, as does one of none.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BAD = ("wrong", "hang", "torn", "unclear error", "draft left", "draft left after", "orphan")
SHARE = 0.8  # of the faults of a scenario that must hit


class Tally:
    """Counts of outcomes by scenario.

    keep   a folder for what failed; made when the first does
    share  of the faults of a scenario that must hit, where it is not SHARE
    tries  faults by scenario, of which so many hit
    """

    def __init__(self, keep: Path) -> None:
        self.keep = keep
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.share: dict[str, float] = {}
        self.hits, self.tries = Counter[str](), Counter[str]()
        self.failed: list[str] = []

    def add(
        self,
        scenario: str,
        outcome: str,
        what: str,
        hits: int = 1,
        tries: int = 1,
        *,
        files: Path | None = None,
    ) -> None:
        """Count an attempt, of whose faults so many hit; a bad one is kept with its folder.

        A fault hits where what it was aimed at was still there, and was harmed.
        """
        self.counts[scenario][outcome] += 1
        self.hits[scenario] += hits
        self.tries[scenario] += tries
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
        raise SystemExit(bool(self.failed or self.idle()))

    def idle(self) -> list[str]:
        """Scenarios in which too few faults hit to prove anything; all, where nothing was tried."""
        return [
            name
            for name in self.counts or ("all",)
            if self.hits[name] < max(1, self.share.get(name, SHARE) * self.tries[name])
        ]

    def lines(self) -> list[str]:
        """One for each scenario, then what failed."""
        rows = []
        for scenario in [*self.counts, "all"]:
            of = [scenario] if scenario != "all" else [*self.counts]
            counts = sum((self.counts[name] for name in of), Counter[str]())
            told = [f"{count} {outcome}" for outcome, count in sorted(counts.items())]
            hits, tries = (sum(each[name] for name in of) for each in (self.hits, self.tries))
            told.append(f"{hits} of {tries} hit")
            rows.append(f"{scenario}: n = {counts.total()}; {', '.join(told)}")
        for name in self.idle():
            wanted = self.share.get(name, SHARE)
            rows.append(f"{name}: FAILED: too few hit; wanted {wanted:.0%}, and one at least")
        if self.failed:
            rows.append(f"{len(self.failed)} failed; kept in {self.keep}")
        return rows
