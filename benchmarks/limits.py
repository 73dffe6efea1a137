"""Does a verdict stand, however much is read? Of one paper, run with several limits.

for N in 20 40 200; do headscope reproduce PAPER --model demo --limit $N -o out/$N; done
python -m benchmarks.limits out/20 out/40 out/200

Printed: how many lines have each verdict in each folder; lines that hold in one and do not in
another, also of what is said against an untrained network; and intervals that leave out their own
number or reach where no such number can lie. Ends with 1 if there are any of these.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope.claims.verdict import Outcome

Line = Mapping[str, Any]
RANGES = {"%": (0.0, 100.0), "share": (0.0, 1.0), "heads": (0.0, math.inf)}
DIFFERENCE = re.compile(r"change|difference|above that|gain|loss|helps|costs")
CORRELATION = re.compile(r"correlation|Spearman|Pearson")
NEAR = 1e-6  # of rounding
CONTRARY = {str(Outcome.HOLDS), str(Outcome.FAILS)}


def possible(line: Line) -> tuple[float, float]:
    """Between which two a number of this kind lies, by its unit and words."""
    unit, text = line["unit"], line["claim"]
    if CORRELATION.search(text):
        return (-100.0, 100.0) if "× 100" in text else (-1.0, 1.0)
    if unit == "points" or (unit == "%" and DIFFERENCE.search(text)):
        return -100.0, 100.0
    return RANGES.get(unit, (-math.inf, math.inf))


def odd(line: Line) -> str:
    """What is impossible about the interval of a line; "" for nothing."""
    value, low, high = (line[key] for key in ("ours", "ci_low", "ci_high"))
    if value is None or low is None or high is None:
        return ""
    first, last = possible(line)
    faults = []
    if not low - NEAR <= value <= high + NEAR:
        faults.append("leaves out its number")
    if low < first - NEAR or high > last + NEAR:
        faults.append(f"reaches beyond {first:g} to {last:g}")
    return " and ".join(faults)


def flips(folders: Mapping[str, Sequence[Line]], field: str) -> list[str]:
    """Lines whose verdict is one in a folder and the contrary in another."""
    by_key: dict[str, dict[str, str]] = {}
    for name, lines in folders.items():
        for line in lines:
            by_key.setdefault(line["key"], {})[name] = line[field]
    return [
        f"{key}: " + ", ".join(f"{name} {status}" for name, status in seen.items())
        for key, seen in by_key.items()
        if set(seen.values()) >= CONTRARY
    ]


def odd_intervals(folders: Mapping[str, Sequence[Line]]) -> list[str]:
    """Every interval that is impossible, with its folder and line."""
    return [
        f"{name} {line['key']}: {line['ours']:.4g} [{line['ci_low']:.4g}, {line['ci_high']:.4g}] "
        f"{fault}"
        for name, lines in folders.items()
        for line in lines
        if (fault := odd(line))
    ]


def counts(folders: Mapping[str, Sequence[Line]]) -> list[str]:
    """A row per folder: lines of each verdict, and of those that hold how many beyond a control."""
    rows = []
    for name, lines in folders.items():
        of, beyond = (Counter(line[f] for line in lines) for f in ("status", "beyond_untrained"))
        held = ", ".join(f"{status} {n}" for status, n in beyond.items() if status)
        rows.append(f"{name}: " + ", ".join(f"{outcome} {of[outcome]}" for outcome in Outcome))
        rows[-1] += f" (beyond an untrained network: {held})" * bool(held)
    return rows


def main() -> int:
    """Compare folders of `headscope reproduce`; see the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    places: list[Path] = parser.parse_args().folders
    folders = {
        place.name: json.loads((place / "lines.json").read_text("utf-8"))["lines"]
        for place in places
    }
    faults = {
        "flips between holds and does not hold": flips(folders, "status"),
        "flips against an untrained network": flips(folders, "beyond_untrained"),
        "impossible intervals": odd_intervals(folders),
    }
    print(*counts(folders), sep="\n")
    for what, rows in faults.items():
        print(f"{what}: {len(rows)}", *rows, sep="\n  ")
    return int(any(faults.values()))


if __name__ == "__main__":
    raise SystemExit(main())
