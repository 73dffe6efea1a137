"""A stranger's package, put on the path as pip leaves it."""

from __future__ import annotations

import sys
from pathlib import Path


def install(place: Path, monkeypatch, code: str, entries: str) -> None:
    """`mine`, a module of this code with these entry points."""
    about = place / "mine-1.0.dist-info"
    about.mkdir()
    (place / "mine.py").write_text(code, "utf-8")
    (about / "entry_points.txt").write_text(entries, "utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n", "utf-8")
    monkeypatch.syspath_prepend(place)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
