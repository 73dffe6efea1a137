"""What do the tests of a report share? Pages without pictures, and one for the browser."""

from __future__ import annotations

from pathlib import Path

import pytest
import xarray as xr

from headscope.report.build import build_report, render
from recorded import ALL, BOTH, hostile, manifest_of, recorded, with_pair

EVIL = [
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "{{7*7}}",
    '","start":null,"',
    "${alert(1)}",
    "\u2028",
    "\ud800",
    "]]>",
    "\u202eevil",
    "<iframe src=//x>",
]
HOSTILE = ["[CLS]", *EVIL[:5], "[SEP]", *EVIL[5:], "[SEP]"]


@pytest.fixture
def no_pictures(monkeypatch):
    """Pages without pictures, which take most of their time."""
    monkeypatch.setattr("headscope.report.build.pictures", dict)


@pytest.fixture(scope="session")
def whole() -> xr.DataTree:
    """A run with everything, of fifty relations; only to be read."""
    tree = recorded(12, 12, ALL)
    relations, patterns = tree["dependency"].to_dataset(), tree["patterns"].to_dataset()
    more = relations.isel(relation=slice(4, 27))
    more = more.assign_coords(relation=[f"x:made_up_{at}" for at in range(23)])
    tree["dependency"].dataset = xr.concat(
        [relations, more], "relation", data_vars="minimal", coords="minimal", compat="override"
    )
    maps = [name for name in patterns.variables if str(name).startswith("typical")]
    tree["patterns"].dataset = patterns.drop_vars(maps)
    return with_pair(tree)


@pytest.fixture(scope="session")
def whole_page(whole, made_once) -> str:
    """Its page, with all pictures."""
    return made_once("whole.html", lambda: render(whole, manifest_of(whole)))


@pytest.fixture(scope="session")
def hostile_tree() -> xr.DataTree:
    """A run whose inputs and relations have hostile words."""
    return hostile(recorded(groups=BOTH), tokens=HOSTILE)


@pytest.fixture(scope="session")
def hostile_report(hostile_tree, tmp_path_factory) -> Path:
    """Its report, without pictures: for what a browser does with the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.report.build.pictures", dict)
        patch.setattr("headscope.report.build.save_figures", lambda *_, **__: [])
        return build_report(
            hostile_tree, manifest_of(hostile_tree), tmp_path_factory.mktemp("report")
        )
